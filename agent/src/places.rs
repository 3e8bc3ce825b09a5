//! A bounded number of places, taken without a lock.

use crate::sync::{AtomicU32, Ordering};

#[derive(Debug)]
pub(crate) struct Places(AtomicU32);

impl Places {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Takes one, where fewer than `most` are taken.
    pub(crate) fn take(&self, most: u32) -> bool {
        let more = |taken| (taken < most).then_some(taken + 1);
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.is_ok()
    }

    pub(crate) fn give_back(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many are taken.
    pub(crate) fn load(&self, ordering: Ordering) -> u32 {
        self.0.load(ordering)
    }
}
