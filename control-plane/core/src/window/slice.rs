//! One tick's worth of reports.

use std::collections::BTreeMap;
use std::time::Duration;

use hedgerow_protocol::ids::{ReplicaName, ZoneName};
use hedgerow_protocol::limits::REPLICAS_PER_ROUTE_MAX;
use hedgerow_protocol::report::{ReplicaReport, RouteReport, Totals};

use super::tally::Tally;

/// What the fleet reported of one route between two ticks. Also several of them added up.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Slice {
    /// The time between the ticks; set when it is pushed.
    pub span: Duration,
    /// Ticks in it; set when it is pushed.
    pub ticks: usize,
    /// Reports in it: each may have spent a bucket's cap beyond the budget.
    pub reports: u64,
    /// Counters, as differences.
    pub totals: Totals,
    /// Primaries that answered.
    pub primary_done: Tally,
    /// Primaries that were stopped or failed.
    pub primary_censored: Tally,
    /// Hedges that answered.
    pub hedge_done: Tally,
    /// Hedges that were stopped or failed.
    pub hedge_censored: Tally,
    /// What callers waited, where a hedge was allowed.
    pub treated: Tally,
    /// What callers waited, held out.
    pub holdout: Tally,
    /// By replica; at most 256, the rest is in the totals alone.
    pub replicas: BTreeMap<ReplicaName, ReplicaSlice>,
    /// Reports of replicas beyond the 256.
    pub replicas_beyond: u64,
    /// Seconds the agents themselves found over their budget.
    pub agents_over_budget: u64,
}

/// One replica's part of a [`Slice`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReplicaSlice {
    /// Where it is, where an agent knew.
    pub zone: Option<ZoneName>,
    /// Primaries started on it.
    pub started: u64,
    /// Of these, those that crossed.
    pub crossed: u64,
    /// Primaries that ended by themselves.
    pub finished: u64,
    /// Of these, those that failed.
    pub errors: u64,
    /// Hedges sent to it.
    pub hedged: u64,
    /// Of these, those that answered first.
    pub won: u64,
    /// Primaries that answered.
    pub primary_done: Tally,
    /// Primaries that were stopped or failed.
    pub primary_censored: Tally,
}

impl Slice {
    /// Adds an accepted report: `delta` is what its totals grew by since the agent's last one.
    pub fn add_report(&mut self, delta: &Totals, report: &RouteReport) {
        self.reports += 1;
        self.totals.add(delta);
        self.primary_done.add_sparse(&report.primary.done);
        self.primary_censored.add_sparse(&report.primary.censored);
        self.hedge_done.add_sparse(&report.hedge.done);
        self.hedge_censored.add_sparse(&report.hedge.censored);
        self.treated.add_sparse(&report.treated);
        self.holdout.add_sparse(&report.holdout);
        self.agents_over_budget = self
            .agents_over_budget
            .saturating_add(report.over_budget_seconds);
        for replica in &report.replicas {
            self.with_replica(&replica.replica, REPLICAS_PER_ROUTE_MAX, |slot| {
                slot.add_report(replica);
            });
        }
    }

    /// Adds another slice: one block is then ten of them. Of replicas there are still 256 at most.
    pub fn add(&mut self, other: &Self) {
        self.add_up_to(other, REPLICAS_PER_ROUTE_MAX);
    }

    /// Adds another slice with all its replicas, so that it can be [subtracted](Self::subtract).
    pub(super) fn add_whole(&mut self, other: &Self) {
        self.add_up_to(other, usize::MAX);
    }

    fn add_up_to(&mut self, other: &Self, replicas_max: usize) {
        self.span += other.span;
        self.ticks += other.ticks;
        self.reports += other.reports;
        self.totals.add(&other.totals);
        self.primary_done.add(&other.primary_done);
        self.primary_censored.add(&other.primary_censored);
        self.hedge_done.add(&other.hedge_done);
        self.hedge_censored.add(&other.hedge_censored);
        self.treated.add(&other.treated);
        self.holdout.add(&other.holdout);
        self.agents_over_budget = self
            .agents_over_budget
            .saturating_add(other.agents_over_budget);
        self.replicas_beyond += other.replicas_beyond;
        for (name, replica) in &other.replicas {
            self.with_replica(name, replicas_max, |slot| slot.add(replica));
        }
    }

