//! Who may come in: operators, API tokens, credentials of agents. For administrators.

use axum::Extension;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use hedgerow_dashboard::backend::{
    AccessChange, AccessChanged, AgentTokenView, ApiTokenView, OperatorView, Role,
};
use serde::Serialize;

use super::ApiState;
use super::body::Object;
use super::caller::Caller;
use super::page::{self, Asked, Page, PageQuery};
use super::problem::{FieldProblem, Problem};
use super::steer::Done;
use crate::store::role_named;

const ROLES: &str = "viewer, operator, editor or administrator";

/// The rows after a name; rows come in the order of their names.
fn named<T>(
    rows: Vec<T>,
    asked: &PageQuery,
    name: impl Fn(&T) -> String,
) -> Result<Json<Page<T>>, Problem> {
    let limit = page::limit(asked.limit)?;
    let after = asked.after.clone().filter(|name| !name.is_empty());
    Ok(Json(page::cut(rows, name, after.as_ref(), limit, |row| {
        row
    })))
}

/// GET /api/v1/operators
pub(super) async fn operators(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    Asked(asked): Asked<PageQuery>,
) -> Result<Json<Page<OperatorView>>, Problem> {
    let access = state.acting(&operator).access(&state.auth).await?;
    named(access.operators, &asked, |it| it.name.clone())
}

/// GET /api/v1/tokens
pub(super) async fn tokens(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    Asked(asked): Asked<PageQuery>,
) -> Result<Json<Page<ApiTokenView>>, Problem> {
    let access = state.acting(&operator).access(&state.auth).await?;
    named(access.api_tokens, &asked, |it| it.name.clone())
}

/// GET /api/v1/agent-tokens, in the order of their ids.
pub(super) async fn agent_tokens(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    Asked(asked): Asked<PageQuery>,
) -> Result<Json<Page<AgentTokenView>>, Problem> {
    let access = state.acting(&operator).access(&state.auth).await?;
    let mut tokens = access.agent_tokens;
    tokens.sort_by(|a, b| a.id.cmp(&b.id));
    named(tokens, &asked, |it| it.id.clone())
}

/// What is shown once.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Once {
    Link(String),
    Token(String),
}

type Made = Result<(StatusCode, Json<Once>), Problem>;

/// POST /api/v1/operators
pub(super) async fn add_operator(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    mut body: Object,
) -> Made {
    let mut errors = Vec::new();
    let reason = body.take_reason(&mut errors);
    let name = body.take("name", "a name", &mut errors);
    let role = take_role(&mut body, &mut errors);
    body.nothing_else(&["name", "role", "reason"], &mut errors);
    let (Some(name), Some(role), true) = (name, role, errors.is_empty()) else {
        return Err(Problem::invalid(errors));
    };
    let change = AccessChange::AddOperator { name, role };
    made(&state, &operator, change, &reason).await
}

/// POST /api/v1/operators/{name}/link
pub(super) async fn link(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    Path(name): Path<String>,
    body: Object,
) -> Made {
    let reason = body.only_reason()?;
    made(&state, &operator, AccessChange::LoginLink { name }, &reason).await
}

/// PUT /api/v1/operators/{name}
pub(super) async fn set_role(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    Path(name): Path<String>,
    mut body: Object,
) -> Result<Json<Done>, Problem> {
    let mut errors = Vec::new();
    let reason = body.take_reason(&mut errors);
    let role = take_role(&mut body, &mut errors);
    body.nothing_else(&["role", "reason"], &mut errors);
    let (Some(role), true) = (role, errors.is_empty()) else {
        return Err(Problem::invalid(errors));
    };
    done(
        &state,
        &operator,
        AccessChange::SetRole { name, role },
        &reason,
    )
    .await
}

/// DELETE /api/v1/operators/{name}
pub(super) async fn remove_operator(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    Path(name): Path<String>,
    body: Object,
) -> Result<Json<Done>, Problem> {
    let reason = body.only_reason()?;
    let change = AccessChange::RemoveOperator { name };
    done(&state, &operator, change, &reason).await
}

/// POST /api/v1/tokens
pub(super) async fn add_token(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    mut body: Object,
) -> Made {
    let mut errors = Vec::new();
    let reason = body.take_reason(&mut errors);
    let name = body.take("name", "a name", &mut errors);
    let role = take_role(&mut body, &mut errors);
    let days = body.take("days", "a number of days, 1 to 366", &mut errors);
    body.nothing_else(&["name", "role", "days", "reason"], &mut errors);
    let (Some(name), Some(role), Some(days), true) = (name, role, days, errors.is_empty()) else {
        return Err(Problem::invalid(errors));
    };
    let change = AccessChange::AddApiToken { name, role, days };
    made(&state, &operator, change, &reason).await
}

/// DELETE /api/v1/tokens/{name}
pub(super) async fn revoke_token(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    Path(name): Path<String>,
    body: Object,
) -> Result<Json<Done>, Problem> {
    let reason = body.only_reason()?;
    let change = AccessChange::RevokeApiToken { name };
    done(&state, &operator, change, &reason).await
}

/// POST /api/v1/agent-tokens
pub(super) async fn add_agent_token(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    mut body: Object,
) -> Made {
    let mut errors = Vec::new();
    let reason = body.take_reason(&mut errors);
    let service = body.take("service", "a service's name", &mut errors);
    body.nothing_else(&["service", "reason"], &mut errors);
    let (Some(service), true) = (service, errors.is_empty()) else {
        return Err(Problem::invalid(errors));
    };
    let change = AccessChange::AddAgentToken { service };
    made(&state, &operator, change, &reason).await
}

/// DELETE /api/v1/agent-tokens/{id}
pub(super) async fn revoke_agent_token(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    Path(id): Path<String>,
    body: Object,
) -> Result<Json<Done>, Problem> {
    let reason = body.only_reason()?;
    let change = AccessChange::RevokeAgentToken { id };
    done(&state, &operator, change, &reason).await
}

fn take_role(body: &mut Object, errors: &mut Vec<FieldProblem>) -> Option<Role> {
    let name: String = body.take("role", ROLES, errors)?;
    let role = role_named(&name);
    if role.is_none() {
        let message = format!("{name:?} is no role: expected {ROLES}");
        errors.push(FieldProblem::new("role", message));
    }
    role
}

async fn made(
    state: &ApiState,
    operator: &hedgerow_dashboard::backend::Operator,
    change: AccessChange,
    reason: &str,
) -> Made {
    let acting = state.acting(operator);
    let once = match acting.change_access(&state.auth, change, reason).await? {
        AccessChanged::Link(path) => Once::Link(path),
        AccessChanged::Token(token) => Once::Token(token),
        AccessChanged::Done => return Err(Problem::internal()),
    };
    Ok((StatusCode::CREATED, Json(once)))
}

async fn done(
    state: &ApiState,
    operator: &hedgerow_dashboard::backend::Operator,
    change: AccessChange,
    reason: &str,
) -> Result<Json<Done>, Problem> {
    let acting = state.acting(operator);
    acting.change_access(&state.auth, change, reason).await?;
    Ok(Json(Done { done: true }))
}
