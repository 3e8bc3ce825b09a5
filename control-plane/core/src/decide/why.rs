//! Why a route is in its mode, in one line and in figures.

use std::time::Duration;

use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::policy::{Intent, Policy};
use hedgerow_protocol::report::Refusal;
use hedgerow_protocol::units::{Threshold, as_millis};

use super::figures::target;
use super::goal::InForce;
use super::latch::Findings;
use super::words::{latency, percent};
use super::{Live, Situation, load, mode};
use crate::memory::Memory;
use crate::share::Lent;
use crate::view::{Evidence, NoData, NoGain};
use crate::window::{WINDOW_CALLS, WINDOW_MAX, Windows};

/// Share of crossed calls refused for their deadline above which a policy can do nothing.
const DEADLINE_SHARE: f64 = 0.95;
/// Crossed calls needed to say so.
const DEADLINE_CROSSED: u64 = 20;

/// Words and evidence for the mode decided.
pub(crate) fn reasons(
    windows: &Windows,
    situation: &Situation<'_>,
    memory: &Memory,
    live: &Live,
    no_data: Option<NoData>,
) -> Findings {
    if let Some(tripped) = mode::tripped(memory.mode, memory) {
        return Findings {
            words: format!("off: {}", tripped.why.words),
            evidence: tripped.why.evidence.clone(),
        };
    }
    let words = match memory.mode {
        Mode::Off(OffReason::KillSwitch) => {
            format!(
                "off: kill switch, by {}",
                situation.killed_by.unwrap_or("unknown")
            )
        }
        Mode::Off(OffReason::Policy) => "off: the policy says off".into(),
        Mode::Off(reason) | Mode::Probing(reason) => format!("off: {}", reason.as_str()),
        Mode::Observing => observing(situation, no_data),
        Mode::On => on(windows, situation, memory, live),
    };
    Findings {
        words,
        evidence: evidence(memory, situation, live),
    }
}

fn observing(situation: &Situation<'_>, no_data: Option<NoData>) -> String {
    let why = match situation.policy.map(Policy::intent) {
        None => "no policy yet",
        Some(Intent::Observe) => "the policy says observe",
        Some(_) => no_data.unwrap_or(NoData::TooFew).words(),
    };
    format!("observing: {why}")
}

fn on(windows: &Windows, situation: &Situation<'_>, memory: &Memory, live: &Live) -> String {
    if situation.replicas_per_agent_max == 1 {
        return "no effect: one replica".into();
    }
    if above_deadline(windows, situation, live) {
        return "no effect: threshold above deadline".into();
    }
    let mut words = match (no_gain(situation, memory), live.threshold) {
        (Some(no_gain), _) => no_gain.words(),
        (None, Some(threshold)) => {
            format!("on: hedging {}", which(live, threshold.get()))
        }
        (None, None) => "on: hedging at the threshold the agents hold".into(),
    };
    for more in provisos(situation, memory, live) {
        words = format!("{words}; {more}");
    }
    words
}

/// What holds beside: what a pool lends, who is armed, how busy it is, whether it is paused.
fn provisos(
    situation: &Situation<'_>,
    memory: &Memory,
    live: &Live,
) -> impl Iterator<Item = String> {
    let lent = situation.lent.map(|Lent { pool, budget, own }| {
        format!(
            "budget {} of its own {}, lent by pool {pool}",
            percent(budget.get()),
            percent(own.get())
        )
    });
    let armed = live.arming.zip(situation.policy).map(|(armed, policy)| {
        format!(
            "armed: {} of agents at a time; steady rate about {}",
            percent(armed.share.get()),
            percent(target(memory, policy, live))
        )
    });
    let budget = live.budget.get();
    let whole = situation
        .policy
        .map_or(budget, |policy| situation.budget(policy).get());
    let load = load::words(situation.utilisation.as_ref(), situation.now, budget, whole);
    let pause = situation
        .paused
        .then(|| "switchback: nothing is hedged for 30 s".to_owned());
    [lent, armed, load, pause].into_iter().flatten()
}

/// Which calls are hedged.
fn which(live: &Live, threshold: Duration) -> String {
    let share = live.probability.get();
    if share < 1.0 {
        format!(
            "{} of calls slower than {}",
            percent(share),
            latency(threshold)
        )
    } else {
        format!("calls slower than {}", latency(threshold))
    }
}

fn no_gain(situation: &Situation<'_>, memory: &Memory) -> Option<NoGain> {
    InForce::of(memory, situation.policy?).no_gain
}

/// Whether no call can reach its hedge (B23): either nearly all that cross have too little time
/// left, or none crosses a threshold that the policy itself holds up.
fn above_deadline(windows: &Windows, situation: &Situation<'_>, live: &Live) -> bool {
    let totals = windows.over(WINDOW_MAX).totals();
    if totals.crossed >= DEADLINE_CROSSED {
        let refused = totals.refused_for(Refusal::Deadline) as f64;
        return refused >= DEADLINE_SHARE * totals.crossed as f64;
    }
    let floor = situation.policy.and_then(Policy::threshold_min);
    let held_up = floor.is_some_and(|floor| live.threshold.is_some_and(|d| d.get() == floor));
    held_up && totals.crossed == 0 && totals.started >= WINDOW_CALLS
}

fn evidence(memory: &Memory, situation: &Situation<'_>, live: &Live) -> Vec<Evidence> {
    if memory.mode != Mode::On {
        return Vec::new();
    }
    let figure = |what: &str, value: Duration, limit: Duration| Evidence {
        what: what.into(),
        value: as_millis(value),
        limit: as_millis(limit),
        unit: "ms".into(),
        window: Duration::ZERO,
    };
    if let Some(NoGain::Small { unhedged, best, .. }) = no_gain(situation, memory) {
        return vec![figure("at best, for as it is", best, unhedged)];
    }
    let threshold = live.threshold.map(Threshold::get);
    threshold
        .map(|threshold| figure("threshold", threshold, threshold))
        .into_iter()
        .collect()
}
