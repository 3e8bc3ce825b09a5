//! How long to stay away after a stream ended, whatever ended it.

use std::time::Duration;

use hedgerow_protocol::session::COME_BACK_MAX;

/// The first wait's upper end.
pub(crate) const BASE: Duration = Duration::from_millis(250);
/// Every later wait's upper end: an agent is back within seconds of its controller.
pub(crate) const CAP: Duration = Duration::from_secs(5);
/// Capped exponential backoff with full jitter: each wait is drawn evenly from nothing to the upper
/// end. Full, because a fleet that lost its controller in one moment must not come back in one.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The wait before the next try. `entropy` is any evenly drawn number.
    pub(crate) fn wait(&mut self, entropy: u64) -> Duration {
        let upper = BASE.saturating_mul(1 << self.failures.min(16)).min(CAP);
        self.failures = self.failures.saturating_add(1);
        let micros = (u128::from(entropy) * upper.as_micros()) >> 64;
        Duration::from_micros(micros as u64)
    }

    /// The wait where the controller said how long at least: that, and a drawn wait on top, in case
    /// it says the same to everyone. Bounded, since a wrong figure would silence a fleet.
    pub(crate) fn wait_at_least(&mut self, after: Duration, entropy: u64) -> Duration {
        after.min(COME_BACK_MAX) + self.wait(entropy)
    }

    /// Begins anew, after a stream that held. One that was only accepted does not count: a
    /// controller that ends each stream at once would be asked four times a second by everyone.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splitmix64: even, and the same each time.
    fn draws(mut seed: u64) -> impl FnMut() -> u64 {
        move || {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = seed;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }
    }

    #[test]
    fn upper_ends_double_up_to_the_cap() {
        let mut backoff = Backoff::default();
        let waits: Vec<u128> = (0..8)
            .map(|_| backoff.wait(u64::MAX).as_millis().next_multiple_of(10))
            .collect();
        assert_eq!(waits, [250, 500, 1000, 2000, 4000, 5000, 5000, 5000]);
        for _ in 0..100 {
            assert!(backoff.wait(u64::MAX) <= CAP);
        }
        backoff.reset();
        assert!(backoff.wait(u64::MAX) <= BASE);
    }

    #[test]
    fn p07_ten_thousand_agents_come_back_spread_over_the_whole_wait() {
        let mut draw = draws(7);
        let mut tenths = [0_u32; 10];
        for _ in 0..10_000 {
            let mut backoff = Backoff { failures: 10 };
            let wait = backoff.wait(draw());
            tenths[(wait.as_micros() * 10 / CAP.as_micros()) as usize] += 1;
        }
        assert!(tenths.iter().all(|n| (850..1150).contains(n)), "{tenths:?}");
    }

    #[test]
    fn a_controllers_word_is_kept_and_bounded() {
        let mut backoff = Backoff::default();
        let after = Duration::from_secs(7);
        let wait = backoff.wait_at_least(after, u64::MAX);
        assert!(wait >= after && wait <= after + BASE, "{wait:?}");
        let wait = backoff.wait_at_least(Duration::from_secs(1 << 40), 0);
        assert_eq!(wait, COME_BACK_MAX);
    }
}
