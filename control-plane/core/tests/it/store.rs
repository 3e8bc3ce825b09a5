//! A store in memory: durable when it says so, and not before.

use std::collections::{BTreeMap, VecDeque};

use hedgerow_core::effect::{
    AlertState, AuditRow, KillState, ModeState, Record, Restored, RestoredPolicy, RestoredRollout,
    RolloutState, SilenceId, Transition,
};
use hedgerow_core::event::{Event, KillScope, WriteId};
use hedgerow_core::moment::Moment;
use hedgerow_core::view::{Acknowledgement, Point, SilenceView};
use hedgerow_protocol::directive::{Directive, Mode};
use hedgerow_protocol::ids::{Epoch, ModeSequence, Revision, RouteKey};
use hedgerow_protocol::policy::{Policy, PolicyScope};

/// How the store answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// At once.
    Now,
    /// Not until told to.
    Later,
    /// With a failure.
    Never,
}

#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(crate) answers: Answers,
    pub(crate) waiting: VecDeque<(WriteId, Vec<Record>)>,
    pub(crate) epoch: Epoch,
    /// Every revision ever stored.
    pub(crate) policies: BTreeMap<PolicyScope, Vec<(Revision, Option<Policy>, Moment)>>,
    pub(crate) kills: BTreeMap<KillScope, KillState>,
    pub(crate) modes: BTreeMap<RouteKey, ModeState>,
    /// Every place in an order ever stored.
    pub(crate) sequences: BTreeMap<(RouteKey, ModeSequence), Mode>,
    pub(crate) rollouts: BTreeMap<PolicyScope, RolloutState>,
    /// By the revision rolled out.
    pub(crate) trial_modes: BTreeMap<(RouteKey, Revision), ModeState>,
    pub(crate) transitions: Vec<Transition>,
    pub(crate) audit: Vec<AuditRow>,
    /// Every notice, in order: what receivers are told.
    pub(crate) notices: Vec<AlertState>,
    /// Episodes that nobody was told of.
    pub(crate) untold: BTreeMap<String, AlertState>,
    pub(crate) acknowledgements: BTreeMap<String, Acknowledgement>,
    pub(crate) silences: BTreeMap<SilenceId, SilenceView>,
    /// Silences that were ended.
    pub(crate) ended: Vec<SilenceId>,
    pub(crate) points: usize,
    /// Minutes kept for replay.
    pub(crate) minutes: Vec<(RouteKey, hedgerow_core::minute::Minute)>,
    /// The newest point of each route.
    pub(crate) newest: BTreeMap<RouteKey, Point>,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            answers: Answers::Now,
            waiting: VecDeque::new(),
            epoch: Epoch(0),
            policies: BTreeMap::new(),
            kills: BTreeMap::new(),
            modes: BTreeMap::new(),
            sequences: BTreeMap::new(),
            rollouts: BTreeMap::new(),
            trial_modes: BTreeMap::new(),
            transitions: Vec::new(),
            audit: Vec::new(),
            notices: Vec::new(),
            untold: BTreeMap::new(),
            acknowledgements: BTreeMap::new(),
            silences: BTreeMap::new(),
            ended: Vec::new(),
            points: 0,
            minutes: Vec::new(),
            newest: BTreeMap::new(),
        }
    }
}

impl Store {
    /// Takes a write; returns the answer where it is given at once.
    pub(crate) fn persist(&mut self, write: WriteId, records: Vec<Record>) -> Option<Event> {
        match self.answers {
            Answers::Now => {
                self.commit(records);
                Some(Event::Persisted(write))
            }
            Answers::Later => {
                self.waiting.push_back((write, records));
                None
            }
            Answers::Never => Some(Event::PersistFailed {
                write,
                problem: "the disk is full".into(),
            }),
        }
    }

    /// Carries out the oldest write that waits, or fails it.
    pub(crate) fn answer(&mut self, durable: bool) -> Option<Event> {
        let (write, records) = self.waiting.pop_front()?;
        if durable {
            self.commit(records);
            Some(Event::Persisted(write))
        } else {
            Some(Event::PersistFailed {
                write,
                problem: "the disk is full".into(),
            })
        }
    }

    fn commit(&mut self, records: Vec<Record>) {
        for record in records {
            match record {
                Record::Policy {
                    revision,
                    policy,
                    at,
                    ..
                } => {
                    let scope = policy.scope().clone();
                    self.revise(scope, revision, Some(*policy), at);
                }
                Record::PolicyRemoved {
                    revision,
                    scope,
                    at,
                    ..
                } => self.revise(scope, revision, None, at),
                Record::Kill(state) => {
                    self.kills.insert(state.scope.clone(), state);
                }
                Record::Mode(state) => {
                    self.place(&state);
                    self.modes.insert(state.route.clone(), state);
                }
                Record::TrialMode { revision, state } => {
                    self.place(&state);
                    let key = (state.route.clone(), revision);
                    self.trial_modes.insert(key, state);
                }
                Record::Rollout(state) => {
                    self.rollouts.insert(state.scope.clone(), state);
                }
                Record::RolloutEnded(scope) => {
                    self.rollouts.remove(&scope);
                    self.trial_modes
                        .retain(|(route, _), _| !scope.covers(route));
                }
                Record::Transition(transition) => self.transitions.push(transition),
                Record::Audit(row) => self.audit.push(row),
                record @ (Record::Alert(_)
                | Record::AlertSilenced(_)
                | Record::AlertTold { .. }
                | Record::Silence(_)
                | Record::SilenceEnded { .. }
                | Record::Acknowledged { .. }) => self.commit_alert(record),
                Record::History { route, point } => {
                    self.points += 1;
                    self.newest.insert(route, point);
                }
                Record::Minute { route, minute } => self.minutes.push((route, *minute)),
                Record::Epoch(epoch) => {
                    assert!(epoch > self.epoch, "epoch {epoch} after {}", self.epoch);
                    self.epoch = epoch;
                }
            }
        }
    }

