//! Silences, and who works on what: notices that are not sent, and words beside those that were.

use std::collections::BTreeMap;

use super::AlertBook;
use crate::effect::{AlertState, Record, SilenceDraft, SilenceId};
use crate::moment::Moment;
use crate::view::{Acknowledgement, SilenceView};

/// Most silences in force at once: each alert is held against all of them, each second.
pub(crate) const SILENCES_MAX: usize = 256;

/// Silences in force.
#[derive(Debug, Clone, Default)]
pub(super) struct Silences {
    in_force: BTreeMap<SilenceId, SilenceView>,
    /// The highest number that may have reached the store: never used twice.
    last: SilenceId,
}

impl Silences {
    /// As the store has them: those whose time is over go with the first tick.
    pub(super) fn restore(all: &[SilenceView], last: SilenceId) -> Self {
        let in_force = all.iter().map(|it| (it.id, it.clone()));
        Self {
            in_force: in_force.collect(),
            last,
        }
    }

    /// Lets go of those whose time is over.
    pub(super) fn expire(&mut self, now: Moment) {
        self.in_force.retain(|_, it| it.ends > now);
    }

    /// Which one keeps the notices of `alert`: of several, the one that lasts longest.
    pub(super) fn over(&self, alert: &AlertState, now: Moment) -> Option<SilenceId> {
        let covering = self.in_force.values();
        let covering = covering.filter(|it| it.ends > now && it.matches.covers(alert));
        covering.max_by_key(|it| (it.ends, it.id)).map(|it| it.id)
    }

    fn at(&self, now: Moment) -> impl Iterator<Item = &SilenceView> {
        self.in_force.values().filter(move |it| it.ends > now)
    }
}

impl SilenceDraft {
    /// Whether it is for this alert.
    pub fn covers(&self, alert: &AlertState) -> bool {
        self.rule.is_none_or(|rule| rule == alert.rule)
            && (self.dependency.as_ref()).is_none_or(|it| *it == alert.route.dependency)
            && (self.operation.as_ref()).is_none_or(|it| *it == alert.route.operation)
            && (self.replica.is_none() || self.replica == alert.replica)
    }
}

impl AlertBook {
    /// Writes down that what began under a silence, still fires, and is not silenced any longer is
    /// told now.
    pub(super) fn tell_what_is_not_silenced(&mut self, now: Moment, changed: &mut Vec<Record>) {
        for track in self.tracks.values_mut().filter(|track| !track.told) {
            if let Some(state) = &track.firing
                && self.silences.over(state, now).is_none()
            {
                track.told = true;
                changed.push(Record::AlertTold {
                    alert: state.clone(),
                    at: now,
                });
            }
        }
    }

    /// Silences in force, oldest first.
    pub(crate) fn silences(&self, now: Moment) -> Vec<SilenceView> {
        self.silences.at(now).cloned().collect()
    }

    /// A silence in force.
    pub(crate) fn silence(&self, id: SilenceId, now: Moment) -> Option<&SilenceView> {
        self.silences.at(now).find(|it| it.id == id)
    }

    /// A number for another silence, never used before.
    pub(crate) fn next_silence(&mut self) -> SilenceId {
        self.silences.last.0 += 1;
        self.silences.last
    }

    /// A silence is stored: it is in force.
    pub(crate) fn begin_silence(&mut self, silence: SilenceView) {
        self.silences.in_force.insert(silence.id, silence);
    }

    /// Its end is stored. What it alone kept is told with the next tick.
    pub(crate) fn end_silence(&mut self, id: SilenceId) {
        self.silences.in_force.remove(&id);
    }

    /// Somebody works on an alert: takes the place of who said so before. It may be over meanwhile.
    pub(crate) fn acknowledge(&mut self, alert: &str, by: Acknowledgement) {
        let mut firing = self.tracks.values_mut();
        let track = firing.find(|it| it.firing.as_ref().is_some_and(|it| it.id == alert));
        if let Some(track) = track {
            track.acknowledged = Some(by);
        }
    }
}
