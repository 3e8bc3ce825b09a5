//! A rollout as people see it.

use hedgerow_protocol::policy::{Policy, PolicyScope};

use crate::controller::Controller;
use crate::view::{GuardFigure, RolloutView};

impl Controller {
    /// How far the rollout of a scope's policy has got; None: none is under way.
    pub(crate) fn rollout_view(&self, scope: &PolicyScope) -> Option<RolloutView> {
        let rollout = self.rules.rollouts.get(scope)?;
        let state = &rollout.state;
        let watch = self.watches.get(scope);
        let since = watch.map_or(state.since, |it| it.since);
        let agents = watch.map(|it| it.agents.clone()).unwrap_or_default();
        let figures = watch.map(|it| it.figures.as_slice()).unwrap_or_default();
        Some(RolloutView {
            base: state.base,
            base_policy: self.policy_before(scope),
            actor: state.actor.clone(),
            stages: state.plan.stages().to_vec(),
            stage: state.stage + 1,
            share: rollout.share.size(),
            since: state.since,
            stay: state.plan.stay(),
            next_at: since.plus(state.plan.stay()),
            agents_in: agents.share,
            agents_holding: agents.holding,
            agents: agents.all,
            calls: watch.map_or(0, |it| it.calls),
            guard: figures
                .iter()
                .filter(|(_, pair)| pair.new.is_some() || pair.old.is_some())
                .map(|(route, pair)| {
                    let (times, unit) = if pair.what.is_latency() {
                        (1e3, "ms")
                    } else {
                        (1e2, "%")
                    };
                    GuardFigure {
                        route: route.clone(),
                        what: pair.what.words().into(),
                        new: pair.new.map(|it| it * times),
                        old: pair.old.map(|it| it * times),
                        unit: unit.into(),
                    }
                })
                .collect(),
            words: watch.map_or_else(|| "just begun".into(), |it| it.words.clone()),
        })
    }

    /// What agents outside a rollout's share go by: the scope's own policy, or what else covers it.
    fn policy_before(&self, scope: &PolicyScope) -> Policy {
        let own = self.rules.own(scope).map(|it| Policy::clone(it));
        own.unwrap_or_else(|| {
            let mut routes = self.routes.keys();
            let covered = routes.find(|key| scope.covers(key));
            let wider = covered.and_then(|key| self.rules.policy(key));
            wider.map_or_else(
                || Policy::observing(scope.clone()),
                |it| Policy::clone(it).for_scope(scope.clone()),
            )
        })
    }
}
