//! What alerts are raised on.

use hedgerow_protocol::report::Refusal;

use super::primaries::share;
use crate::view::Figures;
use crate::window::{WINDOW_MAX, WINDOW_MIN, Windows};

/// Slices over which hedges' wins are counted: two minutes.
const WINS_OVER: usize = 120;
/// Hedges in that time under which their wins say nothing: a rate of one half is then known to
/// within a tenth.
const HEDGES_MIN: u64 = 100;
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
    /// How often hedges win, over two minutes.
    pub wins: Option<Wins>,
    /// Crossed calls refused by the budget / crossed calls, over the shortest time, up to a minute,
    /// with enough of them.
    pub refused_by_budget: Option<f64>,
}

/// How often hedges win.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Wins {
    /// Hedges that answered first / hedges sent.
    pub rate: f64,
    /// What independent replicas would give, above 0.
    pub expected: f64,
}

impl Wins {
    /// As a share of what was expected.
    pub fn ratio(self) -> f64 {
        self.rate / self.expected
    }
}

impl Conditions {
    /// From the windows, and the figures made of them.
    pub(super) fn of(windows: &Windows, figures: Option<&Figures>) -> Self {
        Self {
            hedge_rate: figures.and_then(|figures| figures.hedge_rate),
            demand: figures.and_then(|figures| figures.demand),
            wins: figures.and_then(|figures| wins(windows, figures)),
            refused_by_budget: refused(windows),
        }
    }
}

fn wins(windows: &Windows, figures: &Figures) -> Option<Wins> {
    if windows.over(RECENT).sum(|totals| totals.hedged) == 0 {
        return None;
    }
    let window = windows.over(WINS_OVER);
    let hedged = window.sum(|totals| totals.hedged);
    let rate = share(window.sum(|totals| totals.won), hedged)?;
    let expected = figures.win_rate_expected.filter(|it| *it > 0.0)?;
    (hedged >= HEDGES_MIN).then_some(Wins { rate, expected })
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
