//! What must hold after every event. Tests ask after each one; nothing else calls it.

use crate::controller::Controller;

/// Says what is wrong, where anything is.
pub fn check(controller: &Controller) -> Result<(), String> {
    controller.fleet.check()?;
    if controller.routes.len() > controller.settings.routes_max + 1 {
        return Err(format!(
            "{} routes are kept; at most {} and __other__ are allowed",
            controller.routes.len(),
            controller.settings.routes_max
        ));
    }
    for (key, route) in &controller.routes {
        if route.believed.sequence > route.durable.sequence && !controller.unsettled.contains(key) {
            return Err(format!("{key}: what is believed would never be stored"));
        }
        if route.durable.sequence > route.sequence_used {
            return Err(format!(
                "{key}: sequence {} is stored but was never given",
                route.durable.sequence
            ));
        }
        if route.believed.sequence > route.sequence_used {
            return Err(format!(
                "{key}: sequence {} is believed but was never given",
                route.believed.sequence
            ));
        }
        if route.believed.sequence == route.durable.sequence && route.believed != route.durable {
            return Err(format!(
                "{key}: {:?} and {:?} have the same sequence",
                route.believed, route.durable
            ));
        }
        // Safety first: whatever the store does, no agent is told to hedge against a decision.
        if let Some(live) = &route.live
            && !route.believed.mode.hedges()
            && route.durable.mode.hedges()
            && live.probability.get() > 0.0
        {
            return Err(format!(
                "{key}: decided {:?}, but agents are told to hedge {} of crossed calls",
                route.believed.mode, live.probability
            ));
        }
        if let Some(decision) = &route.decision
            && decision.mode != route.believed.mode
        {
            return Err(format!(
                "{key}: decided {:?}, but {:?} is believed",
                decision.mode, route.believed.mode
            ));
        }
    }
    check_rollouts(controller)?;
    for (scope, in_force) in &controller.rules.policies {
        let used = controller
            .revisions_used
            .get(scope)
            .copied()
            .unwrap_or_default();
        if in_force.revision > used {
            return Err(format!(
                "{scope}: revision {} was never given",
                in_force.revision
            ));
        }
    }
    Ok(())
}

/// The same of what agents in a rollout's share are told.
fn check_rollouts(controller: &Controller) -> Result<(), String> {
    for (key, route) in &controller.routes {
        let Some(trial) = &route.trial else { continue };
        if controller.rules.rollout(key).is_none() {
            return Err(format!("{key}: no rollout is under way for its trial"));
        }
        if trial.unsettled().is_some() && !controller.unsettled.contains(key) {
            return Err(format!(
                "{key}: what is believed in the trial would never be stored"
            ));
        }
        if trial.believed.sequence.max(trial.durable.sequence) > route.sequence_used {
            return Err(format!("{key}: a sequence of its trial was never given"));
        }
        if trial.believed.sequence == trial.durable.sequence && trial.believed != trial.durable {
            return Err(format!(
                "{key}: {:?} and {:?} have the same sequence in its trial",
                trial.believed, trial.durable
            ));
        }
        if let Some(live) = &trial.live
            && !trial.believed.mode.hedges()
            && trial.durable.mode.hedges()
            && live.probability.get() > 0.0
        {
            return Err(format!(
                "{key}: decided {:?} for the share, but its agents are told to hedge {} of crossed calls",
                trial.believed.mode, live.probability
            ));
        }
    }
    for (scope, rollout) in &controller.rules.rollouts {
        let used = controller
            .revisions_used
            .get(scope)
            .copied()
            .unwrap_or_default();
        let base = controller
            .rules
            .policies
            .get(scope)
            .map(|it| it.revision)
            .unwrap_or_default();
        let next = rollout.next.revision;
        if next > used || base >= next || rollout.state.base != base {
            return Err(format!(
                "{scope}: revision {next} is rolled out over {base}, begun over {}, of {used} given",
                rollout.state.base
            ));
        }
    }
    Ok(())
}
