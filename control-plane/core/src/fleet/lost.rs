//! Agents that went without a goodbye, by route.

use std::collections::BTreeMap;

use hedgerow_protocol::ids::RouteKey;

/// How many of the agents that are remembered as gone were lost, by the routes they were on.
#[derive(Debug, Clone, Default)]
pub(super) struct Lost(BTreeMap<RouteKey, u64>);

impl Lost {
    /// One more, on each of these.
    pub(super) fn add(&mut self, routes: &[RouteKey]) {
        for route in routes {
            *self.0.entry(route.clone()).or_default() += 1;
        }
    }

    /// One of them came back, or is forgotten.
    pub(super) fn remove(&mut self, routes: &[RouteKey]) {
        for route in routes {
            if let Some(agents) = self.0.get_mut(route) {
                *agents -= 1;
                if *agents == 0 {
                    self.0.remove(route);
                }
            }
        }
    }

    pub(super) fn on(&self, route: &RouteKey) -> u64 {
        self.0.get(route).copied().unwrap_or(0)
    }
}
