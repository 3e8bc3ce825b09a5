//! What alerts are raised on.

use hedgerow_protocol::latency::LogRank;
use hedgerow_protocol::report::Refusal;

use super::primaries::share;
use crate::view::Figures;
use crate::window::{WINDOW_MAX, WINDOW_MIN, Windows};

/// Ticks over which hedges' answers are averaged: a test on forty hedges is off by a sixth.
const ANSWERS_OVER: u32 = 30;
/// Answers expected in the test of a tick, on average, under which they say nothing.
const EXPECTED_MIN: f64 = 20.0;
/// Slices in which there has to be something new: what is long over is not the present, though it is
/// still in the windows above.
const RECENT: usize = 10;
/// Crossed calls under which the share that the budget refused says nothing.
const CROSSED_MIN: u64 = 50;

/// What alerts are raised on; None: no data, nothing is raised or cleared.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Conditions {
    /// Hedges sent / eligible calls started, over the present window.
    pub hedge_rate: Option<f64>,
    /// Calls that crossed on replicas not named, times q / eligible calls started, over the same.
    pub demand: Option<f64>,
    /// Hedges answered / what independent replicas would have answered, over the last half minute or
    /// more.
    pub answered: Option<f64>,
    /// Crossed calls refused by the budget / crossed calls, over the shortest time, up to a minute,
    /// with enough of them.
    pub refused_by_budget: Option<f64>,
}

/// Hedges answered, and expected: of each tick's test, the older the less.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Answers {
    ticks: u32,
    observed: f64,
    expected: f64,
}

impl Answers {
    /// Takes in the test of a new slice. Without hedges all of it is forgotten.
    pub(super) fn follow(&mut self, windows: &Windows, test: Option<LogRank>) {
        let sent = windows.over(RECENT).sum(|totals| totals.hedged) > 0;
        let Some(test) = test.filter(|_| sent) else {
            *self = Self::default();
            return;
        };
        self.ticks = (self.ticks + 1).min(ANSWERS_OVER);
        let part = 1.0 / f64::from(self.ticks);
        self.observed += (test.observed - self.observed) * part;
        self.expected += (test.expected - self.expected) * part;
    }

    fn ratio(self) -> Option<f64> {
        let known = self.ticks >= ANSWERS_OVER && self.expected >= EXPECTED_MIN;
        known.then(|| self.observed / self.expected)
    }
}

impl Conditions {
    /// From the windows, and the figures made of them.
    pub(super) fn of(windows: &Windows, figures: Option<&Figures>, answers: Answers) -> Self {
        Self {
            hedge_rate: figures.and_then(|figures| figures.hedge_rate),
            demand: figures.and_then(|figures| figures.demand),
            answered: answers.ratio(),
            refused_by_budget: refused(windows),
        }
    }
}

fn refused(windows: &Windows) -> Option<f64> {
    if windows.over(RECENT).sum(|totals| totals.crossed) == 0 {
        return None;
    }
    let window = windows.grown(WINDOW_MIN, WINDOW_MAX, |window| {
        window.sum(|totals| totals.crossed) >= CROSSED_MIN
    });
    let crossed = window.sum(|totals| totals.crossed);
    let refused = window.sum(|totals| totals.refused_for(Refusal::Budget));
    share(refused, crossed).filter(|_| crossed >= CROSSED_MIN)
}
