//! What a route counts, and the books in which it becomes a report.

pub(crate) mod recorder;
pub(crate) mod replica;
pub(crate) mod tally;

use hedgerow_protocol::latency::{Histogram, SparseHistogram};
use hedgerow_protocol::report::Totals;

use self::recorder::{Recorder, Series, SeriesHistograms};

/// The recorder's samples on their way into reports. Not on a call's way: whoever reports or ticks
/// locks them.
#[derive(Debug)]
pub(crate) struct Books {
    /// Since the last acknowledged report.
    unreported: SeriesHistograms,
    /// Of those, what the report under way says.
    under_way: Option<[SparseHistogram; Series::REPORTED]>,
    /// Since the last second ended.
    second: SeriesHistograms,
    /// Since the agent began, for metrics: what callers waited, treated and held out.
    lifetime: [Histogram; 2],
    scratch: SeriesHistograms,
    /// At the end of the last second.
    totals: Totals,
}

/// Sparse, without a look at a thousand buckets where there is nothing.
pub(crate) fn sparse(histogram: &Histogram) -> SparseHistogram {
    if histogram.is_empty() {
        SparseHistogram::default()
    } else {
        histogram.to_sparse()
    }
}

fn empty() -> SeriesHistograms {
    std::array::from_fn(|_| Histogram::new())
}

impl Books {
    pub(crate) fn new() -> Self {
        Self {
            unreported: empty(),
            under_way: None,
            second: empty(),
            lifetime: [Histogram::new(), Histogram::new()],
            scratch: empty(),
            totals: Totals::default(),
        }
    }

    fn drain(&mut self, recorder: &Recorder) {
        recorder.drain(&mut self.scratch);
        for (lifetime, series) in self
            .lifetime
            .iter_mut()
            .zip([Series::Treated, Series::Holdout])
        {
            let new = &self.scratch[series as usize];
            if !new.is_empty() {
                let _ = lifetime.add(new);
            }
        }
        let scratch = self.scratch.iter_mut().enumerate();
        for (i, new) in scratch.filter(|(_, new)| !new.is_empty()) {
            // Full only after nine years at a million a second: then what is new is let go.
            let _ = self.unreported[i].add(new);
            let _ = self.second[i].add(new);
            new.clear();
        }
    }

    /// What came since the last acknowledged report, by [`Series`].
    pub(crate) fn report(&mut self, recorder: &Recorder) -> [SparseHistogram; Series::REPORTED] {
        self.drain(recorder);
        let report = std::array::from_fn(|i| sparse(&self.unreported[i]));
        self.under_way.insert(report).clone()
    }

    /// The report under way is counted: what it said is not said again.
    pub(crate) fn acknowledged(&mut self) {
        let Some(reported) = self.under_way.take() else {
            return;
        };
        for (all, reported) in self.unreported.iter_mut().zip(&reported) {
            all.subtract(reported)
                .expect("what was reported is a part of what was collected");
        }
    }

    /// The second under way: its samples, and its counters' growth, so far.
    pub(crate) fn so_far(&mut self, recorder: &Recorder) -> Second {
        self.drain(recorder);
        let samples = std::array::from_fn(|i| sparse(&self.second[i]));
        let totals = recorder.totals();
        let growth = totals.since(&self.totals).expect("counters only grow");
        Second {
            samples,
            totals,
            growth,
        }
    }

    /// Ends a second.
    pub(crate) fn end_second(&mut self, recorder: &Recorder) -> Second {
        let ended = self.so_far(recorder);
        let second = self.second.iter_mut();
        second
            .filter(|series| !series.is_empty())
            .for_each(Histogram::clear);
        self.totals = ended.totals;
        ended
    }

    /// What callers waited since the agent began: treated, held out.
    pub(crate) fn lifetime(&mut self, recorder: &Recorder) -> [Histogram; 2] {
        self.drain(recorder);
        self.lifetime.clone()
    }
}

/// One second of a route.
#[derive(Debug)]
pub(crate) struct Second {
    /// By [`Series`].
    pub(crate) samples: [SparseHistogram; Series::REPORTED],
    /// At its end.
    totals: Totals,
    /// What its counters grew by.
    pub(crate) growth: Totals,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn b45_a_sample_is_reported_until_acknowledged_and_never_again() {
        let recorder = Recorder::new();
        let mut books = Books::new();
        let treated = |report: &[SparseHistogram; 6]| report[Series::Treated as usize].count();
        recorder.record(Series::Treated, MS);
        assert_eq!(treated(&books.report(&recorder)), 1);
        recorder.record(Series::Treated, 2 * MS);
        books.acknowledged();
        assert_eq!(treated(&books.report(&recorder)), 1, "only what came after");
        books.acknowledged();
        books.acknowledged();
        assert_eq!(treated(&books.report(&recorder)), 0);
    }

    #[test]
    fn seconds_and_reports_do_not_take_each_others_samples() {
        let recorder = Recorder::new();
        let mut books = Books::new();
        recorder.record(Series::Treated, MS);
        for _ in 0..2 {
            let so_far = books.so_far(&recorder);
            assert_eq!(so_far.samples[Series::Treated as usize].count(), 1);
        }
        let second = books.end_second(&recorder);
        assert_eq!(second.samples[Series::Treated as usize].count(), 1);
        assert_eq!(books.report(&recorder)[Series::Treated as usize].count(), 1);
        assert_eq!(
            books.end_second(&recorder).samples[Series::Treated as usize].count(),
            0
        );
        assert_eq!(books.lifetime(&recorder)[0].count(), 1);
    }
}
