//! A route's replicas, and which of them the next attempt goes to.
//!
//! The hot path reads a snapshot that is replaced whole when the host changes its list, when a
//! caller pins a replica not seen before, or when a directive changes who is on probation. Each
//! thread keeps the one it saw last, and looks whether there is another.

mod replica;
mod seen;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, Guard};
use hedgerow_protocol::ids::{ReplicaName, ZoneName};
use hedgerow_protocol::limits::REPLICAS_PER_ROUTE_MAX;
use parking_lot::Mutex;

pub(crate) use self::replica::Replica;
use crate::chance;
use crate::hand;
use crate::permit::Permits;
use crate::replicas::{Member, Replicas};

/// A replica on probation is taken in a tenth of the draws that fall on it, in 2^24 parts.
const PROBATION_SHARE: u32 = (1 << 24) / 10;

/// What the hot path reads.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    version: u64,
    /// What may be picked: first those that are not on probation, `healthy` of them.
    places: Vec<Arc<Replica>>,
    /// The same by name, and the replicas that callers pinned.
    by_name: BTreeMap<ReplicaName, Arc<Replica>>,
    healthy: usize,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Pool {
    /// Like no other pool's.
    number: u64,
    list: Option<Replicas>,
    snapshot: ArcSwap<Snapshot>,
    /// Grows after each change of the snapshot.
    changes: AtomicU64,
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
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let pool = Self {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            list,
            snapshot: ArcSwap::default(),
            changes: AtomicU64::new(0),
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

    /// Whether the host changed its list since the snapshot was made.
    #[inline]
    fn is_old(&self, snapshot: &Snapshot) -> bool {
        let list = self.list.as_ref();
        list.is_some_and(|list| list.version() != snapshot.version)
    }

    /// Not for every call: see [`seen`].
    fn current(&self) -> Guard<Arc<Snapshot>> {
        let snapshot = self.snapshot.load();
        if !self.is_old(&snapshot) {
            return snapshot;
        }
        drop(snapshot);
        self.renew(None);
        self.snapshot.load()
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
        let mut places: Vec<_> = members.iter().map(known).collect();
        let held_back = |replica: &Arc<Replica>| probation.contains(&replica.name);
        places.sort_by_key(held_back);
        let mut healthy = places.partition_point(|replica| !held_back(replica));
        if healthy == 0 {
            // Somebody has to answer: probation of all is probation of none.
            healthy = places.len();
        }
        let mut by_name: BTreeMap<_, _> = places
            .iter()
            .map(|replica| (replica.name.clone(), replica.clone()))
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
        self.changes.fetch_add(1, Ordering::Release);
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

    /// What it picks from, where it has a list.
    #[cfg(feature = "tonic")]
    pub(crate) fn list(&self) -> Option<&Replicas> {
        self.list.as_ref()
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
            seen::with(self, |snapshot| {
                let replica = snapshot.by_name.get(name).map(hand::another);
                (replica, snapshot.by_name.len() >= REPLICAS_PER_ROUTE_MAX)
            })
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
    #[inline]
    pub(crate) fn primary(&self) -> Pick {
        seen::with(self, |snapshot| {
            let (replica, skipped) = snapshot.pick_primary().unwrap_or((&self.anywhere, false));
            Pick {
                replica: hand::another(replica),
                skipped,
            }
        })
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

/// An index below `n`, evenly: multiply-shift, as in [`chance`]; places are few, 32 bits are plenty.
#[inline]
fn below(bits: u32, n: usize) -> usize {
    ((u64::from(bits) * n as u64) >> 32) as usize
}

/// An index below `n` that is not `first`, evenly, from `drawn`, one below `n - 1`.
#[inline]
fn another(drawn: usize, first: usize) -> usize {
    drawn + usize::from(drawn >= first)
}

impl Snapshot {
    /// The less loaded of two different ones: were they drawn apart, each in `n` squared would go to
    /// the most loaded of `n`, however dead. None where there is no list.
    #[inline]
    fn pick_primary(&self) -> Option<(&Arc<Replica>, bool)> {
        match self.places.as_slice() {
            [] => None,
            [only] => Some((only, false)),
            places => {
                let bits = chance::draw();
                let mut first = below(bits as u32, places.len());
                let skipped = first >= self.healthy;
                if skipped {
                    if chance::one_in(PROBATION_SHARE) {
                        // Its tenth, no more: with hardly anything in flight it would win each
                        // comparison, and get twice that.
                        return Some((&places[first], false));
                    }
                    first = chance::below(self.healthy);
                }
                let first_place = &places[first];
                if self.healthy == 1 {
                    return Some((first_place, skipped));
                }
                let second = below((bits >> 32) as u32, self.healthy - 1);
                let second_place = &places[another(second, first)];
                let less = if second_place.in_flight() < first_place.in_flight() {
                    second_place
                } else {
                    first_place
                };
                Some((less, skipped))
            }
        }
    }

    fn pick_hedge(
        &self,
        avoid: &[Option<&Replica>],
        fits: impl Fn(&Replica) -> bool,
    ) -> Option<Arc<Replica>> {
        let avoided = |replica: &Replica| avoid.iter().flatten().any(|it| it.name == replica.name);
        let candidates = || {
            self.places[..self.healthy]
                .iter()
                .filter(|replica| !avoided(replica) && fits(replica))
        };
        let count = candidates().count();
        let at = chance::below(count);
        let first = candidates().nth(at)?;
        // None where there is one only, or where a replica left its share between two looks.
        let second = another(chance::below(count.saturating_sub(1)), at);
        let second = candidates().nth(second).unwrap_or(first);
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
