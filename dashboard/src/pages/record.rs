//! The record: who, when, what, before and after, from where, why. Acts of the controller are rows
//! like any other.

pub mod export;
mod filter;

use askama::Template;
use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use hedgerow_core::effect::AuditRow;
use hedgerow_core::event::Via;

use super::error;
use super::frame::Frame;
use crate::backend::{Backend, RecordQuery};
use crate::format::Time;
use crate::fragment::html;
use crate::guard::Viewer;
use crate::router::App;
use filter::{Filter, FilterQuery};

/// Lines on a page.
const PAGE: u32 = 50;

#[derive(Debug, Template)]
#[template(path = "record.html", blocks = ["page"])]
struct RecordPage {
    frame: Frame,
    rows: Vec<RecordRow>,
    filter: Filter,
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
            at: Time::absolute(row.at),
            automatic: row.actor.via == Via::Controller,
            via: from_where(row.actor.via),
            actor: row.actor.name,
            action: row.action,
            target: row.target,
            before: row.before,
            after: row.after,
            reason: row.reason,
        }
    }

    /// Whether before and after are too long to stand in the row.
    fn long(&self) -> bool {
        self.before.len() + self.after.len() > 80
    }
}

/// From where somebody acted, as people read it.
fn from_where(via: Via) -> &'static str {
    match via {
        Via::Page => "page",
        Via::Api => "API",
        Via::CommandLine => "command line",
        Via::Controller => "controller",
        Via::Seed => "configuration",
    }
}

/// GET /record
pub(crate) async fn page<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<FilterQuery>,
) -> Response {
    let before = query.before;
    let filter = Filter::new(query);
    let wanted = RecordQuery {
        before,
        limit: PAGE + 1,
        ..filter.query()
    };
    let mut rows = match app.backend.record(wanted).await {
        Ok(rows) => rows,
        Err(problem) => return error::store(&problem),
    };
    let more = rows.len() > PAGE as usize;
    rows.truncate(PAGE as usize);
    let last = rows.last().filter(|_| more).map(|(number, _)| *number);
    let snapshot = app.backend.snapshot();
    let page = RecordPage {
        frame: Frame::new("Record", "record", &viewer, &snapshot, "page=frame"),
        rows: rows.into_iter().map(RecordRow::new).collect(),
        older: last.map(|number| filter.address("/record", &format!("before={number}"))),
        newest: before.map(|_| filter.address("/record", "")),
        filter,
    };
    html(StatusCode::OK, &page)
}
