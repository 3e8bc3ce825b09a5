//! The controller itself: whether it keeps up, what it holds, and what it refused.

use askama::Template;
use askama::filters::HtmlSafe;
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use hedgerow_core::view::FleetSnapshot;

use super::frame::Frame;
use super::state::Badge;
use crate::backend::{Backend, ProcessView};
use crate::format::{Figure, Time, bytes, count, date, span};
use crate::fragment::{Fragment, html};
use crate::guard::Viewer;
use crate::router::App;

/// Agents named whose reports were refused; further ones are told by number.
const REFUSED_SHOWN: usize = 20;

#[derive(Debug, Template)]
#[template(path = "parts/process.html")]
struct ControllerState {
    groups: Vec<FigureGroup>,
    badge: Badge,
    /// What is wrong with it, most grave first.
    troubles: Vec<String>,
    refused: Vec<RefusedRow>,
    more: usize,
}

impl HtmlSafe for ControllerState {}

#[derive(Debug)]
struct FigureGroup {
    id: &'static str,
    title: &'static str,
    figures: Vec<KeyFigure>,
}

#[derive(Debug)]
struct KeyFigure {
    name: &'static str,
    value: Figure,
    unit: &'static str,
    note: String,
}

/// An agent whose reports were refused.
#[derive(Debug)]
struct RefusedRow {
    agent: String,
    address: String,
    reports: Figure,
    why: String,
}

fn figure(
    name: &'static str,
    value: Figure,
    unit: &'static str,
    note: impl Into<String>,
) -> KeyFigure {
    KeyFigure {
        name,
        value,
        unit,
        note: note.into(),
    }
}

impl ControllerState {
    fn new(process: &ProcessView, snapshot: &FleetSnapshot) -> Self {
        let (refused, more) = refused(snapshot);
        Self {
            groups: vec![
                decides(process, snapshot),
                holds(process, snapshot),
                identity(process, snapshot),
                not_taken(snapshot),
            ],
            badge: if process.leader {
                Badge::new("on", "leader")
            } else {
                Badge::new("observing", "standing by")
            },
            troubles: troubles(process, snapshot),
            refused,
            more,
        }
    }
}

/// Whether it keeps up.
fn decides(process: &ProcessView, snapshot: &FleetSnapshot) -> FigureGroup {
    let c = &snapshot.controller;
    let tick_ms = c.tick_took.as_secs_f64() * 1e3;
    let agents = count(snapshot.agents.len() as u64);
    FigureGroup {
        id: "keeps-up",
        title: "Keeping up",
        figures: vec![
            figure(
                "Reports",
                Figure::rate(Some(c.reports_per_s), "reports/s", ""),
                "/s",
                format!("over 10 s, of {agents} agents"),
            ),
            figure(
                "Report lag",
                Figure::number(process.report_lag_ms, "no report yet"),
                "ms",
                "from the newest report's arrival to its decision",
            ),
            figure(
                "Decision took",
                Figure::number(Some(tick_ms), ""),
                "ms",
                "one a second, for all routes",
            ),
            figure(
                "Received twice",
                Figure::count(c.reports_duplicate),
                "reports",
                "counted once",
            ),
        ],
    }
}

/// What it holds.
fn holds(process: &ProcessView, snapshot: &FleetSnapshot) -> FigureGroup {
    let c = &snapshot.controller;
    FigureGroup {
        id: "holds",
        title: "Holding",
        figures: vec![
            figure(
                "Store",
                bytes(process.store_bytes, "its size could not be read"),
                "B",
                "the file and its log",
            ),
            figure(
                "Writes pending",
                Figure::count(c.writes_pending),
                "",
                "not yet on disk; what waits for them is not told to anybody",
            ),
            figure(
                "Outbox",
                Figure::count(process.outbox_depth),
                "",
                "notices that wait, over all receivers",
            ),
            figure(
                "Open pages",
                Figure::count(process.open_pages),
                "",
                "event streams, this one included",
            ),
            figure(
                "Memory",
                bytes(process.resident_bytes, "not known on this system"),
                "B",
                "resident",
            ),
            figure(
                "Routes",
                Figure::count(snapshot.routes.len() as u64),
                "",
                format!("{} beyond the cap, under __other__", c.routes_beyond_cap),
            ),
        ],
    }
}

