//! A rollout's steps as orders: begun, a stage further, finished, taken back.

use std::sync::Arc;

use hedgerow_protocol::ids::{Revision, RouteKey};
use hedgerow_protocol::policy::{Policy, PolicyScope};

use super::{Rollout, RolloutOutcome, RolloutPlan, Trial};
use crate::controller::Controller;
use crate::decide::words::percent;
use crate::effect::{AuditRow, Done, OrderError, Record, RolloutState};
use crate::event::{Actor, KillScope, Order};
use crate::moment::Moment;
use crate::orders::{Outcome, Wanted, covers_scope};
use crate::route::Place;
use crate::rules::{InForce, Rules, Standing};

impl Controller {
    /// The newest policy of a scope, in force for all or for a share.
    pub(crate) fn newest_policy(&self, scope: &PolicyScope) -> Option<Arc<Policy>> {
        let rollout = self.rules.rollouts.get(scope).map(|it| &it.next.policy);
        rollout.or_else(|| self.rules.own(scope)).map(Arc::clone)
    }

    /// A revision that was never given.
    /// It is above all that agents may hold of what covers the scope's routes.
    pub(crate) fn next_revision(&mut self, scope: &PolicyScope) -> Revision {
        let newest = self.rules.newest_near(&self.revisions_used, scope);
        let next = newest.next();
        self.revisions_used.insert(scope.clone(), next);
        next
    }

    /// The policy that agents outside a rollout's share hold, as a revision above that of the share;
    /// and the record of it.
    fn old_policy(
        &mut self,
        now: Moment,
        scope: &PolicyScope,
        actor: &Actor,
        reason: &str,
    ) -> (Standing, Record) {
        let policy = self.rules.own(scope).map(Arc::clone);
        let revision = self.next_revision(scope);
        let (actor, reason) = (actor.clone(), reason.to_owned());
        let record = match &policy {
            Some(policy) => Record::Policy {
                revision,
                policy: Box::new(Policy::clone(policy)),
                actor,
                reason,
                at: now,
            },
            None => Record::PolicyRemoved {
                revision,
                scope: scope.clone(),
                actor,
                reason,
                at: now,
            },
        };
        let standing = Standing {
            scope: scope.clone(),
            revision,
            policy,
            since: now,
        };
        (standing, record)
    }

    /// The revision that stands for a scope, for agents in no rollout's share; 0: there never was one.
    fn standing_revision(&self, scope: &PolicyScope) -> Revision {
        let standing = self.rules.policies.get(scope);
        standing.map_or_else(Revision::default, |it| it.revision)
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
        let scope = next.policy.scope().clone();
        let mut base = None;
        if self.rules.rollouts.contains_key(&scope) {
            // Agents of the other rollout's share hold a higher revision than the rest. First all
            // are to go back to the old policy, then some on to the new one.
            let (old, record) = self.old_policy(now, &scope, &wanted.actor, &wanted.reason);
            // The records' own order: the new policy has the higher number.
            let number = self.next_revision(&scope);
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
                .map_or_else(|| self.standing_revision(&scope), |it| it.revision),
            revision: next.revision,
            plan,
            stage: 0,
            since: now,
            actor: wanted.actor.clone(),
            scope,
        };
        records.push(Record::Rollout(state.clone()));
        let row = row(
            now,
            &wanted,
            "rollout.begin",
            &state.scope,
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
        let (scope, expected, back) = match &wanted.order {
            Order::AdvanceRollout { scope, expected } => (scope.clone(), *expected, false),
            Order::AbortRollout { scope, expected } => (scope.clone(), *expected, true),
            _ => return None,
        };
        let Some(rollout) = self.rules.rollouts.get(&scope).cloned() else {
            return Some(Err(OrderError::NoRollout(scope)));
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
            let row = row(now, &wanted, "rollout.advance", &scope, (before, after));
            let records = vec![Record::Rollout(further.state.clone()), row];
            (RolloutOutcome::Advanced(Box::new(further)), records)
        } else {
            let after = format!("revision {current} for all agents");
            let row = row(now, &wanted, "rollout.finish", &scope, (before, after));
            let records = vec![Record::RolloutEnded(scope.clone()), row];
            (
                RolloutOutcome::Finished(Standing::from(&rollout.next)),
                records,
            )
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
    ) -> (Standing, Vec<Record>) {
        let scope = &rollout.state.scope;
        let reason = format!(
            "rollout of revision {} taken back: {}",
            rollout.next.revision, wanted.reason
        );
        let (old, record) = self.old_policy(now, scope, &wanted.actor, &reason);
        let after = format!(
            "revision {}, as revision {}",
            old.revision, rollout.state.base
        );
        let row = row(
            now,
            wanted,
            "rollout.revert",
            scope,
            (stage_words(rollout), after),
        );
        let ended = Record::RolloutEnded(scope.clone());
        (old, vec![record, ended, row])
    }

    /// The same for every rollout that a kill switch covers.
    pub(crate) fn take_all_back(
        &mut self,
        now: Moment,
        wanted: &Wanted,
        scope: &KillScope,
        records: &mut Vec<Record>,
    ) -> Vec<Standing> {
        let rollouts = self.rules.rollouts.values();
        let covered = rollouts.filter(|it| covers_scope(scope, &it.state.scope));
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
        for key in self.routes_under(policy.scope()) {
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
        let ends: Vec<&PolicyScope> = match outcome {
            Outcome::Policy(it) => vec![&it.scope],
            Outcome::Kill(_, reverted) => reverted.iter().map(|it| &it.scope).collect(),
            Outcome::Rollout(RolloutOutcome::Advanced(it)) => {
                // What was found worse while the step was being stored goes back all the same.
                self.watches
                    .retain(|of, watch| *of != it.state.scope || watch.reverting.is_some());
                for key in self.routes_under(&it.state.scope) {
                    let route = self.routes.get_mut(&key);
                    if let Some(trial) = route.and_then(|it| it.trial.as_mut()) {
                        trial.seen = super::seen::Seen::default();
                    }
                }
                return;
            }
            Outcome::Rollout(it) => vec![it.scope()],
            Outcome::Release(_)
            | Outcome::AcceptBase(_)
            | Outcome::StartSwitchback(..)
            | Outcome::StopSwitchback(_)
            | Outcome::Quiet(_) => return,
        };
        for scope in ends {
            let watch = self.watches.remove(scope);
            // One alert for the scope, on its first route; none where the last step was stored
            // before it could be taken back.
            let mut why = watch.and_then(|it| it.reverting).filter(|_| !finished);
            for key in self.routes_under(scope) {
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
    scope: &PolicyScope,
    (before, after): (String, String),
) -> Record {
    Record::Audit(AuditRow {
        at: now,
        actor: wanted.actor.clone(),
        action: action.into(),
        target: scope.to_string(),
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
