//! Delay and probability together: for the least latency at a percentile (goal mode), or for the
//! most calls within a pool's objective.
//!
//! Both search the healthy majority's curve for the best single random reissue under a budget, and
//! both move alike: up at once, down by a part of the log step a tick. With the delay still above the
//! best one, the probability is what the planned load comes to there, so that a slow way down costs
//! no more than its end.
//!
//! Where slowness is shared (phi), a hedge rescues 1 - phi of what it would; that is in the search,
//! where it takes the gain. So the budget is *not* scaled by 1 - phi as well, as it is in percentile
//! mode, whose threshold knows nothing of gains. Where phi alone takes the gain, a fifth of what
//! would be hedged without it still is: with no hedges at all nobody would see phi end.

use std::ops::RangeInclusive;
use std::time::Duration;

use hedgerow_protocol::latency::SurvivalCurve;
use hedgerow_protocol::limits::{THRESHOLD_MAX, THRESHOLD_MIN};
use hedgerow_protocol::policy::Policy;
use hedgerow_protocol::units::{Budget, Ratio};

use super::budget::LENT_MIN;
use super::phi;
use super::primaries::healthy;
use super::recent::Recent;
use super::threshold::View;
use crate::memory::Memory;
use crate::share::{Member, Rescue};
use crate::view::NoGain;
use crate::whatif::{Advice, Distribution, Goal, Leave, Percentile, Plan};
use crate::window::{WINDOW_CALLS_MIN, WINDOW_MAX, WINDOW_MIN, Windows};

/// The part of the log step that one tick goes down.
const DOWN: f64 = 0.3;
/// Ticks in a row without a gain before hedging for it ends, and with one before it begins again: the
/// share of stalls in a window of a thousand calls is a matter of chance, and hedging on for some
/// seconds costs no more than the budget.
const ENDS: u32 = 10;
/// The same in windows, where these are long.
const ENDS_WINDOWS: u32 = 2;
const BEGINS: u32 = 3;
/// The slow window, in multiples of the present one.
const SLOW_WINDOWS: usize = 5;
/// Calls beyond the percentile that the window grows for: fewer are luck.
const BEYOND: f64 = 10.0;
/// Most calls that may cross: where half of all do, none can be named slow for twice as many.
const CROSSED_MAX: f64 = 0.4;

/// What a threshold is chosen for.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) enum Aim {
    /// That a share of calls crosses.
    #[default]
    Percentile,
    /// The least latency at a percentile.
    Goal(Percentile),
    /// The most calls within a time.
    Objective(Duration),
}

impl Aim {
    /// A pool's comes before a goal: what it lends is shared out by what it does for the objective.
    pub(crate) fn of(policy: &Policy) -> Self {
        match (policy.pool().and(policy.objective()), policy.goal()) {
            (Some(objective), _) => Self::Objective(objective),
            (None, Some(goal)) => Self::Goal(goal.into()),
            (None, None) => Self::Percentile,
        }
    }
}

/// Which calls are hedged.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    delay: Duration,
    probability: f64,
    /// The share of calls that last longer than the delay.
    crossed: f64,
}

impl Point {
    fn load(&self) -> f64 {
        self.crossed * self.probability
    }
}

/// What one look at the curve says.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Found {
    point: Option<Point>,
    no_gain: Option<NoGain>,
}

/// A search and what it was made on.
struct Search {
    found: Found,
    latencies: Distribution,
}

impl Search {
    /// None: not known.
    fn of(aim: Aim, curve: &SurvivalCurve, sought: &Sought<'_>) -> Option<Self> {
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

    fn gains_nothing(&self) -> bool {
        self.found.no_gain.is_some()
    }
}

/// What is remembered of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Track {
    aim: Aim,
    /// The last good one; None: nothing is hedged, or nothing was found yet.
    point: Option<Point>,
    /// Why nothing, or little, is hedged.
    no_gain: Option<NoGain>,
    /// Ticks in a row that said otherwise.
    against: u32,
    recent: Recent,
}

/// What is sought.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sought<'a> {
    pub(crate) policy: &'a Policy,
    /// Hedges for each call, at most.
    pub(crate) budget: Budget,
    /// The share of slowness in common, less what may be chance.
    pub(crate) shared: Ratio,
}

