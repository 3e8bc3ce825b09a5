//! How busy a replica is: attempts alive on it, and primaries ever started.
//!
//! One word for each lane, as every attempt changes one, side by side, as every pick reads them
//! all: what is above [`STARTED_SHIFT`] counts primaries, what is below attempts alive. An attempt
//! may end on another thread than it began on, so one lane's word says nothing: only their wrapping
//! sum does.

use crate::lanes::{LANES, Lane};
use crate::sync::{AtomicU64, Ordering};

/// Leaves 8 million attempts at once below, and a trillion primaries above.
const STARTED_SHIFT: u32 = 24;

#[derive(Debug)]
pub(crate) struct Load {
    words: [AtomicU64; LANES],
}

impl Load {
    pub(crate) fn new() -> Self {
        Self {
            words: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// An attempt begins. `primary`: a primary that is counted.
    #[inline]
    pub(crate) fn begins(&self, lane: Lane, primary: bool) {
        let change = if primary { (1 << STARTED_SHIFT) + 1 } else { 1 };
        lane.add(&self.words[lane.index()], change);
    }

    /// An attempt's work is over.
    #[inline]
    pub(crate) fn ends(&self, lane: Lane) {
        lane.add(&self.words[lane.index()], u64::MAX);
    }

    /// `used`: lanes with an owner, now or before.
    #[inline]
    fn sum(&self, used: usize, ordering: Ordering) -> u64 {
        let (owned, shared) = self.words.split_at(Lane::SHARED.index());
        let mut sum: u64 = 0;
        for word in owned.iter().take(used).chain(shared) {
            sum = sum.wrapping_add(word.load(ordering));
        }
        sum
    }

    /// Attempts alive. Read while others change it, an end may be seen before its beginning, which
    /// leaves less than nothing for a moment: that is nothing.
    #[inline]
    pub(crate) fn alive(&self, used: usize) -> u64 {
        alive(self.sum(used, Ordering::Relaxed)).max(0) as u64
    }

    /// Primaries ever started.
    pub(crate) fn started(&self) -> u64 {
        let sum = self.sum(LANES, Ordering::Acquire);
        sum.wrapping_sub(alive(sum) as u64) >> STARTED_SHIFT
    }
}

/// The lower part, signed.
#[inline]
fn alive(sum: u64) -> i64 {
    (sum << (64 - STARTED_SHIFT)).cast_signed() >> (64 - STARTED_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_may_end_in_another_lane_than_it_began_in() {
        let load = Load::new();
        let here = crate::thread::lane();
        for i in 0..1000 {
            load.begins(here, i % 2 == 0);
        }
        assert_eq!((load.alive(LANES), load.started()), (1000, 500));
        for i in 0..1000 {
            load.ends(if i % 3 == 0 { Lane::SHARED } else { here });
        }
        assert_eq!((load.alive(LANES), load.started()), (0, 500));
    }

    #[test]
    fn an_end_seen_before_its_beginning_is_not_a_crowd() {
        let load = Load::new();
        load.begins(Lane::SHARED, true);
        load.ends(Lane::SHARED);
        load.ends(Lane::SHARED);
        assert_eq!((load.alive(0), load.started()), (0, 1));
    }
}
