//! What people order: checked, decided at once, stored with its line in the record, and only then
//! in force, pushed and answered.
//!
//! One order is under way at a time, the others wait in line: two that come together are then
//! simply one after the other, and the second sees what the first did (B71). Until an order that
//! stops hedging is stored, live values already say "none" with the next tick (see
//! [`crate::push`]); if the store fails, they come back.

mod line;
mod policies;
mod readings;
mod remembered;
mod silences;
mod switchback;
mod words;

use hedgerow_protocol::ids::{DependencyName, RouteKey};
use hedgerow_protocol::policy::{Policy, PolicyScope};

use self::silences::Quiet;
use crate::controller::Controller;
use crate::effect::{AuditRow, Done, Effect, KillState, OrderError, Record};
use crate::event::{Actor, KillScope, Order, RequestId};
use crate::moment::Moment;
use crate::rollout::RolloutOutcome;
use crate::route::Place;
use crate::rules::Standing;
use crate::view::{Mark, MarkKind};
use crate::writes::Waiting;

pub(crate) use self::line::Orders;
pub(crate) use self::words::mode_words;

/// Dependencies whose own kill switch is engaged: each is known to every page. Beyond, there is the one
/// over everything.
const KILLS_MAX: usize = 1_000;

/// An order and who wants it.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// To answer to; None: the controller itself.
    request: Option<RequestId>,
    pub(crate) actor: Actor,
    pub(crate) reason: String,
    pub(crate) order: Order,
}

/// An order that is being stored.
#[derive(Debug, Clone)]
struct UnderWay {
    wanted: Wanted,
    /// Routes whose mode it changes, and to what: stored with it.
    places: Vec<(RouteKey, Place)>,
    /// The same for agents in the share of a rollout that it begins.
    trials: Vec<(RouteKey, Place)>,
    outcome: Outcome,
}

/// What an order does once it is stored.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    /// Set or taken away.
    Policy(Standing),
    /// With the old policies of the rollouts it takes back.
    Kill(KillState, Vec<Standing>),
    Rollout(RolloutOutcome),
    Release(RouteKey),
    AcceptBase(RouteKey),
    StartSwitchback(RouteKey, u32),
    StopSwitchback(RouteKey),
    Quiet(Quiet),
}

/// Whether a kill switch of `scope` is for `route`.
pub(crate) fn covers(scope: &KillScope, route: &RouteKey) -> bool {
    match scope {
        KillScope::Everything => true,
        KillScope::Dependency(of) => *of == route.dependency,
    }
}

/// Whether it is for all that a policy is for.
pub(crate) fn covers_scope(kill: &KillScope, scope: &PolicyScope) -> bool {
    match kill {
        KillScope::Everything => true,
        KillScope::Dependency(of) => scope.dependency() == Some(of),
    }
}

impl Controller {
    /// A person, or a seed file, wants something.
    pub(crate) fn ordered(
        &mut self,
        now: Moment,
        request: RequestId,
        actor: Actor,
        reason: String,
        order: Order,
    ) {
        if let Order::SetUtilisation {
            dependency,
            utilisation,
            valid_for,
        } = order
        {
            let result = self.take_utilisation(now, dependency, utilisation, valid_for);
            return self.reply(Some(request), result);
        }
        if let Order::SetDuplicates {
            route,
            executed,
            over,
        } = order
        {
            let result = self.take_duplicates(now, route, executed, over);
            return self.reply(Some(request), result);
        }
        if reason.trim().is_empty() {
            return self.reply(Some(request), Err(OrderError::NoReason));
        }
        let wanted = Wanted {
            request: Some(request),
            actor,
            reason,
            order,
        };
        if let Err(problem) = self.orders.queue(wanted) {
            return self.reply(Some(request), Err(problem));
        }
        self.next_order(now);
    }

    /// The controller itself wants something: before what people wait for, and answered to nobody.
    pub(crate) fn order_itself(&mut self, now: Moment, order: Order, reason: String) {
        self.orders.line.push_front(Wanted {
            request: None,
            actor: Actor::controller(),
            reason,
            order,
        });
        self.next_order(now);
    }

    /// Takes orders from the line until one has to be stored.
    fn next_order(&mut self, now: Moment) {
        while self.orders.under_way.is_none() {
            let Some(wanted) = self.orders.line.pop_front() else {
                return;
            };
            let request = wanted.request;
            if let Some(result) = self.begin_order(now, wanted) {
                self.reply(request, result);
            }
        }
    }

