//! Chance on the hot path: a counter and a mixer for each thread, two nanoseconds a draw.
//!
//! Nothing secret hangs on these draws (which replica, which arm, which call is watched), so a
//! splitmix64 stream is enough; each thread starts its own from the process's hash seed.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

/// Of splitmix64: odd, so that all states come before one comes again.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

thread_local! {
    /// 0: not begun yet.
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// Sixty-four bits, evenly spread.
#[inline]
pub(crate) fn draw() -> u64 {
    let mut state = STATE.get();
    if state == 0 {
        state = begin();
    }
    let next = state.wrapping_add(STEP);
    STATE.set(next);
    mix(next)
}

#[cold]
fn begin() -> u64 {
    RandomState::new().hash_one(std::thread::current().id())
}

/// True in a share of `parts / 2^24` of the draws.
#[inline]
pub(crate) fn one_in(parts: u32) -> bool {
    ((draw() >> 40) as u32) < parts
}

/// Two independent draws of 24 bits in one: each is below `parts` in `parts / 2^24` of them.
#[inline]
pub(crate) fn two() -> (u32, u32) {
    let bits = draw();
    ((bits >> 40) as u32, (bits >> 8) as u32 & ((1 << 24) - 1))
}

/// An index below `n`; 0 for none.
#[inline]
pub(crate) fn below(n: usize) -> usize {
    // Multiply-shift: no division, and the bias of 2^-64 x n is beyond measuring.
    ((u128::from(draw()) * n as u128) >> 64) as usize
}

/// Starts this thread's stream anew, for tests that have to come out alike each time.
#[cfg(test)]
pub(crate) fn seed(seed: u64) {
    STATE.set(seed);
}

#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Even draws from a seed of one's own, for scripts and worlds of tests.
#[cfg(test)]
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

#[cfg(test)]
impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// Below `n`, which is not 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.draw() % n
    }

    /// From 0 to 1.
    pub(crate) fn share(&mut self) -> f64 {
        self.below(1 << 30) as f64 / f64::from(1 << 30)
    }

    pub(crate) fn percent(&mut self, of_all: u64) -> bool {
        self.below(100) < of_all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_come_out_as_asked() {
        seed(1);
        for parts in [0u32, 1 << 20, 1 << 23, 1 << 24] {
            let hits = (0..100_000).filter(|_| one_in(parts)).count();
            let expected = 100_000.0 * f64::from(parts) / f64::from(1 << 24);
            assert!((hits as f64 - expected).abs() < 600.0, "{parts}: {hits}");
        }
    }

    #[test]
    fn indices_are_even_and_below_their_bound() {
        seed(2);
        let mut seen = [0u32; 5];
        for _ in 0..50_000 {
            seen[below(5)] += 1;
        }
        assert!(seen.iter().all(|n| (9_500..10_500).contains(n)), "{seen:?}");
        assert_eq!(below(0), 0);
    }
}
