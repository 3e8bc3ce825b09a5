//! Orders, modes and policies in words: for the record, for the chart, and for who ordered.

use hedgerow_protocol::directive::Mode;
use hedgerow_protocol::policy::{Policy, PolicyDraft};

use super::{Outcome, Wanted};
use crate::effect::Done;

impl Outcome {
    /// As it is marked on the chart, and what is answered to whoever ordered it.
    pub(super) fn said(&self, wanted: &Wanted) -> (String, Done) {
        let by = &wanted.actor.name;
        match self {
            Self::Policy(it) => (
                format!("policy revision {}, by {by}", it.revision),
                Done::Policy {
                    revision: it.revision,
                    changed: true,
                },
            ),
            Self::Rollout(it) => (it.words(&wanted.actor, &wanted.reason), it.done()),
            Self::Kill(it, _) => (
                format!(
                    "kill switch {}, by {by}",
                    if it.engaged { "engaged" } else { "released" }
                ),
                Done::Kill { changed: true },
            ),
            Self::Release(_) => (format!("released, by {by}"), Done::Route),
            Self::AcceptBase(_) => (format!("present speed accepted, by {by}"), Done::Route),
            Self::StartSwitchback(_, rounds) => (
                format!("switchback of {rounds} rounds, by {by}"),
                Done::Route,
            ),
            Self::StopSwitchback(_) => (format!("switchback stopped, by {by}"), Done::Route),
            // Of no route: nothing is marked.
            Self::Quiet(it) => (String::new(), it.done()),
        }
    }
}

/// A mode as `off: errors`.
pub(crate) fn mode_words(mode: Mode) -> String {
    match mode.reason() {
        Some(reason) => format!("{}: {}", mode.as_str(), reason.as_str()),
        None => mode.as_str().to_owned(),
    }
}

/// A policy in one line, for the record.
pub(super) fn policy_words(policy: &Policy) -> String {
    let it = PolicyDraft::from(policy.clone());
    let limit = |name: &str, value: Option<f64>| {
        value.map_or_else(String::new, |value| format!(" {name}={value}"))
    };
    format!(
        "intent={} percentile={} budget={} holdout={} error_limit={} probation={} attempts={} \
         hedge_on_error={}{}{}{}{}{}",
        it.intent.as_str(),
        it.percentile,
        it.budget,
        it.holdout,
        it.error_limit,
        it.probation,
        it.attempts,
        it.hedge_on_error,
        limit("threshold_min_ms", it.threshold_min_ms),
        limit("threshold_max_ms", it.threshold_max_ms),
        limit("goal", it.goal),
        it.pool
            .map_or_else(String::new, |pool| format!(" pool={pool}")),
        limit("objective_ms", it.objective_ms),
    )
}
