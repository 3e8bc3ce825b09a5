//! A policy put in force in steps: for a share of the agents first, then for more of them, and back
//! by itself where that share does worse than the rest.
//!
//! Which agents are in a share is a hash of agent and dependency ([`Share`]): the same on each
//! controller and after each restart, growing shares only add agents, and other dependencies begin
//! with other agents. While a rollout runs, each route of the dependency has a [`Trial`] beside
//! itself: the new policy's own memory, decision, place in the order and live values. Agents in the
//! share are told the trial's directive, the others the route's. Both are decided on the same
//! windows, those of the whole fleet; the [`guard`] alone tells the two groups apart.
//!
//! A rollout never goes back: an agent in the share holds a higher revision than the rest, so that
//! taking it back is a revision higher than both with the old policy's contents. Each step is an
//! order, of a person or of the controller: stored with its line in the record, then told.
//!
//! A controller that starts again goes on in the stage in which it was, and that stage begins anew:
//! what the guard had seen is gone with its windows.

pub(crate) mod guard;
mod order;
mod outcome;
mod plan;
mod restore;
mod seen;
mod share;
mod steer;
mod trial;
mod view;

use hedgerow_protocol::directive::Stamp;
use hedgerow_protocol::ids::{InstanceId, RouteKey};

use crate::controller::Controller;
use crate::effect::RolloutState;
use crate::rules::InForce;

pub(crate) use outcome::RolloutOutcome;
pub use plan::{PlanProblem, RolloutPlan, STAGES_MAX, STAY_DEFAULT, STAY_MAX, STAY_MIN};
pub(crate) use share::Share;
pub(crate) use steer::Watch;
pub(crate) use trial::Trial;

/// A rollout under way: stored, or it would not be here. What it began from is the policy in force.
#[derive(Debug, Clone)]
pub(crate) struct Rollout {
    pub(crate) state: RolloutState,
    /// What the agents in the share hold.
    pub(crate) next: InForce,
    pub(crate) share: Share,
}

impl Rollout {
    pub(crate) fn new(state: RolloutState, next: InForce) -> Self {
        let share = Share::of(&state.scope, state.plan.share(state.stage));
        Self { state, next, share }
    }

    /// The same, a stage on; None: this is the last.
    pub(crate) fn advanced(&self, now: crate::moment::Moment) -> Option<Self> {
        let stage = self.state.stage + 1;
        (stage < self.state.plan.stages().len()).then(|| {
            let state = RolloutState {
                stage,
                since: now,
                ..self.state.clone()
            };
            Self::new(state, self.next.clone())
        })
    }
}

impl Controller {
    /// Whether an agent is to hold the new policy of a rollout on a route.
    pub(crate) fn in_share(&self, key: &RouteKey, instance: InstanceId) -> bool {
        self.rules
            .rollout(key)
            .is_some_and(|it| it.share.has(instance))
    }

    /// The stamp that one agent should hold; None where nothing can be told yet.
    pub(crate) fn wanted_of(&self, key: &RouteKey, instance: InstanceId) -> Option<Stamp> {
        if self.in_share(key, instance) {
            self.wanted_in_trial(key)
        } else {
            self.wanted(key)
        }
    }
}
