//! A rollout as people see it.

use hedgerow_protocol::ids::DependencyName;
use hedgerow_protocol::policy::Policy;

use crate::controller::Controller;
use crate::view::{GuardFigure, RolloutView};

impl Controller {
    /// How far the rollout of a dependency's policy has got; None: none is under way.
    pub(crate) fn rollout_view(&self, dependency: &DependencyName) -> Option<RolloutView> {
        let rollout = self.rules.rollouts.get(dependency)?;
        let state = &rollout.state;
        let watch = self.watches.get(dependency);
        let since = watch.map_or(state.since, |it| it.since);
        let agents = watch.map(|it| it.agents.clone()).unwrap_or_default();
        let figures = watch.map(|it| it.figures.as_slice()).unwrap_or_default();
        Some(RolloutView {
            base: state.base,
            base_policy: self.rules.policies.get(dependency).map_or_else(
                || Policy::observing(dependency.clone()),
                |it| (*it.policy).clone(),
            ),
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
}
