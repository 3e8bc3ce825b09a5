//! What an order does to rollouts once it is stored, and what is known of it before.

use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::policy::PolicyScope;

use super::{Rollout, Trial};
use crate::decide::words::percent;
use crate::effect::Done;
use crate::event::{Actor, Order};
use crate::orders::{Orders, Outcome, covers};
use crate::route::Route;
use crate::rules::{Rules, Standing};

/// What becomes of a rollout once an order is stored.
#[derive(Debug, Clone)]
pub(crate) enum RolloutOutcome {
    /// It begins. Where it takes another's place, agents may hold that one's revision: what the rest
    /// is to hold is then a higher one, too.
    Begun {
        rollout: Box<Rollout>,
        base: Option<Standing>,
    },
    /// It is a stage further.
    Advanced(Box<Rollout>),
    /// The new policy is in force for everybody.
    Finished(Standing),
    /// The old policy is in force for everybody, as a new revision.
    Reverted(Standing),
}

impl RolloutOutcome {
    pub(crate) fn scope(&self) -> &PolicyScope {
        match self {
            Self::Begun { rollout, .. } | Self::Advanced(rollout) => &rollout.state.scope,
            Self::Finished(it) | Self::Reverted(it) => &it.scope,
        }
    }

    /// What is answered to whoever ordered it.
    pub(crate) fn done(&self) -> Done {
        let revision = match self {
            Self::Begun { rollout, .. } | Self::Advanced(rollout) => rollout.next.revision,
            Self::Finished(it) | Self::Reverted(it) => it.revision,
        };
        Done::Policy {
            revision,
            changed: true,
        }
    }

    /// As it is marked on the chart.
    pub(crate) fn words(&self, by: &Actor, reason: &str) -> String {
        let of_agents = |it: &Rollout| {
            let share = percent(it.share.size());
            format!("policy revision {} for {share} of agents", it.next.revision)
        };
        match self {
            Self::Begun { rollout, .. } => format!("{}, by {}", of_agents(rollout), by.name),
            Self::Advanced(rollout) => format!("{}: {reason}", of_agents(rollout)),
            Self::Finished(it) => {
                format!("policy revision {} for all agents: {reason}", it.revision)
            }
            Self::Reverted(it) => format!(
                "rollout taken back by {}, revision {} has the old policy: {reason}",
                by.name, it.revision
            ),
        }
    }

    pub(crate) fn apply(&self, rules: &mut Rules) {
        let scope = self.scope().clone();
        match self {
            Self::Begun { rollout, base } => {
                if let Some(base) = base {
                    rules.policies.insert(scope.clone(), base.clone());
                }
                rules.rollouts.insert(scope, Rollout::clone(rollout));
            }
            Self::Advanced(rollout) => {
                rules.rollouts.insert(scope, Rollout::clone(rollout));
            }
            Self::Finished(it) | Self::Reverted(it) => rules.put_in_force(it),
        }
    }
}

impl Orders {
    /// Whether a rollout's next step, or its end, is ordered and not stored yet.
    pub(crate) fn steps(&self, scope: &PolicyScope) -> bool {
        self.any(|order| match order {
            Order::AdvanceRollout { scope: of, .. } | Order::AbortRollout { scope: of, .. } => {
                of == scope
            }
            _ => false,
        })
    }

    /// Whether a rollout that `route` is in is to be taken back, by an order that is not stored yet.
    pub(crate) fn would_revert(&self, route: &RouteKey) -> bool {
        self.any(|order| matches!(order, Order::AbortRollout { scope, .. } if scope.covers(route)))
    }

    /// Whether an order is being stored that may end the trial on `route`: it then makes no changes
    /// of its own, which would come to the store after its end.
    pub(crate) fn may_end_trial(&self, route: &RouteKey) -> bool {
        self.under_way().is_some_and(|order| match order {
            Order::SetPolicy { policy, .. } => policy.scope().covers(route),
            Order::RemovePolicy { scope, .. }
            | Order::AdvanceRollout { scope, .. }
            | Order::AbortRollout { scope, .. } => scope.covers(route),
            Order::Kill { scope, engaged } => *engaged && covers(scope, route),
            Order::Release { .. }
            | Order::AcceptBase { .. }
            | Order::SetUtilisation { .. }
            | Order::StartSwitchback { .. }
            | Order::StopSwitchback { .. }
            | Order::SetDuplicates { .. }
            | Order::Silence(_)
            | Order::EndSilence { .. }
            | Order::Acknowledge { .. } => false,
        })
    }
}

impl Outcome {
    /// Whether it ends the trials of the routes it is about.
    pub(crate) fn ends_trials(&self) -> bool {
        match self {
            Self::Policy(_) => true,
            Self::Kill(_, reverted) => !reverted.is_empty(),
            Self::Rollout(it) => !matches!(it, RolloutOutcome::Advanced(_)),
            Self::Release(_)
            | Self::AcceptBase(_)
            | Self::StartSwitchback(..)
            | Self::StopSwitchback(_)
            | Self::Quiet(_) => false,
        }
    }

    /// What was learned under a new policy that is now everybody's.
    pub(crate) fn taken_over<'a>(&self, route: &'a Route) -> Option<&'a Trial> {
        match self {
            Self::Rollout(RolloutOutcome::Finished(_)) => route.trial.as_deref(),
            _ => None,
        }
    }
}
