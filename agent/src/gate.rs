//! The directive as the hot path sees it: a few atomics, each good with any value of the others.
//!
//! There is no pair here that must be read together, so no lock and no version: a call that sees
//! the new threshold and the old probability does something either directive allows. The mode alone
//! decides whether anything is hedged, and it shares its word with the probability and the holdout.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hedgerow_protocol::units::{AttemptLimit, Ratio, Threshold};

const OPEN: u64 = 1;
const PROBABILITY_SHIFT: u32 = 1;
const HOLDOUT_SHIFT: u32 = 26;
const ATTEMPTS_SHIFT: u32 = 51;
const ON_ERROR: u64 = 1 << 53;
const UNARMED: u64 = 1 << 54;
/// A share in 2^24 parts needs 25 bits, as 1 is one of them.
const SHARE: u64 = (1 << 25) - 1;

/// 2^24 parts to the whole, for [`crate::chance::one_in`].
fn parts(ratio: Ratio) -> u64 {
    (ratio.get() * f64::from(1u32 << 24)) as u64
}

/// What a call may do beyond its first hedge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Further {
    /// Most copies of a call.
    pub(crate) attempts: AttemptLimit,
    /// Whether a retryable failure sends a hedge.
    pub(crate) hedge_on_error: bool,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Packed; 0: none, nothing crosses.
    threshold: AtomicU64,
    /// What an answer typically takes, packed; 0: not known.
    typical: AtomicU64,
    word: AtomicU64,
}

/// One reading of mode, probability and holdout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading(u64);

impl Reading {
    /// Whether the mode lets anything be hedged.
    #[inline]
    pub(crate) fn open(self) -> bool {
        self.0 & OPEN != 0
    }

    /// Whether it is this agent's turn.
    #[inline]
    pub(crate) fn armed(self) -> bool {
        self.0 & UNARMED == 0
    }

    /// Share of crossed calls to hedge, in 2^24 parts.
    #[inline]
    pub(crate) fn probability(self) -> u32 {
        ((self.0 >> PROBABILITY_SHIFT) & SHARE) as u32
    }

    /// Most copies of a call, the primary among them: 2 or 3; 0 before anything was set.
    pub(crate) fn attempts(self) -> u8 {
        ((self.0 >> ATTEMPTS_SHIFT) & 3) as u8
    }

    /// Whether a retryable failure sends a hedge.
    pub(crate) fn hedge_on_error(self) -> bool {
        self.0 & ON_ERROR != 0
    }

    /// Share of eligible calls never hedged, in 2^24 parts.
    #[inline]
    pub(crate) fn holdout(self) -> u32 {
        ((self.0 >> HOLDOUT_SHIFT) & SHARE) as u32
    }
}

impl Gate {
    pub(crate) fn set(
        &self,
        open: bool,
        armed: bool,
        probability: Ratio,
        holdout: Ratio,
        further: Further,
    ) {
        let word = if open { OPEN } else { 0 }
            | (parts(probability) << PROBABILITY_SHIFT)
            | (parts(holdout) << HOLDOUT_SHIFT)
            | (u64::from(further.attempts.get()) << ATTEMPTS_SHIFT)
            | if further.hedge_on_error { ON_ERROR } else { 0 }
            | if armed { 0 } else { UNARMED };
        self.word.store(word, Ordering::Relaxed);
    }

    pub(crate) fn set_threshold(&self, threshold: Option<Threshold>) {
        let word = threshold.map_or(0, |threshold| packed(threshold.get()));
        self.threshold.store(word, Ordering::Relaxed);
    }

    pub(crate) fn set_typical(&self, typical: Duration) {
        self.typical.store(packed(typical), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn read(&self) -> Reading {
        Reading(self.word.load(Ordering::Relaxed))
    }

    #[inline]
    pub(crate) fn threshold(&self) -> Option<Duration> {
        match self.threshold.load(Ordering::Relaxed) {
            0 => None,
            word => Some(unpacked(word)),
        }
    }

    pub(crate) fn typical(&self) -> Duration {
        unpacked(self.typical.load(Ordering::Relaxed))
    }
}

/// Seconds above, nanoseconds below: a `Duration` without a division. Latencies end at an hour.
fn packed(duration: Duration) -> u64 {
    let seconds = duration.as_secs().min(u64::from(u32::MAX));
    (seconds << 32) | u64::from(duration.subsec_nanos())
}

#[inline]
fn unpacked(word: u64) -> Duration {
    Duration::new(word >> 32, word as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b14_a_new_gate_is_shut_and_has_no_threshold() {
        let gate = Gate::default();
        assert!(!gate.read().open());
        assert_eq!(gate.threshold(), None);
    }

    #[test]
    fn durations_come_out_as_they_went_in() {
        for duration in [
            Duration::ZERO,
            Duration::from_nanos(999_999_999),
            Duration::from_hours(1),
        ] {
            assert_eq!(unpacked(packed(duration)), duration);
        }
    }

    #[test]
    fn the_word_keeps_its_parts_apart() {
        let gate = Gate::default();
        let three = Further {
            attempts: AttemptLimit::new(3).unwrap(),
            hedge_on_error: true,
        };
        gate.set(true, false, Ratio::ONE, Ratio::ONE, three);
        let all = gate.read();
        assert!(all.open() && !all.armed());
        assert_eq!((all.probability(), all.holdout()), (1 << 24, 1 << 24));
        assert_eq!((all.attempts(), all.hedge_on_error()), (3, true));
        let none = Further::default();
        gate.set(false, true, Ratio::clamped(0.5), Ratio::ZERO, none);
        let half = gate.read();
        assert!(!half.open() && half.armed());
        assert_eq!((half.probability(), half.holdout()), (1 << 23, 0));
        assert_eq!((half.attempts(), half.hedge_on_error()), (2, false));
    }
}