    fn revise(
        &mut self,
        scope: PolicyScope,
        revision: Revision,
        policy: Option<Policy>,
        at: Moment,
    ) {
        let revisions = self.policies.entry(scope).or_default();
        assert!(
            revisions.iter().all(|(known, ..)| *known < revision),
            "revision {revision} was stored before"
        );
        revisions.push((revision, policy, at));
    }

    /// The same, of alerts and silences.
    fn commit_alert(&mut self, record: Record) {
        match record {
            Record::Alert(state) => {
                // Of its end those are told who were told of the episode.
                if state.resolved.is_none() || self.untold.remove(&state.id).is_none() {
                    self.notices.push(state);
                }
            }
            Record::AlertSilenced(state) => {
                self.untold.insert(state.id.clone(), state);
            }
            Record::AlertTold { alert, .. } => {
                assert!(self.untold.remove(&alert.id).is_some(), "told twice");
                self.notices.push(alert);
            }
            Record::Silence(silence) => {
                let known = self.silences.insert(silence.id, silence);
                assert_eq!(known, None, "a number that was used before");
            }
            Record::SilenceEnded { id, .. } => self.ended.push(id),
            Record::Acknowledged { alert, by } => {
                self.acknowledgements.insert(alert, by);
            }
            other => unreachable!("{other:?}"),
        }
    }

    /// A place in a route's order stands for one mode for ever.
    fn place(&mut self, state: &ModeState) {
        let place = (state.route.clone(), state.sequence);
        let before = self.sequences.insert(place, state.mode);
        assert!(before.is_none_or(|mode| mode == state.mode), "{state:?}");
    }

    fn restored_rollouts(&self) -> Vec<RestoredRollout> {
        let each = self.rollouts.values().map(|state| {
            let revisions = self.policies.get(&state.scope);
            let base =
                revisions.and_then(|all| all.iter().find(|(revision, ..)| *revision == state.base));
            let modes = self.trial_modes.iter();
            RestoredRollout {
                base: base.map(|(_, policy, at)| (policy.clone(), *at)),
                modes: modes
                    .filter(|((route, revision), _)| {
                        state.scope.covers(route) && *revision == state.revision
                    })
                    .map(|(_, mode)| mode.clone())
                    .collect(),
                state: state.clone(),
            }
        });
        each.collect()
    }

    /// What a controller finds when it starts.
    pub(crate) fn restored(&self) -> Restored {
        let mut firing: BTreeMap<String, AlertState> = BTreeMap::new();
        for notice in &self.notices {
            if notice.resolved.is_some() {
                firing.remove(&notice.id);
            } else {
                firing.insert(notice.id.clone(), notice.clone());
            }
        }
        Restored {
            epoch: self.epoch,
            policies: self
                .policies
                .iter()
                .filter_map(|(scope, all)| {
                    let (revision, policy, since) = all.last()?.clone();
                    Some(RestoredPolicy {
                        scope: scope.clone(),
                        revision,
                        policy,
                        since,
                    })
                })
                .collect(),
            kills: self.kills.values().cloned().collect(),
            modes: self.modes.values().cloned().collect(),
            alerts: firing
                .into_values()
                .chain(self.untold.values().cloned())
                .collect(),
            untold: self.untold.keys().cloned().collect(),
            acknowledgements: self.acknowledgements.clone().into_iter().collect(),
            silences: self
                .silences
                .values()
                .filter(|it| !self.ended.contains(&it.id))
                .cloned()
                .collect(),
            last_silence: self.silences.keys().last().copied().unwrap_or_default(),
            points: self.newest.clone().into_iter().collect(),
            switchbacks: self.switchbacks(),
            rollouts: self.restored_rollouts(),
        }
    }

    /// Routes whose newest line about a switchback is not that it ended.
    fn switchbacks(&self) -> Vec<RouteKey> {
        let mut open = BTreeMap::new();
        for row in &self.audit {
            if row.action.starts_with("switchback.") {
                open.insert(row.target.as_str(), row.action != "switchback.end");
            }
        }
        let routes = self.modes.keys();
        routes
            .filter(|key| open.get(key.to_string().as_str()) == Some(&true))
            .cloned()
            .collect()
    }

    /// Says what of a directive is not stored.
    pub(crate) fn check(&self, directive: &Directive) {
        let stamp = directive.stamp;
        assert!(
            stamp.epoch <= self.epoch,
            "{stamp}: the store is at epoch {}",
            self.epoch
        );
        let dependency = &directive.route.dependency;
        if stamp.revision.0 > 0 {
            let covering = self.policies.iter();
            let mut covering = covering.filter(|(scope, _)| scope.covers(&directive.route));
            assert!(
                covering.any(|(_, all)| all.iter().any(|(it, ..)| *it == stamp.revision)),
                "{dependency}: revision {} is not stored",
                stamp.revision
            );
        }
        if stamp.mode_sequence.0 == 0 {
            assert_eq!(directive.mode, Mode::Observing);
        } else {
            let place = (directive.route.clone(), stamp.mode_sequence);
            assert_eq!(
                self.sequences.get(&place),
                Some(&directive.mode),
                "{}: {stamp} is not stored with this mode",
                directive.route
            );
        }
    }
}
