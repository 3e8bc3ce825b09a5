//! The record.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use hedgerow_core::effect::AuditRow;
use hedgerow_core::moment::Moment;
use hedgerow_dashboard::backend::RecordQuery;
use hedgerow_dashboard::export::{self, Format};
use serde::{Deserialize, Serialize};

use super::ApiState;
use super::page::{self, Asked, Page};
use super::problem::{FieldProblem, Problem};

/// Which lines; see [`RecordQuery`].
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct AuditQuery {
    pub(super) limit: Option<usize>,
    after: Option<String>,
    dependency: Option<String>,
    action: Option<String>,
    actor: Option<String>,
    since: Option<String>,
    until: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Line {
    id: i64,
    #[serde(flatten)]
    row: AuditRow,
}

impl AuditQuery {
    /// Checked, for at most `limit` lines.
    pub(super) fn wanted(&self, limit: usize) -> Result<RecordQuery, Problem> {
        let text = |it: &Option<String>| it.clone().filter(|it| !it.trim().is_empty());
        Ok(RecordQuery {
            before: page::read("after", self.after.as_deref())?,
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
            dependency: page::read("dependency", self.dependency.as_deref())?,
            action: text(&self.action),
            actor: text(&self.actor),
            since: moment("since", self.since.as_deref())?,
            until: moment("until", self.until.as_deref())?,
        })
    }
}

/// A moment in an address: RFC 3339, or milliseconds since 1970.
fn moment(field: &'static str, text: Option<&str>) -> Result<Option<Moment>, Problem> {
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let millis = text.parse().ok().or_else(|| {
        let at: jiff::Timestamp = text.parse().ok()?;
        u64::try_from(at.as_millisecond()).ok()
    });
    let wrong = || {
        let message = format!(
            "{text:?} is no moment: expected one such as 2026-01-31T12:00:00Z, or milliseconds since 1970"
        );
        Problem::invalid(vec![FieldProblem::new(field, message)])
    };
    millis.map(Moment::from_millis).map(Some).ok_or_else(wrong)
}

/// GET /api/v1/audit: the record, newest first.
pub(super) async fn list(
    State(state): State<ApiState>,
    Asked(asked): Asked<AuditQuery>,
) -> Result<Json<Page<Line>>, Problem> {
    let limit = page::limit(asked.limit)?;
    let lines = state.store.record(&asked.wanted(limit)?).await?;
    let items: Vec<_> = lines
        .into_iter()
        .map(|(id, row)| Line { id, row })
        .collect();
    Ok(Json(page::full(items, limit, |line| line.id)))
}

/// Which lines, and how they are written.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ExportQuery {
    /// `csv` or `json`; `csv`.
    format: Option<String>,
    dependency: Option<String>,
    action: Option<String>,
    actor: Option<String>,
    since: Option<String>,
    until: Option<String>,
}

/// GET /api/v1/audit/export?format=: the same lines as a file, all of them, read as they are sent.
pub(super) async fn export(
    State(state): State<ApiState>,
    Asked(asked): Asked<ExportQuery>,
) -> Result<Response, Problem> {
    let name = asked.format.as_deref().filter(|it| !it.is_empty());
    let name = name.unwrap_or("csv");
    let Some(format) = Format::named(name) else {
        let message = format!("{name:?} is not written: expected csv or json");
        return Err(Problem::invalid(vec![FieldProblem::new("format", message)]));
    };
    let query = AuditQuery {
        dependency: asked.dependency,
        action: asked.action,
        actor: asked.actor,
        since: asked.since,
        until: asked.until,
        ..AuditQuery::default()
    };
    let wanted = query.wanted(page::LIMIT_MAX)?;
    let body = export::body(state.ui(), format, wanted).await;
    let body = body.map_err(|error| Problem::unavailable(error.to_string()))?;
    let head = [
        (header::CONTENT_TYPE, format.content_type()),
        (header::CONTENT_DISPOSITION, format.disposition()),
    ];
    Ok((head, body).into_response())
}
