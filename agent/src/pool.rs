//! A route's replicas with what is known of each, and which of them the next attempt goes to.
//!
//! The hot path reads a snapshot that is replaced whole when the host changes its list, when a
//! caller pins a replica not seen before, or when a directive changes who is on probation.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, Guard};
use hedgerow_protocol::ids::{ReplicaName, ZoneName};
use hedgerow_protocol::limits::REPLICAS_PER_ROUTE_MAX;
use parking_lot::Mutex;

use crate::chance;
use crate::permit::Permits;
use crate::replicas::{Member, Replicas};
use crate::stats::recorder::AtomicHistogram;
use crate::stats::replica::ReplicaBooks;

/// A replica on probation is taken in a tenth of the draws that fall on it, in 2^24 parts.
const PROBATION_SHARE: u32 = (1 << 24) / 10;
/// Hedges a replica may have beyond its share before its zone is no longer a reason to prefer it:
/// so that the first hedge of a quiet replica is not already too many.
const HEDGES_FREE: f64 = 2.0;
/// Leaves 16 million attempts at once below, and a trillion primaries above.
const STARTED_SHIFT: u32 = 24;

/// One replica as one route knows it. Counters are cumulative.
pub(crate) struct Replica {
    pub(crate) name: ReplicaName,
    pub(crate) zone: Option<ZoneName>,
    /// The route's permits, for whoever holds one and has only the replica.
    pub(crate) permits: Arc<Permits>,
    /// Attempts alive on it, and above [`STARTED_SHIFT`] its primaries ever started: one word, as
    /// every attempt changes it.
    load: AtomicU64,
    pub(crate) crossed: AtomicU64,
    pub(crate) errors: AtomicU64,
    /// Watched losers that answered: in `done`, but in no rate.
    pub(crate) watched_done: AtomicU64,
    pub(crate) hedged: AtomicU64,
    pub(crate) won: AtomicU64,
    pub(crate) done: AtomicHistogram,
    pub(crate) censored: AtomicHistogram,
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
            load: AtomicU64::new(0),
            crossed: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            watched_done: AtomicU64::new(0),
            hedged: AtomicU64::new(0),
            won: AtomicU64::new(0),
            done: AtomicHistogram::default(),
            censored: AtomicHistogram::default(),
            hedged_before: AtomicU64::new(0),
            started_before: AtomicU64::new(0),
            books: Mutex::default(),
        }
    }

    /// An attempt begins. `primary`: a primary that is counted.
    pub(crate) fn attempt_begins(&self, primary: bool) {
        let change = if primary { (1 << STARTED_SHIFT) + 1 } else { 1 };
        self.load.fetch_add(change, Ordering::Release);
    }

    /// An attempt's work is over.
    pub(crate) fn attempt_ends(&self) {
        self.load.fetch_sub(1, Ordering::Release);
    }

    /// Attempts alive on it.
    pub(crate) fn in_flight(&self) -> u64 {
        self.load.load(Ordering::Relaxed) & ((1 << STARTED_SHIFT) - 1)
    }

    /// Primaries ever started on it.
    pub(crate) fn started(&self) -> u64 {
        self.load.load(Ordering::Acquire) >> STARTED_SHIFT
    }

    /// Begins a new stretch for judging its share of hedges.
    pub(crate) fn begin_stretch(&self) {
        self.hedged_before
            .store(self.hedged.load(Ordering::Relaxed), Ordering::Relaxed);
        self.started_before.store(self.started(), Ordering::Relaxed);
    }

    /// Whether one more hedge stays within `budget` times its share of the primaries.
    fn within_share(&self, budget: f64) -> bool {
        let since = |now: u64, before: &AtomicU64| {
            now.saturating_sub(before.load(Ordering::Relaxed)) as f64
        };
        let hedged = since(self.hedged.load(Ordering::Relaxed), &self.hedged_before);
        let started = since(self.started(), &self.started_before);
        hedged + 1.0 <= budget * started + HEDGES_FREE
    }
}

#[derive(Debug, Clone)]
struct Place {
    replica: Arc<Replica>,
    probation: bool,
}

