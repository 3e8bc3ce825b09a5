//! Receivers of alerts, and what they got.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::{Extension, Json};
use hedgerow_dashboard::backend::{Delivery, ReceiverView, TestOutcome};
use serde::{Deserialize, Serialize};

use super::ApiState;
use super::body::Object;
use super::caller::Caller;
use super::problem::{FieldProblem, Problem};

/// Notices in one answer, where nothing else is said, and at most.
const ROWS_DEFAULT: u32 = 100;
const ROWS_MAX: u32 = 1000;

/// A list, and what to give as `after` for what follows it; null at the end.
#[derive(Debug, Serialize)]
pub(super) struct Items<T> {
    items: Vec<T>,
    next: Option<i64>,
}

/// GET /api/v1/receivers: those of the configuration, all of them, and how each does.
pub(super) async fn list(
    State(state): State<ApiState>,
) -> Result<Json<Items<ReceiverView>>, Problem> {
    let items = state.receivers.views(&state.store).await?;
    Ok(Json(Items { items, next: None }))
}

/// POST /api/v1/receivers/{name}/test: sends a test notice and says what came of it. Needs no reason,
/// as nothing is changed by it; the body is `{}`.
pub(super) async fn test(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    name: Result<Path<String>, axum::extract::rejection::PathRejection>,
    body: Object,
) -> Result<Json<TestOutcome>, Problem> {
    let Path(name) =
        name.map_err(|_| Problem::malformed("the address: expected a receiver's name in it"))?;
    if let Some(field) = body.0.keys().next() {
        let message = "is not a field here: expected {}";
        return Err(Problem::invalid(vec![FieldProblem::new(
            field.clone(),
            message,
        )]));
    }
    let acting = state.acting(&operator);
    let outcome = acting
        .test_receiver(&state.receivers, &state.store, &name)
        .await?;
    Ok(Json(outcome))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct DeliveriesQuery {
    receiver: Option<String>,
    limit: Option<u32>,
    after: Option<i64>,
}

/// GET /api/v1/deliveries?receiver=&limit=&after=: notices, newest first.
pub(super) async fn deliveries(
    State(state): State<ApiState>,
    query: Result<Query<DeliveriesQuery>, QueryRejection>,
) -> Result<Json<Items<Delivery>>, Problem> {
    let Query(query) = query.map_err(|e| {
        Problem::malformed(format!(
            "{}; expected receiver=NAME, limit=1 to {ROWS_MAX}, after=NUMBER, or none of them",
            e.body_text()
        ))
    })?;
    let limit = query.limit.unwrap_or(ROWS_DEFAULT);
    if !(1..=ROWS_MAX).contains(&limit) {
        let message = format!("{limit} is out of range: expected 1 to {ROWS_MAX}");
        return Err(Problem::invalid(vec![FieldProblem::new("limit", message)]));
    }
    let receiver = query.receiver.as_deref().filter(|name| !name.is_empty());
    let items = state
        .store
        .deliveries_to(receiver, query.after, limit)
        .await?;
    let full = items.len() == limit as usize;
    let next = items.last().filter(|_| full).map(|it| it.id);
    Ok(Json(Items { items, next }))
}
