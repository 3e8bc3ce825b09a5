//! The controller: events in, effects out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use hedgerow_protocol::ids::{DependencyName, Epoch, Revision, RouteKey, Tick};
use hedgerow_protocol::policy::PolicyScope;

use crate::alert::AlertBook;
use crate::decide::{Decision, Utilisation};
use crate::effect::{Effect, Restored};
use crate::epoch::Epochs;
use crate::event::{ConnectionId, Event, Settings};
use crate::fleet::Fleet;
use crate::moment::Moment;
use crate::orders::Orders;
use crate::rollout::Watch;
use crate::route::{Route, Routes};
use crate::rules::{Rules, Standing};
use crate::start::Credits;
use crate::view::{AlertRule, ControllerView};
use crate::writes::Writes;

/// How old the base of a route may be to be taken up after a restart: as long as one is learned over.
const BASE_KEPT: Duration = Duration::from_hours(1);

/// Steers a fleet. Has no clock, no store and no network: see the [crate].
#[derive(Debug, Clone)]
pub struct Controller {
    pub(crate) settings: Settings,
    pub(crate) started: Moment,
    /// When the last tick was.
    pub(crate) ticked: Moment,
    /// Counts decisions.
    pub(crate) tick: Tick,
    /// When pools were last shared out.
    pub(crate) shared_out: Moment,
    pub(crate) epochs: Epochs,
    pub(crate) rules: Rules,
    /// Revisions that may have reached the store: never used twice.
    pub(crate) revisions_used: BTreeMap<PolicyScope, Revision>,
    pub(crate) routes: Routes,
    pub(crate) fleet: Fleet,
    pub(crate) orders: Orders,
    pub(crate) writes: Writes,
    /// What was seen of each rollout since its stage began.
    pub(crate) watches: BTreeMap<PolicyScope, Watch>,
    pub(crate) alerts: AlertBook,
    /// The newest reading of how busy each dependency is.
    pub(crate) utilisation: BTreeMap<DependencyName, Utilisation>,
    pub(crate) counters: ControllerView,
    /// Reports counted at the last ticks, for the rate.
    pub(crate) report_counts: VecDeque<(Moment, u64)>,
    /// Routes whose believed place may not be stored yet.
    pub(crate) unsettled: BTreeSet<RouteKey>,
    /// Routes whose agents are to be sent a snapshot.
    pub(crate) routes_to_push: BTreeSet<RouteKey>,
    /// Agents to be sent one.
    pub(crate) agents_to_push: BTreeSet<ConnectionId>,
    /// What is lent with the push under way.
    pub(crate) credits: Credits,
    pub(crate) effects: VecDeque<Effect>,
}

impl Controller {
    /// Takes up what the store holds, and begins a new epoch, stored before any agent hears of it.
    pub fn new(settings: Settings, restored: Restored, now: Moment) -> Self {
        let mut routes = Routes::new();
        for state in &restored.modes {
            routes.insert(state.route.clone(), Route::restore(state, now));
        }
        for (key, point) in &restored.points {
            if let Some(route) = routes.get_mut(key)
                && now.since(point.at) <= BASE_KEPT
                && let Some(base) = point.base()
            {
                route.memory.restore_base(base);
            }
        }
        take_up_reverted(&mut routes, &restored, now);
        let alerts = AlertBook::restore(&restored, settings.heartbeat);
        let mut policies = BTreeMap::new();
        let mut revisions_used = BTreeMap::new();
        for it in restored.policies {
            revisions_used.insert(it.scope.clone(), it.revision);
            let standing = Standing {
                scope: it.scope.clone(),
                revision: it.revision,
                policy: it.policy.map(Arc::new),
                since: it.since,
            };
            policies.insert(it.scope, standing);
        }
        let mut controller = Self {
            settings,
            started: now,
            ticked: now,
            tick: Tick::default(),
            shared_out: now,
            epochs: Epochs::after(restored.epoch),
            rules: Rules {
                policies,
                kills: restored
                    .kills
                    .into_iter()
                    .map(|kill| (kill.scope.clone(), kill))
                    .collect(),
                rollouts: BTreeMap::new(),
            },
            revisions_used,
            routes,
            fleet: Fleet::default(),
            orders: Orders::default(),
            writes: Writes::default(),
            watches: BTreeMap::new(),
            alerts,
            utilisation: BTreeMap::new(),
            counters: ControllerView::default(),
            report_counts: VecDeque::new(),
            unsettled: BTreeSet::new(),
            routes_to_push: BTreeSet::new(),
            agents_to_push: BTreeSet::new(),
            credits: Credits::new(),
            effects: VecDeque::new(),
        };
        controller.lose_switchbacks(now, &restored.switchbacks);
        controller.restore_rollouts(now, restored.rollouts);
        controller.begin_epoch(now);
        controller
    }

