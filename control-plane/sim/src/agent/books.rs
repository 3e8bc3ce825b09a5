//! What an agent counts, and the report made of it.

use std::time::Duration;

use hedgerow_protocol::ids::{ReplicaName, Sequence};
use hedgerow_protocol::latency::SparseHistogram;
use hedgerow_protocol::limits::REPLICAS_PER_REPORT_MAX;
use hedgerow_protocol::report::{Attempts, Effective, ReplicaReport, Report, RouteReport, Totals};

use super::Counts;

/// Histograms of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Series {
    PrimaryDone,
    PrimaryCensored,
    HedgeDone,
    HedgeCensored,
    Treated,
    Holdout,
}

/// A replica's figures since the last report.
#[derive(Debug, Clone, Default)]
pub(crate) struct OfReplica {
    pub(crate) started: u32,
    pub(crate) crossed: u32,
    pub(crate) finished: u32,
    pub(crate) errors: u32,
    pub(crate) hedged: u32,
    pub(crate) won: u32,
    pub(crate) done: Counts,
    pub(crate) censored: Counts,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Books {
    /// Of the agent's life.
    pub(crate) totals: Totals,
    /// Since the last report.
    series: [Counts; 6],
    pub(crate) replicas: Box<[OfReplica]>,
    sequence: u64,
    /// When the last report was made, microseconds.
    reported: u64,
}

impl Books {
    pub(crate) fn new(born: u64, replicas: usize) -> Self {
        Self {
            totals: Totals::default(),
            series: Default::default(),
            replicas: vec![OfReplica::default(); replicas].into(),
            sequence: 0,
            reported: born,
        }
    }

    pub(crate) fn record(&mut self, series: Series, bucket: u16) {
        self.series[series as usize].add(bucket);
    }

    /// What came since the last report, which counts as received: streams here lose nothing that was
    /// sent, and nothing is sent where there is no stream.
    pub(crate) fn report(
        &mut self,
        now: u64,
        names: &[ReplicaName],
        in_flight: SparseHistogram,
        effective: Effective,
    ) -> Report {
        self.sequence += 1;
        let covers = Duration::from_micros(now.saturating_sub(self.reported));
        self.reported = now;
        let replicas = self.replica_reports(names);
        let [done, censored, hedge_done, hedge_censored, treated, holdout] =
            self.series.each_mut().map(Counts::take);
        let attempts = |done, censored| Attempts { done, censored };
        let route = RouteReport {
            route: crate::route(),
            totals: self.totals,
            primary: attempts(done, censored),
            hedge: attempts(hedge_done, hedge_censored),
            treated,
            holdout,
            in_flight,
            replicas,
            effective,
            over_budget_seconds: 0,
        };
        Report {
            sequence: Sequence(self.sequence),
            covers,
            wall_clock_ms: crate::controller::moment(now).as_millis(),
            routes: vec![route],
        }
    }

    /// The busiest; what others did is said once they are among them.
    fn replica_reports(&mut self, names: &[ReplicaName]) -> Vec<ReplicaReport> {
        let mut order: Vec<_> = (0..self.replicas.len()).collect();
        let busy = |at: &usize| {
            let it = &self.replicas[*at];
            std::cmp::Reverse(it.started + it.finished + it.hedged)
        };
        if order.len() > REPLICAS_PER_REPORT_MAX {
            order.sort_by_key(busy);
            order.truncate(REPLICAS_PER_REPORT_MAX);
        }
        let report = |at: usize| {
            let own = std::mem::take(&mut self.replicas[at]);
            own.report(names[at].clone())
        };
        order.into_iter().map(report).collect()
    }
}

impl OfReplica {
    fn report(mut self, replica: ReplicaName) -> ReplicaReport {
        ReplicaReport {
            replica,
            zone: None,
            started: self.started.into(),
            crossed: self.crossed.into(),
            finished: self.finished.into(),
            errors: self.errors.into(),
            hedged: self.hedged.into(),
            won: self.won.into(),
            primary: Attempts {
                done: self.done.take(),
                censored: self.censored.take(),
            },
        }
    }
}
