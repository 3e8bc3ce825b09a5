//! All routes of one agent, and what its link sees of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hedgerow_protocol::directive::{Directive, Stamp};
use hedgerow_protocol::ids::{Incarnation, InstanceId, RouteKey, Sequence, ZoneName};
use hedgerow_protocol::limits::{LEASE_DEFAULT, ROUTES_PER_AGENT_MAX};
use hedgerow_protocol::report::{LinkState, Report};
use hedgerow_protocol::session::{Hello, Text, Welcome};
use parking_lot::{Mutex, RwLock};
use tokio::time::Instant;

use crate::error::ConfigError;
use crate::host::{Host, NotTaken};
use crate::mode::{DirectiveRefused, LinkClock, RouteMode};
use crate::replicas::Replicas;
use crate::route::{Limits, RouteState, Tasks};
use crate::standalone::PolicyFile;

/// See the [module](self). No call ever comes here: calls have their route.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) instance: InstanceId,
    pub(crate) tasks: Tasks,
    pub(crate) birth: Instant,
    pub(crate) has_controller: bool,
    pub(crate) policy_file: Option<Arc<PolicyFile>>,
    /// The agent has shut down.
    closed: AtomicBool,
    zone: Option<ZoneName>,
    build: Text,
    routes: RwLock<BTreeMap<RouteKey, Arc<RouteState>>>,
    /// Routes beyond the most that are reported one by one.
    unreported: AtomicU64,
    link: Mutex<LinkClock>,
    under_way: Mutex<Option<Report>>,
    /// How often each kind of [`NotTaken`] was.
    not_taken: [AtomicU64; 3],
}

impl Shared {
    pub(crate) fn new(
        zone: Option<ZoneName>,
        build: Text,
        has_controller: bool,
        policy_file: Option<Arc<PolicyFile>>,
    ) -> Self {
        Self {
            instance: InstanceId::generate(),
            tasks: Tasks::default(),
            birth: Instant::now(),
            has_controller,
            policy_file,
            closed: AtomicBool::new(false),
            zone,
            build,
            routes: RwLock::default(),
            unreported: AtomicU64::new(0),
            link: Mutex::default(),
            under_way: Mutex::default(),
            not_taken: Default::default(),
        }
    }

    /// Takes a new route in, where it is the first of its name. Beyond the most that are reported
    /// it is counted with all others that are too many.
    pub(crate) fn add(
        &self,
        key: &RouteKey,
        limits: Limits,
        replicas: Option<Replicas>,
        mode: RouteMode,
    ) -> Result<Arc<RouteState>, ConfigError> {
        let mut routes = self.routes.write();
        if routes.contains_key(key) {
            return Err(ConfigError::DuplicateRoute(key.clone()));
        }
        let anywhere = RouteState::anywhere(key);
        let (tasks, born) = (self.tasks.clone(), (self.instance, self.birth));
        let named = routes.len() - usize::from(routes.contains_key(&RouteKey::other()));
        if named == ROUTES_PER_AGENT_MAX {
            let other = routes.entry(RouteKey::other()).or_insert_with_key(|key| {
                let (key, mode) = (key.clone(), RouteMode::default());
                let (anywhere, tasks) = (RouteState::anywhere(&key), tasks.clone());
                Arc::new(RouteState::new(
                    key,
                    limits,
                    (None, anywhere),
                    mode,
                    tasks,
                    born,
                ))
            });
            let route = Arc::new(other.folded(limits, (replicas, anywhere)));
            drop(routes);
            if self.unreported.fetch_add(1, Ordering::Relaxed) == 0 {
                tracing::warn!(
                    route = %key,
                    "more than {ROUTES_PER_AGENT_MAX} routes; this one and all that follow observe \
                     only and are counted together under {}",
                    RouteKey::other()
                );
            }
            return Ok(route);
        }
        let places = (replicas, anywhere);
        let route = Arc::new(RouteState::new(
            key.clone(),
            limits,
            places,
            mode,
            tasks,
            born,
        ));
        // Under the lock: a file taken, or a shutdown, at this very moment finds the route in the
        // list, or is found here.
        let now = self.since_birth(Instant::now());
        self.give_file_policy(&route, now);
        if self.closed.load(Ordering::SeqCst) {
            route.close(now, &self.link.lock());
        }
        routes.insert(key.clone(), route.clone());
        Ok(route)
    }

    fn give_file_policy(&self, route: &RouteState, now: Duration) {
        if let Some(file) = &self.policy_file {
            let policies = file.policies();
            route.set_file_policy(policies.of(&route.key), now);
        }
    }

    /// The policy file says something else than before.
    pub(crate) fn policies_changed(&self, now: Instant) {
        let now = self.since_birth(now);
        self.routes()
            .iter()
            .for_each(|route| self.give_file_policy(route, now));
    }

