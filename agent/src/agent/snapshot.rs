//! An agent as a debug page shows it.

use hedgerow_protocol::ids::InstanceId;
use hedgerow_protocol::report::LinkState;
use serde::Serialize;

use super::Shared;
use crate::route::RouteSnapshot;

/// An agent at one moment: see [`Agent::snapshot`](crate::Agent::snapshot). Serialised as its
/// routes are: see [`RouteSnapshot`].
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct AgentSnapshot {
    /// Which agent this is, on the controller's pages and in metrics.
    pub instance: InstanceId,
    /// How it stands towards its controller. None, shown as `none`, where it was built without one.
    #[serde(serialize_with = "crate::route::link")]
    pub link: Option<LinkState>,
    /// Its routes, by name.
    pub routes: Vec<RouteSnapshot>,
    /// Routes beyond the 64 that an agent reports: they observe only.
    pub unreported_routes: u64,
}

impl AgentSnapshot {
    pub(super) fn of(shared: &Shared) -> Self {
        let link = shared.link_state();
        let routes = shared.routes();
        Self {
            instance: shared.instance,
            link,
            routes: routes
                .iter()
                .map(|route| RouteSnapshot::of(route, link))
                .collect(),
            unreported_routes: shared.unreported_routes(),
        }
    }
}
