//! Switchback: the whole fleet with hedging and without, in turns.

use axum::extract::State;
use axum::{Extension, Json};
use hedgerow_core::event::SWITCHBACK_ROUNDS;
use hedgerow_core::moment::Moment;
use serde::Serialize;

use super::ApiState;
use super::body::Object;
use super::caller::Caller;
use super::look::Route;
use super::problem::Problem;
use super::steer::Done;

#[derive(Debug, Serialize)]
pub(super) struct Started {
    rounds: u32,
    /// When it ends by itself; null where it has ended already.
    ends: Option<Moment>,
}

/// POST /api/v1/routes/{dependency}/{operation}/switchback: begins one of `rounds` rounds, a minute
/// each. How it goes and what came of it is in the route, under `switchback`.
pub(super) async fn start(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    Route(route): Route,
    mut body: Object,
) -> Result<Json<Started>, Problem> {
    let mut errors = Vec::new();
    let reason = body.take_reason(&mut errors);
    let rounds = if body.0.contains_key("rounds") {
        body.take("rounds", "a whole number, 3 to 60", &mut errors)
    } else {
        Some(SWITCHBACK_ROUNDS)
    };
    body.nothing_else(&["rounds", "reason"], &mut errors);
    let (Some(rounds), true) = (rounds, errors.is_empty()) else {
        return Err(Problem::invalid(errors));
    };
    let acting = state.acting(&operator);
    acting
        .start_switchback(route.clone(), rounds, &reason)
        .await?;
    let fleet = state.engine.snapshot();
    let view = fleet.routes.get(&route);
    let running = view.and_then(|view| view.switchback.as_ref());
    let ends = running.filter(|it| it.ended.is_none()).map(|it| it.ends);
    Ok(Json(Started { rounds, ends }))
}

/// DELETE of the same: ends it; what was measured so far stays.
pub(super) async fn stop(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    Route(route): Route,
    body: Object,
) -> Result<Json<Done>, Problem> {
    let reason = body.only_reason()?;
    let acting = state.acting(&operator);
    acting.stop_switchback(route, &reason).await?;
    Ok(Json(Done { done: true }))
}
