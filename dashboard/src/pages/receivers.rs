//! Receivers of alerts: how each does, and a test that goes the real way.

use askama::Template;
use askama::filters::HtmlSafe;
use axum::Extension;
use axum::extract::{Form, State};
use axum::http::StatusCode;
use axum::response::Response;
use hedgerow_core::view::FleetSnapshot;
use serde::Deserialize;

use super::error;
use super::frame::Frame;
use super::state::Badge;
use crate::assets::short_id;
use crate::backend::{Backend, ReceiverView, Role, StoreError};
use crate::format::{Figure, Time, latency};
use crate::fragment::{Fragment, html};
use crate::guard::Viewer;
use crate::router::App;

#[derive(Debug, Template)]
#[template(path = "parts/receivers.html")]
struct ReceiverList {
    rows: Vec<ReceiverRow>,
    problem: Option<String>,
    can_act: bool,
}

impl HtmlSafe for ReceiverList {}

#[derive(Debug)]
struct ReceiverRow {
    id: String,
    name: String,
    kind: String,
    to: String,
    badge: Badge,
    waiting: Figure,
    given_up: Figure,
    delivered: Option<Time>,
    error: Option<String>,
}

impl ReceiverRow {
    fn new(view: ReceiverView, snapshot: &FleetSnapshot) -> Self {
        let badge = match (&view.last_error, view.waiting, view.delivered) {
            (Some(_), 1.., _) => Badge::new("off", "failing"),
            (Some(_), _, _) => Badge::new("probing", "failed last"),
            (None, 1.., _) => Badge::new("probing", "sending"),
            (None, _, Some(_)) => Badge::new("on", "delivers"),
            (None, _, None) => Badge::new("quiet", "not used yet"),
        };
        Self {
            id: format!("v-{}", short_id(&view.name)),
            badge,
            waiting: Figure::count(view.waiting),
            given_up: Figure::count(view.given_up),
            delivered: view.delivered.map(|at| Time::near(at, snapshot.at)),
            error: view.last_error,
            name: view.name,
            kind: view.kind,
            to: view.to,
        }
    }
}

impl ReceiverList {
    async fn load<B: Backend>(backend: &B, snapshot: &FleetSnapshot, can_act: bool) -> Self {
        let (views, problem) = match backend.receivers().await {
            Ok(views) => (views, None),
            Err(StoreError(problem)) => (Vec::new(), Some(problem)),
        };
        let rows = views.into_iter();
        Self {
            rows: rows.map(|view| ReceiverRow::new(view, snapshot)).collect(),
            problem,
            can_act,
        }
    }
}

/// What came of a test, above the table.
#[derive(Debug)]
struct Tested {
    receiver: String,
    badge: Badge,
    words: String,
}

#[derive(Debug, Template)]
#[template(path = "receivers.html", blocks = ["page"])]
struct ReceiversPage {
    frame: Frame,
    list: ReceiverList,
    tested: Option<Tested>,
}

fn can_act(viewer: &Viewer) -> bool {
    viewer.operator.role >= Role::Operator
}

async fn show<B: Backend>(
    app: &App<B>,
    viewer: &Viewer,
    status: StatusCode,
    tested: Option<Tested>,
) -> Response {
    let snapshot = app.backend.snapshot();
    let page = ReceiversPage {
        frame: Frame::new(
            "Receivers",
            "receivers",
            viewer,
            &snapshot,
            "page=receivers",
        ),
        list: ReceiverList::load(&app.backend, &snapshot, can_act(viewer)).await,
        tested,
    };
    html(status, &page)
}

/// GET /receivers
pub(crate) async fn page<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
) -> Response {
    show(&app, &viewer, StatusCode::OK, None).await
}

/// The page's parts for an open stream.
pub(crate) async fn fragments<B: Backend>(
    backend: &B,
    snapshot: &FleetSnapshot,
    viewer: &Viewer,
) -> Vec<Fragment> {
    vec![Fragment::inner(
        "receiverlist",
        &ReceiverList::load(backend, snapshot, can_act(viewer)).await,
    )]
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TestForm {
    receiver: String,
}

/// POST /receivers/test: a test notice, the real way. The answer is the page with what came of it:
/// nothing is stored of it that could be looked up later.
pub(crate) async fn test<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    Form(form): Form<TestForm>,
) -> Response {
    let outcome = app
        .backend
        .test_receiver(&viewer.operator, &form.receiver)
        .await;
    let (status, badge, words) = match outcome {
        Ok(it) => {
            let took = latency(it.took);
            if it.delivered {
                let words = format!("answered {} in {took}", it.status);
                (StatusCode::OK, Badge::new("on", "delivered"), words)
            } else {
                let words = format!("{} after {took}", it.status);
                (StatusCode::OK, Badge::new("off", "not delivered"), words)
            }
        }
        Err(problem) => (
            error::describe(&problem).0,
            Badge::new("off", "not sent"),
            problem.to_string(),
        ),
    };
    let tested = Tested {
        receiver: form.receiver,
        badge,
        words,
    };
    show(&app, &viewer, status, Some(tested)).await
}
