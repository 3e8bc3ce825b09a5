//! Chance by number: every call has streams of its own, so that the same seed gives the same calls
//! whatever a client makes of them.

/// Of splitmix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA
/// 2014): odd, so that all states come before one comes again.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// What is drawn for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stream {
    /// Gaps between calls.
    Arrivals = 1,
    /// What one call is, and what its primary meets.
    Call,
    /// What its hedge meets.
    Hedge,
    /// Which other replica a hedge goes to.
    HedgePick,
    /// When one replica, or all of them, stand still.
    Pauses,
    /// When agents come back.
    Agents,
}

/// A seeded stream of numbers.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// The `number`th stream for something, of a seed.
    pub(crate) fn of(seed: u64, stream: Stream, number: u64) -> Self {
        let stream = mix(seed ^ mix((stream as u64).wrapping_mul(STEP)));
        Self(mix(stream ^ number.wrapping_mul(STEP)))
    }

    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// From 0, below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// An index below `n`; 0 for none.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.draw()) * n as u128) >> 64) as usize
    }

    /// Normal, mean 0, variance 1.
    pub(crate) fn normal(&mut self) -> f64 {
        let (u, v) = (1.0 - self.unit(), self.unit());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// Exponential.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_alike_for_the_same_number_and_apart_for_others() {
        let first = |seed, stream, number| Random::of(seed, stream, number).draw();
        let one = first(1, Stream::Call, 7);
        assert_eq!(one, first(1, Stream::Call, 7));
        for other in [
            first(2, Stream::Call, 7),
            first(1, Stream::Hedge, 7),
            first(1, Stream::Call, 8),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn draws_have_the_means_they_should() {
        let mut random = Random::of(3, Stream::Arrivals, 0);
        let n = 100_000;
        let mean =
            |draw: &mut dyn FnMut() -> f64| (0..n).map(|_| draw()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || random.unit()) - 0.5).abs() < 0.01);
        assert!((mean(&mut || random.exponential(3.0)) - 3.0).abs() < 0.05);
        assert!(mean(&mut || random.normal()).abs() < 0.02);
        assert!((mean(&mut || random.below(5) as f64) - 2.0).abs() < 0.02);
        assert_eq!(random.below(0), 0);
    }
}
