//! Where the hot path writes: counters and histograms, a shard for each lane, without a lock.
//!
//! All are cumulative. A reader takes the smaller of two ordered counters first and a writer counts
//! the larger one first (released, then acquired), so a snapshot taken in full flight keeps
//! won <= hedged <= crossed <= started. Samples go to whoever reads first, each to exactly one
//! reading.
//!
//! What can be worked out when reading is not written: the usual call, treated and answered by its
//! primary, is one sample in [`Series::Plain`], which stands for an attempt, a call, and four counts.

use std::time::Duration;

use hedgerow_protocol::latency::{Histogram, bucket_of};
use hedgerow_protocol::report::{Refusal, Totals};

use super::tally::{Seen, Tally};
use crate::lanes::{Lane, PerLane};
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::thread;

macro_rules! counters {
    ($($variant:ident,)*) => {
        /// One counter, written by the hot path.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Counter {
            $($variant,)*
        }

        const COUNTERS: usize = [$(Counter::$variant),*].len();
    };
}

counters! {
    WonOnError,
    HedgedOnError,
    Won,
    HedgeErrors,
    HedgeFinished,
    HedgedAgain,
    Hedged,
    FailedDespitePrimary,
    TreatedFailed,
    TreatedFinished,
    HoldoutFailed,
    HoldoutFinished,
    PrimaryErrors,
    PrimaryFinished,
    PushBack,
    ProbationSkipped,
    ThresholdPastDeadline,
    Crossed,
    Abandoned,
    NotEligible,
    Started,
}

/// One histogram of the recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Series {
    PrimaryDone,
    PrimaryCensored,
    HedgeDone,
    HedgeCensored,
    Treated,
    Holdout,
    /// A treated call that its primary answered: a sample of [`Self::PrimaryDone`] and of
    /// [`Self::Treated`] in one.
    Plain,
}

impl Series {
    /// Those that are reported: all but [`Self::Plain`].
    pub(crate) const REPORTED: usize = 6;
    const WRITTEN: usize = 7;
    /// What the samples of each are reported as.
    const REPORTED_AS: [&[Self]; Self::WRITTEN] = [
        &[Self::PrimaryDone],
        &[Self::PrimaryCensored],
        &[Self::HedgeDone],
        &[Self::HedgeCensored],
        &[Self::Treated],
        &[Self::Holdout],
        &[Self::PrimaryDone, Self::Treated],
    ];
}

/// One histogram for each reported [`Series`], indexed by it.
pub(crate) type SeriesHistograms = [Histogram; Series::REPORTED];

/// A count for each [`Refusal`], in the order of [`Refusal::ALL`].
pub(crate) type ByReason = [u64; Refusal::ALL.len()];

/// What one lane writes: 28 KiB, made when its thread makes its first call of the route.
#[derive(Debug)]
struct Shard {
    counters: [AtomicU64; COUNTERS],
    refused: [AtomicU64; Refusal::ALL.len()],
    /// Of hedges beyond a crossed call's first.
    further_refused: [AtomicU64; Refusal::ALL.len()],
    series: [Tally; Series::WRITTEN],
}

