//! A large fleet as values: a thousand dependencies that go through every story, ten thousand agents.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hedgerow_core::event::ConnectionId;
use hedgerow_core::view::{Acked, AgentView, FleetSnapshot, RouteView};
use hedgerow_protocol::ids::{InstanceId, RouteKey};

use crate::fleet::{self, ROUTES, START, Story};

/// Dependencies, each with one operation.
pub(crate) const DEPENDENCIES: usize = 1_000;
/// Agents.
pub(crate) const AGENTS: usize = 10_000;
/// Routes that an agent reports.
const ROUTES_EACH: usize = 8;
/// Of so many dependencies one is not healthy.
const ONE_STORY_IN: usize = 10;

/// The large fleet, `seconds` after the start of the small one. Every figure of a route that has
/// traffic differs from the second before.
pub(crate) fn snapshot(seconds: u64) -> FleetSnapshot {
    let at = START.plus(Duration::from_secs(seconds));
    let routes: BTreeMap<RouteKey, Arc<RouteView>> = (0..DEPENDENCIES)
        .map(|i| {
            let (_, operation, story, rate, p50) = ROUTES[i % ROUTES.len()];
            let (story, rate, p50) = if i % ONE_STORY_IN == 0 {
                (story, rate, p50)
            } else {
                (Story::Healthy, 40.0 + i as f64, 4.0 + (i % 37) as f64)
            };
            let key = fleet::route(&format!("service-{i:04}"), operation);
            let mut view = fleet::view(&key, story, rate, p50, at);
            let each = (AGENTS * ROUTES_EACH / DEPENDENCIES) as u64;
            view.acked = Acked { n: each, m: each };
            (key, Arc::new(view))
        })
        .collect();
    let small = fleet::snapshot(seconds);
    let policies = routes.keys().map(|route| {
        let mut view = small.policies.values().next().unwrap().clone();
        view.policy = fleet::hedging(route.dependency.as_str());
        (view.policy.scope().clone(), view)
    });
    FleetSnapshot {
        policies: policies.collect(),
        agents: agents(&small.agents[0], &routes),
        routes,
        ..small
    }
}

/// As many as `one` there.
fn agents(one: &AgentView, routes: &BTreeMap<RouteKey, Arc<RouteView>>) -> Vec<AgentView> {
    let keys: Vec<_> = routes.values().collect();
    (0..AGENTS)
        .map(|i| {
            let held = one.routes.iter().cycle().take(ROUTES_EACH).enumerate();
            let held = held.map(|(n, held)| {
                let view = keys[(i * ROUTES_EACH + n) % keys.len()];
                let mut held = held.clone();
                held.route = view.route.clone();
                held.wanted = view.stamp;
                held.held = view.stamp;
                held
            });
            AgentView {
                connection: ConnectionId(i as u64),
                instance: InstanceId::from_u128(0x0194_c0de_7000_8000 << 64 | i as u128),
                routes: held.collect(),
                ..one.clone()
            }
        })
        .collect()
}
