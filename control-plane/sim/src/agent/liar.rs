//! An agent that says what is not so, in reports that are in order all the same.

use std::time::Duration;

use hedgerow_protocol::latency::{BUCKETS, BUCKETS_PER_OCTAVE, SparseHistogram, bucket_of};
use hedgerow_protocol::report::{Attempts, RouteReport, Totals};

use crate::scenario::Lie;

/// What one has said so far, true or not: counters may not go back when it stops lying.
#[derive(Debug, Clone, Default)]
pub(crate) struct Liar {
    /// All it counted.
    counted: Totals,
    /// All it said.
    told: Totals,
    /// What it said last that was so, and what its counters had grown by.
    honest: Option<Box<(RouteReport, Totals)>>,
}

impl Liar {
    /// What it says instead of `report`; `lie`: what it says now, where it lies.
    pub(crate) fn says(&mut self, report: RouteReport, lie: Option<Lie>) -> RouteReport {
        let grown = report.totals.since(&self.counted).unwrap_or_default();
        self.counted = report.totals;
        let (mut said, grown) = match (lie, &self.honest) {
            (Some(Lie::Replay), Some(honest)) => (**honest).clone(),
            (Some(Lie::TenTimesSlower), _) => slower(report, grown),
            (Some(Lie::NothingCrosses), _) => {
                let most = report.effective.threshold.map(|it| bucket_of(it.get()));
                nothing_crosses(report, grown, most.unwrap_or(0))
            }
            (Some(Lie::Zero), _) => nothing_crosses(report, grown, bucket_of(Duration::ZERO)),
            (None | Some(Lie::Replay), _) => {
                self.honest = Some(Box::new((report.clone(), grown)));
                (report, grown)
            }
        };
        self.told.add(&grown);
        said.totals = self.told;
        said
    }
}

fn slower(mut report: RouteReport, mut grown: Totals) -> (RouteReport, Totals) {
    let by = (10.0_f64.log2() * BUCKETS_PER_OCTAVE as f64).round() as usize;
    let later = |bucket: usize| (bucket + by).min(BUCKETS - 1);
    change(&mut report, later);
    grown.crossed = grown.started.max(grown.crossed);
    for replica in &mut report.replicas {
        replica.crossed = replica.started;
    }
    (report, grown)
}

fn nothing_crosses(
    mut report: RouteReport,
    mut grown: Totals,
    most: usize,
) -> (RouteReport, Totals) {
    change(&mut report, |bucket| bucket.min(most));
    report.hedge = Attempts::default();
    report.in_flight = SparseHistogram::default();
    for counter in [
        &mut grown.crossed,
        &mut grown.hedged,
        &mut grown.won,
        &mut grown.hedge_finished,
        &mut grown.hedge_errors,
    ] {
        *counter = 0;
    }
    grown.refused = Default::default();
    for replica in &mut report.replicas {
        (replica.crossed, replica.hedged, replica.won) = (0, 0, 0);
    }
    (report, grown)
}

/// Moves every latency of a report.
fn change(report: &mut RouteReport, to: impl Fn(usize) -> usize) {
    let replicas = report.replicas.iter_mut().map(|it| &mut it.primary);
    let attempts = replicas.chain([&mut report.primary, &mut report.hedge]);
    let histograms = attempts.flat_map(|it| [&mut it.done, &mut it.censored]);
    let others = [
        &mut report.treated,
        &mut report.holdout,
        &mut report.in_flight,
    ];
    for histogram in histograms.chain(others) {
        *histogram = moved(histogram, &to);
    }
}

/// `to` keeps the order of buckets.
fn moved(histogram: &SparseHistogram, to: impl Fn(usize) -> usize) -> SparseHistogram {
    let mut pairs: Vec<(u16, u64)> = Vec::new();
    for (bucket, count) in histogram.iter() {
        let bucket = to(usize::from(bucket)) as u16;
        match pairs.last_mut() {
            Some(last) if last.0 == bucket => last.1 += count,
            _ => pairs.push((bucket, count)),
        }
    }
    SparseHistogram::try_from_pairs(pairs).expect("the order is kept, and the counts are the same")
}
