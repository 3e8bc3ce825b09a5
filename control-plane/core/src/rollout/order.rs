//! A rollout's steps as orders: begun, a stage further, finished, taken back.

use std::sync::Arc;

use hedgerow_protocol::ids::{DependencyName, Revision, RouteKey};
use hedgerow_protocol::policy::Policy;

use super::{Rollout, RolloutOutcome, RolloutPlan, Trial};
use crate::controller::{Controller, InForce, Rules};
use crate::decide::words::percent;
use crate::effect::{AuditRow, Done, OrderError, Record, RolloutState};
use crate::event::{Actor, KillScope, Order};
use crate::moment::Moment;
use crate::orders::{Outcome, Wanted, covers_dependency};
use crate::route::Place;

impl Controller {
    /// The newest policy of a dependency, in force for all or for a share.
    pub(crate) fn newest_policy(&self, dependency: &DependencyName) -> Option<Arc<Policy>> {
        let rollout = self.rules.rollouts.get(dependency).map(|it| &it.next);
        let newest = rollout.or_else(|| self.rules.policies.get(dependency));
        newest.map(|it| Arc::clone(&it.policy))
    }

    /// A revision that was never given.
    pub(crate) fn next_revision(&mut self, dependency: &DependencyName) -> Revision {
        let newest = self.newest_revision(dependency);
        let used = self
            .revisions_used
            .entry(dependency.clone())
            .or_insert(newest);
        *used = used.next();
        *used
    }

    /// The policy that agents outside a rollout's share hold, as a revision above that of the share;
    /// and the record of it.
    fn old_policy(
        &mut self,
        now: Moment,
        dependency: &DependencyName,
        actor: &Actor,
        reason: &str,
    ) -> (InForce, Record) {
        let policy = self.rules.policies.get(dependency).map_or_else(
            || Arc::new(Policy::observing(dependency.clone())),
            |it| Arc::clone(&it.policy),
        );
        let revision = self.next_revision(dependency);
        let record = Record::Policy {
            revision,
            policy: Box::new(Policy::clone(&policy)),
            actor: actor.clone(),
            reason: reason.to_owned(),
            at: now,
        };
        let in_force = InForce {
            revision,
            policy,
            since: now,
        };
        (in_force, record)
    }

    /// Puts a policy, whose own record is in `records`, in force in steps.
    pub(crate) fn begin_rollout(
        &mut self,
        now: Moment,
        wanted: Wanted,
        mut next: InForce,
        plan: RolloutPlan,
        mut records: Vec<Record>,
    ) {
        let dependency = next.policy.dependency().clone();
        let mut base = None;
        if self.rules.rollouts.contains_key(&dependency) {
            // Agents of the other rollout's share hold a higher revision than the rest. First all
            // are to go back to the old policy, then some on to the new one.
            let (old, record) = self.old_policy(now, &dependency, &wanted.actor, &wanted.reason);
            // The records' own order: the new policy has the higher number.
            let number = self.next_revision(&dependency);
            for record in &mut records {
                if let Record::Policy { revision, .. } = record {
                    *revision = number;
                }
            }
            next.revision = number;
            records.insert(0, record);
            base = Some(old);
        }
        let state = RolloutState {
            base: base
                .as_ref()
                .map_or_else(|| self.revision(&dependency), |it| it.revision),
            revision: next.revision,
            plan,
            stage: 0,
            since: now,
            actor: wanted.actor.clone(),
            dependency,
        };
        records.push(Record::Rollout(state.clone()));
        let row = row(
            now,
            &wanted,
            "rollout.begin",
            &state.dependency,
            (String::new(), state.plan.words()),
        );
        records.push(row);
        let rollout = Box::new(Rollout::new(state, next));
        let outcome = Outcome::Rollout(RolloutOutcome::Begun { rollout, base });
        self.store_order(now, wanted, outcome, records);
    }

    /// A step of a rollout is ordered.
    pub(crate) fn begin_step(
        &mut self,
        now: Moment,
        wanted: Wanted,
    ) -> Option<Result<Done, OrderError>> {
        let (dependency, expected, back) = match &wanted.order {
            Order::AdvanceRollout {
                dependency,
                expected,
            } => (dependency.clone(), *expected, false),
            Order::AbortRollout {
                dependency,
                expected,
            } => (dependency.clone(), *expected, true),
            _ => return None,
        };
        let Some(rollout) = self.rules.rollouts.get(&dependency).cloned() else {
            return Some(Err(OrderError::NoRollout(dependency)));
        };
        let current = rollout.next.revision;
        if let Some(expected) = expected
            && expected != current
        {
            return Some(Err(OrderError::Stale { expected, current }));
        }
        let before = stage_words(&rollout);
        let (outcome, records) = if back {
            let (outcome, records) = self.taken_back(now, &wanted, &rollout);
            (RolloutOutcome::Reverted(outcome), records)
        } else if let Some(further) = rollout.advanced(now) {
            let after = stage_words(&further);
            let row = row(
                now,
                &wanted,
                "rollout.advance",
                &dependency,
                (before, after),
            );
            let records = vec![Record::Rollout(further.state.clone()), row];
            (RolloutOutcome::Advanced(Box::new(further)), records)
        } else {
            let after = format!("revision {current} for all agents");
            let row = row(now, &wanted, "rollout.finish", &dependency, (before, after));
            let records = vec![Record::RolloutEnded(dependency.clone()), row];
            (RolloutOutcome::Finished(rollout.next.clone()), records)
        };
        self.store_order(now, wanted, Outcome::Rollout(outcome), records);
        None
    }

