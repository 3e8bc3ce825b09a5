//! What the larger of two windows costs, given back. Pure.
//!
//! A threshold that is the larger of two estimates lies above the true quantile by their noise: of
//! a nominal 5 % some 4.6 cross, and fewer the quieter the route. What really crossed is known,
//! whatever was cancelled; so the tail that is aimed at is turned by it, slowly and within bounds.
//! A change of the dependency's speed is not for it to follow: that is what the windows are for.

/// Seconds and calls between two turns: the crossed share is then known to within a fifth.
const TURN_SECONDS: u32 = 10;
const TURN_CALLS: u64 = 500;
/// Exponent of each turn; unstable from about 2 on.
const GAIN: f64 = 0.3;
/// A turn never follows more than this, and its inverse.
const STEP_MAX: f64 = 2.0;
/// How far it goes in all, either way.
const RANGE: (f64, f64) = (0.8, 1.2);

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Trim {
    factor: f64,
    seconds: u32,
    started: u64,
    crossed: u64,
}

impl Default for Trim {
    fn default() -> Self {
        Self {
            factor: 1.0,
            seconds: 0,
            started: 0,
            crossed: 0,
        }
    }
}

impl Trim {
    /// The tail to aim at, so that `target` crosses.
    pub(crate) fn tail(&self, target: f64) -> f64 {
        target * self.factor
    }

    /// A second is over in which so many calls of the healthy majority started, and so many of them
    /// crossed the agent's own threshold.
    pub(crate) fn second(&mut self, started: u64, crossed: u64, target: f64) {
        self.seconds += 1;
        self.started += started;
        self.crossed += crossed;
        if self.seconds < TURN_SECONDS || self.started < TURN_CALLS {
            return;
        }
        let share = self.crossed as f64 / self.started as f64;
        let off = (target / share).clamp(1.0 / STEP_MAX, STEP_MAX);
        self.factor = (self.factor * off.powf(GAIN)).clamp(RANGE.0, RANGE.1);
        self.pause();
    }

    /// What crosses now says nothing: it is another's threshold, or there is none.
    pub(crate) fn pause(&mut self) {
        (self.seconds, self.started, self.crossed) = (0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_settles_where_the_target_crosses_within_its_range() {
        // What crosses is a part of the tail aimed at.
        for (part, settled) in [
            (0.9, 1.0 / 0.9),
            (1.1, 1.0 / 1.1),
            (1.0, 1.0),
            (0.5, 1.2),
            (3.0, 0.8),
        ] {
            let mut trim = Trim::default();
            for _ in 0..600 {
                let crossed = 1000.0 * trim.tail(0.05) * part;
                trim.second(1000, crossed.round() as u64, 0.05);
                assert!((0.8..=1.2).contains(&trim.factor));
            }
            assert!(
                (trim.factor - settled).abs() < 0.02,
                "{part}: {}",
                trim.factor
            );
        }
    }

    #[test]
    fn p16_it_turns_on_enough_calls_and_enough_time_only() {
        let mut trim = Trim::default();
        (0..9).for_each(|_| trim.second(100_000, 0, 0.05));
        assert_eq!(trim.tail(0.05), 0.05, "not yet ten seconds");
        let mut trim = Trim::default();
        (0..20).for_each(|_| trim.second(24, 0, 0.05));
        assert_eq!(trim.tail(0.05), 0.05, "not yet 500 calls");
        trim.second(24, 0, 0.05);
        assert!(trim.tail(0.05) > 0.05, "none of 500 crossed");
    }
}