    /// Something happened.
    pub fn handle_event(&mut self, now: Moment, event: Event) {
        match event {
            Event::Joined(joined) => self.joined(now, joined),
            Event::Gone {
                connection,
                departure,
            } => {
                for route in self.fleet.leave(connection, departure, now) {
                    if let Some(route) = self.routes.get_mut(&route) {
                        route.windows.forget(connection.0);
                        route.bench.leave(connection, now);
                    }
                }
            }
            Event::Reported {
                connection,
                report,
                held_hash,
            } => {
                self.reported(now, connection, *report);
                self.compare_held(now, connection, held_hash);
            }
            Event::Heartbeat {
                connection,
                held_hash,
            } => {
                self.hear(now, connection);
                self.compare_held(now, connection, held_hash);
            }
            Event::Applied { connection, stamps } => {
                self.hear(now, connection);
                self.applied(connection, &stamps);
            }
            Event::Refused {
                connection,
                route,
                stamp,
                reason,
            } => {
                self.hear(now, connection);
                self.refused(connection, route.as_ref(), stamp, &reason);
            }
            Event::Undecodable {
                connection,
                problem,
            } => {
                self.counters.undecodable += 1;
                if let Some(agent) = self.fleet.attached.get_mut(&connection) {
                    agent.hear(now);
                    agent.count_refusal(&problem);
                }
            }
            Event::Ordered {
                request,
                actor,
                reason,
                order,
            } => {
                self.ordered(now, request, actor, reason, order);
            }
            Event::Persisted(write) => self.persisted(now, write),
            Event::PersistFailed { write, problem } => self.persist_failed(now, write, &problem),
        }
        self.flush_pushes(now);
    }

    /// The time to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Moment {
        self.ticked.plus(self.settings.tick)
    }

    /// The next thing to do, in order.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// What was decided last for a route.
    pub fn decision(&self, route: &RouteKey) -> Option<&Decision> {
        self.routes.get(route)?.decision.as_ref()
    }

    /// The epoch in force; before the first is stored, the one that will be.
    pub fn epoch(&self) -> Epoch {
        self.epochs.durable().unwrap_or(self.epochs.wanted())
    }

    pub(crate) fn hear(&mut self, now: Moment, connection: ConnectionId) {
        if let Some(agent) = self.fleet.attached.get_mut(&connection) {
            agent.hear(now);
        }
    }

    /// The newest revision of a scope's own policy, also where only a share of the agents holds it so
    /// far, and also of one that was taken away; 0: there never was one.
    pub(crate) fn newest_revision(&self, scope: &PolicyScope) -> Revision {
        if let Some(rollout) = self.rules.rollouts.get(scope) {
            return rollout.next.revision;
        }
        let standing = self.rules.policies.get(scope);
        standing.map_or_else(Revision::default, |it| it.revision)
    }

    /// The name under which a route an agent reports is kept: its own, or `__other__` where there
    /// are as many as are kept.
    pub(crate) fn keep_route(&mut self, route: &RouteKey, now: Moment) -> RouteKey {
        if !self.routes.contains_key(route) {
            if self.routes.len() >= self.settings.routes_max {
                let other = other_route();
                self.routes
                    .entry(other.clone())
                    .or_insert_with(|| Route::new(now));
                return other;
            }
            self.routes.insert(route.clone(), Route::new(now));
        }
        route.clone()
    }
}

/// Rollouts that were taken back not long before go on being an alert.
fn take_up_reverted(routes: &mut Routes, restored: &Restored, now: Moment) {
    for alert in &restored.alerts {
        if alert.rule == AlertRule::RolloutReverted
            && let Some(route) = routes.get_mut(&alert.route)
        {
            route.reverted = Some((alert.since.min(now), alert.summary.clone()));
        }
    }
}

/// Where the traffic of routes beyond the cap is counted.
pub(crate) fn other_route() -> RouteKey {
    RouteKey::new("__other__", "__other__").expect("letters and underscores are a valid name")
}