/// Which it is.
fn identity(process: &ProcessView, snapshot: &FleetSnapshot) -> FigureGroup {
    let named = |text: &str, why: &str| {
        if text.is_empty() {
            Figure::none(why)
        } else {
            Figure::new(text, text)
        }
    };
    FigureGroup {
        id: "identity",
        title: "Identity",
        figures: vec![
            figure("Version", named(&process.version, "not told"), "", ""),
            figure("Name", named(&process.name, "it has none"), "", ""),
            figure(
                "Epoch",
                Figure::count(snapshot.epoch.0),
                "",
                "begins anew with each start; agents follow the newest",
            ),
            figure(
                "Decision",
                Figure::count(snapshot.tick),
                "",
                "since it started",
            ),
            figure(
                "Up",
                Figure::new(
                    span(snapshot.at.since(snapshot.started)),
                    date(snapshot.started),
                ),
                "",
                "",
            ),
        ],
    }
}

/// What it did not take.
fn not_taken(snapshot: &FleetSnapshot) -> FigureGroup {
    let c = &snapshot.controller;
    FigureGroup {
        id: "not-taken",
        title: "Reports taken and refused",
        figures: vec![
            figure(
                "Taken",
                Figure::count(c.reports),
                "reports",
                "since it started",
            ),
            figure(
                "Refused",
                Figure::count(c.reports_refused),
                "reports",
                "what they say cannot be; the table below says why",
            ),
            figure(
                "Not decodable",
                Figure::count(c.undecodable),
                "messages",
                "of another contract, or damaged; the log names the agent",
            ),
        ],
    }
}

fn troubles(process: &ProcessView, snapshot: &FleetSnapshot) -> Vec<String> {
    let c = &snapshot.controller;
    let mut troubles = Vec::new();
    if let Some(problem) = &c.write_problem {
        troubles.push(format!(
            "The store does not take writes: {problem}. Changes are refused until it does; agents go \
             on with what they hold."
        ));
    }
    if !process.leader {
        troubles.push("Another controller leads: this one decides nothing.".into());
    }
    if c.tick_took.as_millis() > 500 {
        troubles.push(
            "A decision takes more than half the time there is for it: fewer routes, or a faster \
             machine."
                .into(),
        );
    }
    troubles
}

fn refused(snapshot: &FleetSnapshot) -> (Vec<RefusedRow>, usize) {
    let mut agents: Vec<_> = snapshot
        .agents
        .iter()
        .filter(|a| a.refused_reports > 0)
        .collect();
    agents.sort_by_key(|a| std::cmp::Reverse(a.refused_reports));
    let more = agents.len().saturating_sub(REFUSED_SHOWN);
    let rows = agents.iter().take(REFUSED_SHOWN).map(|a| RefusedRow {
        agent: format!("{} {}", a.service, a.instance),
        address: format!("/agents?q={}", a.instance),
        reports: Figure::count(a.refused_reports),
        why: a.last_refusal.clone().unwrap_or_default(),
    });
    (rows.collect(), more)
}

#[derive(Debug, Template)]
#[template(path = "controller.html", blocks = ["page"])]
struct ControllerPage {
    frame: Frame,
    state: ControllerState,
    at: Time,
}

/// GET /controller
pub(crate) async fn page<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
) -> Response {
    let process = app.backend.process().await;
    let snapshot = app.backend.snapshot();
    let page = ControllerPage {
        frame: Frame::new(
            "Controller",
            "controller",
            &viewer,
            &snapshot,
            "page=controller",
        ),
        state: ControllerState::new(&process, &snapshot),
        at: Time::near(snapshot.started, snapshot.at),
    };
    html(StatusCode::OK, &page)
}

/// The page's parts for an open stream.
pub(crate) async fn fragments<B: Backend>(backend: &B, snapshot: &FleetSnapshot) -> Vec<Fragment> {
    let process = backend.process().await;
    vec![Fragment::inner(
        "process",
        &ControllerState::new(&process, snapshot),
    )]
}
