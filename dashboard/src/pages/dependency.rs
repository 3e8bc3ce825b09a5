//! A route's page: what it does, why, and what came of it.

pub(crate) mod course;
mod marks;
mod parts;
pub(crate) mod range;
pub(crate) mod switchback;
pub(crate) mod watch;
mod why;

use askama::Template;
use axum::Extension;
use axum::extract::{Form, Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use hedgerow_core::moment::Moment;
use hedgerow_core::view::{FleetSnapshot, RouteView};
use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::policy::Policy;
use serde::Deserialize;

use super::error;
use super::frame::Frame;
use super::state::{kill_address, policy_address, route_address};
use crate::assets;
use crate::backend::{ActError, Backend, Role};
use crate::chart::{Chart, Course, Event, Heat, Plot, heats, route_plots};
use crate::format::{span, url_part};
use crate::fragment::{Fragment, html};
use crate::guard::Viewer;
use crate::router::App;
use parts::{Happened, KeyFigures, Refusals, ReplicaRow, Standing, Verdict, happened};
use range::{Range, RangeLink};
use switchback::Switchback;
use watch::{Stored, Told, Watched};

/// Everything of the page that changes by itself. Its blocks are sent one by one.
#[derive(Debug, Template)]
#[template(path = "dependency.html", blocks = ["page", "verdict", "figures", "charts", "heat", "replicas", "agents", "switchback", "happened"])]
struct RoutePage {
    frame: Frame,
    route: RouteKey,
    policy_href: String,
    kill_href: String,
    record_href: String,
    course_href: String,
    range: &'static str,
    ranges: Vec<RangeLink>,
    zoom: ZoomAssets,
    known: Known,
    can_act: bool,
}

/// What only this page loads.
#[derive(Debug)]
struct ZoomAssets {
    css: &'static str,
    library: &'static str,
    js: &'static str,
}

/// What there is once an agent has reported the route.
#[derive(Debug)]
struct Known {
    verdict: Verdict,
    figures: KeyFigures,
    charts: Vec<Chart>,
    /// What one point stands for, or why there are none.
    charts_note: Option<String>,
    heats: Vec<Heat>,
    replicas: Vec<ReplicaRow>,
    refusals: Refusals,
    standing: Standing,
    switchback: Option<Switchback>,
    happened: Vec<Happened>,
}

impl Known {
    fn new(
        view: &RouteView,
        snapshot: &FleetSnapshot,
        told: &Told,
        stored: Option<&Stored>,
        range: Range,
    ) -> Self {
        let policy = policy_of(snapshot, &view.route);
        let budget = view.figures.map_or(policy.budget().get(), |f| f.budget);
        let events = events(view, snapshot, told, range);
        Self {
            verdict: Verdict::new(view, snapshot, &told.transitions),
            figures: KeyFigures::new(view),
            charts: plots(view, snapshot, &policy, stored, &events, range)
                .into_iter()
                .map(Plot::layout)
                .collect(),
            charts_note: charts_note(stored, range),
            heats: heats(&view.replica_course, budget),
            replicas: view.replicas.iter().map(ReplicaRow::new).collect(),
            refusals: Refusals::new(view),
            standing: Standing::new(view, snapshot),
            switchback: Switchback::new(view, snapshot.at),
            happened: happened(&events, &told.transitions, snapshot.at),
        }
    }
}

fn events(view: &RouteView, snapshot: &FleetSnapshot, told: &Told, range: Range) -> Vec<Event> {
    let since = range.since(snapshot.at);
    let live = range == Range::Live;
    marks::events(view, &told.past, &snapshot.alerts, since, live)
}

/// The charts of a range: of what the controller remembers, or of what is stored.
fn plots(
    view: &RouteView,
    snapshot: &FleetSnapshot,
    policy: &Policy,
    stored: Option<&Stored>,
    events: &[Event],
    range: Range,
) -> Vec<Plot> {
    let events = events.to_vec();
    let course = match stored {
        Some(stored) => {
            let from = range.since(stored.at);
            Course::new(from, stored.at, &stored.points, events, range.words())
        }
        None => Course::live(view, snapshot.at, range.span(), events, range.words()),
    };
    route_plots(
        &course,
        view,
        policy.error_limit().get(),
        policy.budget().get(),
    )
}

fn charts_note(stored: Option<&Stored>, range: Range) -> Option<String> {
    if let Some(problem) = stored.and_then(|it| it.problem.as_ref()) {
        return Some(format!("The stored course cannot be shown: {problem}."));
    }
    let each = range.each()?;
    Some(format!(
        "A point stands for {}: percentiles of all calls, hedge rate, demand and errors are its \
         highest, what callers waited and wins are its mean.",
        span(each)
    ))
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
fn live(page: &str, route: &RouteKey, range: Range) -> String {
    let range = match range {
        Range::Live => String::new(),
        range => format!("&range={}", range.as_str()),
    };
    format!(
        "page={page}&dependency={}&operation={}{range}",
        url_part(route.dependency.as_str()),
        url_part(route.operation.as_str())
    )
}

impl RoutePage {
    /// None: no agent has reported the route.
    async fn load<B: Backend>(
        backend: &B,
        snapshot: &FleetSnapshot,
        watched: &mut Watched,
        viewer: &Viewer,
    ) -> Option<(Self, Option<Moment>)> {
        let (route, range) = (watched.route.clone(), watched.range);
        let view = snapshot.routes.get(&route)?;
        let told = watched.told(backend, snapshot, view).await;
        let stored = watched.stored(backend, snapshot).await;
        let live = live("route", &route, range);
        let address = route_address(&route);
        let page = Self {
            frame: Frame::new(route.to_string(), "overview", viewer, snapshot, &live),
            policy_href: policy_address(&route.dependency.clone().into()),
            kill_href: kill_address(&route.dependency),
            record_href: format!("/record?dependency={}", url_part(route.dependency.as_str())),
            course_href: format!("{address}/course"),
            range: range.as_str(),
            ranges: range::links(range, &address),
            zoom: ZoomAssets {
                css: assets::address("vendor/uplot-1.6.32.css"),
                library: assets::address("vendor/uplot-1.6.32.js"),
                js: assets::address("zoom.js"),
            },
            known: Known::new(view, snapshot, &told, stored.as_deref(), range),
            can_act: viewer.operator.role >= Role::Operator,
            route,
        };
        Some((page, stored.map(|it| it.at)))
    }
}

/// What the address asks for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RouteQuery {
    range: String,
}

/// The route an address names, or the answer that there is none.
fn named(dependency: &str, operation: &str) -> Result<RouteKey, Box<Response>> {
    RouteKey::new(dependency, operation).map_err(|problem| {
        Box::new(error::plain(
            StatusCode::NOT_FOUND,
            "No such dependency",
            &format!("The name in the address {problem}."),
        ))
    })
}

/// GET /dependencies/{dependency}/{operation}?range=
pub(crate) async fn page<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    Path((dependency, operation)): Path<(String, String)>,
    Query(query): Query<RouteQuery>,
) -> Response {
    let route = match named(&dependency, &operation) {
        Ok(route) => route,
        Err(response) => return *response,
    };
    let snapshot = app.backend.snapshot();
    let range = Range::parse(&query.range);
    let mut watched = Watched::new(route.clone(), range);
    let page = RoutePage::load(&app.backend, &snapshot, &mut watched, &viewer).await;
    if let Some((page, _)) = page {
        return html(StatusCode::OK, &page);
    }
    let live = live("awaited", &route, range);
    let page = UnknownPage {
        frame: Frame::new(route.to_string(), "overview", &viewer, &snapshot, &live),
        policy_href: policy_address(&route.dependency.clone().into()),
        route,
    };
    html(StatusCode::NOT_FOUND, &page)
}