    /// Begins to store an order; returns the answer where there is nothing to store.
    fn begin_order(&mut self, now: Moment, wanted: Wanted) -> Option<Result<Done, OrderError>> {
        match &wanted.order {
            Order::SetPolicy {
                policy,
                expected,
                rollout,
            } => {
                let (policy, expected) = (Policy::clone(policy), *expected);
                let rollout = rollout.clone();
                self.begin_policy(now, wanted, policy, expected, rollout)
            }
            Order::RemovePolicy { scope, expected } => {
                let (scope, expected) = (scope.clone(), *expected);
                self.begin_removal(now, wanted, scope, expected)
            }
            Order::AdvanceRollout { .. } | Order::AbortRollout { .. } => {
                self.begin_step(now, wanted)
            }
            Order::Kill { scope, engaged } => {
                let (scope, engaged) = (scope.clone(), *engaged);
                self.begin_kill(now, wanted, &scope, engaged)
            }
            Order::StartSwitchback { .. } | Order::StopSwitchback { .. } => {
                self.begin_switchback_order(now, wanted)
            }
            Order::Silence(_) | Order::EndSilence { .. } | Order::Acknowledge { .. } => {
                self.begin_quiet(now, wanted)
            }
            // Taken when they came: see `ordered`.
            Order::SetUtilisation { .. } | Order::SetDuplicates { .. } => {
                Some(Ok(Done::Utilisation))
            }
            Order::Release { route } | Order::AcceptBase { route } => {
                let key = route.clone();
                let Some(route) = self.routes.get(&key) else {
                    return Some(Err(OrderError::UnknownRoute(key)));
                };
                let before = route.believed.mode;
                let (action, outcome) = match wanted.order {
                    Order::Release { .. } => ("route.release", Outcome::Release(key.clone())),
                    _ => ("route.accept_base", Outcome::AcceptBase(key.clone())),
                };
                let row = AuditRow {
                    at: now,
                    actor: wanted.actor.clone(),
                    action: action.into(),
                    target: key.to_string(),
                    before: mode_words(before),
                    after: String::new(),
                    reason: wanted.reason.clone(),
                };
                self.store_order(now, wanted, outcome, vec![Record::Audit(row)]);
                None
            }
        }
    }

    fn begin_kill(
        &mut self,
        now: Moment,
        wanted: Wanted,
        scope: &KillScope,
        engaged: bool,
    ) -> Option<Result<Done, OrderError>> {
        let before = self.rules.kills.get(scope).is_some_and(|kill| kill.engaged);
        if before == engaged {
            return Some(Ok(Done::Kill { changed: false }));
        }
        let standing = self.rules.kills.values().filter(|kill| kill.engaged);
        if engaged && *scope != KillScope::Everything && standing.count() >= KILLS_MAX {
            return Some(Err(OrderError::NotNow(format!(
                "the kill switches of {KILLS_MAX} dependencies are engaged already: release some, or use the one over everything"
            ))));
        }
        let place = |engaged: bool| if engaged { "engaged" } else { "released" }.to_owned();
        let state = KillState {
            scope: scope.clone(),
            engaged,
            actor: wanted.actor.clone(),
            reason: wanted.reason.clone(),
            at: now,
        };
        let row = AuditRow {
            at: now,
            actor: wanted.actor.clone(),
            action: if engaged { "kill.on" } else { "kill.off" }.into(),
            target: match scope {
                KillScope::Everything => "everything".into(),
                KillScope::Dependency(dependency) => dependency.to_string(),
            },
            before: place(before),
            after: place(engaged),
            reason: wanted.reason.clone(),
        };
        let mut records = vec![Record::Kill(state.clone()), Record::Audit(row)];
        let mut reverted = Vec::new();
        if engaged {
            reverted = self.take_all_back(now, &wanted, scope, &mut records);
        }
        self.store_order(now, wanted, Outcome::Kill(state, reverted), records);
        None
    }

    /// Finds out which modes the order changes, and gives all of it to the store in one write: one
    /// trip to the disk between a person's word and the fleet.
    pub(crate) fn store_order(
        &mut self,
        now: Moment,
        wanted: Wanted,
        outcome: Outcome,
        mut records: Vec<Record>,
    ) {
        let mut then = self.rules.clone();
        then.apply(&outcome);
        let mut places = Vec::new();
        for key in self.routes_of(&outcome) {
            let Some(route) = self.routes.get(&key) else {
                continue;
            };
            let memory = outcome.remembered(route);
            let (decision, _) = self.decide_under(now, &key, route, &then, &memory);
            let taken_over = outcome.taken_over(route);
            let from = taken_over.map_or(&route.believed, |trial| &trial.believed);
            let (mode, since) = (decision.mode, from.since);
            let (same, probation) = (mode == from.mode, from.probation.clone());
            // The numbers of a trial that ends are used: the route's own is to be above them.
            let ends = route.trial.is_some() && outcome.ends_trials();
            if (!same || ends)
                && let Some(route) = self.routes.get_mut(&key)
            {
                let place = Place {
                    mode,
                    since: if same { since } else { now },
                    sequence: route.next_sequence(),
                    probation,
                };
                records.push(Record::Mode(place.record(&key)));
                places.push((key, place));
            }
        }
        let trials = self.trial_places(now, &outcome, &then, &mut records);
        self.orders.under_way = Some(Box::new(UnderWay {
            wanted,
            places,
            trials,
            outcome,
        }));
        self.persist(Waiting::Order, records);
    }

