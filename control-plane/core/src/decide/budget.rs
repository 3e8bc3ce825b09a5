//! How much hedging is lent, and whether a second kept to it.

use std::collections::VecDeque;

use hedgerow_protocol::latency::SurvivalCurve;
use hedgerow_protocol::limits::CAP_MAX;
use hedgerow_protocol::units::{Budget, Ratio};

use super::arming::{Armed, rate};
use crate::window::{Slice, Windows};

/// Tokens an agent keeps where the fleet is small beside its traffic: with one, a healthy fleet of
/// 5 agents at 200 calls/s is refused 22 % of its hedges by chance, with three 5 %.
const CAP_ROOMY: f64 = 3.0;
/// Tokens an agent keeps at least.
const CAP_LEAST: f64 = 1.0;
/// Most of the fleet's calls in a second that all buckets together may hedge at once.
pub(crate) const BURST_SHARE: f64 = 0.1;
/// Part of a second whose tokens a bucket holds, where that is more.
const CAP_SECONDS: f64 = 0.5;
/// Slices the fleet's rate is taken from: a cap that follows each second's chance helps nobody.
pub(crate) const RATE_SLICES: usize = 10;

/// Hedges that phi needs: S of the hedges is then known to within some 2 points.
const PHI_HEDGES: u64 = 100;
/// Standard errors taken off phi before the budget is cut by it: chance alone must not.
const PHI_DOUBT: f64 = 2.0;

/// Least share of the budget that is lent while hedging is on: with none there would be no hedges to
/// see by whether it should be off, or all of it be lent again.
pub(crate) const LENT_MIN: f64 = 0.2;

/// What was pushed in the last ticks: agents may still use the one before the last.
const PUSHED: usize = 3;

/// The last few budgets and caps.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Pushed(VecDeque<Allowed>);

#[derive(Debug, Clone, Copy, PartialEq)]
struct Allowed {
    budget: f64,
    cap: f64,
    armed: Option<Armed>,
}

impl Allowed {
    /// Of so many agents, how many have a bucket at a time.
    fn buckets(&self, agents: f64) -> f64 {
        self.armed.map_or(agents, |armed| armed.at_most(agents))
    }

    /// What a call earns: more than the budget where more agents than the share happen to be armed.
    fn earned(&self, agents: f64) -> f64 {
        let share = self.armed.map_or(1.0, |armed| armed.share.get());
        if agents > 0.0 {
            self.budget * self.buckets(agents) / (share * agents)
        } else {
            self.budget
        }
    }
}

impl Pushed {
    /// Remembers what is pushed now.
    pub(crate) fn push(&mut self, budget: Budget, cap: f64, armed: Option<Armed>) {
        let budget = budget.get();
        self.0.push_back(Allowed { budget, cap, armed });
        if self.0.len() > PUSHED {
            self.0.pop_front();
        }
    }

    /// Whether a slice holds more hedges than budget and caps allow: a report of any length may
    /// have spent one bucket's cap, and the budget of the calls that finished in it; of agents armed
    /// in turns, only those whose turn it can be. Also where an agent says so itself, as it counts
    /// its own seconds.
    pub(crate) fn exceeded_by(&self, slice: &Slice) -> bool {
        let most = |part: &dyn Fn(&Allowed) -> f64| self.0.iter().map(part).fold(0.0, f64::max);
        let (reports, finished) = (slice.reports as f64, slice.totals.finished as f64);
        let allowed = most(&|pushed| pushed.earned(reports)) * finished
            + most(&|pushed| pushed.cap * pushed.buckets(reports));
        slice.agents_over_budget > 0
            || (!self.0.is_empty() && slice.totals.hedges() as f64 > allowed + 1e-6)
    }
}

/// Most tokens an agent keeps: as many as all agents can spend at once within a tenth of the fleet's
/// calls in a second, one at least and three at most; half a second's worth of its own where that is
/// more. What lies between counts: with two instead of one, a hundred agents of twenty calls a second
/// each are refused an eighth of their hedges by chance instead of three. One where agents are armed in
/// turns: their number is made for that.
pub(crate) fn cap(windows: &Windows, agents: u64, budget: Budget, armed: Option<Armed>) -> f64 {
    let (Some(rate), None, true) = (rate(windows, RATE_SLICES), armed, agents > 0) else {
        return CAP_LEAST;
    };
    let agents = agents as f64;
    let least = (BURST_SHARE * rate / agents).clamp(CAP_LEAST, CAP_ROOMY);
    let worth = CAP_SECONDS * budget.get() * rate / agents;
    least.max(worth).min(CAP_MAX)
}

/// How much of slowness is shared, 0 to 1, and its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Phi {
    /// As measured.
    pub(crate) value: f64,
    error: f64,
}

impl Phi {
    /// From hedges and primaries of the same window: how much likelier a hedge is to be slow than a
    /// primary. None with too few hedges.
    pub(crate) fn measure(
        primary: &SurvivalCurve,
        hedge: &SurvivalCurve,
        hedges: u64,
        threshold: std::time::Duration,
    ) -> Option<Self> {
        if hedges < PHI_HEDGES {
            return None;
        }
        let alone = primary.survival_at(threshold)?;
        let hedged = hedge.survival_at(threshold)?;
        let room = 1.0 - alone;
        (room > 0.0).then(|| Self {
            value: ((hedged - alone) / room).clamp(0.0, 1.0),
            error: (hedged * (1.0 - hedged) / hedges as f64).sqrt() / room,
        })
    }

    /// What of it cannot be chance.
    pub(crate) fn at_least(&self) -> Ratio {
        Ratio::clamped(self.value - PHI_DOUBT * self.error)
    }

    /// The share of the budget that is lent.
    pub(crate) fn lent(&self) -> f64 {
        (1.0 - self.at_least().get()).max(LENT_MIN)
    }
}
