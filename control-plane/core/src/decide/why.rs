//! Why a route is in its mode, in one line and in figures.

use std::time::Duration;

use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::policy::{Intent, Policy};
use hedgerow_protocol::report::Refusal;
use hedgerow_protocol::units::as_millis;

use super::figures::target;
use super::latch::Findings;
use super::words::{latency, percent};
use super::{Live, Situation, load, mode};
use crate::memory::Memory;
use crate::view::{Evidence, NoData};
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
        Mode::On => on(windows, situation, live),
    };
    Findings {
        words,
        evidence: threshold_evidence(memory.mode, live),
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

fn on(windows: &Windows, situation: &Situation<'_>, live: &Live) -> String {
    if situation.replicas_per_agent_max == 1 {
        return "no effect: one replica".into();
    }
    if above_deadline(windows, situation, live) {
        return "no effect: threshold above deadline".into();
    }
    let mut words = match live.threshold {
        Some(threshold) => format!("on: hedging calls slower than {}", latency(threshold.get())),
        None => "on: hedging at the threshold the agents hold".into(),
    };
    let (reading, budget) = (situation.utilisation.as_ref(), live.budget.get());
    let whole = situation
        .policy
        .map_or(budget, |policy| policy.budget().get());
    let armed = live.arming.zip(situation.policy).map(|(armed, policy)| {
        format!(
            "armed: {} of agents at a time; steady rate about {}",
            percent(armed.share.get()),
            percent(target(policy, live))
        )
    });
    let load = load::words(reading, situation.now, budget, whole);
    let pause = situation
        .paused
        .then(|| "switchback: nothing is hedged for 30 s".to_owned());
    for more in armed.into_iter().chain(load).chain(pause) {
        words = format!("{words}; {more}");
    }
    words
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

fn threshold_evidence(mode: Mode, live: &Live) -> Vec<Evidence> {
    let Some(threshold) = live.threshold.filter(|_| mode == Mode::On) else {
        return Vec::new();
    };
    vec![Evidence {
        what: "threshold".into(),
        value: as_millis(threshold.get()),
        limit: as_millis(threshold.get()),
        unit: "ms".into(),
        window: Duration::ZERO,
    }]
}
