//! What hedging would cost and buy, as programs are given it: the same figures under the same names
//! from the command line and the API.

pub(crate) mod figures;
pub(crate) mod json;
pub(crate) mod replayed;

use std::time::Duration;

use hedgerow_core::whatif::{Advice, Distribution, Goal};

/// Rows of a curve a program is given: as many as a plot can show.
pub(crate) const JSON_ROWS: usize = 1_000;

/// The latency a goal comes to where it is followed or left: hedged, or as it is.
pub(crate) fn outcome(sample: &Distribution, goal: &Goal, best: &Advice) -> Option<Duration> {
    match best {
        Advice::Hedge(plan) => Some(plan.reached),
        Advice::Leave(_) => sample.percentile(goal.percentile),
    }
}
