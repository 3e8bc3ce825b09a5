//! One agent's counters and the report made of them.

use std::collections::BTreeMap;
use std::time::Duration;

use hedgerow_protocol::directive::{Mode, Stamp};
use hedgerow_protocol::ids::{ReplicaName, RouteKey};
use hedgerow_protocol::latency::{SparseHistogram, bucket_of};
use hedgerow_protocol::report::{Attempts, Effective, ReplicaReport, RouteReport, Totals};
use hedgerow_protocol::units::{Budget, Ratio};

#[derive(Default)]
pub(super) struct Counts(BTreeMap<u16, u64>);

impl Counts {
    pub(super) fn add(&mut self, us: u64) {
        *self
            .0
            .entry(bucket_of(Duration::from_micros(us)) as u16)
            .or_default() += 1;
    }
    pub(super) fn take(&mut self) -> SparseHistogram {
        SparseHistogram::try_from_pairs(std::mem::take(&mut self.0)).unwrap()
    }
}

#[derive(Default)]
pub(super) struct Own {
    pub(super) counters: [u64; 6],
    pub(super) done: Counts,
    pub(super) censored: Counts,
}

#[derive(Default)]
pub(super) struct Agent {
    pub(super) tokens: f64,
    pub(super) delta: Totals,
    /// Primary done, primary censored, hedge done, hedge censored, treated, holdout.
    pub(super) counts: [Counts; 6],
    pub(super) replicas: BTreeMap<usize, Own>,
}

impl Agent {
    /// What came since the last one.
    pub(super) fn report(&mut self, mut ages: Counts) -> RouteReport {
        let [done, censored, hedge_done, hedge_censored, treated, holdout] = &mut self.counts;
        RouteReport {
            route: route(),
            totals: std::mem::take(&mut self.delta),
            primary: Attempts {
                done: done.take(),
                censored: censored.take(),
            },
            hedge: Attempts {
                done: hedge_done.take(),
                censored: hedge_censored.take(),
            },
            treated: treated.take(),
            holdout: holdout.take(),
            in_flight: ages.take(),
            replicas: std::mem::take(&mut self.replicas)
                .into_iter()
                .map(|(replica, own)| replica_report(replica, own))
                .collect(),
            effective: idle(),
            over_budget_seconds: 0,
        }
    }
}

fn replica_report(replica: usize, mut own: Own) -> ReplicaReport {
    let [started, crossed, finished, errors, hedged, won] = own.counters;
    ReplicaReport {
        replica: name(replica),
        zone: None,
        started,
        crossed,
        finished,
        errors,
        hedged,
        won,
        primary: Attempts {
            done: own.done.take(),
            censored: own.censored.take(),
        },
    }
}

fn idle() -> Effective {
    Effective {
        stamp: Stamp::default(),
        mode: Mode::Observing,
        own_off: false,
        threshold: None,
        probability: Ratio::ZERO,
        budget: Budget::ZERO,
        cap: 0.0,
        tokens: 0.0,
        replicas: 0,
        watched_losers: 0,
    }
}

pub(super) fn route() -> RouteKey {
    RouteKey::new("catalog", "get").unwrap()
}

pub(super) fn name(replica: usize) -> ReplicaName {
    ReplicaName::new(&format!("r{replica}")).unwrap()
}
