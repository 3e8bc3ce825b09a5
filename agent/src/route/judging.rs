//! Which of a route's replicas are named, and which are on probation: whoever decides that.

use std::time::Duration;

use hedgerow_protocol::ids::ReplicaName;

use super::RouteState;
use crate::mode::{LinkClock, ProbationRule, RouteMode};
use crate::naming::{Floors, Ledger, NamedReplica, Tally};
use crate::probation::{Change, Probation, Situation};
use crate::stats::replica::ReplicaSecond;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Judging {
    ledger: Ledger,
    named: Vec<NamedReplica>,
    probation: Probation,
    /// Whether probation is by own figures, not as a controller said.
    own: bool,
}

impl Judging {
    /// A second is over: names replicas on what each did, and, where that is the agent's to decide,
    /// puts them on probation and takes them off. What changed is to be [told](tell).
    pub(super) fn second(
        &mut self,
        route: &RouteState,
        mode: &RouteMode,
        now: Duration,
        link: &LinkClock,
        replicas: &[ReplicaSecond],
    ) -> Vec<Change> {
        // Calls that could not cross say nothing about who is slow.
        let can_cross = route
            .gate
            .threshold()
            .is_some_and(|threshold| threshold < route.limits.deadline);
        let tally = |own: &ReplicaSecond| {
            let tally = Tally {
                started: if can_cross { own.growth.started } else { 0 },
                crossed: own.growth.crossed,
                finished: own.growth.finished(),
                errors: own.growth.errors,
            };
            (own.replica.clone(), tally)
        };
        self.ledger.push(replicas.iter().map(tally).collect());
        let floors = Floors {
            crossed: mode.percentile().tail() / 2.0,
            errors: mode.error_limit().get() / 2.0,
        };
        self.named = self.ledger.look(floors).named();
        self.follow(route, mode, now, link);
        let only = match mode.probation_rule(now, link) {
            ProbationRule::Own => None,
            ProbationRule::OwnAmong(replicas) => Some(replicas),
            ProbationRule::None | ProbationRule::Directed(_) => return Vec::new(),
        };
        let known: Vec<_> = replicas.iter().map(|own| own.replica.clone()).collect();
        let situation = Situation {
            now,
            floors,
            places: route.pool.len(),
            known: &known,
            only,
        };
        let (ledger, probation) = (&mut self.ledger, &mut self.probation);
        let changes = probation.tick(ledger, &self.named, &situation);
        route.pool.set_probation(&self.probation.replicas());
        changes
    }

    /// Has those on probation whom whoever decides it now wants there.
    pub(super) fn follow(
        &mut self,
        route: &RouteState,
        mode: &RouteMode,
        now: Duration,
        link: &LinkClock,
    ) {
        let (directed, own) = match mode.probation_rule(now, link) {
            ProbationRule::None => (&[][..], false),
            ProbationRule::Directed(replicas) => (replicas, false),
            ProbationRule::Own => (&[][..], true),
            ProbationRule::OwnAmong(replicas) => (replicas, true),
        };
        if own {
            if !self.own {
                self.probation.adopt(now, directed, &mut self.ledger);
            }
        } else {
            self.probation.clear();
            route.pool.set_probation(directed);
        }
        self.own = own;
    }

    /// Those whose last word was that they are bad.
    pub(super) fn suspects(&self, route: &RouteState) -> Vec<ReplicaName> {
        if self.own {
            self.probation.suspects()
        } else {
            route.pool.probation()
        }
    }

    /// Replicas named now, and those on probation for what they were named for before: they get too
    /// few calls to be named anew each second.
    pub(super) fn named(&self) -> Vec<NamedReplica> {
        let mut named = self.named.clone();
        for held in self.probation.reasons() {
            if named.iter().all(|named| named.replica != held.replica) {
                named.push(held.clone());
            }
        }
        named
    }
}
