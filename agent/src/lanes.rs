//! A lane for each thread, in whatever the hot path writes.
//!
//! Who owns a lane is the only writer of what lies in it, and adds by a plain load and a plain
//! store: a fifth of what a locked instruction costs, and no other thread's cache line. Threads
//! beyond [`OWNED_LANES`] share the last lane and add with locked instructions. Readers add lanes up.
//!
//! A thread gives its lane back when it ends. The next owner takes it under the same lock, which is
//! what orders the one's last store before the other's first load.

use crate::sync::{AtomicU32, AtomicU64, Mutex, OWNED_LANES, OnceLock, Ordering};

/// All lanes, the shared one among them.
pub(crate) const LANES: usize = OWNED_LANES + 1;

/// A lane's number, as its owner holds it. Sound only on the thread that took it: see
/// [`crate::thread::lane`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lane(u32);

impl Lane {
    /// The lane of all who have none of their own.
    pub(crate) const SHARED: Self = Self(OWNED_LANES as u32);

    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    /// Whether nobody else writes here.
    #[inline]
    pub(crate) fn owned(self) -> bool {
        self != Self::SHARED
    }

    /// Adds to a word of this lane, wrapping.
    #[inline]
    pub(crate) fn add(self, word: &AtomicU64, n: u64) {
        if self.owned() {
            let sum = word.load(Ordering::Relaxed).wrapping_add(n);
            word.store(sum, Ordering::Release);
        } else {
            word.fetch_add(n, Ordering::Release);
        }
    }

    /// The same for 32 bits.
    #[inline]
    pub(crate) fn add_32(self, word: &AtomicU32, n: u32) {
        if self.owned() {
            let sum = word.load(Ordering::Relaxed).wrapping_add(n);
            word.store(sum, Ordering::Release);
        } else {
            word.fetch_add(n, Ordering::Release);
        }
    }
}

/// Which lanes are free.
#[derive(Debug)]
pub(crate) struct FreeLanes {
    free: Mutex<Vec<u32>>,
}

impl FreeLanes {
    pub(crate) fn new() -> Self {
        Self {
            // The lowest last, so that it is the first to be given out.
            free: Mutex::new((0..OWNED_LANES as u32).rev().collect()),
        }
    }

    /// A lane of one's own, where there is one left.
    pub(crate) fn take(&self) -> Lane {
        self.free.lock().pop().map_or(Lane::SHARED, Lane)
    }

    pub(crate) fn give_back(&self, lane: Lane) {
        if lane.owned() {
            self.free.lock().push(lane.0);
        }
    }
}

/// Something for each lane, made when its thread first asks for it. 1 KiB, in the place of one more
/// pointer to follow.
#[derive(Debug)]
pub(crate) struct PerLane<T>([OnceLock<Box<T>>; LANES]);

impl<T> PerLane<T> {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| OnceLock::new()))
    }

    #[inline]
    pub(crate) fn get_or_make(&self, lane: Lane, make: impl FnOnce() -> T) -> &T {
        self.0[lane.index()].get_or_init(|| Box::new(make()))
    }

    #[inline]
    pub(crate) fn get(&self, lane: usize) -> Option<&T> {
        self.0.get(lane)?.get().map(|it| &**it)
    }

    /// What was made, with its lane's number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        (0..LANES).filter_map(|lane| Some((lane, self.get(lane)?)))
    }
}
