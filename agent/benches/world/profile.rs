//! How replicas react, and when that changes.

use std::time::Duration;

use super::chance::Chance;
use super::{Ask, REPLICAS};

/// What a replica does with an attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reaction {
    Answers(Duration),
    Fails(Duration),
    /// Neither, ever.
    Silent,
}

/// Usual answers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Base {
    /// Lognormal, a share of them ten times slower.
    Stragglers {
        median: Duration,
        sigma: f64,
        share: f64,
    },
    /// Evenly between two durations, a share of them stalled for a second before.
    Stalls {
        least: Duration,
        most: Duration,
        share: f64,
    },
}

/// What happens to the dependency.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    Nothing,
    /// All answers take `factor` times as long, reached within `over`.
    Slower {
        factor: f64,
        over: Duration,
    },
    /// One replica answers nobody.
    DeadReplica,
    /// This share of attempts fails within a few milliseconds.
    Errors {
        share: f64,
    },
}

/// See the [module](self).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Profile {
    pub(crate) seed: u64,
    pub(crate) base: Base,
    pub(crate) change: Change,
    /// When it happens.
    pub(crate) from: Duration,
}

const STALL: Duration = Duration::from_secs(1);
const STRAGGLER: f64 = 10.0;
const DEAD: usize = REPLICAS - 1;
/// How long a failure takes.
const FAILS_WITHIN: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(5));

impl Profile {
    pub(crate) fn reaction(&self, ask: &Ask) -> Reaction {
        let mut chance = Chance::of(self.seed, ask);
        let usual = self.base.draw(&mut chance);
        let Some(since) = ask.at.checked_sub(self.from) else {
            return Reaction::Answers(usual);
        };
        match self.change {
            Change::Slower { factor, over } => {
                let reached = if over.is_zero() {
                    1.0
                } else {
                    since.div_duration_f64(over).min(1.0)
                };
                Reaction::Answers(usual.mul_f64(1.0 + (factor - 1.0) * reached))
            }
            Change::DeadReplica if ask.replica == DEAD => Reaction::Silent,
            Change::Errors { share } if chance.happens(share) => {
                let (least, most) = FAILS_WITHIN;
                Reaction::Fails(chance.between(least, most))
            }
            _ => Reaction::Answers(usual),
        }
    }

    /// A quantile of usual answers.
    pub(crate) fn usual(&self, quantile: f64) -> Duration {
        const DRAWS: usize = 200_000;
        let mut chance = Chance::new(self.seed, u64::MAX);
        let mut draws: Vec<_> = (0..DRAWS).map(|_| self.base.draw(&mut chance)).collect();
        let at = ((quantile * DRAWS as f64) as usize).min(DRAWS - 1);
        *draws.select_nth_unstable(at).1
    }
}

impl Base {
    fn draw(&self, chance: &mut Chance) -> Duration {
        match *self {
            Self::Stragglers {
                median,
                sigma,
                share,
            } => {
                let slower = if chance.happens(share) {
                    STRAGGLER
                } else {
                    1.0
                };
                chance.lognormal(median, sigma).mul_f64(slower)
            }
            Self::Stalls { least, most, share } => {
                let stall = if chance.happens(share) {
                    STALL
                } else {
                    Duration::ZERO
                };
                chance.between(least, most) + stall
            }
        }
    }
}
