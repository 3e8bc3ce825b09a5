//! The rules: from what was seen of a route to a signal. The table is in the [module](super).

use std::time::Duration;

use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::ids::ReplicaName;

use super::Observed;
use super::track::{Signal, Waits};
use crate::decide::Decision;
use crate::moment::Moment;
use crate::view::{AlertRule, Named};

/// Rules about a route that may be inhibited.
pub(super) const OF_ROUTES: [AlertRule; 8] = [
    AlertRule::HedgingDisabled,
    AlertRule::HedgeRateHigh,
    AlertRule::RolloutReverted,
    AlertRule::LowWinRate,
    AlertRule::BudgetExhausted,
    AlertRule::AgentsStale,
    AlertRule::PolicyRefused,
    AlertRule::DuplicateEffects,
];

/// Hedge rate and demand above which a person is called, as a share of eligible calls.
pub(super) const RATE_LINE: f64 = 0.10;
/// A policy whose budget is above the line moves it to this many times the budget.
const RATE_LINE_PER_BUDGET: f64 = 1.25;
/// Cleared under this share of the line, so that a rate beside it is one episode.
const RATE_CLEAR: f64 = 0.8;
/// How long a rate must be high: a healthy drift is over after 2 to 3 s.
const RATE_PENDING: Duration = Duration::from_secs(10);
/// How long it must be low again.
const RATE_KEPT: Duration = Duration::from_secs(10);
/// How long a replica must be named.
const NAMED_PENDING: Duration = Duration::from_secs(5);
/// How long it must not be.
const NAMED_KEPT: Duration = Duration::from_secs(10);
/// How long a rollout that was taken back is an alert, unless a person sets a policy before.
pub(crate) const REVERTED_FIRES: Duration = Duration::from_mins(10);

/// Hedges answered / what independence predicts, under which they are too slow to win what they are
/// sent for. A third of slowness shared reads 0.4; under 0.3 hedging goes off by itself.
pub(super) const ANSWERED_LOW: f64 = 0.5;
/// Over this, slowness is a replica's own again, for the most part.
const ANSWERED_CLEAR: f64 = 0.65;
/// A pause that all replicas share is over by then.
const ANSWERED_WAIT: Duration = Duration::from_mins(2);

/// Refused by the budget / crossed, over which most of what is slow is not helped.
pub(super) const REFUSED_HIGH: f64 = 0.5;
/// Under this the budget is enough, but for chance.
const REFUSED_CLEAR: f64 = 0.25;
/// A surge of slow calls is bounded by the budget on purpose: two minutes of it are none.
const REFUSED_PENDING: Duration = Duration::from_mins(2);
/// How long it must be enough again.
const REFUSED_KEPT: Duration = Duration::from_mins(1);

/// Share of the agents that are lost, silent or behind, over which it is not single machines.
pub(super) const STALE_LINE: f64 = 0.10;
/// Under this it is.
const STALE_CLEAR: f64 = 0.05;
/// Agents in trouble, and agents in all, under which it is never the fleet.
const TROUBLED_MIN: u64 = 2;
const AGENTS_MIN: u64 = 3;
/// A stream that ends is back, and a directive confirmed, within one heartbeat.
const STALE_HEARTBEATS: u32 = 2;

/// Agents that refuse: one may be broken by itself.
const REFUSING_MIN: u64 = 2;
/// Time in which a policy that nobody takes may be mended before anybody is called.
const REFUSED_POLICY_HEARTBEATS: u32 = 1;

/// Duplicates for each hedge over which something else executes calls twice. A hedge explains one;
/// the rest is for clocks and reports that are under way.
const DUPLICATES_PER_HEDGE: f64 = 1.25;
/// And so many more, where few are counted.
const DUPLICATES_MIN: u64 = 10;
/// As long as the spans over which servers usually count.
const DUPLICATES_WAIT: Duration = Duration::from_mins(1);

/// How long `rule` waits.
pub(super) fn waits(rule: AlertRule, heartbeat: Duration) -> Waits {
    let (pending, kept) = match rule {
        AlertRule::HedgeRateHigh => (RATE_PENDING, RATE_KEPT),
        AlertRule::ReplicaSlow | AlertRule::ReplicaFailing => (NAMED_PENDING, NAMED_KEPT),
        // A mode has a least stay of its own, and what is past is past.
        AlertRule::SharedSlowdown | AlertRule::HedgingDisabled | AlertRule::RolloutReverted => {
            (Duration::ZERO, Duration::ZERO)
        }
        AlertRule::LowWinRate => (ANSWERED_WAIT, ANSWERED_WAIT),
        AlertRule::BudgetExhausted => (REFUSED_PENDING, REFUSED_KEPT),
        AlertRule::AgentsStale => {
            let wait = heartbeat * STALE_HEARTBEATS;
            (wait, wait)
        }
        AlertRule::PolicyRefused => {
            let wait = heartbeat * REFUSED_POLICY_HEARTBEATS;
            (wait, wait)
        }
        AlertRule::DuplicateEffects => (DUPLICATES_WAIT, DUPLICATES_WAIT),
    };
    Waits { pending, kept }
}

