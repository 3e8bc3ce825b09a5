//! Which of all reasons decides: persons first, then the controller's own, worst first.

use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::policy::{Intent, Policy};

use super::latch::{Findings, LEAST_STAY, Tripped};
use super::{Change, Situation};
use crate::effect::Transition;
use crate::memory::{CHANGES_MAX, CHANGES_WITHIN, Memory};
use crate::moment::Moment;
use crate::view::Evidence;

/// Whether the mode is the controller's to choose: a policy says hedge, and no kill switch is
/// engaged.
pub(crate) fn is_free(situation: &Situation<'_>) -> bool {
    situation.killed_by.is_none()
        && situation
            .policy
            .is_some_and(|policy| policy.intent() == Intent::Hedge)
}

/// The mode that follows from everything known.
pub(crate) fn resolve(situation: &Situation<'_>, memory: &Memory) -> Mode {
    if situation.killed_by.is_some() {
        return Mode::Off(OffReason::KillSwitch);
    }
    match situation.policy.map(Policy::intent) {
        None | Some(Intent::Observe) => Mode::Observing,
        Some(Intent::Off) => Mode::Off(OffReason::Policy),
        Some(Intent::Hedge) => automatic(memory),
    }
}

fn automatic(memory: &Memory) -> Mode {
    if memory.too_many.is_some() {
        Mode::Off(OffReason::TooManyChanges)
    } else if memory.errors.tripped().is_some() {
        Mode::Off(OffReason::Errors)
    } else if memory.push_back.tripped().is_some() {
        Mode::Off(OffReason::PushBack)
    } else if let Some(reason) = memory.shared.reason() {
        Mode::Probing(reason)
    } else if memory.ready {
        Mode::On
    } else {
        Mode::Observing
    }
}

/// What led to an automatic mode.
pub(crate) fn tripped(mode: Mode, memory: &Memory) -> Option<&Tripped> {
    match mode.reason()? {
        OffReason::TooManyChanges => memory.too_many.as_ref(),
        OffReason::Errors => memory.errors.tripped(),
        OffReason::PushBack => memory.push_back.tripped(),
        OffReason::SharedSlowdown | OffReason::WinsNothing => memory.shared.tripped(),
        _ => None,
    }
}

/// The earliest it may change by itself. None: only a person can, or nothing is off.
pub(crate) fn tries_again(mode: Mode, memory: &Memory) -> Option<Moment> {
    let stay = tripped(mode, memory)?.at.plus(LEAST_STAY);
    match mode.reason()? {
        OffReason::Errors | OffReason::PushBack => Some(stay),
        OffReason::SharedSlowdown | OffReason::WinsNothing => {
            memory.shared.tries_again().map(|end| end.max(stay))
        }
        _ => None,
    }
}

/// Changes the mode, if it is another one; counts what the controller does on its own, and goes off
/// for good where it does so too often (P14). Returns the mode before, and whether the change is
/// automatic.
pub(crate) fn change(
    situation: &Situation<'_>,
    memory: &mut Memory,
    pushed: u64,
) -> Option<(Mode, bool)> {
    let now = situation.now;
    let free = is_free(situation);
    let automatic = free && memory.free;
    memory.free = free;
    let mut to = resolve(situation, memory);
    if to == memory.mode {
        return None;
    }
    if automatic {
        memory.changes.retain(|at| now.since(*at) < CHANGES_WITHIN);
        if memory.changes.len() >= CHANGES_MAX {
            memory.too_many = Some(Tripped {
                at: now,
                why: too_many(),
            });
            to = resolve(situation, memory);
        } else {
            memory.changes.push_back(now);
        }
    }
    let from = memory.mode;
    memory.mode = to;
    memory.since = now;
    memory.mode_from = pushed;
    memory.fresh = false;
    Some((from, automatic))
}

fn too_many() -> Findings {
    Findings {
        words: format!(
            "{CHANGES_MAX} automatic changes within an hour; a person has to release it"
        ),
        evidence: vec![Evidence {
            what: "automatic changes".into(),
            value: (CHANGES_MAX + 1) as f64,
            limit: CHANGES_MAX as f64,
            unit: String::new(),
            window: CHANGES_WITHIN,
        }],
    }
}

/// The change as it is recorded: for going on again, with what showed that all is well.
pub(crate) fn record(
    route: &RouteKey,
    memory: &Memory,
    (from, automatic): (Mode, bool),
    reasons: &Findings,
    again: Option<Findings>,
) -> Change {
    let (words, evidence) = match again.filter(|_| memory.mode == Mode::On) {
        Some(again) => (
            format!("{}; {}", reasons.words, again.words),
            again.evidence,
        ),
        None => (reasons.words.clone(), reasons.evidence.clone()),
    };
    Change {
        transition: Transition {
            route: route.clone(),
            at: memory.since,
            from,
            to: memory.mode,
            evidence,
            words,
        },
        automatic,
    }
}
