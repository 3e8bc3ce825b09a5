//! Where the hot path writes: counters and histograms, sharded by thread, without a lock.
//!
//! Counters are cumulative. A reader takes the smaller of two ordered counters first and a writer
//! counts the larger one first (released, then acquired), so a snapshot taken in full flight keeps
//! won <= hedged <= crossed <= started. Histogram buckets are emptied by whoever reads, each sample
//! going to exactly one reading.
//!
//! What can be worked out when reading is not written: the usual call, treated and answered by its
//! primary, is one sample in [`Series::Plain`], which stands for an attempt, a call, and four counts.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use hedgerow_protocol::latency::{BUCKETS, Histogram, SparseHistogram, bucket_of};
use hedgerow_protocol::report::{Refusal, Totals};
use parking_lot::{Mutex, MutexGuard};

/// More shards than this help no machine we know of; each is 24 KiB a route.
const SHARDS_MAX: usize = 16;

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
    FurtherRefused,
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
}

/// One histogram for each reported [`Series`], indexed by it.
pub(crate) type SeriesHistograms = [Histogram; Series::REPORTED];

/// Buckets that any thread may add to. 32 bits are enough: they are emptied every second.
#[derive(Debug)]
pub(crate) struct AtomicHistogram([AtomicU32; BUCKETS]);

impl Default for AtomicHistogram {
    fn default() -> Self {
        Self([const { AtomicU32::new(0) }; BUCKETS])
    }
}

impl AtomicHistogram {
    pub(crate) fn record(&self, latency: Duration) {
        self.record_in(bucket_of(latency));
    }

    /// The same, the bucket being known.
    pub(crate) fn record_in(&self, bucket: usize) {
        self.0[bucket].fetch_add(1, Ordering::Release);
    }

    /// Empties it, bucket by bucket, ascending.
    fn emptied(&self) -> impl Iterator<Item = (usize, u64)> {
        // Most buckets are empty: a load leaves their cache line with the writer.
        let filled = |(_, count): &(usize, &AtomicU32)| count.load(Ordering::Relaxed) != 0;
        let buckets = self.0.iter().enumerate().filter(filled);
        buckets.map(|(bucket, count)| (bucket, u64::from(count.swap(0, Ordering::Acquire))))
    }

    /// Moves all samples into `into`.
    pub(crate) fn drain(&self, into: &mut Histogram) {
        for (bucket, count) in self.emptied() {
            // Full only after nine years at a million a second: then the sample is let go.
            let _ = into.add_to_bucket(bucket, count);
        }
    }

    /// Takes all samples out. For one reader at a time.
    pub(crate) fn take(&self) -> SparseHistogram {
        let filled = self.emptied();
        SparseHistogram::try_from_pairs(filled.map(|(bucket, count)| (bucket as u16, count)))
            .expect("buckets ascend, and only a reader empties one")
    }
}

/// Aligned to two cache lines, as processors fetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Shard {
    counters: [AtomicU64; COUNTERS],
    refused: [AtomicU64; Refusal::ALL.len()],
    series: [AtomicHistogram; Series::WRITTEN],
}

impl Default for Shard {
    fn default() -> Self {
        Self {
            counters: [const { AtomicU64::new(0) }; COUNTERS],
            refused: [const { AtomicU64::new(0) }; Refusal::ALL.len()],
            series: std::array::from_fn(|_| AtomicHistogram::default()),
        }
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Recorder {
    shards: Box<[Shard]>,
    plain: Mutex<Plain>,
}

/// Samples of [`Series::Plain`] that were taken out of the shards.
#[derive(Debug, Default)]
struct Plain {
    /// Not yet given out.
    samples: Histogram,
    /// All that there ever were.
    count: u64,
}

thread_local! {
    static THREAD: Cell<usize> = Cell::new({
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    });
}

/// A small number of its own for each thread, to spread threads over shards and slots.
pub(crate) fn thread_number() -> usize {
    THREAD.with(Cell::get)
}

impl Recorder {
    pub(crate) fn new() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let shards = threads.next_power_of_two().min(SHARDS_MAX);
        Self {
            shards: (0..shards).map(|_| Shard::default()).collect(),
            plain: Mutex::default(),
        }
    }

    fn shard(&self) -> &Shard {
        // The number of shards is a power of two.
        &self.shards[thread_number() & (self.shards.len() - 1)]
    }

    /// Counts one. Of two ordered counters the larger is counted first.
    pub(crate) fn count(&self, counter: Counter) {
        self.shard().counters[counter as usize].fetch_add(1, Ordering::Release);
    }

    pub(crate) fn refuse(&self, reason: Refusal) {
        self.shard().refused[reason as usize].fetch_add(1, Ordering::Release);
    }

    pub(crate) fn record(&self, series: Series, latency: Duration) {
        self.shard().series[series as usize].record(latency);
    }

    /// The same, the bucket being known.
    pub(crate) fn record_in(&self, series: Series, bucket: usize) {
        self.shard().series[series as usize].record_in(bucket);
    }

    fn read(&self, counter: Counter) -> u64 {
        let cells = self
            .shards
            .iter()
            .map(|shard| &shard.counters[counter as usize]);
        cells.map(|cell| cell.load(Ordering::Acquire)).sum()
    }

    /// All counters, in an order no honest agent can break.
    pub(crate) fn totals(&self) -> Totals {
        let plain = self.take_plain().count;
        let mut totals = Totals::default();
        // Of two counters of which one can never exceed the other, the smaller one is read first.
        totals.won_on_error = self.read(Counter::WonOnError);
        totals.won = self.read(Counter::Won);
        totals.hedge_errors = self.read(Counter::HedgeErrors);
        totals.hedge_finished = self.read(Counter::HedgeFinished);
        totals.further_refused = self.read(Counter::FurtherRefused);
        totals.hedged_again = self.read(Counter::HedgedAgain);
        totals.hedged_on_error = self.read(Counter::HedgedOnError);
        totals.hedged = self.read(Counter::Hedged);
        totals.refused = std::array::from_fn(|reason| {
            let cells = self.shards.iter().map(|shard| &shard.refused[reason]);
            cells.map(|cell| cell.load(Ordering::Acquire)).sum()
        });
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
        totals
    }

    /// Takes what is plain out of the shards. Readers only meet each other here.
    fn take_plain(&self) -> MutexGuard<'_, Plain> {
        let mut plain = self.plain.lock();
        let before = plain.samples.count();
        for shard in &self.shards {
            shard.series[Series::Plain as usize].drain(&mut plain.samples);
        }
        plain.count += plain.samples.count() - before;
        plain
    }

    /// Moves all samples into `into`.
    pub(crate) fn drain(&self, into: &mut SeriesHistograms) {
        for shard in &self.shards {
            for (from, into) in shard.series.iter().zip(into.iter_mut()) {
                from.drain(into);
            }
        }
        let mut plain = self.take_plain();
        for series in [Series::PrimaryDone, Series::Treated] {
            // Full only after nine years at a million a second: then what is new is let go.
            let _ = into[series as usize].add(&plain.samples);
        }
        plain.samples.clear();
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
