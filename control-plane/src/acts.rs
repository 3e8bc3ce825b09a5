//! What people do to the fleet. Page, API and command line all come through here, and here the role
//! is checked (S12).

mod access;

use std::time::Duration;

use hedgerow_core::effect::{AuditRow, Done, OrderError, Record, SilenceDraft, SilenceId};
use hedgerow_core::event::{Actor, KillScope, Order, Via};
use hedgerow_core::rollout::RolloutPlan;
use hedgerow_dashboard::backend::{ActError, Operator, Role, RolloutStep, Saved, TestOutcome};
use hedgerow_protocol::ids::{DependencyName, Revision, RouteKey};
use hedgerow_protocol::policy::{Policy, PolicyScope};
use hedgerow_protocol::units::Ratio;

use crate::alerts::Receivers;
use crate::engine::{Engine, EngineError, log_recorded};
use crate::store::Store;

/// Somebody who acts, and the way they came in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Acting<'a> {
    /// The core.
    pub(crate) engine: &'a Engine,
    /// Who.
    pub(crate) operator: &'a Operator,
    /// From where.
    pub(crate) via: Via,
}

impl Acting<'_> {
    /// Puts a policy in force, for all agents or in steps. Needs an editor.
    pub(crate) async fn set_policy(
        self,
        policy: Policy,
        expected: Option<Revision>,
        rollout: Option<RolloutPlan>,
        reason: &str,
    ) -> Result<Saved, ActError> {
        self.needs(Role::Editor)?;
        let order = Order::SetPolicy {
            policy: Box::new(policy),
            expected,
            rollout,
        };
        self.save(order, reason).await
    }

    /// Takes a policy away. Needs an editor.
    pub(crate) async fn remove_policy(
        self,
        scope: PolicyScope,
        expected: Option<Revision>,
        reason: &str,
    ) -> Result<Saved, ActError> {
        self.needs(Role::Editor)?;
        self.save(Order::RemovePolicy { scope, expected }, reason)
            .await
    }

    /// Takes a rollout's next step, which needs an editor, or takes it back, which is what a kill
    /// switch does too and needs an operator.
    pub(crate) async fn step_rollout(
        self,
        scope: PolicyScope,
        expected: Option<Revision>,
        step: RolloutStep,
        reason: &str,
    ) -> Result<Saved, ActError> {
        let order = match step {
            RolloutStep::On => {
                self.needs(Role::Editor)?;
                Order::AdvanceRollout { scope, expected }
            }
            RolloutStep::Back => {
                self.needs(Role::Operator)?;
                Order::AbortRollout { scope, expected }
            }
        };
        self.save(order, reason).await
    }

    async fn save(self, order: Order, reason: &str) -> Result<Saved, ActError> {
        match self.order(order, reason).await? {
            Done::Policy { revision, changed } => Ok(Saved { revision, changed }),
            other => Err(mismatched(&other)),
        }
    }

    /// Throws or releases a kill switch; whether that changed anything. Needs an operator.
    pub(crate) async fn kill(
        self,
        scope: KillScope,
        engaged: bool,
        reason: &str,
    ) -> Result<bool, ActError> {
        self.needs(Role::Operator)?;
        match self.order(Order::Kill { scope, engaged }, reason).await? {
            Done::Kill { changed } => Ok(changed),
            other => Err(mismatched(&other)),
        }
    }

    /// Lets a route decide again. Needs an operator.
    pub(crate) async fn release(self, route: RouteKey, reason: &str) -> Result<(), ActError> {
        self.needs(Role::Operator)?;
        self.order(Order::Release { route }, reason)
            .await
            .map(|_| ())
    }

    /// Makes the present speed the base of the all-slow test: it moves a limit, as a policy does.
    /// Needs an editor.
    pub(crate) async fn accept_base(self, route: RouteKey, reason: &str) -> Result<(), ActError> {
        self.needs(Role::Editor)?;
        self.order(Order::AcceptBase { route }, reason)
            .await
            .map(|_| ())
    }

    /// Takes a reading of how busy a dependency is: it can only make less be hedged than the policy
    /// allows. Needs an operator.
    pub(crate) async fn set_utilisation(
        self,
        dependency: DependencyName,
        utilisation: Option<Ratio>,
        valid_for: Duration,
    ) -> Result<(), ActError> {
        self.needs(Role::Operator)?;
        let order = Order::SetUtilisation {
            dependency,
            utilisation,
            valid_for,
        };
        self.order(order, "").await.map(|_| ())
    }

    /// Takes a server's count of what it executed twice: it can only raise an alert. Needs an operator.
    pub(crate) async fn set_duplicates(
        self,
        route: RouteKey,
        executed: u64,
        over: Duration,
    ) -> Result<(), ActError> {
        self.needs(Role::Operator)?;
        let order = Order::SetDuplicates {
            route,
            executed,
            over,
        };
        self.order(order, "").await.map(|_| ())
    }

    /// Keeps notices from receivers for a time. Needs an operator.
    pub(crate) async fn silence(
        self,
        silence: SilenceDraft,
        reason: &str,
    ) -> Result<SilenceId, ActError> {
        self.needs(Role::Operator)?;
        match self.order(Order::Silence(silence), reason).await? {
            Done::Silenced(id) => Ok(id),
            other => Err(mismatched(&other)),
        }
    }

    /// Ends a silence before its time. Needs an operator.
    pub(crate) async fn end_silence(
        self,
        silence: SilenceId,
        reason: &str,
    ) -> Result<(), ActError> {
        self.needs(Role::Operator)?;
        self.order(Order::EndSilence { silence }, reason)
            .await
            .map(|_| ())
    }

    /// Says that somebody works on an alert; `comment` is the reason in the record. Needs an
    /// operator.
    pub(crate) async fn acknowledge(
        self,
        alert: &str,
        lasts: Option<Duration>,
        comment: &str,
    ) -> Result<(), ActError> {
        self.needs(Role::Operator)?;
        let alert = alert.to_owned();
        self.order(Order::Acknowledge { alert, lasts }, comment)
            .await
            .map(|_| ())
    }

    /// Begins a switchback. Needs an operator.
    pub(crate) async fn start_switchback(
        self,
        route: RouteKey,
        rounds: u32,
        reason: &str,
    ) -> Result<(), ActError> {
        self.needs(Role::Operator)?;
        self.order(Order::StartSwitchback { route, rounds }, reason)
            .await
            .map(|_| ())
    }

    /// Ends a switchback. Needs an operator.
    pub(crate) async fn stop_switchback(
        self,
        route: RouteKey,
        reason: &str,
    ) -> Result<(), ActError> {
        self.needs(Role::Operator)?;
        self.order(Order::StopSwitchback { route }, reason)
            .await
            .map(|_| ())
    }

    /// Sends a test notice to a receiver. Needs an operator: it may wake somebody. The record has it
    /// before it is sent.
    pub(crate) async fn test_receiver(
        self,
        receivers: &Receivers,
        store: &Store,
        name: &str,
    ) -> Result<TestOutcome, ActError> {
        self.needs(Role::Operator)?;
        let unknown = || ActError::Unknown(format!("no receiver {name:?} is configured"));
        let receiver = receivers.find(name).ok_or_else(unknown)?;
        let row = Record::Audit(AuditRow {
            at: self.engine.clock().now(),
            actor: self.actor(),
            action: "receiver.test".into(),
            target: name.into(),
            before: String::new(),
            after: format!("a test notice by {}", receiver.kind()),
            reason: String::new(),
        });
        store
            .write(std::slice::from_ref(&row), &[])
            .await
            .map_err(|error| OrderError::NotPersisted(error.in_full()))?;
        log_recorded(&row);
        Ok(receivers.test(receiver, &self.operator.name).await)
    }

    fn actor(self) -> Actor {
        Actor {
            name: self.operator.name.clone(),
            via: self.via,
        }
    }

    /// Whether they may: where looking already tells something, before anything is looked at.
    pub(crate) fn needs(self, needed: Role) -> Result<(), ActError> {
        let have = self.operator.role;
        if have >= needed {
            Ok(())
        } else {
            Err(ActError::Forbidden { needed, have })
        }
    }

    async fn order(self, order: Order, reason: &str) -> Result<Done, ActError> {
        if let Some(problem) = unreadable(reason.trim()) {
            return Err(ActError::Reason(problem));
        }
        self.engine
            .order(self.actor(), reason.trim().into(), order)
            .await
            .map_err(|error| match error {
                EngineError::Refused(refused) => refused.into(),
                EngineError::Gone => ActError::NoAnswer,
            })
    }
}

