//! Policies: set for all agents or in steps, and taken away.

use std::sync::Arc;

use hedgerow_protocol::ids::Revision;
use hedgerow_protocol::policy::{Policy, PolicyScope};

use super::words::policy_words;
use super::{Outcome, Wanted};
use crate::controller::Controller;
use crate::effect::{AuditRow, Done, OrderError, Record};
use crate::moment::Moment;
use crate::rollout::RolloutPlan;
use crate::rules::{InForce, Standing};

impl Controller {
    pub(super) fn begin_policy(
        &mut self,
        now: Moment,
        wanted: Wanted,
        policy: Policy,
        expected: Option<Revision>,
        plan: Option<RolloutPlan>,
    ) -> Option<Result<Done, OrderError>> {
        let scope = policy.scope().clone();
        let current = self.newest_revision(&scope);
        let before = self.newest_policy(&scope);
        let rolls = self.rules.rollouts.contains_key(&scope);
        // The policy of a rollout, set for everybody, is a change.
        if before.as_deref() == Some(&policy) && (plan.is_some() || !rolls) {
            return Some(Ok(Done::Policy {
                revision: current,
                changed: false,
            }));
        }
        // Whoever looked before there was a policy, or after it was taken away, saw none: 0.
        let none_seen = before.is_none() && expected == Some(Revision(0));
        if let Some(expected) = expected
            && expected != current
            && !none_seen
        {
            return Some(Err(OrderError::Stale { expected, current }));
        }
        if let Some(problem) = self.policy_problem(&scope, plan.is_some()) {
            return Some(Err(problem));
        }
        let revision = self.next_revision(&scope);
        let mut records = vec![
            Record::Policy {
                revision,
                policy: Box::new(policy.clone()),
                actor: wanted.actor.clone(),
                reason: wanted.reason.clone(),
                at: now,
            },
            Record::Audit(AuditRow {
                at: now,
                actor: wanted.actor.clone(),
                action: "policy.set".into(),
                target: scope.to_string(),
                before: before.map_or_else(String::new, |it| policy_words(&it)),
                after: policy_words(&policy),
                reason: wanted.reason.clone(),
            }),
        ];
        let in_force = InForce {
            revision,
            policy: Arc::new(policy),
            since: now,
        };
        if let Some(plan) = plan {
            self.begin_rollout(now, wanted, in_force, plan, records);
            return None;
        }
        if rolls {
            records.push(Record::RolloutEnded(scope));
        }
        let standing = Standing::from(&in_force);
        self.store_order(now, wanted, Outcome::Policy(standing), records);
        None
    }

    /// Why the policy of a scope cannot be changed now.
    fn policy_problem(&self, scope: &PolicyScope, in_steps: bool) -> Option<OrderError> {
        if in_steps && scope.pattern().is_some() {
            return Some(OrderError::PatternInSteps(scope.clone()));
        }
        let beside = self.rules.rollout_beside(scope)?.clone();
        let scope = scope.clone();
        Some(OrderError::RolloutBeside { scope, beside })
    }

    pub(super) fn begin_removal(
        &mut self,
        now: Moment,
        wanted: Wanted,
        scope: PolicyScope,
        expected: Option<Revision>,
    ) -> Option<Result<Done, OrderError>> {
        let current = self.newest_revision(&scope);
        let Some(before) = self.newest_policy(&scope) else {
            return Some(Err(OrderError::NoPolicy(scope)));
        };
        if let Some(expected) = expected
            && expected != current
        {
            return Some(Err(OrderError::Stale { expected, current }));
        }
        if let Some(problem) = self.policy_problem(&scope, false) {
            return Some(Err(problem));
        }
        let revision = self.next_revision(&scope);
        let mut records = vec![
            Record::PolicyRemoved {
                revision,
                scope: scope.clone(),
                actor: wanted.actor.clone(),
                reason: wanted.reason.clone(),
                at: now,
            },
            Record::Audit(AuditRow {
                at: now,
                actor: wanted.actor.clone(),
                action: "policy.remove".into(),
                target: scope.to_string(),
                before: policy_words(&before),
                after: String::new(),
                reason: wanted.reason.clone(),
            }),
        ];
        if self.rules.rollouts.contains_key(&scope) {
            records.push(Record::RolloutEnded(scope.clone()));
        }
        let standing = Standing {
            scope,
            revision,
            policy: None,
            since: now,
        };
        self.store_order(now, wanted, Outcome::Policy(standing), records);
        None
    }
}