    /// Takes away what was [added whole](Self::add_whole).
    pub(super) fn subtract(&mut self, other: &Self) {
        self.span = self.span.saturating_sub(other.span);
        self.ticks = self.ticks.saturating_sub(other.ticks);
        self.totals.subtract(&other.totals);
        for (held, less) in [
            (&mut self.reports, other.reports),
            (&mut self.agents_over_budget, other.agents_over_budget),
            (&mut self.replicas_beyond, other.replicas_beyond),
        ] {
            *held = held.saturating_sub(less);
        }
        for (held, less) in [
            (&mut self.primary_done, &other.primary_done),
            (&mut self.primary_censored, &other.primary_censored),
            (&mut self.hedge_done, &other.hedge_done),
            (&mut self.hedge_censored, &other.hedge_censored),
            (&mut self.treated, &other.treated),
            (&mut self.holdout, &other.holdout),
        ] {
            held.subtract(less);
        }
        for (name, less) in &other.replicas {
            if let Some(held) = self.replicas.get_mut(name) {
                held.subtract(less);
                if held.is_empty() {
                    self.replicas.remove(name);
                }
            }
        }
    }

    /// Adds to a replica's part, made where there is room (P11: memory does not grow with names).
    fn with_replica(
        &mut self,
        name: &ReplicaName,
        most: usize,
        add: impl FnOnce(&mut ReplicaSlice),
    ) {
        if let Some(held) = self.replicas.get_mut(name) {
            add(held);
        } else if self.replicas.len() < most {
            add(self.replicas.entry(name.clone()).or_default());
        } else {
            self.replicas_beyond += 1;
        }
    }
}

impl ReplicaSlice {
    fn add_report(&mut self, report: &ReplicaReport) {
        if report.zone.is_some() {
            self.zone.clone_from(&report.zone);
        }
        self.count([
            report.started,
            report.crossed,
            report.finished,
            report.errors,
            report.hedged,
            report.won,
        ]);
        self.primary_done.add_sparse(&report.primary.done);
        self.primary_censored.add_sparse(&report.primary.censored);
    }

    fn add(&mut self, other: &Self) {
        if other.zone.is_some() {
            self.zone.clone_from(&other.zone);
        }
        self.count([
            other.started,
            other.crossed,
            other.finished,
            other.errors,
            other.hedged,
            other.won,
        ]);
        self.primary_done.add(&other.primary_done);
        self.primary_censored.add(&other.primary_censored);
    }

    fn subtract(&mut self, other: &Self) {
        let less = [
            other.started,
            other.crossed,
            other.finished,
            other.errors,
            other.hedged,
            other.won,
        ];
        for (slot, less) in self.counters().into_iter().zip(less) {
            *slot = slot.saturating_sub(less);
        }
        self.primary_done.subtract(&other.primary_done);
        self.primary_censored.subtract(&other.primary_censored);
    }

    fn is_empty(&mut self) -> bool {
        self.primary_done.is_empty()
            && self.primary_censored.is_empty()
            && self.counters().iter().all(|counter| **counter == 0)
    }

    fn count(&mut self, more: [u64; 6]) {
        for (slot, more) in self.counters().into_iter().zip(more) {
            *slot = slot.saturating_add(more);
        }
    }

    /// Started, crossed, finished, errors, hedged, won.
    fn counters(&mut self) -> [&mut u64; 6] {
        [
            &mut self.started,
            &mut self.crossed,
            &mut self.finished,
            &mut self.errors,
            &mut self.hedged,
            &mut self.won,
        ]
    }
}
