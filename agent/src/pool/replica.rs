//! One replica as one route knows it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hedgerow_protocol::ids::{ReplicaName, ZoneName};
use hedgerow_protocol::latency::bucket_of;
use parking_lot::Mutex;

use crate::lanes::{Lane, PerLane};
use crate::load::Load;
use crate::permit::Permits;
use crate::stats::replica::ReplicaBooks;
use crate::stats::tally::Tally;
use crate::thread;

/// Hedges a replica may have beyond its share before its zone is no longer a reason to prefer it:
/// so that the first hedge of a quiet replica is not already too many.
const HEDGES_FREE: f64 = 2.0;

/// One replica as one route knows it. Counters are cumulative. Those that only slow calls change
/// are shared by all threads; the others have lanes.
pub(crate) struct Replica {
    pub(crate) name: ReplicaName,
    pub(crate) zone: Option<ZoneName>,
    /// The route's permits, for whoever holds one and has only the replica.
    pub(crate) permits: Arc<Permits>,
    load: Load,
    pub(crate) crossed: AtomicU64,
    pub(crate) errors: AtomicU64,
    /// Watched losers that answered: in `done`, but in no rate.
    pub(crate) watched_done: AtomicU64,
    pub(crate) hedged: AtomicU64,
    pub(crate) won: AtomicU64,
    /// 4 KiB for each thread that had an answer of it.
    pub(crate) done: PerLane<Tally>,
    /// Of all lanes, as most primaries answer.
    pub(crate) censored: Tally,
    /// `hedged` and `started` some seconds ago: its share is judged on what came since.
    hedged_before: AtomicU64,
    started_before: AtomicU64,
    pub(crate) books: Mutex<ReplicaBooks>,
}

/// Its name: a thousand buckets tell nobody anything.
impl fmt::Debug for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Replica").field(&self.name).finish()
    }
}

impl Replica {
    pub(crate) fn new(name: ReplicaName, zone: Option<ZoneName>, permits: Arc<Permits>) -> Self {
        Self {
            name,
            zone,
            permits,
            load: Load::new(),
            crossed: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            watched_done: AtomicU64::new(0),
            hedged: AtomicU64::new(0),
            won: AtomicU64::new(0),
            done: PerLane::new(),
            censored: Tally::new(),
            hedged_before: AtomicU64::new(0),
            started_before: AtomicU64::new(0),
            books: Mutex::default(),
        }
    }

    /// An attempt begins. `primary`: a primary that is counted.
    #[inline]
    pub(crate) fn attempt_begins(&self, primary: bool) {
        self.load.begins(thread::lane(), primary);
    }

    /// An attempt's work is over.
    #[inline]
    pub(crate) fn attempt_ends(&self) {
        self.load.ends(thread::lane());
    }

    /// Attempts alive on it.
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        self.load.alive(thread::lanes_used())
    }

    /// Primaries ever started on it.
    pub(crate) fn started(&self) -> u64 {
        self.load.started()
    }

    /// A primary answered.
    #[inline]
    pub(crate) fn record_done(&self, bucket: usize) {
        let lane = thread::lane();
        self.done.get_or_make(lane, Tally::new).record(lane, bucket);
    }

    /// A primary was stopped, or failed.
    pub(crate) fn record_censored(&self, age: Duration) {
        self.censored.record(Lane::SHARED, bucket_of(age));
    }

    /// Begins a new stretch for judging its share of hedges.
    pub(crate) fn begin_stretch(&self) {
        self.hedged_before
            .store(self.hedged.load(Ordering::Relaxed), Ordering::Relaxed);
        self.started_before.store(self.started(), Ordering::Relaxed);
    }

    /// Whether one more hedge stays within `budget` times its share of the primaries.
    pub(super) fn within_share(&self, budget: f64) -> bool {
        let since = |now: u64, before: &AtomicU64| {
            now.saturating_sub(before.load(Ordering::Relaxed)) as f64
        };
        let hedged = since(self.hedged.load(Ordering::Relaxed), &self.hedged_before);
        let started = since(self.started(), &self.started_before);
        hedged + 1.0 <= budget * started + HEDGES_FREE
    }
}
