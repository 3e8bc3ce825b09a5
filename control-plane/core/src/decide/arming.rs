//! How many agents may hedge at a time (ALGORITHMS 2, the fleet's burst).
//!
//! A token in each of many quiet agents is more than a dependency should get in one second, and the
//! budget of each is kept all the same: so where all tokens at once would exceed a tenth of the
//! fleet's calls in a second, only a share of the agents is armed at a time. Two of its figures are
//! not the fleet's size alone:
//!
//! - a burst of [`BURST_HEDGES`] harms nobody, and few agents have few turns: a fleet of so many
//!   agents, or fewer, is never armed in turns, however few its calls;
//! - a turn is long enough for an agent to earn its first token in an eighth of it.

use std::time::Duration;

use hedgerow_protocol::units::{Budget, Ratio};

use super::budget::BURST_SHARE;
use crate::window::Windows;

/// Hedges that may come at once whatever the fleet's calls.
const BURST_HEDGES: f64 = 10.0;
/// A share stays until it should be so much larger or smaller. Until then the burst may be as much
/// above a tenth.
const MOVED_MIN: f64 = 0.1;
/// Turns that are told, the shortest first: each twice as long as the one before, so that the length
/// does not follow the rate's chance.
const TURNS_S: [u64; 7] = [10, 20, 40, 80, 160, 320, 600];
/// Part of a turn in which the first token is earned, at the fleet's mean rate.
const EARNING_PART: f64 = 0.125;
/// A turn is kept while it is not more than so many times as long as it should be.
const TURN_KEPT: u32 = 4;

/// A share of the agents at a time. What agents are told has a seed beside it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Armed {
    /// Of the agents, above 0 and below 1.
    pub share: Ratio,
    /// How long a turn lasts.
    pub epoch: Duration,
}

impl Armed {
    /// How many of `agents` may be armed at once: beyond the share by four standard errors, for each
    /// agent's turns begin where they will.
    pub(crate) fn at_most(&self, agents: f64) -> f64 {
        let share = self.share.get();
        let doubt = 4.0 * (share * (1.0 - share) * agents).sqrt() + 1.0;
        (share * agents + doubt).min(agents)
    }
}

/// The fleet's eligible calls a second over some slices; None where there were none.
pub(crate) fn rate(windows: &Windows, slices: usize) -> Option<f64> {
    let window = windows.over(slices);
    let (calls, seconds) = (window.calls() as f64, window.span().as_secs_f64());
    (calls > 0.0 && seconds > 0.0).then(|| calls / seconds)
}

/// Which share is to be armed at a time, where `agents` make `rate` calls a second together and may
/// hedge a `budget` of them, the one that is lent where a pool lends: an armed agent hedges each of
/// its calls at most, so that a smaller share could not spend it. None: everyone. `held` is what is
/// so far; without calls it stays.
pub(crate) fn arm(
    rate: Option<f64>,
    agents: u64,
    budget: Budget,
    held: Option<Armed>,
) -> Option<Armed> {
    let (Some(rate), true) = (rate, agents > 0) else {
        return held;
    };
    let agents = agents as f64;
    let budget = budget.get();
    let wanted = ((BURST_SHARE * rate).max(BURST_HEDGES) / agents).max(budget);
    let share = held.map_or(1.0, |held| held.share.get());
    let share = if (wanted - share).abs() > MOVED_MIN * share {
        wanted
    } else {
        share
    };
    if share >= 1.0 || share <= 0.0 {
        return None;
    }
    let epoch = turn(share, budget, rate / agents);
    let keeps = |held: &Duration| (epoch..=epoch * TURN_KEPT).contains(held);
    Some(Armed {
        share: Ratio::clamped(share),
        epoch: held.map(|it| it.epoch).filter(keeps).unwrap_or(epoch),
    })
}

/// How long a turn should last where `share` is armed and an agent makes `rate` calls a second.
fn turn(share: f64, budget: f64, rate: f64) -> Duration {
    // An armed agent earns budget / share a call, of which it takes whole calls to make one hedge.
    let calls = (share / budget).ceil();
    let wanted = calls / rate / EARNING_PART;
    let longest = TURNS_S[TURNS_S.len() - 1];
    let long_enough = TURNS_S.into_iter().find(|turn| *turn as f64 >= wanted);
    Duration::from_secs(long_enough.unwrap_or(longest))
}