/// Longest reason, in characters: it stands in the record for ever, and while a switch is engaged on
/// every page.
pub(crate) const REASON_CHARS_MAX: usize = 1000;

/// A reason given on the command line, as the record will have it.
pub(crate) fn readable_reason(reason: &str) -> Result<&str, ActError> {
    let reason = reason.trim();
    match unreadable(reason) {
        Some(problem) => Err(ActError::Reason(problem)),
        None if reason.is_empty() => Err(OrderError::NoReason.into()),
        None => Ok(reason),
    }
}

/// What keeps a text from being read in the record as it was written; none where nothing does. An
/// empty one is the core's to judge.
fn unreadable(text: &str) -> Option<String> {
    let odd = text.chars().find(|c| c.is_control() || overrides(*c));
    if let Some(odd) = odd {
        return Some(format!(
            "it has the character U+{:04X}: expected plain text in one line, without control characters and marks that turn the direction of reading",
            u32::from(odd)
        ));
    }
    let chars = text.chars().count();
    if chars > REASON_CHARS_MAX {
        return Some(format!(
            "it has {chars} characters: expected {REASON_CHARS_MAX} at most"
        ));
    }
    (!text.is_empty() && text.chars().all(|c| c.is_whitespace() || invisible(c))).then(|| {
        "it has only characters that cannot be seen: expected a few words that say why".to_owned()
    })
}

/// Embeddings, overrides and isolates of writing direction: with them a line reads other than it is.
fn overrides(c: char) -> bool {
    matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Characters without width, which may stand between others.
fn invisible(c: char) -> bool {
    matches!(
        c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2060}'..='\u{2065}'
            | '\u{206A}'..='\u{206F}' | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}' | '\u{FFA0}' | '\u{E0000}'..='\u{E0FFF}'
    )
}

/// The core answered another question than was asked: nothing can be said of what changed.
fn mismatched(done: &Done) -> ActError {
    tracing::error!(?done, "the core's answer does not belong to the order");
    ActError::NoAnswer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s08_a_reason_is_text_that_reads_as_it_was_written() {
        for fine in [
            "",
            "maintenance of catalog",
            "Störung \u{26A0}\u{FE0F}",
            "a\u{200D}b",
        ] {
            assert_eq!(unreadable(fine), None, "{fine:?}");
        }
        for (bad, said) in [
            ("a\nb", "U+000A"),
            ("a\u{1B}[2J", "U+001B"),
            ("a\0", "U+0000"),
            ("a\u{202E}b", "U+202E"),
            ("\u{2067}b", "U+2067"),
            ("\u{200B}\u{FEFF}", "cannot be seen"),
            ("\u{200B} \u{2060}", "cannot be seen"),
        ] {
            let problem = unreadable(bad).unwrap();
            assert!(problem.contains(said), "{bad:?}: {problem}");
            assert!(problem.contains("expected"), "{problem}");
        }
    }
}