/// What a rule about a route says; `slowed`: a shared slowdown of its dependency fires.
pub(super) fn signal(now: Moment, rule: AlertRule, it: &Observed<'_>, slowed: bool) -> Signal {
    let inhibited = |signal: Signal| match signal {
        Signal::Raise if slowed => Signal::Neither,
        signal => signal,
    };
    match rule {
        AlertRule::SharedSlowdown => {
            of_mode(it.decision, |reason| reason == OffReason::SharedSlowdown)
        }
        AlertRule::HedgingDisabled => inhibited(of_mode(it.decision, is_disabling)),
        AlertRule::HedgeRateHigh => of_rates(it, slowed),
        AlertRule::RolloutReverted => match it.reverted {
            Some(_) => Signal::Raise,
            None => Signal::Clear,
        },
        AlertRule::LowWinRate => inhibited(of_answers(it.decision)),
        AlertRule::BudgetExhausted => inhibited(of_refusals(it.decision)),
        AlertRule::AgentsStale => of_agents(it),
        AlertRule::PolicyRefused => of_refusing(it),
        AlertRule::DuplicateEffects => of_duplicates(now, it),
        // Of a replica, not of a route.
        AlertRule::ReplicaSlow | AlertRule::ReplicaFailing => Signal::Neither,
    }
}

fn is_disabling(reason: OffReason) -> bool {
    !matches!(
        reason,
        OffReason::SharedSlowdown | OffReason::KillSwitch | OffReason::Policy
    )
}

/// A mode off for one of the reasons `raises`; over only when hedging, or what led to it, is.
fn of_mode(decision: &Decision, raises: impl Fn(OffReason) -> bool) -> Signal {
    match decision.mode {
        Mode::Off(reason) | Mode::Probing(reason) if raises(reason) => Signal::Raise,
        Mode::On | Mode::Observing if decision.figures.is_some() => Signal::Clear,
        _ => Signal::Neither,
    }
}

/// Hedges sent, or wanted. Where all is slow together, it is no news that more are wanted.
fn of_rates(it: &Observed<'_>, slowed: bool) -> Signal {
    let line = rate_line(it.budget, it.lent);
    let conditions = it.decision.conditions;
    let high = |rate: Option<f64>| rate.is_some_and(|rate| rate > line);
    let low = |rate: Option<f64>| rate.is_some_and(|rate| rate < line * RATE_CLEAR);
    if high(conditions.hedge_rate) || high(conditions.demand) && !slowed {
        Signal::Raise
    } else if low(conditions.hedge_rate) && low(conditions.demand) {
        Signal::Clear
    } else {
        Signal::Neither
    }
}

/// The line of demand and hedge rate; `lent`: what a pool lends in place of the policy's budget.
pub(crate) fn rate_line(budget: Option<f64>, lent: Option<f64>) -> f64 {
    match budget {
        // Up to the line itself is lent, and spent to the last hedge: chance must not page.
        _ if let Some(lent) = lent => (RATE_LINE_PER_BUDGET * lent).max(RATE_LINE),
        Some(budget) if budget > RATE_LINE => RATE_LINE_PER_BUDGET * budget,
        _ => RATE_LINE,
    }
}

/// What a named replica's rule says.
pub(super) fn of_replica(it: &Observed<'_>, fault: Named, replica: &ReplicaName) -> Signal {
    match it.decision.named.get(replica) {
        Some(named) if *named == fault => Signal::Raise,
        None if it.decision.figures.is_some() => Signal::Clear,
        // No data; or named for the other fault: a replica that fails is not well because it is no
        // longer slow.
        _ => Signal::Neither,
    }
}

/// A figure of hedging at work, against its limits: while it is off, by whomever, nothing is said;
/// where nothing is to be hedged, nothing is wrong.
fn while_on(decision: &Decision, judge: impl Fn() -> Signal) -> Signal {
    match decision.mode {
        Mode::On => judge(),
        Mode::Observing if decision.figures.is_some() => Signal::Clear,
        _ => Signal::Neither,
    }
}

fn of_answers(decision: &Decision) -> Signal {
    while_on(decision, || match decision.conditions.answered {
        Some(ratio) if ratio < ANSWERED_LOW => Signal::Raise,
        Some(ratio) if ratio > ANSWERED_CLEAR => Signal::Clear,
        _ => Signal::Neither,
    })
}

fn of_refusals(decision: &Decision) -> Signal {
    while_on(decision, || match decision.conditions.refused_by_budget {
        Some(share) if share > REFUSED_HIGH => Signal::Raise,
        Some(share) if share < REFUSED_CLEAR => Signal::Clear,
        _ => Signal::Neither,
    })
}

fn of_agents(it: &Observed<'_>) -> Signal {
    let census = it.census;
    let all = census.attached + it.lost;
    let troubled = census.silent + census.behind + it.lost;
    let share = troubled as f64 / all.max(1) as f64;
    if troubled >= TROUBLED_MIN && all >= AGENTS_MIN && share > STALE_LINE {
        Signal::Raise
    } else if census.holding > 0 && share < STALE_CLEAR {
        Signal::Clear
    } else {
        Signal::Neither
    }
}

fn of_refusing(it: &Observed<'_>) -> Signal {
    match it.census.refusing {
        0 if it.census.holding > 0 => Signal::Clear,
        refusing if refusing >= REFUSING_MIN => Signal::Raise,
        _ => Signal::Neither,
    }
}

fn of_duplicates(now: Moment, it: &Observed<'_>) -> Signal {
    let reading = it.duplicates.filter(|reading| reading.holds(now));
    let known = reading.and_then(|it| Some((it.executed, it.hedges?)));
    match known {
        Some((executed, hedges)) if executed <= hedges => Signal::Clear,
        Some((executed, hedges))
            if executed >= hedges.saturating_add(DUPLICATES_MIN)
                && executed as f64 > DUPLICATES_PER_HEDGE * hedges as f64 =>
        {
            Signal::Raise
        }
        _ => Signal::Neither,
    }
}
