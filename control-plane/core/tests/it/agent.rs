//! An agent as the controller sees one: it keeps directives in their order, and counts its calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use hedgerow_core::event::{ConnectionId, Event, Joined};
use hedgerow_protocol::directive::{Directive, DirectiveSet, Mode};
use hedgerow_protocol::ids::{Incarnation, InstanceId, RouteKey, Sequence, ServiceName};
use hedgerow_protocol::report::{Effective, Report, RouteReport, Totals};
use hedgerow_protocol::session::{Held, held_hash};
use hedgerow_protocol::units::{Budget, Ratio};

use crate::traffic::Traffic;

#[derive(Debug, Clone)]
pub(crate) struct Agent {
    pub(crate) connection: ConnectionId,
    pub(crate) instance: InstanceId,
    pub(crate) incarnation: Incarnation,
    pub(crate) sequence: u64,
    pub(crate) totals: BTreeMap<RouteKey, Totals>,
    pub(crate) held: BTreeMap<RouteKey, Directive>,
    /// Routes whose directives it refuses.
    pub(crate) refuses: BTreeSet<RouteKey>,
    /// Sets that came.
    pub(crate) sets: Vec<DirectiveSet>,
    /// Whether what is sent to it is lost.
    pub(crate) deaf: bool,
    /// Milliseconds its wall clock is ahead.
    pub(crate) skew_ms: i64,
}

impl Agent {
    pub(crate) fn new(number: u64) -> Self {
        Self {
            connection: ConnectionId(number),
            instance: InstanceId::from_u128(u128::from(number)),
            incarnation: Incarnation(1),
            sequence: 0,
            totals: BTreeMap::new(),
            held: BTreeMap::new(),
            refuses: BTreeSet::new(),
            sets: Vec::new(),
            deaf: false,
            skew_ms: 0,
        }
    }

    pub(crate) fn hello(&self) -> Joined {
        Joined {
            connection: self.connection,
            service: ServiceName::new("shop").unwrap(),
            instance: self.instance,
            incarnation: self.incarnation,
            zone: None,
            version: "0.1.0".into(),
            peer: "10.0.0.1:1".into(),
            held: self
                .held
                .values()
                .map(|directive| Held {
                    route: directive.route.clone(),
                    stamp: directive.stamp,
                    mode: directive.mode,
                    tick: directive.live.tick,
                    threshold: directive.live.threshold,
                    budget: directive.live.budget,
                })
                .collect(),
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        held_hash(
            self.held
                .values()
                .map(|directive| (&directive.route, directive.stamp)),
        )
    }

    /// Takes a set, as an agent does: returns what it answers.
    pub(crate) fn take(&mut self, set: DirectiveSet) -> Vec<Event> {
        set.check().unwrap();
        self.sets.push(set.clone());
        if self.deaf {
            return Vec::new();
        }
        let connection = self.connection;
        let mut stamps = Vec::new();
        let mut answers = Vec::new();
        for directive in set.directives {
            directive.check().unwrap();
            let (route, stamp) = (directive.route.clone(), directive.stamp);
            let held = self.held.get(&route);
            let older = held.is_some_and(|held| held.stamp > stamp);
            assert!(!older, "sent {stamp} to one that holds {held:?}");
            if self.refuses.contains(&route) {
                answers.push(Event::Refused {
                    connection,
                    route: Some(route),
                    stamp: Some(stamp),
                    reason: "live.budget: 0.3 is out of range".into(),
                });
                continue;
            }
            if let Some(held) = held.filter(|held| held.stamp == stamp) {
                let parts = |it: &Directive| (it.mode, it.standing, it.probation.clone());
                assert_eq!(parts(held), parts(&directive), "one stamp, two directives");
                assert!(held.live.tick <= directive.live.tick);
            }
            stamps.push((route.clone(), stamp));
            self.held.insert(route, Arc::unwrap_or_clone(directive));
        }
        answers.push(Event::Applied { connection, stamps });
        answers
    }

    pub(crate) fn mode(&self, route: &RouteKey) -> Mode {
        self.held
            .get(route)
            .map_or(Mode::Observing, |directive| directive.mode)
    }

    /// Whether it may send any hedge on the route.
    pub(crate) fn may_hedge(&self, route: &RouteKey) -> bool {
        self.held.get(route).is_some_and(|it| {
            it.mode.hedges() && it.live.probability.get() > 0.0 && it.live.budget.get() > 0.0
        })
    }

    /// Its next report: a second of `traffic` on each route.
    pub(crate) fn report(&mut self, traffic: &[(RouteKey, Traffic)], wall_clock_ms: u64) -> Report {
        self.sequence += 1;
        let routes = traffic
            .iter()
            .map(|(route, traffic)| {
                let totals = self.totals.entry(route.clone()).or_default();
                totals.add(&traffic.totals());
                let mut report = traffic.report(route, totals);
                report.effective = self.effective(route);
                report
            })
            .collect::<Vec<RouteReport>>();
        Report {
            sequence: Sequence(self.sequence),
            covers: Duration::from_secs(1),
            wall_clock_ms: wall_clock_ms.saturating_add_signed(self.skew_ms),
            routes,
        }
    }

    pub(crate) fn reported(
        &mut self,
        traffic: &[(RouteKey, Traffic)],
        wall_clock_ms: u64,
    ) -> Event {
        let report = Box::new(self.report(traffic, wall_clock_ms));
        Event::Reported {
            connection: self.connection,
            report,
            held_hash: self.hash(),
        }
    }

    pub(crate) fn effective(&self, route: &RouteKey) -> Effective {
        let held = self.held.get(route);
        Effective {
            stamp: held.map(|it| it.stamp).unwrap_or_default(),
            mode: self.mode(route),
            own_off: false,
            threshold: held.and_then(|it| it.live.threshold),
            probability: held.map_or(Ratio::ZERO, |it| it.live.probability),
            budget: held.map_or(Budget::ZERO, |it| it.live.budget),
            cap: 1.0,
            tokens: 0.0,
            replicas: 4,
            watched_losers: 0,
        }
    }
}
