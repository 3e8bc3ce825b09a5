//! Writes to the store: what waits for each, and what happens when it is durable or has failed.
//!
//! Three kinds. An *order* is written once: its failure is told to the person, and nothing changes.
//! *Changes* the controller made by itself (modes, alerts) are gathered into one write at a time
//! and tried again until they are stored. *Points* for the history nobody waits for: lost ones
//! leave a gap in a chart.

use std::collections::BTreeMap;

use hedgerow_protocol::ids::{Epoch, RouteKey};

use crate::controller::Controller;
use crate::effect::{Effect, Record};
use crate::event::WriteId;
use crate::moment::Moment;
use crate::route::Place;

/// Records kept for a store that takes none: hours of automatic changes of thousands of routes.
/// Beyond, the oldest that are not alerts go.
const UNSAVED_MAX: usize = 10_000;

/// What waits for a write.
#[derive(Debug, Clone)]
pub(crate) enum Waiting {
    /// The epoch.
    Epoch(Epoch),
    /// The order under way.
    Order,
    /// Automatic changes: places in the routes' order, and the records that go with them.
    Changes {
        /// To tell agents once it is durable.
        places: Vec<(RouteKey, Place)>,
        /// The same, of agents that hold a rollout's new policy.
        trials: Vec<(RouteKey, Place)>,
        /// To write again where it fails.
        records: Vec<Record>,
    },
    /// Nothing: points of the history.
    Points,
}

/// Writes under way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Writes {
    last: u64,
    waiting: BTreeMap<WriteId, Waiting>,
    /// Records of automatic changes, in order, not yet given to the store.
    unsaved: Vec<Record>,
    changes_under_way: bool,
    problem: Option<String>,
    /// Records given up, all told.
    dropped: u64,
}

impl Writes {
    pub(crate) fn pending(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Writes of points under way.
    pub(crate) fn points_pending(&self) -> usize {
        self.waiting
            .values()
            .filter(|it| matches!(it, Waiting::Points))
            .count()
    }

    pub(crate) fn problem(&self) -> Option<String> {
        match (&self.problem, self.dropped) {
            (Some(problem), 0) => Some(problem.clone()),
            (Some(problem), dropped) => Some(format!(
                "{problem}; {dropped} records could not be kept for it"
            )),
            (None, _) => None,
        }
    }

    /// Takes records of an automatic change, to be written with the next batch.
    pub(crate) fn note(&mut self, records: impl IntoIterator<Item = Record>) {
        self.unsaved.extend(records);
        while self.unsaved.len() > UNSAVED_MAX {
            let oldest = self
                .unsaved
                .iter()
                .position(|record| {
                    !matches!(
                        record,
                        Record::Alert(_) | Record::AlertSilenced(_) | Record::AlertTold { .. }
                    )
                })
                .unwrap_or(0);
            self.unsaved.remove(oldest);
            self.dropped += 1;
        }
    }
}

impl Controller {
    /// Gives `records` to the store.
    pub(crate) fn persist(&mut self, waiting: Waiting, records: Vec<Record>) -> WriteId {
        self.writes.last += 1;
        let write = WriteId(self.writes.last);
        self.writes.waiting.insert(write, waiting);
        self.effects.push_back(Effect::Persist { write, records });
        write
    }

    /// Writes every automatic change that is not stored yet, one batch at a time: each is then
    /// stored whole or not at all, an alert with the transition it comes from.
    pub(crate) fn persist_changes(&mut self) {
        if self.writes.changes_under_way {
            return;
        }
        let mut places = Vec::new();
        let mut trials = Vec::new();
        for key in std::mem::take(&mut self.unsettled) {
            let Some(route) = self.routes.get_mut(&key) else {
                continue;
            };
            if route.believed.sequence > route.durable.sequence {
                if route.sequence_used > route.believed.sequence {
                    // A later number was given away meanwhile: this is the newest word again.
                    route.believed.sequence = route.next_sequence();
                }
                places.push((key.clone(), route.believed.clone()));
                self.unsettled.insert(key.clone());
            }
            if let Some(place) = route.trial.as_ref().and_then(|it| it.unsettled()) {
                trials.push((key.clone(), place.clone()));
                self.unsettled.insert(key);
            }
        }
        if places.is_empty() && trials.is_empty() && self.writes.unsaved.is_empty() {
            return;
        }
        let noted = std::mem::take(&mut self.writes.unsaved);
        let modes = places
            .iter()
            .map(|(key, place)| Record::Mode(place.record(key)));
        let of_trials = trials.iter().map(|(key, place)| Record::TrialMode {
            revision: self.rules.newest(key),
            state: place.record(key),
        });
        let records: Vec<_> = modes
            .chain(of_trials)
            .chain(noted.iter().cloned())
            .collect();
        self.writes.changes_under_way = true;
        self.persist(
            Waiting::Changes {
                places,
                trials,
                records: noted,
            },
            records,
        );
    }

    /// A write is durable: now, and not before, others may know.
    pub(crate) fn persisted(&mut self, now: Moment, write: WriteId) {
        let Some(waiting) = self.writes.waiting.remove(&write) else {
            return;
        };
        self.writes.problem = None;
        match waiting {
            Waiting::Epoch(epoch) => self.epoch_persisted(now, epoch),
            Waiting::Order => self.order_persisted(now),
            Waiting::Changes { places, trials, .. } => {
                self.writes.changes_under_way = false;
                for (key, place) in places {
                    self.settle(now, &key, place);
                }
                for (key, place) in trials {
                    self.settle_trial(now, &key, place);
                }
                self.persist_changes();
            }
            Waiting::Points => {}
        }
    }

    /// A place became durable: agents are told.
    pub(crate) fn settle(&mut self, now: Moment, key: &RouteKey, place: Place) {
        let Some(route) = self.routes.get_mut(key) else {
            return;
        };
        if route.settle(place) {
            self.refresh_live(key);
            self.routes_to_push.insert(key.clone());
            self.publish_route(now, key);
        }
    }

    /// A write failed.
    pub(crate) fn persist_failed(&mut self, now: Moment, write: WriteId, problem: &str) {
        let Some(waiting) = self.writes.waiting.remove(&write) else {
            return;
        };
        self.writes.problem = Some(problem.to_owned());
        match waiting {
            Waiting::Epoch(_) => self.epoch_failed(),
            Waiting::Order => self.order_failed(now, problem),
            Waiting::Changes { records, .. } => {
                // With the next tick, before what came meanwhile. The places follow from what is
                // believed then.
                self.writes.changes_under_way = false;
                let later = std::mem::replace(&mut self.writes.unsaved, records);
                self.writes.note(later);
            }
            Waiting::Points => {}
        }
    }
}
