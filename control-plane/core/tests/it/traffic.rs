//! A second of calls as an agent would report it.

use std::time::Duration;

use hedgerow_protocol::ids::{ReplicaName, RouteKey};
use hedgerow_protocol::latency::{Histogram, SparseHistogram};
use hedgerow_protocol::report::{Attempts, Effective, Refusal, ReplicaReport, RouteReport, Totals};
use hedgerow_protocol::units::{Budget, Ratio};

/// Calls of one agent in one second, spread evenly over four replicas.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Traffic {
    pub(crate) calls: u64,
    /// What most take, milliseconds.
    pub(crate) usual_ms: u64,
    /// Share of calls that take ten times as long, and cross the threshold.
    pub(crate) slow: f64,
    /// Share of primaries that fail.
    pub(crate) errors: f64,
    /// Hedges sent, as a share of calls; half of them win.
    pub(crate) hedged: f64,
    /// Share of these that answer, as fast as most calls; the others are stopped then.
    pub(crate) answered: f64,
    /// Calls that the budget refused a hedge, as a share of calls.
    pub(crate) refused: f64,
    /// All slow calls and errors are the first replica's.
    pub(crate) one_replica: bool,
}

impl Traffic {
    pub(crate) const HEALTHY: Self = Self {
        calls: 400,
        usual_ms: 10,
        slow: 0.05,
        errors: 0.0,
        hedged: 0.0,
        answered: 1.0,
        refused: 0.0,
        one_replica: false,
    };

    const fn share(self, share: f64) -> u64 {
        (self.calls as f64 * share) as u64
    }

    pub(crate) fn totals(self) -> Totals {
        let crossed = self.share(self.slow).max(self.share(self.hedged));
        let hedged = self.share(self.hedged);
        let mut refused = [0; Refusal::ALL.len()];
        refused[Refusal::Budget as usize] = self.share(self.refused).min(crossed - hedged);
        Totals {
            started: self.calls,
            finished: self.calls,
            failed: self.share(self.errors),
            crossed,
            hedged,
            won: hedged / 2,
            refused,
            hedge_finished: hedged,
            primary_finished: self.calls,
            primary_errors: self.share(self.errors),
            treated_finished: self.calls,
            treated_failed: self.share(self.errors),
            ..Totals::default()
        }
    }

    /// The second's part of a report, with totals for the agent's life.
    pub(crate) fn report(self, route: &RouteKey, totals: &Totals) -> RouteReport {
        let slow = self.share(self.slow);
        let hedged = self.share(self.hedged);
        let answered = (hedged as f64 * self.answered) as u64;
        RouteReport {
            route: route.clone(),
            totals: *totals,
            primary: self.attempts(self.calls, slow),
            hedge: Attempts {
                done: histogram(&[(self.usual_ms, answered)]),
                censored: histogram(&[(self.usual_ms, hedged - answered)]),
            },
            treated: histogram(&[
                (self.usual_ms, self.calls - slow),
                (self.usual_ms * 10, slow),
            ]),
            holdout: SparseHistogram::default(),
            in_flight: SparseHistogram::default(),
            replicas: (0..4).map(|number| self.replica(number)).collect(),
            effective: Effective {
                stamp: hedgerow_protocol::directive::Stamp::default(),
                mode: hedgerow_protocol::directive::Mode::Observing,
                own_off: false,
                threshold: None,
                probability: Ratio::ZERO,
                budget: Budget::ZERO,
                cap: 0.0,
                tokens: 0.0,
                replicas: 4,
                watched_losers: 0,
            },
            over_budget_seconds: 0,
        }
    }

    fn attempts(self, calls: u64, slow: u64) -> Attempts {
        let slow = slow.min(calls);
        Attempts {
            done: histogram(&[(self.usual_ms, calls - slow), (self.usual_ms * 10, slow)]),
            censored: SparseHistogram::default(),
        }
    }

    fn replica(self, number: u64) -> ReplicaReport {
        let part = |all: u64| match (self.one_replica, number) {
            (false, _) => all / 4,
            (true, 0) => all,
            (true, _) => 0,
        };
        let (calls, slow) = (self.calls / 4, part(self.share(self.slow)));
        ReplicaReport {
            replica: ReplicaName::new(&format!("r{number}")).unwrap(),
            zone: None,
            started: calls,
            crossed: slow.min(calls),
            finished: calls,
            errors: part(self.share(self.errors)).min(calls),
            hedged: 0,
            won: 0,
            primary: self.attempts(calls, slow),
        }
    }
}

pub(crate) fn histogram(parts: &[(u64, u64)]) -> SparseHistogram {
    let mut all = Histogram::new();
    for (millis, count) in parts {
        let bucket = hedgerow_protocol::latency::bucket_of(Duration::from_millis(*millis));
        all.add_to_bucket(bucket, *count).unwrap();
    }
    all.to_sparse()
}