impl Track {
    /// A tick with nothing wrong for all.
    pub(crate) fn follow(&mut self, view: &View<'_>, sought: &Sought<'_>) {
        self.turn_to(Aim::of(sought.policy));
        if self.aim == Aim::Percentile || view.calm < view.present.slices() {
            return;
        }
        if view.windows.over(WINDOW_MIN).calls() == 0 {
            // The same calls again, however often: no news.
            return;
        }
        let enough = self.enough(view);
        let curve = enough.as_ref().unwrap_or(view.curve);
        let mut search = Search::of(self.aim, curve, sought);
        if search.as_ref().is_some_and(Search::gains_nothing) {
            // The share of stalls in a thousand calls is a matter of chance: the slow window tells.
            let slow = Self::curve_over(view, SLOW_WINDOWS * view.present.slices());
            let slow = slow.and_then(|curve| Search::of(self.aim, &curve, sought));
            search = slow.or(search);
        }
        // Not known: the last good one is held.
        if let Some(Search { found, latencies }) = search {
            let ends = ENDS.max(ENDS_WINDOWS * view.present.slices() as u32);
            self.take(found, ends, |delay| latencies.crossed(delay));
        }
    }

    /// A tick while hedging is off: as with the percentile's threshold, the lowest of the last ones.
    pub(crate) fn hold(&mut self) {
        if let (Some(point), Some(least)) = (&mut self.point, self.recent.least()) {
            point.delay = least;
        }
    }

    fn turn_to(&mut self, aim: Aim) {
        if self.aim != aim {
            *self = Self {
                aim,
                ..Self::default()
            };
        }
    }

    /// The curve of a longer window than the present one, where a percentile needs it.
    fn enough(&self, view: &View<'_>) -> Option<SurvivalCurve> {
        let Aim::Goal(percentile) = self.aim else {
            return None;
        };
        let beyond = |calls: u64| calls as f64 * percentile.beyond();
        if beyond(view.present.calls()) >= BEYOND {
            return None;
        }
        let window = view.windows.grown(WINDOW_MIN, WINDOW_MAX, |window| {
            beyond(window.calls()) >= BEYOND
        });
        Self::curve_over(view, window.slices())
    }

    /// The healthy majority's curve over so many slices, where that is more than the present window.
    fn curve_over(view: &View<'_>, slices: usize) -> Option<SurvivalCurve> {
        let window = view.windows.over(slices.min(view.calm));
        (window.slices() > view.present.slices())
            .then(|| healthy(view.windows, &window, view.named).curve())
    }

    fn take(&mut self, found: Found, ends: u32, crossed: impl Fn(Duration) -> f64) {
        let begun = self.point.is_some() || self.no_gain.is_some();
        if begun && found.no_gain.is_some() != self.no_gain.is_some() {
            self.against += 1;
            let wait = if found.no_gain.is_some() {
                ends
            } else {
                BEGINS
            };
            if self.against < wait {
                return;
            }
        }
        self.against = 0;
        self.no_gain = found.no_gain;
        self.point = found.point.map(|to| match self.point {
            Some(from) if to.delay < from.delay => down(from, to, crossed),
            _ => to,
        });
        match self.point {
            Some(point) => self.recent.push(point.delay),
            None => self.recent = Recent::default(),
        }
    }
}

/// A part of the way down, at the load of its end.
fn down(from: Point, to: Point, crossed: impl Fn(Duration) -> f64) -> Point {
    let step = to.delay.as_secs_f64() / from.delay.as_secs_f64();
    let delay = from.delay.mul_f64(step.powf(DOWN));
    let crossed = crossed(delay);
    Point {
        delay,
        probability: if crossed > 0.0 {
            (to.load() / crossed).min(1.0)
        } else {
            1.0
        },
        crossed,
    }
}

/// Delays that a policy and the naming of replicas leave.
fn delays(policy: &Policy, curve: &SurvivalCurve) -> RangeInclusive<Duration> {
    let least = policy.threshold_min().unwrap_or(THRESHOLD_MIN);
    let most = policy.threshold_max().unwrap_or(THRESHOLD_MAX);
    let few = curve.quantile(1.0 - CROSSED_MAX).unwrap_or(least);
    least.max(few.min(most))..=most
}

/// None: not known.
fn for_goal(latencies: &Distribution, goal: &Goal, shared: Ratio) -> Option<Found> {
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

/// A route as its pool sees it: over the last minute, as what misses an objective is rare.
pub(crate) fn member(
    windows: &Windows,
    policy: &Policy,
    memory: &Memory,
    before: Option<Budget>,
) -> Member {
    let window = windows.over(WINDOW_MAX);
    let seconds = window.span().as_secs_f64();
    let enough = window.calls() >= WINDOW_CALLS_MIN;
    let rescue = policy.objective().filter(|_| enough).and_then(|objective| {
        let curve = healthy(windows, &window, &memory.named).curve();
        let shared = phi(windows, policy, memory).map_or(Ratio::ZERO, |phi| phi.at_least());
        Rescue::of(&curve, objective, shared, &delays(policy, &curve))
    });
    Member {
        calls_per_s: if seconds > 0.0 {
            window.calls() as f64 / seconds
        } else {
            0.0
        },
        own: policy.budget(),
        before,
        rescue,
    }
}

/// What a route is hedged by now, whatever its aim.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct InForce {
    /// The threshold, before the policy's limits; None: nothing is known yet.
    pub(crate) threshold: Option<Duration>,
    /// The share of crossed calls hedged while it is on.
    pub(crate) probability: f64,
    /// The share of calls meant to cross.
    pub(crate) crossing: f64,
    /// Hedges aimed at, as a share of the calls not held out.
    pub(crate) load: f64,
    /// Why nothing, or little, is hedged.
    pub(crate) no_gain: Option<NoGain>,
}

