//! A switchback on a route's page: how it goes, and what came of it.

use axum::Extension;
use axum::extract::{Form, State};
use axum::response::Response;
use hedgerow_core::event::SWITCHBACK_ROUNDS;
use hedgerow_core::moment::Moment;
use hedgerow_core::view::{ArmView, DifferenceView, RouteView, SwitchbackResult};
use serde::Deserialize;

use super::{ActForm, acted};
use crate::backend::Backend;
use crate::format::{Figure, Time, significant, span};
use crate::guard::Viewer;
use crate::router::App;

const FEW: &str = "too few calls";

/// The one that runs, or the last one.
#[derive(Debug)]
pub(super) struct Switchback {
    pub(super) started: Time,
    pub(super) by: String,
    pub(super) reason: String,
    pub(super) progress: String,
    pub(super) words: Option<String>,
    pub(super) rows: Vec<Row>,
    pub(super) left_out: u32,
}

/// A figure with hedging, without, and what differs.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) label: &'static str,
    pub(super) unit: &'static str,
    pub(super) on: Figure,
    pub(super) off: Figure,
    pub(super) difference: String,
}

impl Switchback {
    pub(super) fn new(view: &RouteView, now: Moment) -> Option<Self> {
        let it = view.switchback.as_ref()?;
        let rounds = format!("{} of {} rounds", it.rounds_done, it.rounds);
        let progress = match (&it.ended, it.hedging) {
            (Some(why), _) => format!("ended after {rounds}: {why}"),
            (None, hedging) => format!(
                "{rounds} done, {}, {} left",
                if hedging == Some(false) {
                    "not hedging now"
                } else {
                    "hedging now"
                },
                span(it.ends.since(now))
            ),
        };
        let result = it.result.as_ref();
        Some(Self {
            started: Time::near(it.started, now),
            by: it.by.name.clone(),
            reason: it.reason.clone(),
            progress,
            words: result.map(|result| result.words.clone()),
            rows: result.map(rows).unwrap_or_default(),
            left_out: result.map_or(0, |result| result.left_out),
        })
    }
}

fn rows(result: &SwitchbackResult) -> Vec<Row> {
    let (on, off) = (&result.on, &result.off);
    let row = |label, unit, what, figure: fn(&ArmView) -> Figure| {
        let found = result.differences.iter().find(|it| it.what == what);
        Row {
            label,
            unit,
            on: figure(on),
            off: figure(off),
            difference: found.map_or_else(|| "–".into(), difference),
        }
    };
    vec![
        row("p50", "ms", "p50", |arm| Figure::millis(arm.p50, FEW)),
        row("p95", "ms", "p95", |arm| Figure::millis(arm.p95, FEW)),
        row("p99", "ms", "p99", |arm| Figure::millis(arm.p99, FEW)),
        row("Errors", "%", "error rate", |arm| {
            Figure::percent(arm.error_rate, FEW)
        }),
        row("Calls", "/s", "calls/s", |arm| {
            Figure::rate(arm.calls_per_s, "calls/s", FEW)
        }),
    ]
}

/// As `+177 (150 to 191), certain`.
fn difference(it: &DifferenceView) -> String {
    let signed = |value: f64| {
        let sign = if value > 0.0 { "+" } else { "" };
        format!("{sign}{}", significant(value))
    };
    let range = match (it.low, it.high) {
        (Some(low), Some(high)) => format!(" ({} to {})", signed(low), signed(high)),
        _ => String::new(),
    };
    let sure = if it.certain {
        "more than chance"
    } else {
        "may be chance"
    };
    format!("{}{range}, {sure}", signed(it.median))
}

/// Which route, how long, and why.
#[derive(Debug, Deserialize)]
pub(crate) struct StartForm {
    dependency: String,
    operation: String,
    #[serde(default)]
    rounds: String,
    #[serde(default)]
    reason: String,
}

/// POST /switchback: begins one.
pub(crate) async fn start<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    Form(form): Form<StartForm>,
) -> Response {
    let act = ActForm {
        dependency: form.dependency,
        operation: form.operation,
        reason: form.reason,
    };
    let route = match act.route() {
        Ok(route) => route,
        Err(response) => return *response,
    };
    let rounds = match form.rounds.trim() {
        "" => SWITCHBACK_ROUNDS,
        // What is no number is out of range, and the answer says what the range is.
        text => text.parse().unwrap_or(0),
    };
    let (operator, reason) = (&viewer.operator, act.reason.trim());
    let started = app
        .backend
        .start_switchback(operator, route.clone(), rounds, reason)
        .await;
    acted(&route, started)
}

/// POST /switchback/stop: ends it.
pub(crate) async fn stop<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    Form(form): Form<ActForm>,
) -> Response {
    let route = match form.route() {
        Ok(route) => route,
        Err(response) => return *response,
    };
    let (operator, reason) = (&viewer.operator, form.reason.trim());
    let stopped = app
        .backend
        .stop_switchback(operator, route.clone(), reason)
        .await;
    acted(&route, stopped)
}
