//! Alerts as people see them.

use super::AlertBook;
use super::track::{Subject, Track};
use crate::effect::AlertState;
use crate::moment::Moment;
use crate::view::{AlertPhase, AlertView};

impl AlertBook {
    /// Everything, for people: what fires, what waits, what is just over.
    pub(crate) fn views(&self, now: Moment) -> Vec<AlertView> {
        let tracks = self.tracks.iter();
        let tracks = tracks.filter_map(|(subject, track)| self.open(now, subject, track));
        let over = self.resolved.iter().rev().map(|state| AlertView {
            state: state.clone(),
            phase: AlertPhase::Resolved,
            silenced: None,
            acknowledged: None,
        });
        let mut views: Vec<_> = tracks.chain(over).collect();
        views.sort_by_key(|view| view.phase);
        views
    }

    /// One that is known, by its episode.
    pub(crate) fn view(&self, now: Moment, id: &str) -> Option<AlertView> {
        let mut views = self.views(now).into_iter();
        views.find(|view| view.state.id == id)
    }

    fn open(&self, now: Moment, subject: &Subject, track: &Track) -> Option<AlertView> {
        let view = |state: AlertState, phase| AlertView {
            silenced: self.silences.over(&state, now),
            acknowledged: track
                .acknowledged
                .clone()
                .filter(|it| it.until.is_none_or(|until| until > now)),
            state,
            phase,
        };
        if let Some(state) = track.firing.clone() {
            return Some(view(state, AlertPhase::Firing));
        }
        let since = track.raised?;
        let state = subject.begin(since, since, &track.summary);
        Some(view(state, AlertPhase::Pending))
    }
}
