//! Alerts: what people are told without looking.
//!
//! Each rule turns what the fleet reported into one of four signals; a [`Track`] for each subject
//! turns signals into episodes: one begin and one end each, however often the signal wavers in
//! between (P15, B76, B78). No data is a signal of its own that neither raises nor clears (P16).
//!
//! | rule | raised | cleared | of at least | waits |
//! |---|---|---|---|---|
//! | HedgeRateHigh | hedge rate or demand above the line | both under 0.8 of it | a window's calls | 10 s, 10 s |
//! | SharedSlowdown | off or probing for that reason | hedging again, or observing | | |
//! | HedgingDisabled | off or probing by the controller for another reason | the same | | |
//! | ReplicaSlow, ReplicaFailing | the replica is named | it is not | | 5 s, 10 s |
//! | RolloutReverted | the controller took a rollout back | 10 min later, or at the next policy | | |
//! | LowWinRate | hedges answer under half as often as independent ones would, so that few can win | over 0.65 times, or observing | 20 answers expected a test, 30 s | 2 min, 2 min |
//! | BudgetExhausted | the budget refuses over half of the crossed calls | under a quarter, or observing | 50 crossed in 1 min | 2 min, 1 min |
//! | AgentsStale | over a tenth of the agents, and two, are lost, silent or behind | under a twentieth, and one lives | 3 agents | 2 heartbeats, the same |
//! | PolicyRefused | two agents refuse what they are to hold | none does, and one holds it | | 1 heartbeat, the same |
//! | DuplicateEffects | a server executes over 1.25 duplicates for each hedge, and ten more | no more than hedges | 10 duplicates | 1 min, 1 min |
//!
//! The waits are: how long it must hold before it fires, and how long it must be clear before it
//! ends.
//!
//! The line is 10 %, or 1.25 of a budget above 10 %, or 1.25 of what a pool lends where that is more.
//! A person's own off (kill switch, policy) raises nothing, and ends nothing: what was wrong before
//! may still be.
//!
//! A SharedSlowdown that fires keeps HedgingDisabled, LowWinRate, BudgetExhausted and a HedgeRateHigh
//! for its demand from being raised for any route of its dependency: they would say the same again.
//! It does not keep HedgeRateHigh for hedges sent: an agent that sends too many is a fault of its own.
//!
//! AgentsStale is the one rule for which silence is what it is about; that nobody at all is there
//! raises nothing and ends nothing, there too.
//!
//! Receivers are told of an episode when it begins, unless a silence covers it: then when it is no
//! longer covered, if it still fires. Of its end those are told who were told of the episode; the
//! store knows who that is.

pub(crate) mod duplicates;
mod rules;
mod silences;
mod track;
mod views;
mod words;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use hedgerow_protocol::ids::{DependencyName, ReplicaName, RouteKey};

use self::duplicates::Duplicates;
use self::rules::{of_replica, signal, waits};
use self::silences::Silences;
use self::track::{Signal, Subject, Track};
use self::words::summary;
use crate::decide::Decision;
use crate::effect::{AlertState, Record, Restored};
use crate::moment::Moment;
use crate::route::Census;
use crate::view::{AlertRule, Named, ReplicaView};

pub(crate) use self::rules::{REVERTED_FIRES, rate_line};
pub(crate) use self::silences::SILENCES_MAX;

/// How long what is over is shown.
const RESOLVED_SHOWN: Duration = Duration::from_hours(1);
/// Most of it that is.
const RESOLVED_MAX: usize = 1_000;

/// What the rules look at, for one route.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Observed<'a> {
    pub(crate) route: &'a RouteKey,
    pub(crate) decision: &'a Decision,
    /// The policy's budget; None: no policy.
    pub(crate) budget: Option<f64>,
    /// What a pool lends it; None: its own budget holds.
    pub(crate) lent: Option<f64>,
    pub(crate) replicas: &'a [ReplicaView],
    /// Why the controller took a rollout back of late.
    pub(crate) reverted: Option<&'a str>,
    /// Agents on it.
    pub(crate) census: &'a Census,
    /// Agents whose stream ended without a goodbye of late, and that did not come back.
    pub(crate) lost: u64,
    /// What a server last said it executed twice.
    pub(crate) duplicates: Option<&'a Duplicates>,
}

/// Every alert that fires, waits, or is just over, and the silences.
#[derive(Debug, Clone, Default)]
pub(crate) struct AlertBook {
    /// After what silence an agent counts as stale.
    heartbeat: Duration,
    tracks: BTreeMap<Subject, Track>,
    resolved: VecDeque<AlertState>,
    silences: Silences,
}

