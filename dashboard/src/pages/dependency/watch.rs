//! A route's page that is open: what it has read of the store, and when it has to read again.

use std::sync::Arc;

use hedgerow_core::effect::Transition;
use hedgerow_core::moment::Moment;
use hedgerow_core::view::{FleetSnapshot, Point, RouteView};
use hedgerow_protocol::ids::RouteKey;

use super::marks::{MARKS, Past};
use super::range::{POINTS, Range};
use crate::backend::{Backend, RecordQuery};

/// Automatic changes shown.
const TRANSITIONS_SHOWN: u32 = 20;
/// What others do to the route is looked for again after so long, milliseconds; what the controller
/// does is known at once.
const PAST_AGAIN_MS: u64 = 10_000;

/// A route's page, with what it last read.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(super) route: RouteKey,
    pub(super) range: Range,
    past: Option<(PastKey, Arc<Told>)>,
    course: Option<Arc<Stored>>,
    /// The newest column of the heatmap that was sent.
    pub(super) column: Option<Moment>,
    /// When the stored course that was sent last was read.
    pub(super) sent: Option<Moment>,
}

/// What the store told of a route's past, or the controller itself where the store is away.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) past: Past,
    pub(super) transitions: Vec<Transition>,
}

/// A stored course.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) at: Moment,
    pub(super) points: Vec<Point>,
    pub(super) problem: Option<String>,
}

/// What makes the past worth reading again.
#[derive(Debug, PartialEq)]
struct PastKey {
    marks: usize,
    newest_mark: Option<Moment>,
    transitions: usize,
    turn: u64,
}

impl PastKey {
    fn of(view: &RouteView, at: Moment) -> Self {
        Self {
            marks: view.marks.len(),
            newest_mark: view.marks.last().map(|it| it.at),
            transitions: view.transitions.len(),
            turn: at.as_millis() / PAST_AGAIN_MS,
        }
    }
}

impl Watched {
    /// Nothing read yet.
    pub(crate) fn new(route: RouteKey, range: Range) -> Self {
        Self {
            route,
            range,
            past: None,
            course: None,
            column: None,
            sent: None,
        }
    }

    /// What the page is about.
    pub(crate) fn route(&self) -> &RouteKey {
        &self.route
    }

    /// Lines of the record, alerts and changes of mode since the range's beginning.
    pub(super) async fn told<B: Backend>(
        &mut self,
        backend: &B,
        snapshot: &FleetSnapshot,
        view: &RouteView,
    ) -> Arc<Told> {
        let key = PastKey::of(view, snapshot.at);
        if let Some((held, told)) = &self.past
            && *held == key
        {
            return Arc::clone(told);
        }
        let since = self.range.since(snapshot.at);
        let query = RecordQuery {
            // A few of them are of other operations, or of agents.
            limit: 4 * MARKS as u32,
            dependency: Some(self.route.dependency.clone()),
            since: Some(since),
            ..RecordQuery::default()
        };
        // The store may be away: what the controller itself remembers is shown then.
        let mut record = backend.record(query).await.unwrap_or_default();
        record.retain(|(_, row)| row.at >= since);
        let alerts = backend.past_alerts(&self.route, since, MARKS as u32).await;
        let stored = backend.transitions(&self.route, TRANSITIONS_SHOWN).await;
        let told = Arc::new(Told {
            past: Past {
                record,
                alerts: alerts.unwrap_or_default(),
            },
            transitions: stored
                .unwrap_or_else(|_| view.transitions.iter().rev().cloned().collect()),
        });
        self.past = Some((key, Arc::clone(&told)));
        told
    }

    /// The stored course of a range that is not the live one.
    pub(super) async fn stored<B: Backend>(
        &mut self,
        backend: &B,
        snapshot: &FleetSnapshot,
    ) -> Option<Arc<Stored>> {
        if self.range == Range::Live {
            return None;
        }
        let again = self.range.read_again();
        let fresh = |it: &&Arc<Stored>| snapshot.at.since(it.at) < again;
        if let Some(held) = self.course.as_ref().filter(fresh) {
            return Some(Arc::clone(held));
        }
        let since = self.range.since(snapshot.at);
        let (points, problem) = match backend.history(&self.route, since, POINTS).await {
            Ok(points) => (points, None),
            Err(problem) => (Vec::new(), Some(problem.to_string())),
        };
        let stored = Arc::new(Stored {
            at: snapshot.at,
            points,
            problem,
        });
        self.course = Some(Arc::clone(&stored));
        Some(stored)
    }
}
