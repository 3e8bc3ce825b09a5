//! Rollouts that were under way when the controller before ended.

use std::sync::Arc;

use super::{Rollout, Trial};
use crate::controller::Controller;
use crate::effect::RestoredRollout;
use crate::moment::Moment;
use crate::route::Route;
use crate::rules::{InForce, Standing};

impl Controller {
    /// Takes up rollouts where the last controller left them; their stage begins anew.
    pub(crate) fn restore_rollouts(&mut self, now: Moment, restored: Vec<RestoredRollout>) {
        for RestoredRollout { state, base, modes } in restored {
            let scope = state.scope.clone();
            let Some(newest) = self.rules.policies.get(&scope) else {
                continue;
            };
            let Some(policy) = newest.policy.clone() else {
                continue;
            };
            // A release that knows of no rollouts may have set a policy meanwhile: that one rules.
            if newest.revision != state.revision {
                continue;
            }
            let next = InForce {
                revision: newest.revision,
                policy,
                since: newest.since,
            };
            match base {
                Some((policy, since)) => {
                    let standing = Standing {
                        scope: scope.clone(),
                        revision: state.base,
                        policy: policy.map(Arc::new),
                        since,
                    };
                    self.rules.policies.insert(scope.clone(), standing);
                }
                None => {
                    self.rules.policies.remove(&scope);
                }
            }
            for mode in &modes {
                let route = self.routes.entry(mode.route.clone());
                let route = route.or_insert_with(|| Route::new(now));
                route.sequence_used = route.sequence_used.max(mode.sequence);
                route.trial = Some(Box::new(Trial::restore(mode, route, now)));
            }
            let rollout = Rollout::new(state, next);
            self.rules.rollouts.insert(scope, rollout);
        }
    }
}