impl AlertBook {
    /// Takes up what was firing when the controller stopped: the same episodes go on (P15), as
    /// silent as they were.
    pub(crate) fn restore(restored: &Restored, heartbeat: Duration) -> Self {
        let mut tracks = BTreeMap::new();
        let firing = restored.alerts.iter().filter(|it| it.resolved.is_none());
        for state in firing {
            let told = !restored.untold.contains(&state.id);
            tracks.insert(Subject::of(state), Track::restore(state.clone(), told));
        }
        let mut book = Self {
            heartbeat,
            tracks,
            resolved: VecDeque::new(),
            silences: Silences::restore(&restored.silences, restored.last_silence),
        };
        for (alert, by) in &restored.acknowledgements {
            book.acknowledge(alert, by.clone());
        }
        book
    }

    /// One look at everything. Returns what began, ended, or is to be told now, in the order to
    /// store it.
    pub(crate) fn evaluate(&mut self, now: Moment, all: &[Observed<'_>]) -> Vec<Record> {
        let mut changed = Vec::new();
        self.silences.expire(now);
        // First what inhibits others.
        let inhibiting = AlertRule::SharedSlowdown;
        for it in all {
            let signal = signal(now, inhibiting, it, false);
            self.step(now, it, (inhibiting, None), signal, &mut changed);
        }
        let slowed = self.firing(inhibiting);
        for it in all {
            let slowed = slowed.contains(&it.route.dependency);
            for rule in rules::OF_ROUTES {
                let signal = signal(now, rule, it, slowed);
                self.step(now, it, (rule, None), signal, &mut changed);
            }
            self.evaluate_replicas(now, it, &mut changed);
        }
        self.tell_what_is_not_silenced(now, &mut changed);
        self.tracks.retain(|_, track| track.is_open());
        while self.resolved.front().is_some_and(|state| {
            self.resolved.len() > RESOLVED_MAX
                || state
                    .resolved
                    .is_none_or(|at| now.since(at) >= RESOLVED_SHOWN)
        }) {
            self.resolved.pop_front();
        }
        changed
    }

    fn evaluate_replicas(&mut self, now: Moment, it: &Observed<'_>, changed: &mut Vec<Record>) {
        for (rule, fault) in [
            (AlertRule::ReplicaSlow, Named::Slow),
            (AlertRule::ReplicaFailing, Named::Failing),
        ] {
            let named = it
                .decision
                .named
                .iter()
                .filter(|(_, named)| **named == fault);
            let mut subjects: BTreeSet<_> = named.map(|(replica, _)| replica.clone()).collect();
            subjects.extend(self.replicas_tracked(it.route, rule));
            for replica in subjects {
                let signal = of_replica(it, fault, &replica);
                self.step(now, it, (rule, Some(replica)), signal, changed);
            }
        }
    }

    fn step(
        &mut self,
        now: Moment,
        it: &Observed<'_>,
        (rule, replica): (AlertRule, Option<ReplicaName>),
        signal: Signal,
        changed: &mut Vec<Record>,
    ) {
        let subject = Subject {
            route: it.route.clone(),
            rule,
            replica,
        };
        if signal != Signal::Raise && !self.tracks.contains_key(&subject) {
            return;
        }
        let waits = waits(rule, self.heartbeat);
        let track = self.tracks.entry(subject.clone()).or_default();
        let words = || summary(&subject, it);
        let Some(state) = track.step(now, signal, waits, &subject, words) else {
            return;
        };
        if state.resolved.is_some() {
            self.resolved.push_back(state.clone());
            changed.push(Record::Alert(state));
        } else if self.silences.over(&state, now).is_some() {
            changed.push(Record::AlertSilenced(state));
        } else {
            track.told = true;
            changed.push(Record::Alert(state));
        }
    }

    fn firing(&self, rule: AlertRule) -> BTreeSet<DependencyName> {
        self.tracks
            .iter()
            .filter(|(subject, track)| subject.rule == rule && track.firing.is_some())
            .map(|(subject, _)| subject.route.dependency.clone())
            .collect()
    }

    fn replicas_tracked(&self, route: &RouteKey, rule: AlertRule) -> Vec<ReplicaName> {
        let from = Subject {
            route: route.clone(),
            rule,
            replica: None,
        };
        self.tracks
            .range(from..)
            .take_while(|(subject, _)| subject.route == *route && subject.rule == rule)
            .filter_map(|(subject, _)| subject.replica.clone())
            .collect()
    }

    /// Whether anything fires or waits about `route`.
    pub(crate) fn concerns(&self, route: &RouteKey) -> bool {
        self.tracks.keys().any(|subject| subject.route == *route)
    }
}
