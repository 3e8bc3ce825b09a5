//! The token bucket every hedge pays from.
//!
//! Tokens come from *finished calls*, never from the clock: an idle service saves nothing up, and
//! when a dependency stops answering, no call finishes and hedging starves by itself within the
//! bucket. For any run of calls, hedges <= budget x finished calls + cap; the bucket starts empty.
//! Where only a share of the agents is armed at a time, that holds of a turn with what a call earns
//! in it, which is more than the budget and at most one hedge; over all turns the mean is the budget.
//!
//! Fixed point, because compare-and-swap wants an integer and sums of floats drift. The ratio is
//! rounded down, so rounding can only cost a hedge, never grant one.

use hedgerow_protocol::limits::CAP_MAX;
use hedgerow_protocol::units::Ratio;

use crate::sync::{AtomicU64, Ordering};

/// One hedge. 2^24 makes a budget of 1 ppm still more than zero, and the largest cap 2^38.
const TOKEN: u64 = 1 << 24;

fn fixed(hedges: f64) -> u64 {
    (hedges.clamp(0.0, CAP_MAX) * TOKEN as f64) as u64
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct TokenBucket {
    tokens: AtomicU64,
    earned_per_call: AtomicU64,
    cap: AtomicU64,
}

impl TokenBucket {
    /// Sets what a finished call earns and the most that is kept. Tokens above a lowered cap are
    /// gone.
    pub(crate) fn set(&self, earned: Ratio, cap: f64) {
        let cap = fixed(cap);
        self.earned_per_call
            .store(fixed(earned.get()), Ordering::Relaxed);
        self.cap.store(cap, Ordering::Relaxed);
        self.tokens.fetch_min(cap, Ordering::Relaxed);
    }

    /// Takes all tokens: a turn begins, or ends.
    pub(crate) fn clear(&self) {
        self.tokens.store(0, Ordering::Relaxed);
    }

    /// Adds tokens nobody has earned, up to the cap.
    pub(crate) fn lend(&self, hedges: f64) {
        let cap = self.cap.load(Ordering::Relaxed);
        // Nothing is done where it fails, and it does not: there always is a new value.
        let _ = self
            .tokens
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |tokens| {
                Some((tokens + fixed(hedges)).min(cap))
            });
    }

    /// An eligible call finished. A full bucket is only read, so that in the usual state threads do
    /// not fight over its cache line.
    #[inline]
    pub(crate) fn earn(&self) {
        let earned = self.earned_per_call.load(Ordering::Relaxed);
        if earned == 0 {
            return;
        }
        let cap = self.cap.load(Ordering::Relaxed);
        let mut tokens = self.tokens.load(Ordering::Relaxed);
        while tokens < cap {
            let more = (tokens + earned).min(cap);
            match self.tokens.compare_exchange_weak(
                tokens,
                more,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(seen) => tokens = seen,
            }
        }
    }

    /// Takes one hedge's token, where there is one. Taken for good: a hedge that was sent is load,
    /// whatever becomes of it.
    pub(crate) fn take(&self) -> bool {
        let cap = self.cap.load(Ordering::Relaxed);
        self.tokens
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |tokens| {
                // A cap lowered between our load and an `earn` under way would leave a few too many.
                tokens.min(cap).checked_sub(TOKEN)
            })
            .is_ok()
    }

    /// What a finished call earns now, in hedges.
    pub(crate) fn earned(&self) -> f64 {
        self.earned_per_call.load(Ordering::Relaxed) as f64 / TOKEN as f64
    }

    /// Tokens left, in hedges.
    pub(crate) fn tokens(&self) -> f64 {
        self.tokens.load(Ordering::Relaxed) as f64 / TOKEN as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use hedgerow_protocol::units::Budget;

    fn bucket(budget: f64, cap: f64) -> TokenBucket {
        let bucket = TokenBucket::default();
        bucket.set(Budget::clamped(budget).into(), cap);
        bucket
    }

    #[test]
    fn b25_ten_finished_calls_never_pay_for_more_than_the_ratio() {
        // The case's own ratio of 0.6 is beyond the hard limit: it is held to a quarter (P8).
        for (ratio, most) in [
            (0.6, 2),
            (0.25, 2),
            (0.2, 1),
            (0.125, 1),
            (0.1, 0),
            (0.05, 0),
        ] {
            let bucket = bucket(ratio, 100.0);
            for _ in 0..10 {
                bucket.earn();
            }
            let hedges = (0..10).filter(|_| bucket.take()).count();
            // Rounding is down: 0.2 and 0.1 are not exact in binary, and a hair under 2 and 1.
            assert_eq!(hedges, most, "{ratio}");
        }
    }

    #[test]
    fn b28_a_hundred_agents_hedge_as_much_as_one_plus_their_caps() {
        for agents in [1, 100] {
            let buckets: Vec<_> = (0..agents).map(|_| bucket(0.08, 1.0)).collect();
            // No floor: nobody has anything to spend before its calls have earned it.
            assert!(!buckets.iter().any(TokenBucket::take));
            let mut hedges = 0;
            for call in 0..100_000 {
                let bucket = &buckets[call % agents];
                bucket.earn();
                hedges += u32::from(bucket.take());
            }
            // With a cap of one hedge, the call that fills the bucket loses its change.
            assert!(
                (7_600..=8_000).contains(&hedges),
                "{agents} agents: {hedges}"
            );
        }
    }

    #[test]
    fn b29_after_a_day_of_success_a_total_failure_is_paid_from_the_cap_alone() {
        let bucket = bucket(0.08, 3.0);
        for _ in 0..1_000_000 {
            bucket.earn();
        }
        assert_eq!((0..1000).filter(|_| bucket.take()).count(), 3);
    }

    #[test]
    fn a_lowered_cap_takes_what_is_above_it() {
        let bucket = bucket(0.25, 100.0);
        for _ in 0..400 {
            bucket.earn();
        }
        bucket.set(Budget::clamped(0.25).into(), 2.0);
        assert_eq!((0..100).filter(|_| bucket.take()).count(), 2);
    }

    #[test]
    fn it_starts_empty_and_a_zero_budget_stays_empty() {
        let bucket = bucket(0.0, 10.0);
        assert!(!bucket.take());
        for _ in 0..1000 {
            bucket.earn();
        }
        assert!(!bucket.take());
    }

    proptest! {
        /// B25, B28: in every window of every sequence, hedges <= B x finished in it + cap.
        #[test]
        fn b28_hedges_in_any_window_are_within_ratio_times_finished_plus_cap(
            ratio in 0.0..0.25f64,
            cap in 0.0..20.0f64,
            steps in prop::collection::vec(any::<bool>(), 1..600),
            from in 0usize..300,
        ) {
            let bucket = bucket(ratio, cap);
            let (mut finished, mut hedges) = (0u32, 0u32);
            for (i, finishes) in steps.iter().enumerate() {
                if i == from {
                    (finished, hedges) = (0, 0);
                }
                if *finishes {
                    bucket.earn();
                    finished += 1;
                } else if bucket.take() {
                    hedges += 1;
                }
                prop_assert!(f64::from(hedges) <= ratio * f64::from(finished) + cap + 1e-9);
            }
        }
    }

    #[test]
    fn threads_together_never_take_more_than_was_earned() {
        let bucket = bucket(0.25, 1000.0);
        let taken = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for i in 0..10_000 {
                        bucket.earn();
                        if i % 2 == 0 && bucket.take() {
                            taken.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert!(taken.load(Ordering::Relaxed) <= 10_000);
    }
}
