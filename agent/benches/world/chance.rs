//! Seeded chance: a splitmix64 stream for each question, so that the order of questions is nothing.

use std::time::Duration;

use tower::util::rng::Rng;

use super::Ask;

/// See the [module](self).
#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

impl Chance {
    /// A stream of its own for each `seed` and `what`.
    pub(crate) fn new(seed: u64, what: u64) -> Self {
        Self(mix(seed ^ mix(what)))
    }

    /// The stream of one attempt.
    pub(crate) fn of(seed: u64, ask: &Ask) -> Self {
        let place = (ask.replica as u64) << 8 | u64::from(ask.times_before);
        Self::new(mix(seed ^ place), ask.call)
    }

    /// Evenly from 0 to 1.
    pub(crate) fn share(&mut self) -> f64 {
        self.next_f64()
    }

    /// True in so large a share of draws.
    pub(crate) fn happens(&mut self, share: f64) -> bool {
        self.share() < share
    }

    /// Evenly between two durations.
    pub(crate) fn between(&mut self, least: Duration, most: Duration) -> Duration {
        least + most.saturating_sub(least).mul_f64(self.share())
    }

    /// Lognormal: the logarithm of its quotient to `median` has the standard deviation `sigma`.
    pub(crate) fn lognormal(&mut self, median: Duration, sigma: f64) -> Duration {
        let (radius, turn) = (1.0 - self.share(), self.share());
        let normal = (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * turn).cos();
        median.mul_f64((sigma * normal).exp())
    }

    /// Exponential: the time until the next of events that come `per_second` on average.
    pub(crate) fn gap(&mut self, per_second: f64) -> Duration {
        Duration::from_secs_f64(-(1.0 - self.share()).ln() / per_second)
    }
}

/// For tower's balancer, too.
impl Rng for Chance {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
