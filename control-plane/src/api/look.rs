//! Reading: the fleet, a route, agents, the record.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use hedgerow_core::effect::AuditRow;
use hedgerow_core::view::{AgentView, RouteView};
use hedgerow_dashboard::backend::RecordQuery;
use hedgerow_protocol::ids::{DependencyName, RouteKey};
use serde::{Deserialize, Serialize};

use super::ApiState;
use super::problem::{FieldProblem, Problem};

/// Lines of the record in one answer, where nothing else is said, and at most.
const LINES_DEFAULT: u32 = 100;
const LINES_MAX: u32 = 1000;

/// A dependency's name in the address.
#[derive(Debug)]
pub(super) struct Dependency(pub(super) DependencyName);

/// A route in the address. A slash in the operation's name is written `%2F`.
#[derive(Debug)]
pub(super) struct Route(pub(super) RouteKey);

impl<S: Send + Sync> FromRequestParts<S> for Dependency {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(name) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|_| Problem::malformed("the address: expected a dependency's name in it"))?;
        DependencyName::new(&name)
            .map(Self)
            .map_err(|e| Problem::invalid(vec![FieldProblem::new("dependency", e.to_string())]))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Route {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path((dependency, operation)) =
            Path::<(String, String)>::from_request_parts(parts, state)
                .await
                .map_err(|_| {
                    Problem::malformed("the address: expected a dependency and an operation in it")
                })?;
        RouteKey::new(&dependency, &operation)
            .map(Self)
            .map_err(|e| Problem::invalid(vec![FieldProblem::new("route", e.to_string())]))
    }
}

/// GET /api/v1/fleet: the whole snapshot.
pub(super) async fn fleet(State(state): State<ApiState>) -> Result<Response, Problem> {
    let fleet = state.engine.snapshot();
    // A large fleet is megabytes: not on a thread that serves others.
    let written = tokio::task::spawn_blocking(move || serde_json::to_vec(&*fleet)).await;
    match written {
        Ok(Ok(body)) => Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response()),
        other => {
            tracing::error!(outcome = ?other.map(|it| it.map(|_| ())), "the fleet was not written");
            Err(Problem::internal())
        }
    }
}

/// GET /api/v1/routes/{dependency}/{operation}
pub(super) async fn route(
    State(state): State<ApiState>,
    Route(route): Route,
) -> Result<Json<Arc<RouteView>>, Problem> {
    state
        .engine
        .snapshot()
        .routes
        .get(&route)
        .cloned()
        .map(Json)
        .ok_or_else(|| {
            Problem::not_found(format!(
                "no route {route} is known; it appears when an agent reports it"
            ))
        })
}

/// GET /api/v1/agents
pub(super) async fn agents(State(state): State<ApiState>) -> Json<Vec<AgentView>> {
    Json(state.engine.snapshot().agents.clone())
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct AuditQuery {
    before: Option<i64>,
    limit: Option<u32>,
    dependency: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Audit {
    lines: Vec<Line>,
    /// What to give as `before` for the lines before these; null at the end.
    next: Option<i64>,
}

#[derive(Debug, Serialize)]
struct Line {
    id: i64,
    #[serde(flatten)]
    row: AuditRow,
}

/// GET /api/v1/audit?before=&limit=&dependency=: the record, newest first.
pub(super) async fn audit(
    State(state): State<ApiState>,
    query: Result<Query<AuditQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<Audit>, Problem> {
    let Query(query) = query.map_err(|e| {
        Problem::malformed(format!(
            "{}; expected before=NUMBER, limit=1 to {LINES_MAX}, dependency=NAME, or none of them",
            e.body_text()
        ))
    })?;
    let limit = query.limit.unwrap_or(LINES_DEFAULT);
    if !(1..=LINES_MAX).contains(&limit) {
        let message = format!("{limit} is out of range: expected 1 to {LINES_MAX}");
        return Err(Problem::invalid(vec![FieldProblem::new("limit", message)]));
    }
    let dependency = query
        .dependency
        .filter(|name| !name.is_empty())
        .map(|name| DependencyName::new(&name))
        .transpose()
        .map_err(|e| Problem::invalid(vec![FieldProblem::new("dependency", e.to_string())]))?;
    let query = RecordQuery {
        before: query.before,
        limit,
        dependency,
        ..RecordQuery::default()
    };
    let lines: Vec<Line> = state
        .store
        .record(&query)
        .await?
        .into_iter()
        .map(|(id, row)| Line { id, row })
        .collect();
    let full = lines.len() == limit as usize;
    let next = lines.last().filter(|_| full).map(|line| line.id);
    Ok(Json(Audit { lines, next }))
}