impl Shard {
    fn new() -> Self {
        Self {
            counters: std::array::from_fn(|_| AtomicU64::new(0)),
            refused: std::array::from_fn(|_| AtomicU64::new(0)),
            further_refused: std::array::from_fn(|_| AtomicU64::new(0)),
            series: std::array::from_fn(|_| Tally::new()),
        }
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Recorder {
    shards: PerLane<Shard>,
    /// What was read of each lane's series. Readers only meet each other here.
    seen: Mutex<Vec<[Seen; Series::WRITTEN]>>,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        Self {
            shards: PerLane::new(),
            seen: Mutex::new(Vec::new()),
        }
    }

    #[inline]
    fn shard(&self, lane: Lane) -> &Shard {
        self.shards.get_or_make(lane, Shard::new)
    }

    /// Counts one. Of two ordered counters the larger is counted first.
    #[inline]
    pub(crate) fn count(&self, counter: Counter) {
        let lane = thread::lane();
        lane.add(&self.shard(lane).counters[counter as usize], 1);
    }

    pub(crate) fn refuse(&self, reason: Refusal) {
        let lane = thread::lane();
        lane.add(&self.shard(lane).refused[reason as usize], 1);
    }

    pub(crate) fn refuse_further(&self, reason: Refusal) {
        let lane = thread::lane();
        lane.add(&self.shard(lane).further_refused[reason as usize], 1);
    }

    pub(crate) fn record(&self, series: Series, latency: Duration) {
        self.record_in(series, bucket_of(latency));
    }

    /// The same, the bucket being known.
    #[inline]
    pub(crate) fn record_in(&self, series: Series, bucket: usize) {
        let lane = thread::lane();
        self.shard(lane).series[series as usize].record(lane, bucket);
    }

    fn sum(&self, of_shard: impl Fn(&Shard) -> u64) -> u64 {
        self.shards.iter().map(|(_, shard)| of_shard(shard)).sum()
    }

    fn read(&self, counter: Counter) -> u64 {
        self.sum(|shard| shard.counters[counter as usize].load(Ordering::Acquire))
    }

    fn by_reason(&self, of_shard: impl Fn(&Shard) -> &[AtomicU64; Refusal::ALL.len()]) -> ByReason {
        let read =
            |reason: usize| self.sum(|shard| of_shard(shard)[reason].load(Ordering::Acquire));
        std::array::from_fn(read)
    }

    /// All counters, in an order no honest agent can break.
    pub(crate) fn totals(&self) -> Totals {
        self.totals_and_further().0
    }

    /// The same, and what [`Totals::further_refused`] is the sum of.
    pub(crate) fn totals_and_further(&self) -> (Totals, ByReason) {
        let plain = self.sum(|shard| shard.series[Series::Plain as usize].count());
        // Bounded by what is read last; all of them together are one of the totals.
        let further_refused = self.by_reason(|shard| &shard.further_refused);
        let mut totals = Totals {
            further_refused: further_refused.iter().sum(),
            ..Totals::default()
        };
        // Of two counters of which one can never exceed the other, the smaller one is read first.
        totals.won_on_error = self.read(Counter::WonOnError);
        totals.won = self.read(Counter::Won);
        totals.hedge_errors = self.read(Counter::HedgeErrors);
        totals.hedge_finished = self.read(Counter::HedgeFinished);
        totals.hedged_again = self.read(Counter::HedgedAgain);
        totals.hedged_on_error = self.read(Counter::HedgedOnError);
        totals.hedged = self.read(Counter::Hedged);
        totals.refused = self.by_reason(|shard| &shard.refused);
        totals.failed_despite_primary = self.read(Counter::FailedDespitePrimary);
        totals.treated_failed = self.read(Counter::TreatedFailed);
        totals.treated_finished = plain + self.read(Counter::TreatedFinished);
        totals.holdout_failed = self.read(Counter::HoldoutFailed);
        totals.holdout_finished = self.read(Counter::HoldoutFinished);
        totals.failed = totals.treated_failed + totals.holdout_failed;
        totals.primary_errors = self.read(Counter::PrimaryErrors);
        totals.primary_finished = plain + self.read(Counter::PrimaryFinished);
        totals.push_back = self.read(Counter::PushBack);
        totals.probation_skipped = self.read(Counter::ProbationSkipped);
        totals.threshold_past_deadline = self.read(Counter::ThresholdPastDeadline);
        totals.crossed = self.read(Counter::Crossed);
        totals.abandoned = self.read(Counter::Abandoned);
        totals.finished = totals.treated_finished + totals.holdout_finished + totals.abandoned;
        totals.not_eligible = self.read(Counter::NotEligible);
        totals.started = self.read(Counter::Started);
        (totals, further_refused)
    }

    /// Adds all samples that nobody has read to `into`.
    pub(crate) fn drain(&self, into: &mut SeriesHistograms) {
        let mut seen = self.seen.lock();
        for (lane, shard) in self.shards.iter() {
            while seen.len() <= lane {
                seen.push(Default::default());
            }
            let series = shard.series.iter().zip(&mut seen[lane]);
            for ((tally, seen), reported) in series.zip(Series::REPORTED_AS) {
                let new = seen.news(tally);
                for series in reported {
                    // Full only after nine years at a million a second: then what is new is let go.
                    let _ = into[*series as usize].add(&new);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn empty() -> SeriesHistograms {
        std::array::from_fn(|_| Histogram::new())
    }

    #[test]
    fn c04_every_latency_is_counted_somewhere() {
        let recorder = Recorder::new();
        for latency in [
            Duration::ZERO,
            Duration::from_millis(10_001),
            Duration::from_hours(1),
            Duration::MAX,
        ] {
            recorder.record(Series::PrimaryDone, latency);
        }
        let mut into = empty();
        recorder.drain(&mut into);
        assert_eq!(into[Series::PrimaryDone as usize].count(), 4);
        recorder.drain(&mut into);
        assert_eq!(
            into[Series::PrimaryDone as usize].count(),
            4,
            "a sample is given out once"
        );
    }

    #[test]
    fn p12_a_snapshot_in_full_flight_keeps_the_order_of_the_counters() {
        let recorder = Recorder::new();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        recorder.count(Counter::Started);
                        recorder.count(Counter::Crossed);
                        recorder.count(Counter::Hedged);
                        recorder.count(Counter::HedgeFinished);
                        recorder.count(Counter::Won);
                        recorder.count(Counter::PrimaryFinished);
                        recorder.count(Counter::PrimaryErrors);
                        recorder.count(Counter::TreatedFinished);
                        recorder.count(Counter::TreatedFailed);
                        recorder.count(Counter::Started);
                        recorder.record(Series::Plain, Duration::ZERO);
                    }
                });
            }
            for _ in 0..20_000 {
                let totals = recorder.totals();
                assert_eq!(totals.check(), Ok(()));
            }
            stop.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn threads_lose_nothing() {
        let recorder = Recorder::new();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for i in 0..5_000 {
                        recorder.count(Counter::Started);
                        recorder.record(Series::Plain, Duration::from_micros(i));
                    }
                });
            }
        });
        let mut into = empty();
        recorder.drain(&mut into);
        assert_eq!(into[Series::Treated as usize].count(), 40_000);
        assert_eq!(recorder.totals().started, 40_000);
        assert_eq!(into[Series::PrimaryDone as usize].count(), 40_000);
        assert_eq!(recorder.totals().finished, 40_000);
    }
}
