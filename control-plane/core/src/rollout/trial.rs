//! What is decided and told on one route under a rollout's new policy, beside what the route itself
//! is under the old one.

use std::sync::Arc;

use hedgerow_protocol::directive::{Directive, LiveValues, Mode, Stamp};
use hedgerow_protocol::ids::{InstanceId, ModeSequence, RouteKey};
use hedgerow_protocol::report::{RouteReport, Totals};

use super::Share;
use super::seen::Seen;
use crate::controller::Controller;
use crate::decide::{Change, Decision};
use crate::effect::{AuditRow, ModeState, Record};
use crate::event::Actor;
use crate::memory::Memory;
use crate::moment::Moment;
use crate::orders::mode_words;
use crate::push::{arming_seed, held_back, live_values, probation_list, standing};
use crate::route::{Place, Route};
use crate::tick::PROBATION_LASTS;
use crate::view::{Mark, MarkKind};

/// A route under the new policy. The fields are what those of [`Route`] with the same names are.
#[derive(Debug, Clone)]
pub(crate) struct Trial {
    pub(crate) memory: Memory,
    pub(crate) decision: Option<Decision>,
    pub(crate) believed: Place,
    pub(crate) durable: Place,
    pub(crate) live: Option<LiveValues>,
    pub(crate) told: Option<(LiveValues, Moment)>,
    probation_changed: Option<Moment>,
    /// What the guard looks at.
    pub(crate) seen: Seen,
}

impl Trial {
    /// Begins with what the route has learned, in a place that is stored.
    pub(crate) fn new(memory: Memory, place: Place) -> Self {
        Self {
            memory,
            decision: None,
            believed: place.clone(),
            durable: place,
            live: None,
            told: None,
            probation_changed: None,
            seen: Seen::default(),
        }
    }

    /// One that was stored before a restart: what was off stays off.
    pub(crate) fn restore(state: &ModeState, route: &Route, now: Moment) -> Self {
        let mut memory = Memory::restore(state.mode, state.since, now);
        if let Some(base) = route.memory.base() {
            memory.restore_base(base);
        }
        let place = Place {
            mode: state.mode,
            since: state.since.min(now),
            sequence: state.sequence,
            probation: Vec::new(),
        };
        Self::new(memory, place)
    }

    /// Of a route that came up meanwhile: nothing is stored, so that agents observe.
    fn unstored(memory: Memory, now: Moment) -> Self {
        let place = Place {
            mode: Mode::Observing,
            since: now,
            sequence: ModeSequence::default(),
            probation: Vec::new(),
        };
        Self::new(memory, place)
    }

    /// Whether nothing is hedged though it is on, and not by the policy's own doing: the dependency is
    /// too busy. What is seen then says nothing of the policy.
    pub(crate) fn is_held_back(&self) -> bool {
        self.decision.as_ref().is_some_and(|decision| {
            decision.mode.hedges()
                && decision.live.probability.get() <= 0.0
                && decision.no_gain.is_none()
        })
    }

    /// What is believed and not stored.
    pub(crate) fn unsettled(&self) -> Option<&Place> {
        (self.believed.sequence > self.durable.sequence).then_some(&self.believed)
    }
}

impl Route {
    /// Counts a report for the guard: of an agent in the share only what it did under the new
    /// policy.
    pub(crate) fn see(
        &mut self,
        share: Option<(Share, hedgerow_protocol::ids::Revision)>,
        instance: InstanceId,
        delta: &Totals,
        report: &RouteReport,
    ) {
        let (Some((share, revision)), Some(trial)) = (share, &mut self.trial) else {
            return;
        };
        let in_share = share.has(instance);
        if !in_share || report.effective.stamp.revision == revision {
            trial.seen.add(in_share, delta, report);
        }
    }
}

impl Controller {
    /// The stamp that agents in a rollout's share should hold.
    pub(crate) fn wanted_in_trial(&self, key: &RouteKey) -> Option<Stamp> {
        let epoch = self.epochs.durable()?;
        let revision = self.rules.rollout(key)?.next.revision;
        let trial = self.routes.get(key)?.trial.as_ref()?;
        trial.live?;
        Some(Stamp {
            epoch,
            revision,
            mode_sequence: trial.durable.sequence,
        })
    }

    /// What agents in a rollout's share are told.
    pub(crate) fn directive_in_trial(&self, key: &RouteKey) -> Option<Directive> {
        let stamp = self.wanted_in_trial(key)?;
        let rollout = self.rules.rollout(key)?;
        let trial = self.routes.get(key)?.trial.as_ref()?;
        Some(Directive {
            route: key.clone(),
            stamp,
            mode: trial.durable.mode,
            live: trial.live?,
            standing: standing(&rollout.next.policy, self.settings.lease),
            probation: trial.durable.probation.clone(),
            start_credit: 0.0,
        })
    }

