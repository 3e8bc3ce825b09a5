//! What a server executed twice, told by whoever can count it there.

use std::time::Duration;

use axum::extract::State;
use axum::{Extension, Json};
use hedgerow_core::view::DuplicatesView;

use super::ApiState;
use super::body::Object;
use super::caller::Caller;
use super::look::Route;
use super::problem::{FieldProblem, Problem};

/// PUT /api/v1/routes/{dependency}/{operation}/duplicates: over the last `over_s` seconds, all
/// servers of the route together executed `executed` calls that were not the first of their kind.
/// Answers with the hedges that may explain them.
pub(super) async fn set(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    Route(route): Route,
    mut body: Object,
) -> Result<Json<Option<DuplicatesView>>, Problem> {
    let mut errors = Vec::new();
    let executed: Option<u64> = body.take("executed", "a whole number", &mut errors);
    let over: Option<f64> = body.take("over_s", "seconds, 10 to 300", &mut errors);
    let over = over.and_then(|seconds| {
        let found = (10.0..=300.0).contains(&seconds);
        if !found {
            let problem = format!("{seconds} is out of range: expected 10 to 300");
            errors.push(FieldProblem::new("over_s", problem));
        }
        found.then(|| Duration::from_secs_f64(seconds))
    });
    body.nothing_else(&["executed", "over_s"], &mut errors);
    let (Some(executed), Some(over), true) = (executed, over, errors.is_empty()) else {
        return Err(Problem::invalid(errors));
    };
    let acting = state.acting(&operator);
    acting.set_duplicates(route.clone(), executed, over).await?;
    let fleet = state.engine.snapshot();
    let view = fleet.routes.get(&route);
    Ok(Json(view.and_then(|view| view.duplicates)))
}
