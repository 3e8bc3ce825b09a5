//! Orders about a switchback: stored for their line in the record, and nothing else changes.

use super::{Outcome, Wanted};
use crate::controller::Controller;
use crate::effect::{Done, OrderError};
use crate::event::Order;
use crate::moment::Moment;

impl Controller {
    /// Begins to store one; returns the answer where it may not be.
    pub(super) fn begin_switchback_order(
        &mut self,
        now: Moment,
        wanted: Wanted,
    ) -> Option<Result<Done, OrderError>> {
        let by = (&wanted.actor, wanted.reason.as_str());
        let (row, outcome) = match &wanted.order {
            Order::StartSwitchback { route, rounds } => (
                self.switchback_may_start(now, route, *rounds, by),
                Outcome::StartSwitchback(route.clone(), *rounds),
            ),
            Order::StopSwitchback { route } => (
                self.switchback_may_stop(now, route, by),
                Outcome::StopSwitchback(route.clone()),
            ),
            _ => return None,
        };
        match row {
            Ok(row) => {
                self.store_order(now, wanted, outcome, vec![row]);
                None
            }
            Err(error) => Some(Err(error)),
        }
    }
}
