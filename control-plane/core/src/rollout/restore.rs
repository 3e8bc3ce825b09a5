//! Rollouts that were under way when the controller before ended.

use std::sync::Arc;

use super::{Rollout, Trial};
use crate::controller::{Controller, InForce};
use crate::effect::RestoredRollout;
use crate::moment::Moment;
use crate::route::Route;

impl Controller {
    /// Takes up rollouts where the last controller left them; their stage begins anew.
    pub(crate) fn restore_rollouts(&mut self, now: Moment, restored: Vec<RestoredRollout>) {
        for RestoredRollout { state, base, modes } in restored {
            let dependency = state.dependency.clone();
            let Some(newest) = self.rules.policies.get(&dependency) else {
                continue;
            };
            // A release that knows of no rollouts may have set a policy meanwhile: that one rules.
            if newest.revision != state.revision {
                continue;
            }
            let next = newest.clone();
            match base {
                Some((policy, since)) => {
                    let in_force = InForce {
                        revision: state.base,
                        policy: Arc::new(policy),
                        since,
                    };
                    self.rules.policies.insert(dependency.clone(), in_force);
                }
                None => {
                    self.rules.policies.remove(&dependency);
                }
            }
            for mode in &modes {
                let route = self.routes.entry(mode.route.clone());
                let route = route.or_insert_with(|| Route::new(now));
                route.sequence_used = route.sequence_used.max(mode.sequence);
                route.trial = Some(Box::new(Trial::restore(mode, route, now)));
            }
            let rollout = Rollout::new(state, next);
            self.rules.rollouts.insert(dependency, rollout);
        }
    }
}
