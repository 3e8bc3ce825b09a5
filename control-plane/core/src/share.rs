//! One budget for several routes: hedges go where they keep the most calls within their objectives.
//!
//! Routes whose policies name the same pool put their budgets together, `sum of B x calls/s` hedges a
//! second, and get them back by marginal benefit: each route's [`Rescue`] gives calls rescued against
//! hedges, its concave hull segments of falling slope, and the steepest segments of all routes are
//! taken until the pool is spent. What no segment is worth is not spent at all.
//!
//! Why not each its own: at 2 % each, a route with 8 % stalls can hedge a quarter of them, and one
//! without any hedges 2 % of its calls for nothing.
//!
//! Shares move slowly, and never beyond the pool: where one cannot give up as fast as another would
//! take, the other waits; where the pool itself shrank, as when a route with a large budget lost its
//! calls, all give way at once.

mod hull;
#[cfg(test)]
mod tests;

use std::time::Duration;

use hedgerow_protocol::ids::PoolName;
use hedgerow_protocol::limits::BUDGET_MAX;
use hedgerow_protocol::units::Budget;

pub use hull::{Best, Rescue};

/// How often budgets are shared out.
pub const EVERY: Duration = Duration::from_secs(10);
/// Least a route keeps: without hedges nothing would be seen of how much of its slowness is shared.
/// Less where the pool does not have as much for each.
pub const FLOOR: f64 = 0.002;
/// Most a route gets, whatever its own budget.
pub const CAP: f64 = 0.1;
/// Rescued calls that a hedge has to be worth.
pub const SLOPE_MIN: f64 = 0.02;
/// What a share may grow to in a minute, and what it may fall to, as parts of itself.
const A_MINUTE: (f64, f64) = (1.3, 0.7);
/// Time after which shares are as good as unknown: a controller that was held up does not leap.
const MOVED_OVER: Duration = Duration::from_mins(1);

/// One route of a pool.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Eligible calls a second.
    pub calls_per_s: f64,
    /// What its policy puts in.
    pub own: Budget,
    /// What it had before; None: it is new, and begins with its own.
    pub before: Option<Budget>,
    /// What hedging it rescues; None where that is not known: it keeps what it had.
    pub rescue: Option<Rescue>,
}

/// What a route of a pool may hedge.
#[derive(Debug, Clone, PartialEq)]
pub struct Lent {
    /// The pool.
    pub pool: PoolName,
    /// Its share of the pool, as a share of its calls.
    pub budget: Budget,
    /// What its policy puts in.
    pub own: Budget,
}

/// Shares a pool out among its routes, in their order; `since`: the time since it was last done.
/// The hedges a second of all together are at most what their own budgets come to.
pub fn share(members: &[Member], since: Duration) -> Vec<Budget> {
    let rates: Vec<f64> = members.iter().map(|it| it.calls_per_s.max(0.0)).collect();
    let own = members.iter().map(|it| it.own.get());
    let pool: f64 = own.zip(&rates).map(|(own, rate)| own * rate).sum();
    let calls: f64 = rates.iter().sum();
    let floor = if calls > 0.0 {
        FLOOR.min(pool / calls)
    } else {
        FLOOR
    };
    let range = |share: f64| share.clamp(floor, CAP.min(BUDGET_MAX));
    let before: Vec<f64> = members
        .iter()
        .map(|it| range(it.before.unwrap_or(it.own).get()))
        .collect();
    let wanted = wanted(members, &rates, &before, floor, pool);
    let minutes = since.min(MOVED_OVER).as_secs_f64() / 60.0;
    let (up, down) = (A_MINUTE.0.powf(minutes), A_MINUTE.1.powf(minutes));
    let moved: Vec<f64> = before
        .iter()
        .zip(wanted)
        .map(|(before, wanted)| range(wanted.clamp(before * down, before * up)))
        .collect();
    within(pool, floor, &rates, &before, moved)
        .into_iter()
        .map(Budget::clamped)
        .collect()
}

/// What each would have, were nobody slow to move.
fn wanted(members: &[Member], rates: &[f64], before: &[f64], floor: f64, pool: f64) -> Vec<f64> {
    let mut shares = vec![floor; members.len()];
    let mut segments = Vec::new();
    for (at, member) in members.iter().enumerate() {
        let Some(hull) = member.rescue.as_ref().and_then(Rescue::hull) else {
            shares[at] = before[at];
            continue;
        };
        let mut from = 0.0_f64;
        for segment in hull {
            let (start, end) = (from.max(floor), segment.end.min(CAP));
            from = segment.end;
            if start < end && segment.slope >= SLOPE_MIN {
                segments.push((segment.slope, at, end - start));
            }
        }
    }
    // Stable: of two alike the first, so that the same figures give the same shares.
    segments.sort_by(|(a, ..), (b, ..)| b.total_cmp(a));
    let mut left = pool - spent(&shares, rates);
    for (_, at, width) in segments {
        let cost = width * rates[at];
        let part = if cost <= left { 1.0 } else { left / cost };
        if part <= 0.0 {
            continue;
        }
        shares[at] += width * part;
        left -= cost * part;
    }
    shares
}

/// The same, within the pool: who would have more waits for what others give up; where that is not
/// enough, because the pool shrank, all give way.
fn within(pool: f64, floor: f64, rates: &[f64], before: &[f64], mut shares: Vec<f64>) -> Vec<f64> {
    let over = spent(&shares, rates) - pool;
    if over <= 0.0 {
        return shares;
    }
    let base: Vec<f64> = shares
        .iter()
        .zip(before)
        .map(|(share, before)| share.min(*before))
        .collect();
    let growth = spent(&shares, rates) - spent(&base, rates);
    if over < growth {
        let part = 1.0 - over / growth;
        for (share, base) in shares.iter_mut().zip(&base) {
            *share = base + (*share - base) * part;
        }
        return shares;
    }
    let least = floor * rates.iter().sum::<f64>();
    let above = spent(&base, rates) - least;
    let part = if above > 0.0 {
        ((pool - least) / above).clamp(0.0, 1.0)
    } else {
        0.0
    };
    base.iter()
        .map(|base| floor + (base - floor) * part)
        .collect()
}

/// Hedges a second.
fn spent(shares: &[f64], rates: &[f64]) -> f64 {
    shares
        .iter()
        .zip(rates)
        .map(|(share, rate)| share * rate)
        .sum()
}
