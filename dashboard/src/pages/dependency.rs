//! A route's page: what it does, why, and what came of it.

mod parts;
pub(crate) mod switchback;

use askama::Template;
use axum::Extension;
use axum::extract::{Form, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use hedgerow_core::effect::Transition;
use hedgerow_core::view::{FleetSnapshot, RouteView};
use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::policy::Policy;
use serde::Deserialize;

use super::error;
use super::frame::Frame;
use super::state::{kill_address, policy_address, route_address};
use crate::backend::{ActError, Backend, Role};
use crate::chart::{Chart, route_charts};
use crate::format::url_part;
use crate::fragment::{Fragment, html};
use crate::guard::Viewer;
use crate::router::App;
use parts::{Happened, KeyFigures, Refusals, ReplicaRow, Standing, Verdict, happened};
use switchback::Switchback;

/// Automatic changes shown.
const TRANSITIONS_SHOWN: u32 = 20;

/// Everything of the page that changes by itself. Its blocks are sent one by one.
#[derive(Debug, Template)]
#[template(path = "dependency.html", blocks = ["page", "verdict", "figures", "charts", "replicas", "agents", "switchback", "happened"])]
struct RoutePage {
    frame: Frame,
    route: RouteKey,
    policy_href: String,
    kill_href: String,
    record_href: String,
    known: Known,
    can_act: bool,
}

/// What there is once an agent has reported the route.
#[derive(Debug)]
struct Known {
    verdict: Verdict,
    figures: KeyFigures,
    charts: Vec<Chart>,
    replicas: Vec<ReplicaRow>,
    refusals: Refusals,
    standing: Standing,
    switchback: Option<Switchback>,
    happened: Vec<Happened>,
}

impl Known {
    fn new(view: &RouteView, snapshot: &FleetSnapshot, transitions: &[Transition]) -> Self {
        let policy = policy_of(snapshot, &view.route);
        Self {
            verdict: Verdict::new(view, snapshot),
            figures: KeyFigures::new(view),
            charts: route_charts(
                view,
                snapshot.at,
                policy.error_limit().get(),
                policy.budget().get(),
            ),
            replicas: view.replicas.iter().map(ReplicaRow::new).collect(),
            refusals: Refusals::new(view),
            standing: Standing::new(view, snapshot),
            switchback: Switchback::new(view, snapshot.at),
            happened: happened(view, transitions, snapshot.at),
        }
    }
}

/// The policy in force, or the one every dependency begins with.
fn policy_of(snapshot: &FleetSnapshot, route: &RouteKey) -> Policy {
    snapshot.policy_for(route).map_or_else(
        || Policy::observing(route.dependency.clone().into()),
        |p| p.policy.clone(),
    )
}

/// The page of a route that no agent has reported yet.
#[derive(Debug, Template)]
#[template(path = "unknown.html")]
struct UnknownPage {
    frame: Frame,
    route: RouteKey,
    policy_href: String,
}

/// The page's part of the stream's address.
fn live(page: &str, route: &RouteKey) -> String {
    format!(
        "page={page}&dependency={}&operation={}",
        url_part(route.dependency.as_str()),
        url_part(route.operation.as_str())
    )
}

impl RoutePage {
    /// None: no agent has reported the route.
    async fn load<B: Backend>(
        backend: &B,
        snapshot: &FleetSnapshot,
        route: &RouteKey,
        viewer: &Viewer,
    ) -> Option<Self> {
        let view = snapshot.routes.get(route)?;
        // The store may be away; what the controller itself remembers is shown then.
        let stored = backend.transitions(route, TRANSITIONS_SHOWN).await;
        let transitions =
            stored.unwrap_or_else(|_| view.transitions.iter().rev().cloned().collect());
        let live = live("route", route);
        Some(Self {
            frame: Frame::new(route.to_string(), "overview", viewer, snapshot, &live),
            policy_href: policy_address(&route.dependency.clone().into()),
            kill_href: kill_address(&route.dependency),
            record_href: format!("/record?dependency={}", url_part(route.dependency.as_str())),
            known: Known::new(view, snapshot, &transitions),
            can_act: viewer.operator.role >= Role::Operator,
            route: route.clone(),
        })
    }
}

/// GET /dependencies/{dependency}/{operation}
pub(crate) async fn page<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    Path((dependency, operation)): Path<(String, String)>,
) -> Response {
    let route = match RouteKey::new(&dependency, &operation) {
        Ok(route) => route,
        Err(problem) => {
            return error::plain(
                StatusCode::NOT_FOUND,
                "No such dependency",
                &format!("The name in the address {problem}."),
            );
        }
    };
    let snapshot = app.backend.snapshot();
    if let Some(page) = RoutePage::load(&app.backend, &snapshot, &route, &viewer).await {
        return html(StatusCode::OK, &page);
    }
    let live = live("awaited", &route);
    let page = UnknownPage {
        frame: Frame::new(route.to_string(), "overview", &viewer, &snapshot, &live),
        policy_href: policy_address(&route.dependency.clone().into()),
        route,
    };
    html(StatusCode::NOT_FOUND, &page)
}