    /// The order is stored: it is in force now. The answer comes after the pushes.
    pub(crate) fn order_persisted(&mut self, now: Moment) {
        let Some(under_way) = self.orders.under_way.take() else {
            return;
        };
        let UnderWay {
            wanted,
            places,
            trials,
            outcome,
        } = *under_way;
        let routes = self.routes_of(&outcome);
        let (words, done) = outcome.said(&wanted);
        match &outcome {
            Outcome::StartSwitchback(key, rounds) => {
                let by = (wanted.actor.clone(), wanted.reason.clone());
                self.start_switchback(now, key, *rounds, by);
            }
            Outcome::StopSwitchback(key) => {
                self.end_switchback(now, key, format!("stopped by {}", wanted.actor.name));
            }
            Outcome::Quiet(it) => it.apply(&mut self.alerts),
            _ => {}
        }
        self.rules.apply(&outcome);
        self.leave_pools(&routes);
        for key in &routes {
            if let Some(route) = self.routes.get_mut(key) {
                route.memory = outcome.remembered(route);
                if let Some(trial) = &mut route.trial {
                    outcome.tell(&mut trial.memory);
                }
                route.mark(Mark {
                    at: now,
                    kind: MarkKind::Policy,
                    words: words.clone(),
                });
            }
        }
        for (key, place) in places {
            self.take_place(&key, place);
        }
        self.take_trials(now, &outcome, trials);
        for key in routes {
            self.judge(now, &key);
            self.routes_to_push.insert(key.clone());
            self.publish_route(now, &key);
        }
        self.persist_changes();
        self.flush_pushes(now);
        self.reply(wanted.request, Ok(done));
        self.next_order(now);
    }

    /// The order's places are stored; where nothing else was decided meanwhile, they are also what
    /// is believed.
    fn take_place(&mut self, key: &RouteKey, place: Place) {
        let Some(route) = self.routes.get_mut(key) else {
            return;
        };
        if place.sequence > route.believed.sequence {
            route.believed = place.clone();
        }
        route.settle(place);
        self.unsettled.insert(key.clone());
    }

    /// The order could not be stored: nothing changed, and the person is told so.
    pub(crate) fn order_failed(&mut self, now: Moment, problem: &str) {
        let Some(under_way) = self.orders.under_way.take() else {
            return;
        };
        let failed = Err(OrderError::NotPersisted(problem.to_owned()));
        self.reply(under_way.wanted.request, failed);
        self.next_order(now);
    }

    fn routes_of(&self, outcome: &Outcome) -> Vec<RouteKey> {
        match outcome {
            Outcome::Policy(it) => self.routes_under(&it.scope),
            Outcome::Rollout(it) => self.routes_under(it.scope()),
            Outcome::Kill(it, _) => match &it.scope {
                KillScope::Everything => self.routes.keys().cloned().collect(),
                KillScope::Dependency(dependency) => self.routes_in(dependency),
            },
            Outcome::Release(key)
            | Outcome::AcceptBase(key)
            | Outcome::StartSwitchback(key, _)
            | Outcome::StopSwitchback(key) => vec![key.clone()],
            Outcome::Quiet(_) => Vec::new(),
        }
    }

    /// Routes that a scope's policy is for, or would be.
    pub(crate) fn routes_under(&self, scope: &PolicyScope) -> Vec<RouteKey> {
        let keys = self.routes.keys();
        let governed = keys.filter(|key| self.rules.governs(scope, key));
        governed.cloned().collect()
    }

    fn routes_in(&self, dependency: &DependencyName) -> Vec<RouteKey> {
        self.routes
            .keys()
            .filter(|key| key.dependency == *dependency)
            .cloned()
            .collect()
    }

    fn reply(&mut self, request: Option<RequestId>, result: Result<Done, OrderError>) {
        if let Some(request) = request {
            self.effects.push_back(Effect::Reply { request, result });
        }
    }
}
