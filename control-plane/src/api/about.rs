//! What the API says of itself and of the controller.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hedgerow_core::moment::Moment;
use hedgerow_core::view::ControllerView;
use hedgerow_dashboard::backend::{Backend as _, ProcessView};
use serde::Serialize;

use super::ApiState;

/// The description of every route, for programs; `tests/it/api/openapi.rs` holds it to what is
/// answered.
const OPENAPI: &str = include_str!("../../openapi.json");
/// What editors check policy files by.
const POLICY_SCHEMA: &str = include_str!("../../policy.schema.json");

/// The controller itself.
#[derive(Debug, Serialize)]
pub(super) struct About {
    #[serde(flatten)]
    process: ProcessView,
    #[serde(flatten)]
    controller: ControllerView,
    /// When it started.
    started: Moment,
    /// When the figures were taken.
    at: Moment,
    /// The store's life.
    epoch: u64,
    /// Counts decisions.
    tick: u64,
    agents: usize,
    routes: usize,
}

/// GET /api/v1/controller
pub(super) async fn controller(State(state): State<ApiState>) -> Json<About> {
    let fleet = state.engine.snapshot();
    Json(About {
        process: state.ui().process().await,
        controller: fleet.controller.clone(),
        started: fleet.started,
        at: fleet.at,
        epoch: fleet.epoch.0,
        tick: fleet.tick,
        agents: fleet.agents.len(),
        routes: fleet.routes.len(),
    })
}

/// GET /api/v1/openapi.json
pub(super) async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

/// GET /api/v1/schemas/policy.json
pub(super) async fn policy_schema() -> Response {
    let kind = "application/schema+json";
    ([(header::CONTENT_TYPE, kind)], POLICY_SCHEMA).into_response()
}
