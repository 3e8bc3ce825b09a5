//! Where the hot path writes: counters and histograms, sharded by thread, without a lock.
//!
//! Counters are cumulative. A reader takes the smaller of two ordered counters first and a writer
//! counts the larger one first (released, then acquired), so a snapshot taken in full flight keeps
//! won <= hedged <= crossed <= started. Histogram buckets are emptied by whoever reads, each sample
//! going to exactly one reading.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use hedgerow_protocol::latency::{BUCKETS, Histogram, bucket_of};
use hedgerow_protocol::report::{Refusal, Totals};

/// More shards than this help no machine we know of; each is 24 KiB a route.
const SHARDS_MAX: usize = 16;

macro_rules! counters {
    ($($variant:ident $field:ident,)*) => {
        /// One counter of [`Totals`]. Declared in the order they are read in: of two counters of
        /// which one can never exceed the other, the smaller one comes first.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Counter {
            $($variant,)*
        }

        const COUNTERS: usize = [$(Counter::$variant),*].len();

        fn read_totals(read: impl Fn(Counter) -> u64, refused: [u64; Refusal::ALL.len()]) -> Totals {
            // Struct fields are evaluated in the order they are written in.
            Totals { $($field: read(Counter::$variant),)* refused }
        }
    };
}

counters! {
    Won won,
    HedgeErrors hedge_errors,
    HedgeFinished hedge_finished,
    Hedged hedged,
    FailedDespitePrimary failed_despite_primary,
    TreatedFailed treated_failed,
    TreatedFinished treated_finished,
    HoldoutFailed holdout_failed,
    HoldoutFinished holdout_finished,
    PrimaryErrors primary_errors,
    PrimaryFinished primary_finished,
    PushBack push_back,
    ProbationSkipped probation_skipped,
    Crossed crossed,
    Abandoned abandoned,
    Failed failed,
    Finished finished,
    NotEligible not_eligible,
    Started started,
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
}

impl Series {
    pub(crate) const ALL: [Self; 6] = [
        Self::PrimaryDone,
        Self::PrimaryCensored,
        Self::HedgeDone,
        Self::HedgeCensored,
        Self::Treated,
        Self::Holdout,
    ];
}

/// One histogram for each [`Series`], indexed by it.
pub(crate) type SeriesHistograms = [Histogram; Series::ALL.len()];

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
        self.0[bucket_of(latency)].fetch_add(1, Ordering::Relaxed);
    }

    /// Moves all samples into `into`.
    pub(crate) fn drain(&self, into: &mut Histogram) {
        for (bucket, count) in self.0.iter().enumerate() {
            // Most buckets are empty: a load leaves their cache line with the writer.
            if count.load(Ordering::Relaxed) != 0 {
                let count = count.swap(0, Ordering::Relaxed);
                // Full only after nine years at a million a second: then the sample is let go.
                let _ = into.add_to_bucket(bucket, u64::from(count));
            }
        }
    }
}

/// Aligned to two cache lines, as processors fetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Shard {
    counters: [AtomicU64; COUNTERS],
    refused: [AtomicU64; Refusal::ALL.len()],
    alive: AtomicI64,
    series: [AtomicHistogram; Series::ALL.len()],
}

impl Default for Shard {
    fn default() -> Self {
        Self {
            counters: [const { AtomicU64::new(0) }; COUNTERS],
            refused: [const { AtomicU64::new(0) }; Refusal::ALL.len()],
            alive: AtomicI64::new(0),
            series: std::array::from_fn(|_| AtomicHistogram::default()),
        }
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Recorder {
    shards: Box<[Shard]>,
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

    /// An attempt begins (1) or ends (-1), perhaps on another thread than it began.
    pub(crate) fn alive(&self, change: i64) {
        self.shard().alive.fetch_add(change, Ordering::SeqCst);
    }

    /// Attempts alive now.
    pub(crate) fn attempts_alive(&self) -> u64 {
        let sum: i64 = self
            .shards
            .iter()
            .map(|shard| shard.alive.load(Ordering::SeqCst))
            .sum();
        // Ends counted on one shard may be read before beginnings on another.
        sum.max(0) as u64
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
        // Refusals are parts of `crossed`, so they are read before it.
        let refused = std::array::from_fn(|reason| {
            self.shards
                .iter()
                .map(|shard| shard.refused[reason].load(Ordering::Acquire))
                .sum()
        });
        read_totals(|counter| self.read(counter), refused)
    }

    /// Moves all samples into `into`.
    pub(crate) fn drain(&self, into: &mut SeriesHistograms) {
        for shard in &self.shards {
            for (from, into) in shard.series.iter().zip(into.iter_mut()) {
                from.drain(into);
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
    fn b26_c04_every_latency_is_counted_somewhere() {
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
                        recorder.count(Counter::Finished);
                        recorder.count(Counter::Failed);
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
                        recorder.record(Series::Treated, Duration::from_micros(i));
                    }
                });
            }
        });
        let mut into = empty();
        recorder.drain(&mut into);
        assert_eq!(into[Series::Treated as usize].count(), 40_000);
        assert_eq!(recorder.totals().started, 40_000);
    }
}
