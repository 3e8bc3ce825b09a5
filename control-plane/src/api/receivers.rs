//! Receivers of alerts, and what they got.

use axum::extract::{Path, State};
use axum::{Extension, Json};
use hedgerow_dashboard::backend::{Delivery, ReceiverView, TestOutcome};
use serde::{Deserialize, Serialize};

use super::ApiState;
use super::body::Object;
use super::caller::Caller;
use super::page::{self, Asked, Page};
use super::problem::{FieldProblem, Problem};

/// GET /api/v1/receivers: those of the configuration, all of them, and how each does.
pub(super) async fn list(
    State(state): State<ApiState>,
) -> Result<Json<Page<ReceiverView>>, Problem> {
    let items = state.receivers.views(&state.store).await?;
    Ok(Json(Page { items, next: None }))
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

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct DeliveriesQuery {
    limit: Option<usize>,
    after: Option<String>,
    receiver: Option<String>,
}

/// GET /api/v1/deliveries?receiver=: notices, newest first.
pub(super) async fn deliveries(
    State(state): State<ApiState>,
    Asked(asked): Asked<DeliveriesQuery>,
) -> Result<Json<Page<Delivery>>, Problem> {
    let limit = page::limit(asked.limit)?;
    let after = page::read("after", asked.after.as_deref())?;
    let receiver = asked.receiver.as_deref().filter(|name| !name.is_empty());
    let rows = u32::try_from(limit).unwrap_or(u32::MAX);
    let items = state.store.deliveries_to(receiver, after, rows).await?;
    Ok(Json(page::full(items, limit, |it| it.id)))
}