    /// Decides for the agents in a rollout's share, as `judge` does for the others.
    pub(crate) fn judge_trial(&mut self, now: Moment, key: &RouteKey) {
        let Some(rollout) = self.rules.rollout(key) else {
            return;
        };
        let (revision, policy) = (rollout.next.revision, Arc::clone(&rollout.next.policy));
        let Some(route) = self.routes.get_mut(key) else {
            return;
        };
        let memory = &route.memory;
        route
            .trial
            .get_or_insert_with(|| Box::new(Trial::unstored(memory.clone(), now)));
        let Some(route) = self.routes.get(key) else {
            return;
        };
        let Some(trial) = &route.trial else { return };
        let (decision, memory) =
            self.decide_by(now, key, route, &self.rules, Some(&policy), &trial.memory);
        let probation = probation_list(Some(&policy), &decision.probation);
        let rests = self.orders.may_end_trial(key);
        let Some(route) = self.routes.get_mut(key) else {
            return;
        };
        let next = route.next_sequence_if(|trial| {
            let rested = trial
                .probation_changed
                .is_none_or(|at| now.since(at) >= PROBATION_LASTS);
            let probation_moves = rested && probation != trial.believed.probation;
            !rests && (decision.mode != trial.believed.mode || probation_moves)
        });
        let Some(trial) = &mut route.trial else {
            return;
        };
        trial.memory = memory;
        if let Some(sequence) = next {
            if decision.mode != trial.believed.mode {
                trial.believed.mode = decision.mode;
                trial.believed.since = now;
            }
            if probation != trial.believed.probation {
                trial.believed.probation = probation;
                trial.probation_changed = Some(now);
            }
            trial.believed.sequence = sequence;
            self.unsettled.insert(key.clone());
        }
        let change = decision.change.clone().filter(|change| change.automatic);
        trial.decision = Some(decision);
        if let Some(change) = change {
            let words = format!(
                "for agents with revision {revision}: {}",
                change.transition.words
            );
            route.mark(Mark {
                at: now,
                kind: MarkKind::Mode,
                words: words.clone(),
            });
            self.writes.note([change_row(now, key, &change, words)]);
        }
        self.refresh_trial(key);
    }

    /// Works out what agents in the share may be told, as `refresh_live` does for the others. While
    /// the rollout is being taken back they hedge nothing: that needs no storing.
    pub(crate) fn refresh_trial(&mut self, key: &RouteKey) {
        let reverting = self
            .rules
            .rollout(key)
            .and_then(|rollout| self.watches.get(&rollout.state.scope))
            .is_some_and(|it| it.reverting.is_some());
        let mut stopped =
            reverting || self.orders.would_stop(&self.rules, key) || self.orders.would_revert(key);
        let tick = self.tick;
        let seed = arming_seed(self.epochs.wanted(), key);
        let Some(trial) = self
            .routes
            .get_mut(key)
            .and_then(|route| route.trial.as_mut())
        else {
            return;
        };
        let Some(decision) = &trial.decision else {
            return;
        };
        // Decided while an order that may end the trial was being stored.
        stopped |= !decision.mode.hedges();
        let decided = live_values(tick, &decision.live, seed);
        trial.live = Some(held_back(
            decided,
            trial.live,
            (trial.durable.mode, trial.believed.mode),
            stopped,
        ));
    }

    /// A place became durable: the agents in the share are told. One of a rollout that is over, or
    /// an older one that comes late, changes nothing.
    pub(crate) fn settle_trial(&mut self, now: Moment, key: &RouteKey, place: Place) {
        let Some(trial) = self
            .routes
            .get_mut(key)
            .and_then(|route| route.trial.as_mut())
        else {
            return;
        };
        if place.sequence > trial.durable.sequence {
            trial.durable = place;
            self.refresh_trial(key);
            self.routes_to_push.insert(key.clone());
            self.publish_route(now, key);
        }
    }
}

impl Route {
    /// A new sequence, where something of the trial's place is to change.
    fn next_sequence_if(&mut self, changes: impl Fn(&Trial) -> bool) -> Option<ModeSequence> {
        self.trial
            .as_ref()
            .is_some_and(|trial| changes(trial))
            .then(|| self.next_sequence())
    }
}

fn change_row(now: Moment, key: &RouteKey, change: &Change, words: String) -> Record {
    Record::Audit(AuditRow {
        at: now,
        actor: Actor::controller(),
        action: format!("mode.{}", change.transition.to.as_str()),
        target: key.to_string(),
        before: mode_words(change.transition.from),
        after: mode_words(change.transition.to),
        reason: words,
    })
}