/// What the hot path reads.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    version: u64,
    /// What may be picked.
    places: Vec<Place>,
    /// The same by name, and the replicas that callers pinned.
    by_name: BTreeMap<ReplicaName, Arc<Replica>>,
    healthy: usize,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Pool {
    list: Option<Replicas>,
    snapshot: ArcSwap<Snapshot>,
    /// Held while a new snapshot is made, never by a call that finds what it needs in the old one.
    probation: Mutex<Vec<ReplicaName>>,
    /// Stands for "the dependency" where there is no list and no pin.
    anywhere: Arc<Replica>,
    permits: Arc<Permits>,
}

/// A picked replica, and whether probation turned another one away on the way to it.
pub(crate) struct Pick {
    pub(crate) replica: Arc<Replica>,
    pub(crate) skipped: bool,
}

impl Pool {
    /// `anywhere` is the dependency's own name.
    pub(crate) fn new(
        list: Option<Replicas>,
        anywhere: ReplicaName,
        permits: Arc<Permits>,
    ) -> Self {
        let pool = Self {
            list,
            snapshot: ArcSwap::default(),
            probation: Mutex::default(),
            anywhere: Arc::new(Replica::new(anywhere, None, permits.clone())),
            permits,
        };
        pool.renew(None);
        pool
    }

    fn new_replica(&self, name: &ReplicaName, zone: Option<ZoneName>) -> Arc<Replica> {
        Arc::new(Replica::new(name.clone(), zone, self.permits.clone()))
    }

    fn current(&self) -> Guard<Arc<Snapshot>> {
        let snapshot = self.snapshot.load();
        match &self.list {
            Some(list) if list.version() != snapshot.version => {
                drop(snapshot);
                self.renew(None);
                self.snapshot.load()
            }
            _ => snapshot,
        }
    }

    /// Makes a new snapshot, with `pinned` among the known where there is room.
    fn renew(&self, pinned: Option<&ReplicaName>) {
        let probation = self.probation.lock();
        let old = self.snapshot.load_full();
        let (version, members) = match &self.list {
            Some(list) => (list.version(), list.members()),
            None => (0, Arc::default()),
        };
        let known = |member: &Member| match old.by_name.get(&member.name) {
            Some(replica) if replica.zone == member.zone => replica.clone(),
            _ => self.new_replica(&member.name, member.zone.clone()),
        };
        let mut places: Vec<_> = members
            .iter()
            .map(|member| Place {
                replica: known(member),
                probation: probation.contains(&member.name),
            })
            .collect();
        let mut healthy = places.iter().filter(|place| !place.probation).count();
        if healthy == 0 {
            // Somebody has to answer: probation of all is probation of none.
            for place in &mut places {
                place.probation = false;
            }
            healthy = places.len();
        }
        let mut by_name: BTreeMap<_, _> = places
            .iter()
            .map(|place| (place.replica.name.clone(), place.replica.clone()))
            .collect();
        // Replicas once pinned stay known, until the list changes: what left it is forgotten then.
        if old.version == version {
            for (name, replica) in &old.by_name {
                by_name
                    .entry(name.clone())
                    .or_insert_with(|| replica.clone());
            }
        }
        if let Some(name) = pinned
            && by_name.len() < REPLICAS_PER_ROUTE_MAX
        {
            let replica = || self.new_replica(name, None);
            by_name.entry(name.clone()).or_insert_with(replica);
        }
        self.snapshot.store(Arc::new(Snapshot {
            version,
            places,
            by_name,
            healthy,
        }));
    }

    /// Puts exactly these on probation. Not by the hot path.
    pub(crate) fn set_probation(&self, names: &[ReplicaName]) {
        let mut probation = self.probation.lock();
        if *probation != names {
            names.clone_into(&mut probation);
            drop(probation);
            self.renew(None);
        }
    }

    /// How many can be picked from; 0 where the caller pins them.
    pub(crate) fn len(&self) -> usize {
        self.current().places.len()
    }

    /// All that are known, also pinned ones.
    pub(crate) fn known(&self) -> Vec<Arc<Replica>> {
        self.current().by_name.values().cloned().collect()
    }

    /// Those on probation.
    pub(crate) fn probation(&self) -> Vec<ReplicaName> {
        self.probation.lock().clone()
    }

