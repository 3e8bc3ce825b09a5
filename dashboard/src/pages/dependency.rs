//! A route's page: what it does, why, and what came of it.

mod parts;

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
use crate::backend::{Backend, Role};
use crate::chart::{Chart, route_charts};
use crate::format::url_part;
use crate::fragment::{Fragment, html};
use crate::guard::Viewer;
use crate::router::App;
use parts::{Happened, KeyFigures, Refusals, ReplicaRow, Standing, Verdict, happened};

/// Automatic changes shown.
const TRANSITIONS_SHOWN: u32 = 20;

/// Everything of the page that changes by itself. Its blocks are sent one by one.
#[derive(Debug, Template)]
#[template(path = "dependency.html", blocks = ["page", "verdict", "figures", "charts", "replicas", "agents", "happened"])]
struct RoutePage {
    frame: Frame,
    route: RouteKey,
    policy_href: String,
    kill_href: String,
    record_href: String,
    known: Option<Known>,
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
            happened: happened(view, transitions, snapshot.at),
        }
    }
}

/// The policy in force, or the one every dependency begins with.
fn policy_of(snapshot: &FleetSnapshot, route: &RouteKey) -> Policy {
    snapshot
        .policies
        .get(&route.dependency)
        .map_or_else(|| Policy::observing(route.dependency.clone()), |p| p.policy.clone())
}

impl RoutePage {
    async fn load<B: Backend>(
        backend: &B,
        snapshot: &FleetSnapshot,
        route: &RouteKey,
        viewer: &Viewer,
    ) -> Self {
        let live = format!(
            "page=route&dependency={}&operation={}",
            url_part(route.dependency.as_str()),
            url_part(route.operation.as_str())
        );
        let known = match snapshot.routes.get(route) {
            Some(view) => {
                // The store may be away; what the controller itself remembers is shown then.
                let stored = backend.transitions(route, TRANSITIONS_SHOWN).await;
                let transitions = stored.unwrap_or_else(|_| {
                    view.transitions.iter().rev().cloned().collect()
                });
                Some(Known::new(view, snapshot, &transitions))
            }
            None => None,
        };
        Self {
            frame: Frame::new(route.to_string(), "overview", viewer, snapshot, &live),
            policy_href: policy_address(&route.dependency),
            kill_href: kill_address(&route.dependency),
            record_href: format!("/record?dependency={}", url_part(route.dependency.as_str())),
            known,
            can_act: viewer.operator.role >= Role::Operator,
            route: route.clone(),
        }
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
    let page = RoutePage::load(&app.backend, &snapshot, &route, &viewer).await;
    let status = if page.known.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
    html(status, &page)
}

/// The page's parts for an open stream.
pub(crate) async fn fragments<B: Backend>(
    backend: &B,
    snapshot: &FleetSnapshot,
    route: &RouteKey,
    viewer: &Viewer,
) -> Vec<Fragment> {
    let page = RoutePage::load(backend, snapshot, route, viewer).await;
    if page.known.is_none() {
        return Vec::new();
    }
    vec![
        Fragment::inner("verdict", &page.as_verdict()),
        Fragment::inner("figures", &page.as_figures()),
        Fragment::inner("charts", &page.as_charts()),
        Fragment::inner("replicas", &page.as_replicas()),
        Fragment::inner("agents", &page.as_agents()),
        Fragment::inner("happened", &page.as_happened()),
    ]
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
    match app.backend.release(&viewer.operator, route.clone(), form.reason.trim()).await {
        Ok(()) => Redirect::to(&route_address(&route)).into_response(),
        Err(problem) => error::act(&problem),
    }
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
    match app.backend.accept_base(&viewer.operator, route.clone(), form.reason.trim()).await {
        Ok(()) => Redirect::to(&route_address(&route)).into_response(),
        Err(problem) => error::act(&problem),
    }
}
