//! A page that is open somewhere: what it is, and which of its parts there are to send.

use std::sync::Arc;
use std::time::Duration;

use hedgerow_core::view::FleetSnapshot;
use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::policy::PolicyScope;
use serde::Deserialize;

use crate::backend::Backend;
use crate::fragment::Fragment;
use crate::guard::Viewer;
use crate::pages::agents::AgentsQuery;
use crate::pages::dependency::range::Range;
use crate::pages::dependency::watch::Watched;
use crate::pages::kill::KillQuery;
use crate::pages::overview::{OpenOverview, OverviewQuery, Start};
use crate::pages::policies::PoliciesQuery;
use crate::pages::{
    agents, alerts, controller, dependency, frame, kill, policies, policy, receivers,
};
use crate::router::App;

/// For so long after a controller's start a route that is not there may still be reported again:
/// agents come back within less.
const COMES_BACK_WITHIN: Duration = Duration::from_mins(3);

/// What the stream's page is.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LiveQuery {
    page: String,
    q: String,
    state: String,
    sort: String,
    tick: Option<u64>,
    dependency: String,
    operation: String,
    scope: String,
    seen: String,
    range: String,
    n: usize,
}

/// A page that is open somewhere.
pub(crate) enum Open {
    Overview(Box<OpenOverview>),
    Route {
        watched: Box<Watched>,
        /// It was there while the page was open.
        seen: bool,
    },
    /// A route that no agent had reported when its page was opened.
    Awaited(Box<Watched>),
    Kill(KillQuery),
    Agents(AgentsQuery),
    Alerts,
    Receivers,
    Controller,
    Policy(PolicyScope, String),
    Policies(PoliciesQuery),
    /// Only what every page has.
    Frame,
}

impl Open {
    /// None: there is no such page.
    pub(crate) fn new(query: LiveQuery, start: Start) -> Option<Self> {
        let watched = || {
            let route = RouteKey::new(&query.dependency, &query.operation).ok()?;
            Some(Box::new(Watched::new(route, Range::parse(&query.range))))
        };
        Some(match query.page.as_str() {
            "overview" => {
                let wanted = OverviewQuery {
                    q: query.q,
                    state: query.state,
                    sort: query.sort,
                };
                Self::Overview(Box::new(OpenOverview::new(wanted, start, query.tick)))
            }
            "route" => Self::Route {
                watched: watched()?,
                seen: false,
            },
            "awaited" => Self::Awaited(watched()?),
            "kill" => Self::Kill(KillQuery {
                scope: query.scope,
                dependency: query.dependency,
            }),
            "agents" => Self::Agents(AgentsQuery {
                q: query.q,
                state: query.state,
                sort: query.sort,
                n: query.n,
            }),
            "alerts" => Self::Alerts,
            "receivers" => Self::Receivers,
            "controller" => Self::Controller,
            "policy" => Self::Policy(query.dependency.parse().ok()?, query.seen),
            "policies" => Self::Policies(PoliciesQuery {
                q: query.q,
                page: query.sort.parse().unwrap_or_default(),
                seen: query.seen,
                ..PoliciesQuery::default()
            }),
            "" | "frame" => Self::Frame,
            _ => return None,
        })
    }

    /// In words, that what the page is about is no longer there; None: it is, or may be again.
    pub(crate) fn gone(&mut self, snapshot: &FleetSnapshot) -> Option<String> {
        let Self::Route { watched, seen } = self else {
            return None;
        };
        let route = watched.route();
        if snapshot.routes.contains_key(route) {
            *seen = true;
            return None;
        }
        let up = snapshot.at.since(snapshot.started);
        (*seen || up > COMES_BACK_WITHIN)
            .then(|| format!("{route} is gone: no agent reports it any more"))
    }

    /// What may have to be sent, each message's worth apart.
    pub(crate) async fn fragments<B: Backend>(
        &mut self,
        app: &App<B>,
        snapshot: &Arc<FleetSnapshot>,
        viewer: &Viewer,
    ) -> Vec<Vec<Fragment>> {
        let backend = &app.backend;
        let mut out = frame::fragments(snapshot);
        match self {
            Self::Overview(open) => {
                let mut messages = open.fragments(snapshot, app.rows.of(snapshot));
                if let Some(first) = messages.first_mut() {
                    first.splice(0..0, out);
                }
                return messages;
            }
            Self::Route { watched, .. } => {
                out.extend(dependency::fragments(backend, snapshot, watched, viewer).await);
            }
            Self::Awaited(watched) => {
                out.extend(dependency::arrived(backend, snapshot, watched, viewer).await);
            }
            Self::Kill(query) => out.extend(kill::fragments(snapshot, query)),
            Self::Agents(query) => out.extend(agents::fragments(snapshot, query)),
            Self::Alerts => out.extend(alerts::fragments(backend, snapshot, viewer).await),
            Self::Receivers => out.extend(receivers::fragments(backend, snapshot, viewer).await),
            Self::Controller => out.extend(controller::fragments(backend, snapshot).await),
            Self::Policy(scope, seen) => {
                out.extend(policy::fragments(snapshot, scope, viewer, seen));
            }
            Self::Policies(query) => out.extend(policies::fragments(snapshot, query)),
            Self::Frame => {}
        }
        vec![out]
    }
}