/// The page's parts for an open stream.
pub(crate) async fn fragments<B: Backend>(
    backend: &B,
    snapshot: &FleetSnapshot,
    route: &RouteKey,
    viewer: &Viewer,
) -> Vec<Fragment> {
    let Some(page) = RoutePage::load(backend, snapshot, route, viewer).await else {
        return Vec::new();
    };
    vec![
        Fragment::inner("verdict", &page.as_verdict()),
        Fragment::inner("figures", &page.as_figures()),
        Fragment::inner("charts", &page.as_charts()),
        Fragment::inner("replicas", &page.as_replicas()),
        Fragment::inner("agents", &page.as_agents()),
        Fragment::inner("switchback", &page.as_switchback()),
        Fragment::inner("happened", &page.as_happened()),
    ]
}

/// The whole page, once a route that was waited for has been reported.
pub(crate) async fn arrived<B: Backend>(
    backend: &B,
    snapshot: &FleetSnapshot,
    route: &RouteKey,
    viewer: &Viewer,
) -> Vec<Fragment> {
    RoutePage::load(backend, snapshot, route, viewer)
        .await
        .map(|page| Fragment::inner("page", &page.as_page()))
        .into_iter()
        .collect()
}

/// Which route, and why.
#[derive(Debug, Deserialize)]
pub(crate) struct ActForm {
    dependency: String,
    operation: String,
    #[serde(default)]
    reason: String,
}

impl ActForm {
    fn route(&self) -> Result<RouteKey, Box<Response>> {
        RouteKey::new(&self.dependency, &self.operation).map_err(|problem| {
            Box::new(error::plain(
                StatusCode::UNPROCESSABLE_ENTITY,
                "No such dependency",
                &format!("The name {problem}."),
            ))
        })
    }
}

/// Back to the route, or what was wrong.
fn acted(route: &RouteKey, done: Result<(), ActError>) -> Response {
    match done {
        Ok(()) => Redirect::to(&route_address(route)).into_response(),
        Err(problem) => error::act(&problem),
    }
}

/// POST /release: a route that changed too often may decide again.
pub(crate) async fn release<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    Form(form): Form<ActForm>,
) -> Response {
    let route = match form.route() {
        Ok(route) => route,
        Err(response) => return *response,
    };
    let (operator, reason) = (&viewer.operator, form.reason.trim());
    let done = app.backend.release(operator, route.clone(), reason).await;
    acted(&route, done)
}

/// POST /accept-base: the present speed is the normal one.
pub(crate) async fn accept_base<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    Form(form): Form<ActForm>,
) -> Response {
    let route = match form.route() {
        Ok(route) => route,
        Err(response) => return *response,
    };
    let (operator, reason) = (&viewer.operator, form.reason.trim());
    let done = app
        .backend
        .accept_base(operator, route.clone(), reason)
        .await;
    acted(&route, done)
}
