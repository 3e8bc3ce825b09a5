//! Alerts: what fires, since when, and whether anybody was told.

use askama::Template;
use askama::filters::HtmlSafe;
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use hedgerow_core::view::{AlertPhase, AlertView, FleetSnapshot};

use super::frame::Frame;
use super::state::{Badge, route_address};
use crate::backend::{Backend, Delivery};
use crate::format::{Time, span};
use crate::fragment::{Fragment, html};
use crate::guard::Viewer;
use crate::router::App;

/// Deliveries read; older ones are in the store only.
const DELIVERIES: u32 = 200;

#[derive(Debug, Template)]
#[template(path = "parts/alerts.html")]
pub(crate) struct AlertList {
    alerts: Vec<AlertRow>,
    /// Notices about episodes that ended longer ago than the list above reaches.
    older: Vec<DeliveryRow>,
    problem: Option<String>,
}

impl HtmlSafe for AlertList {}

#[derive(Debug)]
struct AlertRow {
    badge: Badge,
    tone: &'static str,
    rule: &'static str,
    route: String,
    address: String,
    replica: Option<String>,
    summary: String,
    since: Time,
    lasted: String,
    resolved: Option<Time>,
    deliveries: Vec<DeliveryRow>,
}

#[derive(Debug)]
struct DeliveryRow {
    alert: String,
    receiver: String,
    kind: String,
    badge: Badge,
    attempts: u32,
    error: Option<String>,
    at: Time,
    done: Option<Time>,
}

impl DeliveryRow {
    fn new(d: &Delivery, snapshot: &FleetSnapshot) -> Self {
        Self {
            alert: d.alert.clone(),
            receiver: d.receiver.clone(),
            kind: d.kind.clone(),
            badge: match d.state.as_str() {
                "delivered" => Badge::new("on", "delivered"),
                "given_up" => Badge::new("off", "given up"),
                _ => Badge::new("probing", "waiting"),
            },
            attempts: d.attempts,
            error: d.last_error.clone(),
            at: Time::near(d.at, snapshot.at),
            done: d.done.map(|at| Time::near(at, snapshot.at)),
        }
    }
}

impl AlertRow {
    fn new(a: &AlertView, deliveries: &[Delivery], snapshot: &FleetSnapshot) -> Self {
        let (badge, tone) = match a.phase {
            AlertPhase::Firing => (Badge::new("off", "firing"), "bad"),
            AlertPhase::Pending => (Badge::new("probing", "pending"), "warn"),
            AlertPhase::Resolved => (Badge::new("on", "resolved"), "ok"),
        };
        let end = a.state.resolved.unwrap_or(snapshot.at);
        Self {
            badge,
            tone,
            rule: a.state.rule.as_str(),
            route: a.state.route.to_string(),
            address: route_address(&a.state.route),
            replica: a.state.replica.clone(),
            summary: a.state.summary.clone(),
            since: Time::near(a.state.since, snapshot.at),
            lasted: span(end.since(a.state.since)),
            resolved: a.state.resolved.map(|at| Time::near(at, snapshot.at)),
            deliveries: deliveries
                .iter()
                .filter(|d| d.alert == a.state.id)
                .map(|d| DeliveryRow::new(d, snapshot))
                .collect(),
        }
    }
}

impl AlertList {
    async fn load<B: Backend>(backend: &B, snapshot: &FleetSnapshot) -> Self {
        let (deliveries, problem) = match backend.deliveries(DELIVERIES).await {
            Ok(deliveries) => (deliveries, None),
            Err(problem) => (Vec::new(), Some(problem.to_string())),
        };
        let mut views: Vec<&AlertView> = snapshot.alerts.iter().collect();
        views.sort_by_key(|a| (a.phase, std::cmp::Reverse(a.state.since)));
        Self {
            alerts: views
                .iter()
                .map(|a| AlertRow::new(a, &deliveries, snapshot))
                .collect(),
            older: deliveries
                .iter()
                .filter(|d| !views.iter().any(|a| a.state.id == d.alert))
                .map(|d| DeliveryRow::new(d, snapshot))
                .collect(),
            problem,
        }
    }
}

#[derive(Debug, Template)]
#[template(path = "alerts.html", blocks = ["page"])]
struct AlertsPage {
    frame: Frame,
    list: AlertList,
}

/// GET /alerts
pub(crate) async fn page<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
) -> Response {
    let snapshot = app.backend.snapshot();
    let page = AlertsPage {
        frame: Frame::new("Alerts", "alerts", &viewer, &snapshot, "page=alerts"),
        list: AlertList::load(&app.backend, &snapshot).await,
    };
    html(StatusCode::OK, &page)
}

/// The page's parts for an open stream.
pub(crate) async fn fragments<B: Backend>(backend: &B, snapshot: &FleetSnapshot) -> Vec<Fragment> {
    vec![Fragment::inner(
        "alertlist",
        &AlertList::load(backend, snapshot).await,
    )]
}
