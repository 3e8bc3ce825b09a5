//! The fleet's rows, rendered once for each snapshot, however many pages are open.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use hedgerow_core::view::FleetSnapshot;
use hedgerow_protocol::ids::RouteKey;

use super::row::{Drawn, Rendered};
use super::worth::{Needs, Standing};
use crate::pages::state::policy_address;

/// What every overview shows of one snapshot, whatever its filter.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(super) rows: Vec<Arc<Rendered>>,
    pub(super) needs: Needs,
    pub(super) agents: usize,
    /// What policies are for that no agent has reported yet, and where they are.
    pub(super) waiting: Vec<(String, String)>,
}

impl Rows {
    fn new(snapshot: &FleetSnapshot, before: Option<&Self>) -> Self {
        let drawn: BTreeMap<&RouteKey, &Drawn> = before
            .into_iter()
            .flat_map(|it| &it.rows)
            .map(|row| (&row.route, &row.spark))
            .collect();
        let standing = Standing::new(snapshot);
        let rows = snapshot
            .routes
            .values()
            .map(|view| {
                let before = drawn.get(&view.route).copied();
                Arc::new(Rendered::new(view, snapshot, &standing, before))
            })
            .collect();
        let waiting = snapshot
            .policies
            .keys()
            .filter(|scope| !snapshot.routes.keys().any(|route| scope.covers(route)))
            .map(|scope| (scope.to_string(), policy_address(scope)))
            .collect();
        Self {
            rows,
            needs: Needs::new(snapshot),
            agents: snapshot.agents.len(),
            waiting,
        }
    }
}

/// The newest snapshot's rows.
#[derive(Debug, Default)]
pub(crate) struct RowCache(Mutex<Option<(Arc<FleetSnapshot>, Arc<Rows>)>>);

impl RowCache {
    /// Its rows. Who asks while they are being rendered waits for them: that is less than rendering
    /// them again.
    pub(crate) fn of(&self, snapshot: &Arc<FleetSnapshot>) -> Arc<Rows> {
        // What is in it is replaced whole: a panic elsewhere leaves nothing half done.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, rows)) = kept.as_ref().filter(|(of, _)| Arc::ptr_eq(of, snapshot)) {
            return Arc::clone(rows);
        }
        let before = kept.as_ref().map(|(_, rows)| rows);
        let rows = Arc::new(Rows::new(snapshot, before.map(Arc::as_ref)));
        *kept = Some((Arc::clone(snapshot), Arc::clone(&rows)));
        rows
    }
}
