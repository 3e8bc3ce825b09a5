//! The best delay and probability for a percentile under a budget: single random reissue.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use hedgerow_protocol::limits::{THRESHOLD_MAX, THRESHOLD_MIN};
use hedgerow_protocol::units::{Budget, Ratio};

use super::distribution::Distribution;
use super::exact::{ONE, parts};
use super::hedging::Hedging;
use super::percentile::Percentile;

/// Least gain that is worth any load at all, in percent of the latency without hedging.
pub const GAIN_MIN_PERCENT: u32 = 5;
/// Delays looked at first. A good one among them rules most of the others out at a glance.
const FIRST_LOOK: usize = 256;

/// A percentile to bring down, and what that may cost.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Goal {
    /// Which latency is to be least.
    pub percentile: Percentile,
    /// Hedges for each call, at most.
    pub budget: Budget,
    /// The share of slowness that a call and its hedge have in common (phi).
    pub shared: Ratio,
    /// Delays that may be chosen: by default those an agent accepts.
    pub delays: RangeInclusive<Duration>,
}

impl Goal {
    /// With nothing shared and every delay allowed.
    pub fn new(percentile: Percentile, budget: Budget) -> Self {
        Self {
            percentile,
            budget,
            shared: Ratio::ZERO,
            delays: THRESHOLD_MIN..=THRESHOLD_MAX,
        }
    }

    /// With a measured share of common slowness.
    #[must_use]
    pub fn with_shared(mut self, shared: Ratio) -> Self {
        self.shared = shared;
        self
    }

    /// With a policy's limits of the threshold.
    #[must_use]
    pub fn with_delays(mut self, delays: RangeInclusive<Duration>) -> Self {
        self.delays = delays;
        self
    }
}

/// What to do about a goal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Advice {
    /// Hedge like this.
    Hedge(Plan),
    /// Do not hedge.
    Leave(Leave),
}

/// The best there is for a goal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// A call that lasts longer may be hedged.
    pub delay: Duration,
    /// The least share of those, above 0 and up to 1, that reaches the latency below.
    pub probability: f64,
    /// Hedges for each call that this comes to, at most the budget.
    pub extra_load: f64,
    /// The goal's percentile with it.
    pub reached: Duration,
    /// The goal's percentile without; `None` where it is beyond what is known.
    pub unhedged: Option<Duration>,
}

/// Why not to hedge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// No call lasts longer than a delay that is allowed.
    NothingCrosses,
    /// The percentile is beyond what is known of the latencies, hedged or not.
    NotKnown(Percentile),
    /// The best that can be had is hardly better.
    SmallGain {
        /// The goal's.
        percentile: Percentile,
        /// Without hedging: this, or more where it is not known.
        unhedged: Duration,
        /// At best.
        best: Duration,
    },
}

impl fmt::Display for Leave {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingCrosses => {
                f.write_str("no call lasts longer than a delay that is allowed")
            }
            Self::NotKnown(percentile) => write!(
                f,
                "{percentile} is not known: too many calls were stopped before they answered"
            ),
            Self::SmallGain {
                percentile,
                unhedged,
                best,
            } if best >= unhedged => {
                write!(
                    f,
                    "{percentile} would stay at {unhedged:?}: nothing is gained"
                )
            }
            Self::SmallGain {
                percentile,
                unhedged,
                best,
            } => write!(
                f,
                "{percentile} would be {best:?} for {unhedged:?} at best: a gain under {GAIN_MIN_PERCENT} % is not worth the load"
            ),
        }
    }
}

impl Distribution {
    /// The least latency for a goal; of several delays that reach it the largest, then the least
    /// probability.
    pub fn best(&self, goal: &Goal) -> Advice {
        let least = *goal.delays.start();
        // Between two values as few calls cross as from the lower one on, so that the values are all
        // worth a look; where that one is not allowed, the least that is takes its place.
        let between = Some(least).filter(|&least| (1..self.total()).contains(&self.above(least)));
        let values = self.delays().filter(|delay| goal.delays.contains(delay));
        let delays = between
            .filter(|_| !goal.delays.is_empty())
            .into_iter()
            .chain(values);
        if delays.clone().next().is_none() {
            return Advice::Leave(Leave::NothingCrosses);
        }
        let Some((hedging, reached)) = self.search(goal, delays) else {
            return Advice::Leave(Leave::NotKnown(goal.percentile));
        };
        let unhedged = self.percentile(goal.percentile);
        let at_least = unhedged.unwrap_or(self.known_until());
        if too_small(at_least, reached) {
            return Advice::Leave(Leave::SmallGain {
                percentile: goal.percentile,
                unhedged: at_least,
                best: reached,
            });
        }
        let probability = self.least_probability(&hedging, goal.percentile, reached);
        Advice::Hedge(Plan {
            delay: hedging.delay(),
            probability,
            extra_load: self.crossed(hedging.delay()) * probability,
            reached,
            unhedged,
        })
    }

    fn search<'a>(
        &'a self,
        goal: &Goal,
        delays: impl Iterator<Item = Duration> + Clone,
    ) -> Option<(Hedging<'a>, Duration)> {
        let (budget, shared) = (parts(goal.budget.get()), parts(goal.shared.get()));
        let step = (self.values() / FIRST_LOOK).max(1);
        let mut best: Option<(Hedging<'_>, Duration)> = None;
        for delay in delays.clone().step_by(step).chain(delays) {
            let hedging = Hedging::every(self, delay).within(budget).sharing(shared);
            if let Some((held, time)) = best {
                // As good will do for a larger delay, better it has to be for a smaller one.
                let to_beat = if delay > held.delay() {
                    time
                } else {
                    time.saturating_sub(Duration::from_nanos(1))
                };
                if !hedging.reaches(goal.percentile, to_beat) {
                    continue;
                }
            }
            if let Some(time) = hedging.percentile(goal.percentile) {
                let better = best.is_none_or(|(held, least)| {
                    time < least || (time == least && delay > held.delay())
                });
                if better {
                    best = Some((hedging, time));
                }
            }
        }
        best
    }

    /// The q with `S(t) (1 - q (1 - phi) F(t - d)) = tail`. The integers are exact, the quotients
    /// are the nearest floats.
    fn least_probability(&self, hedging: &Hedging<'_>, goal: Percentile, time: Duration) -> f64 {
        let ahead = u128::from(self.above(time)) * u128::from(ONE);
        let tail = u128::from(goal.tail()) * u128::from(self.total());
        // Above zero: without hedging the time is not reached, or there would be no gain.
        let rescued = (ahead - tail) as f64 / ahead as f64;
        let back = hedging.hedges_back(time) as f64 / self.total() as f64;
        let apart = hedging.apart() as f64 / ONE as f64;
        (rescued / (apart * back)).min(1.0)
    }
}

fn too_small(unhedged: Duration, best: Duration) -> bool {
    let gain = unhedged.saturating_sub(best).as_nanos();
    gain == 0 || gain * 100 < unhedged.as_nanos() * u128::from(GAIN_MIN_PERCENT)
}
