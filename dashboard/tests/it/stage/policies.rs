//! Revisions of policies, kept apart by what they are for.

use hedgerow_core::effect::OrderError;
use hedgerow_core::event::{Actor, Via};
use hedgerow_dashboard::backend::{ActError, Backend as _, Operator, PolicyRevision, Saved};
use hedgerow_protocol::ids::Revision;
use hedgerow_protocol::policy::{Policy, PolicyScope};

use super::{Stage, catalog};
use crate::fleet;

impl Stage {
    /// Of a policy: what was written here, or what the fleet began with.
    pub(super) fn revisions(&self, scope: &PolicyScope) -> Vec<PolicyRevision> {
        let kept = self.state(|s| {
            if *scope == catalog() {
                Some(s.history.clone())
            } else {
                s.histories.get(scope).cloned()
            }
        });
        kept.unwrap_or_else(|| {
            let snapshot = self.snapshot();
            let view = snapshot.policies.get(scope);
            let first = view.map(|view| PolicyRevision {
                revision: view.revision,
                policy: Some(view.policy.clone()),
                actor: Actor {
                    name: "dana".into(),
                    via: Via::Api,
                },
                reason: "as agreed with its owners".into(),
                at: view.since,
            });
            first.into_iter().collect()
        })
    }

    /// Checks as a controller does, and in its order.
    pub(super) fn write(
        &self,
        operator: &Operator,
        scope: &PolicyScope,
        policy: Option<Policy>,
        expected: Option<Revision>,
        reason: &str,
    ) -> Result<Saved, ActError> {
        if reason.is_empty() {
            return Err(OrderError::NoReason.into());
        }
        let mut all = self.revisions(scope);
        let current = all.first().map(|it| it.revision).unwrap_or_default();
        if policy.is_some() && all.first().is_some_and(|it| it.policy == policy) {
            return Ok(Saved {
                revision: current,
                changed: false,
            });
        }
        if let Some(expected) = expected.filter(|e| *e != current) {
            return Err(OrderError::Stale { expected, current }.into());
        }
        let revision = current.next();
        all.insert(
            0,
            PolicyRevision {
                revision,
                policy,
                actor: operator.actor(),
                reason: reason.into(),
                at: fleet::START,
            },
        );
        self.state(|s| {
            if *scope == catalog() {
                s.history = all;
            } else {
                s.histories.insert(scope.clone(), all);
            }
        });
        Ok(Saved {
            revision,
            changed: true,
        })
    }
}
