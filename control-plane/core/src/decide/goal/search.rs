//! One look at a curve: the best delay and probability, or why there is none.

use std::ops::RangeInclusive;
use std::time::Duration;

use hedgerow_protocol::latency::SurvivalCurve;
use hedgerow_protocol::limits::{THRESHOLD_MAX, THRESHOLD_MIN};
use hedgerow_protocol::policy::Policy;
use hedgerow_protocol::units::{Budget, Ratio};

use super::{Aim, Point};
use crate::decide::budget::LENT_MIN;
use crate::share::Rescue;
use crate::view::NoGain;
use crate::whatif::{Advice, Distribution, Goal, Leave, Plan};

/// Most calls that may cross: where half of all do, none can be named slow for twice as many.
const CROSSED_MAX: f64 = 0.4;

/// What is sought.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sought<'a> {
    pub(crate) policy: &'a Policy,
    /// Hedges for each call, at most.
    pub(crate) budget: Budget,
    /// The share of slowness in common, less what may be chance.
    pub(crate) shared: Ratio,
}

/// What one look at the curve says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Found {
    pub(super) point: Option<Point>,
    pub(super) no_gain: Option<NoGain>,
}

/// A search and what it was made on.
pub(super) struct Search {
    pub(super) found: Found,
    pub(super) latencies: Distribution,
}

impl Search {
    /// None: not known.
    pub(super) fn of(aim: Aim, curve: &SurvivalCurve, sought: &Sought<'_>) -> Option<Self> {
        let latencies = Distribution::of_curve(curve).ok()?;
        let delays = delays(sought.policy, curve);
        let found = match aim {
            Aim::Percentile => None,
            Aim::Goal(percentile) => {
                let goal = Goal::new(percentile, sought.budget).with_delays(delays);
                for_goal(&latencies, &goal, sought.shared)
            }
            Aim::Objective(objective) => Rescue::of(curve, objective, sought.shared, &delays)
                .and_then(|rescue| rescue.best(sought.budget.get()))
                .map(|best| Found {
                    point: Some(Point {
                        delay: best.delay,
                        probability: best.probability,
                        crossed: best.crossed,
                    }),
                    no_gain: None,
                }),
        };
        found.map(|found| Self { found, latencies })
    }

    pub(super) fn gains_nothing(&self) -> bool {
        self.found.no_gain.is_some()
    }
}

/// Delays that a policy and the naming of replicas leave.
pub(super) fn delays(policy: &Policy, curve: &SurvivalCurve) -> RangeInclusive<Duration> {
    let least = policy.threshold_min().unwrap_or(THRESHOLD_MIN);
    let most = policy.threshold_max().unwrap_or(THRESHOLD_MAX);
    let few = curve.quantile(1.0 - CROSSED_MAX).unwrap_or(least);
    least.max(few.min(most))..=most
}

/// None: not known.
pub(super) fn for_goal(latencies: &Distribution, goal: &Goal, shared: Ratio) -> Option<Found> {
    let found = |plan: &Plan| Point {
        delay: plan.delay,
        probability: plan.probability,
        crossed: latencies.crossed(plan.delay),
    };
    let leave = match latencies.best(&goal.clone().with_shared(shared)) {
        Advice::Hedge(plan) => {
            return Some(Found {
                point: Some(found(&plan)),
                no_gain: None,
            });
        }
        Advice::Leave(leave) => leave,
    };
    let none = |no_gain| {
        Some(Found {
            point: None,
            no_gain: Some(no_gain),
        })
    };
    match leave {
        Leave::NotKnown(_) => None,
        Leave::NothingCrosses => none(NoGain::NothingCrosses),
        Leave::SmallGain {
            percentile,
            unhedged,
            best,
        } => {
            let percentile = 1.0 - percentile.beyond();
            match latencies.best(goal) {
                Advice::Hedge(alone) if shared > Ratio::ZERO => {
                    let point = found(&alone);
                    Some(Found {
                        point: Some(Point {
                            probability: point.probability * LENT_MIN,
                            ..point
                        }),
                        no_gain: Some(NoGain::Shared {
                            percentile,
                            unhedged,
                            shared: shared.get(),
                        }),
                    })
                }
                _ => none(NoGain::Small {
                    percentile,
                    unhedged,
                    best,
                }),
            }
        }
    }
}