    /// The one a caller named. Beyond 256 names it is one of its own, called by its name and counted
    /// nowhere, so that names cannot fill memory.
    pub(crate) fn pinned(&self, name: &ReplicaName) -> Arc<Replica> {
        let known = || {
            let snapshot = self.current();
            let replica = snapshot.by_name.get(name).cloned();
            (replica, snapshot.by_name.len() >= REPLICAS_PER_ROUTE_MAX)
        };
        let (replica, full) = known();
        replica
            .or_else(|| {
                if full {
                    // Nothing would come of it, with each call made under the lock.
                    return None;
                }
                self.renew(Some(name));
                known().0
            })
            .unwrap_or_else(|| self.new_replica(name, None))
    }

    /// Where a primary goes: the less loaded of two.
    pub(crate) fn primary(&self) -> Pick {
        let snapshot = self.current();
        let bits = chance::draw();
        let (first, skipped) = match snapshot.places.as_slice() {
            [] => {
                return Pick {
                    replica: self.anywhere.clone(),
                    skipped: false,
                };
            }
            [only] => {
                return Pick {
                    replica: only.replica.clone(),
                    skipped: false,
                };
            }
            _ => snapshot.draw(bits as u32, true),
        };
        if first.probation {
            // Its tenth, no more: with hardly anything in flight it would win each comparison, and
            // get twice that.
            return Pick {
                replica: first.replica.clone(),
                skipped,
            };
        }
        let (second, skipped_again) = snapshot.draw((bits >> 32) as u32, false);
        let load = |place: &Place| place.replica.in_flight();
        let less = if load(second) < load(first) {
            second
        } else {
            first
        };
        Pick {
            replica: less.replica.clone(),
            skipped: skipped || skipped_again,
        }
    }

    /// Where a hedge goes, never to a replica to `avoid`, which the call waits on or which failed it:
    /// in another zone and within its share of hedges if there is one, then within its share, then
    /// any; of two, the less loaded.
    pub(crate) fn hedge(&self, avoid: &[Option<&Replica>], budget: f64) -> Option<Arc<Replica>> {
        let snapshot = self.current();
        let other_zone = |replica: &Replica| {
            let differs = |other: &&Replica| other.zone.is_some() && other.zone != replica.zone;
            replica.zone.is_some() && avoid.iter().flatten().all(differs)
        };
        snapshot
            .pick_hedge(avoid, |replica| {
                other_zone(replica) && replica.within_share(budget)
            })
            .or_else(|| snapshot.pick_hedge(avoid, |replica| replica.within_share(budget)))
            .or_else(|| snapshot.pick_hedge(avoid, |_| true))
    }
}

impl Snapshot {
    /// One place, evenly, but for those on probation: a tenth of their share, or, not `first`, none.
    fn draw(&self, bits: u32, first: bool) -> (&Place, bool) {
        // Multiply-shift, as in `chance`: places are few, 32 bits are plenty.
        let at = (u64::from(bits) * self.places.len() as u64) >> 32;
        let place = &self.places[at as usize];
        if !place.probation || (first && chance::one_in(PROBATION_SHARE)) {
            return (place, false);
        }
        let healthy = self.places.iter().filter(|place| !place.probation);
        let instead = healthy.clone().nth(chance::below(self.healthy));
        (instead.unwrap_or(place), true)
    }

    fn pick_hedge(
        &self,
        avoid: &[Option<&Replica>],
        fits: impl Fn(&Replica) -> bool,
    ) -> Option<Arc<Replica>> {
        let avoided = |replica: &Replica| avoid.iter().flatten().any(|it| it.name == replica.name);
        let candidates = || {
            self.places
                .iter()
                .filter(|place| !place.probation && !avoided(&place.replica))
                .map(|place| &place.replica)
                .filter(|replica| fits(replica))
        };
        let count = candidates().count();
        let first = candidates().nth(chance::below(count))?;
        // A replica may leave its share between the two looks: then there is no second.
        let second = candidates().nth(chance::below(count)).unwrap_or(first);
        let load = |replica: &Replica| replica.in_flight();
        Some(
            if load(second) < load(first) {
                second
            } else {
                first
            }
            .clone(),
        )
    }
}

#[cfg(test)]
mod tests;
