//! The record: who, when, what, before and after, from where, why. Acts of the controller are rows
//! like any other.

use askama::Template;
use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use hedgerow_core::effect::AuditRow;
use hedgerow_core::event::Via;
use hedgerow_protocol::ids::DependencyName;
use serde::Deserialize;

use super::error;
use super::frame::Frame;
use crate::backend::{Backend, RecordQuery};
use crate::format::{Time, url_part};
use crate::fragment::html;
use crate::guard::Viewer;
use crate::router::App;

/// Lines on a page.
const PAGE: u32 = 50;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PageQuery {
    before: Option<i64>,
    dependency: String,
}

#[derive(Debug, Template)]
#[template(path = "record.html", blocks = ["page"])]
struct RecordPage {
    frame: Frame,
    rows: Vec<RecordRow>,
    dependency: String,
    problem: Option<String>,
    older: Option<String>,
    newest: Option<String>,
}

#[derive(Debug)]
struct RecordRow {
    number: i64,
    at: Time,
    actor: String,
    via: &'static str,
    automatic: bool,
    action: String,
    target: String,
    before: String,
    after: String,
    reason: String,
}

impl RecordRow {
    fn new((number, row): (i64, AuditRow)) -> Self {
        Self {
            number,
            at: Time::full(row.at),
            automatic: row.actor.via == Via::Controller,
            via: match row.actor.via {
                Via::Page => "page",
                Via::Api => "API",
                Via::CommandLine => "command line",
                Via::Controller => "controller",
                Via::Seed => "configuration",
            },
            actor: row.actor.name,
            action: row.action,
            target: row.target,
            before: row.before,
            after: row.after,
            reason: row.reason,
        }
    }
}

/// GET /record
pub(crate) async fn page<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<PageQuery>,
) -> Response {
    let wanted = query.dependency.trim();
    let (dependency, problem) = match DependencyName::new(wanted) {
        _ if wanted.is_empty() => (None, None),
        Ok(name) => (Some(name), None),
        Err(problem) => (
            None,
            Some(format!("dependency {problem}; all lines are shown")),
        ),
    };
    let mut rows = match app
        .backend
        .record(RecordQuery {
            before: query.before,
            limit: PAGE + 1,
            dependency: dependency.clone(),
            ..RecordQuery::default()
        })
        .await
    {
        Ok(rows) => rows,
        Err(problem) => return error::store(&problem),
    };
    let more = rows.len() > PAGE as usize;
    rows.truncate(PAGE as usize);
    let about = dependency.as_ref().map_or_else(String::new, |d| {
        format!("&dependency={}", url_part(d.as_str()))
    });
    let older = rows
        .last()
        .filter(|_| more)
        .map(|(n, _)| format!("/record?before={n}{about}"));
    let snapshot = app.backend.snapshot();
    let page = RecordPage {
        frame: Frame::new("Record", "record", &viewer, &snapshot, "page=frame"),
        rows: rows.into_iter().map(RecordRow::new).collect(),
        dependency: wanted.to_owned(),
        problem,
        older,
        newest: query
            .before
            .map(|_| format!("/record?{}", about.trim_start_matches('&'))),
    };
    html(StatusCode::OK, &page)
}
