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

mod in_force;
mod member;
mod search;
#[cfg(test)]
mod tests;

use std::time::Duration;

use hedgerow_protocol::latency::SurvivalCurve;
use hedgerow_protocol::policy::Policy;

use super::primaries::healthy;
use super::recent::Recent;
use super::threshold::View;
use crate::view::NoGain;
use crate::whatif::Percentile;
use crate::window::{WINDOW_MAX, WINDOW_MIN};

pub(crate) use in_force::InForce;
pub(crate) use member::member;
pub(crate) use search::Sought;
use search::{Found, Search};

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
