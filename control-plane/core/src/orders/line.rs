//! Orders that are being stored, and those that wait for it.

use std::collections::VecDeque;

use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::policy::Intent;

use super::{UnderWay, Wanted, covers};
use crate::effect::OrderError;
use crate::event::Order;
use crate::rules::Rules;

/// Orders that wait for a store that does not answer. Beyond, they are refused: a person who gets
/// no answer tries again.
const ORDERS_WAITING_MAX: usize = 64;

/// Orders under way and in line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Orders {
    pub(super) under_way: Option<Box<UnderWay>>,
    pub(super) line: VecDeque<Wanted>,
}

impl Orders {
    /// Takes an order into the line. One that stops hedging goes before all that do not, and has places
    /// of its own: others' orders neither delay it by more than the one under way nor crowd it out (P10).
    pub(super) fn queue(&mut self, wanted: Wanted) -> Result<(), OrderError> {
        let stops = stops(&wanted.order);
        let alike = self
            .line
            .iter()
            .filter(|it| stops == self::stops(&it.order));
        if alike.count() >= ORDERS_WAITING_MAX {
            let problem = format!("{ORDERS_WAITING_MAX} orders wait for the store already");
            return Err(OrderError::NotPersisted(problem));
        }
        let place = if stops {
            let before = self.line.iter().position(|it| !self::stops(&it.order));
            before.unwrap_or(self.line.len())
        } else {
            self.line.len()
        };
        self.line.insert(place, wanted);
        Ok(())
    }

    /// Whether an order that is not stored yet would stop hedging on `route`.
    pub(crate) fn would_stop(&self, rules: &Rules, route: &RouteKey) -> bool {
        self.any(|order| match order {
            Order::Kill {
                scope,
                engaged: true,
            } => covers(scope, route),
            Order::SetPolicy {
                policy,
                rollout: None,
                ..
            } => policy.intent() != Intent::Hedge && rules.governs(policy.scope(), route),
            Order::RemovePolicy { scope, .. } => {
                rules.governs(scope, route) && rules.without(scope, route) != Intent::Hedge
            }
            _ => false,
        })
    }

    /// The order that is being stored.
    pub(crate) fn under_way(&self) -> Option<&Order> {
        self.under_way.as_ref().map(|it| &it.wanted.order)
    }

    /// Whether an order that is not stored yet is such a one.
    pub(crate) fn any(&self, is: impl Fn(&Order) -> bool) -> bool {
        let under_way = self.under_way.iter().map(|it| &it.wanted);
        under_way.chain(&self.line).any(|it| is(&it.order))
    }
}

/// Whether it throws a kill switch.
fn stops(order: &Order) -> bool {
    matches!(order, Order::Kill { engaged: true, .. })
}