    /// The old policy as a new revision, and all that is stored with it.
    pub(crate) fn taken_back(
        &mut self,
        now: Moment,
        wanted: &Wanted,
        rollout: &Rollout,
    ) -> (InForce, Vec<Record>) {
        let dependency = &rollout.state.dependency;
        let reason = format!(
            "rollout of revision {} taken back: {}",
            rollout.next.revision, wanted.reason
        );
        let (old, record) = self.old_policy(now, dependency, &wanted.actor, &reason);
        let after = format!(
            "revision {}, as revision {}",
            old.revision, rollout.state.base
        );
        let row = row(
            now,
            wanted,
            "rollout.revert",
            dependency,
            (stage_words(rollout), after),
        );
        let ended = Record::RolloutEnded(dependency.clone());
        (old, vec![record, ended, row])
    }

    /// The same for every rollout that a kill switch covers.
    pub(crate) fn take_all_back(
        &mut self,
        now: Moment,
        wanted: &Wanted,
        scope: &KillScope,
        records: &mut Vec<Record>,
    ) -> Vec<InForce> {
        let rollouts = self.rules.rollouts.values();
        let covered = rollouts.filter(|it| covers_dependency(scope, &it.state.dependency));
        let covered: Vec<_> = covered.cloned().collect();
        let each = covered.iter().map(|rollout| {
            let (old, more) = self.taken_back(now, wanted, rollout);
            records.extend(more);
            old
        });
        each.collect()
    }

    /// Where the agents in the share of a rollout that begins stand on each route: stored with it.
    pub(crate) fn trial_places(
        &mut self,
        now: Moment,
        outcome: &Outcome,
        then: &Rules,
        records: &mut Vec<Record>,
    ) -> Vec<(RouteKey, Place)> {
        let Outcome::Rollout(RolloutOutcome::Begun { rollout, .. }) = outcome else {
            return Vec::new();
        };
        let policy = Arc::clone(&rollout.next.policy);
        let mut places = Vec::new();
        for key in self.routes_in(policy.dependency()) {
            let Some(route) = self.routes.get(&key) else {
                continue;
            };
            let (decision, _) =
                self.decide_by(now, &key, route, then, Some(&policy), &route.memory);
            let Some(route) = self.routes.get_mut(&key) else {
                continue;
            };
            let probation = &route.believed.probation;
            let place = Place {
                mode: decision.mode,
                since: if decision.mode == route.believed.mode {
                    route.believed.since
                } else {
                    now
                },
                probation: crate::push::probation_list(Some(&policy), probation),
                sequence: route.next_sequence(),
            };
            records.push(Record::TrialMode {
                revision: rollout.next.revision,
                state: place.record(&key),
            });
            places.push((key, place));
        }
        places
    }

    /// An order that is stored begins, moves on or ends trials.
    pub(crate) fn take_trials(
        &mut self,
        now: Moment,
        outcome: &Outcome,
        places: Vec<(RouteKey, Place)>,
    ) {
        let finished = matches!(outcome, Outcome::Rollout(RolloutOutcome::Finished(_)));
        let ends: Vec<&DependencyName> = match outcome {
            Outcome::Policy(it) => vec![it.policy.dependency()],
            Outcome::Kill(_, reverted) => {
                reverted.iter().map(|it| it.policy.dependency()).collect()
            }
            Outcome::Rollout(RolloutOutcome::Advanced(it)) => {
                // What was found worse while the step was being stored goes back all the same.
                self.watches
                    .retain(|of, watch| *of != it.state.dependency || watch.reverting.is_some());
                for key in self.routes_in(&it.state.dependency) {
                    let route = self.routes.get_mut(&key);
                    if let Some(trial) = route.and_then(|it| it.trial.as_mut()) {
                        trial.seen = super::seen::Seen::default();
                    }
                }
                return;
            }
            Outcome::Rollout(it) => vec![it.dependency()],
            Outcome::Release(_)
            | Outcome::AcceptBase(_)
            | Outcome::StartSwitchback(..)
            | Outcome::StopSwitchback(_)
            | Outcome::Quiet(_) => return,
        };
        for dependency in ends {
            let watch = self.watches.remove(dependency);
            // One alert for the dependency, on its first route; none where the last step was stored
            // before it could be taken back.
            let mut why = watch.and_then(|it| it.reverting).filter(|_| !finished);
            for key in self.routes_in(dependency) {
                if let Some(route) = self.routes.get_mut(&key) {
                    if route.trial.take().is_some() {
                        route.bench.begin_anew();
                    }
                    route.reverted = why.take().map(|why| (now, why));
                }
            }
        }
        for (key, place) in places {
            if let Some(route) = self.routes.get_mut(&key) {
                let memory = route.memory.clone();
                route.trial = Some(Box::new(Trial::new(memory, place)));
            }
        }
    }
}

fn row(
    now: Moment,
    wanted: &Wanted,
    action: &str,
    dependency: &DependencyName,
    (before, after): (String, String),
) -> Record {
    Record::Audit(AuditRow {
        at: now,
        actor: wanted.actor.clone(),
        action: action.into(),
        target: dependency.to_string(),
        before,
        after,
        reason: wanted.reason.clone(),
    })
}

fn stage_words(rollout: &Rollout) -> String {
    format!(
        "revision {} for {} of agents",
        rollout.next.revision,
        percent(rollout.share.size())
    )
}