/// The page's parts for an open stream: the heatmap when it has a new column, the charts of stored
/// figures when these were read again. Both are long, and what has not changed is not written anew.
pub(crate) async fn fragments<B: Backend>(
    backend: &B,
    snapshot: &FleetSnapshot,
    watched: &mut Watched,
    viewer: &Viewer,
) -> Vec<Fragment> {
    let loaded = RoutePage::load(backend, snapshot, watched, viewer).await;
    let Some((page, stored)) = loaded else {
        return Vec::new();
    };
    let mut out = vec![
        Fragment::inner("verdict", &page.as_verdict()),
        Fragment::inner("figures", &page.as_figures()),
        Fragment::inner("replicas", &page.as_replicas()),
        Fragment::inner("agents", &page.as_agents()),
        Fragment::inner("switchback", &page.as_switchback()),
        Fragment::inner("happened", &page.as_happened()),
    ];
    if stored.is_none() || stored != watched.sent {
        watched.sent = stored;
        out.push(Fragment::inner("charts", &page.as_charts()));
    }
    let view = snapshot.routes.get(&watched.route);
    let column = view.and_then(|it| Some(it.replica_course.columns.last()?.at));
    if column.is_none() || column != watched.column {
        if column.is_none() || watched.column.is_none() {
            out.push(Fragment::inner("heat", &page.as_heat()));
        } else {
            out.extend(page.known.heats.iter().flat_map(Heat::fragments));
        }
        watched.column = column;
    }
    out
}

/// The whole page, once a route that was waited for has been reported.
pub(crate) async fn arrived<B: Backend>(
    backend: &B,
    snapshot: &FleetSnapshot,
    watched: &mut Watched,
    viewer: &Viewer,
) -> Vec<Fragment> {
    RoutePage::load(backend, snapshot, watched, viewer)
        .await
        .map(|(page, _)| Fragment::inner("page", &page.as_page()))
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