impl InForce {
    /// From what is remembered. Without a gain, and before anything was found, the threshold is the
    /// percentile's: crossing it goes on telling who is slow.
    pub(crate) fn of(memory: &Memory, policy: &Policy) -> Self {
        let tail = policy.percentile().tail();
        let followed = Self {
            threshold: memory.threshold.value(),
            probability: 1.0,
            crossing: tail,
            load: tail,
            no_gain: None,
        };
        let track = &memory.goal;
        if track.aim != Aim::of(policy) {
            return followed;
        }
        match track.point {
            Some(point) => Self {
                threshold: Some(point.delay),
                probability: point.probability,
                crossing: point.crossed,
                load: point.load(),
                no_gain: track.no_gain,
            },
            None if track.no_gain.is_some() => Self {
                probability: 0.0,
                load: 0.0,
                no_gain: track.no_gain,
                ..followed
            },
            None => followed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn hedging(delay: Duration, crossed: f64) -> Found {
        Found {
            point: Some(Point {
                delay,
                probability: 0.02 / crossed,
                crossed,
            }),
            no_gain: None,
        }
    }

    const NOTHING: Found = Found {
        point: None,
        no_gain: Some(NoGain::NothingCrosses),
    };

    /// Half as many calls cross at ten times the delay: 8 % at 10 ms.
    fn crossed(delay: Duration) -> f64 {
        0.08 * (delay.as_secs_f64() / 0.01).powf(-std::f64::consts::LOG10_2)
    }

    #[test]
    fn up_at_once_and_down_by_three_tenths_of_the_log_step_at_the_same_load() {
        let mut track = Track::default();
        track.take(hedging(10 * MS, 0.08), ENDS, crossed);
        track.take(hedging(1000 * MS, 0.04), ENDS, crossed);
        let up = track.point.unwrap();
        assert_eq!(up.delay, 1000 * MS);
        // From 1000 to 10 ms: 0.7 of the two decades are left, then 0.49.
        for left in [1.4, 0.98, 0.686] {
            track.take(hedging(10 * MS, 0.08), ENDS, crossed);
            let point = track.point.unwrap();
            let decades = (point.delay.as_secs_f64() / 0.01).log10();
            assert!((decades - left).abs() < 1e-6, "{decades} for {left}");
            assert!((point.load() - 0.02).abs() < 1e-9, "{point:?}");
        }
    }

    #[test]
    fn what_is_shared_takes_the_gain_and_leaves_a_fifth_of_the_hedges_to_see_it_end() {
        // 8 % stalls; p95 is one unless three eighths of them are rescued, and half can be hedged.
        let calls = [(10, 92), (300, 8)].map(|(ms, calls)| (ms * MS, calls));
        let latencies = Distribution::of_counts(calls).unwrap();
        let goal = Goal::new(Percentile::P95, Budget::new(0.04).unwrap());
        let search = |shared| for_goal(&latencies, &goal, Ratio::clamped(shared)).unwrap();
        let alone = search(0.0);
        assert_eq!(alone.no_gain, None);
        let full = alone.point.unwrap();
        assert!(search(0.1).no_gain.is_none());
        let shared = search(0.3);
        assert!(
            matches!(shared.no_gain, Some(NoGain::Shared { unhedged, .. }) if unhedged == 300 * MS),
            "{shared:?}"
        );
        let little = shared.point.unwrap();
        assert_eq!(little.delay, full.delay);
        assert!((little.probability / full.probability - 0.2).abs() < 1e-9);
    }

    #[test]
    fn a_window_or_two_without_a_gain_end_nothing_and_one_with_a_gain_begins_nothing() {
        let mut track = Track::default();
        let mut hedges = Vec::new();
        let windows = [(1, true), (9, false), (1, true), (11, false), (4, true)];
        for (ticks, gain) in windows {
            for _ in 0..ticks {
                let found = if gain {
                    hedging(10 * MS, 0.08)
                } else {
                    NOTHING
                };
                track.take(found, ENDS, crossed);
                hedges.push(track.point.is_some());
            }
        }
        // Nine without a gain in a row, then ten; two with one, then three.
        let expected: Vec<_> = (0..26).map(|tick| tick < 20 || tick >= 24).collect();
        assert_eq!(hedges, expected);
    }
}