    /// Nothing is hedged any more.
    pub(crate) fn close(&self, now: Instant) {
        let now = self.since_birth(now);
        self.closed.store(true, Ordering::SeqCst);
        let link = *self.link.lock();
        self.routes()
            .iter()
            .for_each(|route| route.close(now, &link));
    }

    pub(crate) fn routes(&self) -> Vec<Arc<RouteState>> {
        self.routes.read().values().cloned().collect()
    }

    pub(crate) fn unreported_routes(&self) -> u64 {
        self.unreported.load(Ordering::Relaxed)
    }

    /// How often this was refused.
    pub(crate) fn times_not_taken(&self, what: NotTaken) -> u64 {
        self.not_taken[what as usize].load(Ordering::Relaxed)
    }

    /// None without a controller: there is nothing to stand towards.
    pub(crate) fn link_state(&self) -> Option<LinkState> {
        let now = self.since_birth(Instant::now());
        let link = *self.link.lock();
        let state = link.state(now, LEASE_DEFAULT);
        (self.has_controller || link.was_heard()).then_some(state)
    }

    /// Looks for a route's first threshold in the second under way. True where nothing is left to
    /// look for.
    pub(crate) fn look_early(&self, route: &RouteState, now: Instant) -> bool {
        let link = *self.link.lock();
        route.look_early(self.since_birth(now), &link)
    }

    fn since_birth(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.birth)
    }
}

impl Host for Shared {
    fn hello(&self) -> Hello {
        Hello {
            instance: self.instance,
            // An agent's counters live as long as it does.
            incarnation: Incarnation(1),
            zone: self.zone.clone(),
            version: Text::lossy(env!("CARGO_PKG_VERSION")),
            build: self.build.clone(),
            capabilities: BTreeSet::new(),
            held: self
                .routes()
                .iter()
                .filter_map(|route| route.held())
                .collect(),
        }
    }

    fn collect(&self, sequence: Sequence, covers: Duration, now: Instant) -> Report {
        let mut under_way = self.under_way.lock();
        match &*under_way {
            Some(report) if report.sequence == sequence => report.clone(),
            _ => {
                let now = self.since_birth(now);
                let wall_clock = SystemTime::now().duration_since(UNIX_EPOCH);
                let report = Report {
                    sequence,
                    covers,
                    wall_clock_ms: wall_clock.map_or(0, |since| since.as_millis() as u64),
                    routes: self
                        .routes()
                        .iter()
                        .map(|route| route.collect(now))
                        .collect(),
                };
                under_way.insert(report).clone()
            }
        }
    }

    fn acknowledged(&self, sequence: Sequence) {
        let mut under_way = self.under_way.lock();
        // An answer to another report than the one under way says nothing about this one.
        if under_way
            .as_ref()
            .is_some_and(|report| report.sequence == sequence)
        {
            *under_way = None;
            self.routes().iter().for_each(|route| route.acknowledged());
        }
    }

    fn not_taken(&self, what: NotTaken) {
        self.not_taken[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn apply(&self, directive: Directive, now: Instant) -> Result<(), String> {
        // What is counted together is nobody's to direct: its calls have nothing in common.
        let routes = self.routes.read();
        let named = routes.get(&directive.route).cloned();
        drop(routes);
        let route = named.filter(|route| !route.key.is_other());
        let applied = match route {
            Some(route) => {
                let link = *self.link.lock();
                route.apply(directive, self.since_birth(now), &link)
            }
            None => Err(DirectiveRefused::Route(directive.route)),
        };
        applied.map_err(|refused| refused.to_string())
    }

    fn heard(&self, now: Instant) {
        let now = self.since_birth(now);
        let mut link = self.link.lock();
        let before = link.state(now, LEASE_DEFAULT);
        link.heard(now);
        let link_now = *link;
        drop(link);
        if before != LinkState::Live {
            // Back from a silence: what was decaying holds in full again.
            self.routes()
                .iter()
                .for_each(|route| route.renew(now, &link_now));
        }
    }

    fn welcomed(&self, welcome: &Welcome, now: Instant) {
        self.link.lock().set_heartbeat(welcome.heartbeat);
        self.routes()
            .iter()
            .for_each(|route| route.welcomed(welcome.lease));
        self.heard(now);
    }

    fn delivered(&self, named: &BTreeSet<RouteKey>, now: Instant) {
        let now = self.since_birth(now);
        let link = *self.link.lock();
        for route in self.routes() {
            let named = (!named.is_empty()).then(|| named.contains(&route.key));
            route.delivered(named, now, &link);
        }
    }

    fn held(&self) -> Vec<(RouteKey, Stamp)> {
        let stamp = |route: &Arc<RouteState>| Some((route.key.clone(), route.stamp()?));
        self.routes.read().values().filter_map(stamp).collect()
    }

    fn tick(&self, now: Instant) {
        let now = self.since_birth(now);
        let link = *self.link.lock();
        self.routes()
            .iter()
            .for_each(|route| route.tick(now, &link));
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
