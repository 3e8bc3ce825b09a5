//! How busy a dependency is, told by whoever measures it.

use std::time::Duration;

use axum::extract::State;
use axum::{Extension, Json};
use hedgerow_protocol::units::Ratio;

use super::ApiState;
use super::body::Object;
use super::caller::Caller;
use super::look::Dependency;
use super::problem::{FieldProblem, Problem};
use super::steer::Done;

/// PUT /api/v1/dependencies/{dependency}/utilisation: a reading, 0 to 1, that holds for `valid_s`
/// seconds; null takes it back. The busier, the less is hedged.
pub(super) async fn set(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    Dependency(dependency): Dependency,
    mut body: Object,
) -> Result<Json<Done>, Problem> {
    const EXPECTED: &str = "a number from 0 to 1, or null";
    let mut errors = Vec::new();
    let utilisation: Option<Option<f64>> = body.take("utilisation", EXPECTED, &mut errors);
    let utilisation = utilisation.flatten().and_then(|value| {
        let problem = |e| FieldProblem::new("utilisation", format!("{e}: expected {EXPECTED}"));
        Ratio::new(value).map_err(|e| errors.push(problem(e))).ok()
    });
    let valid: Option<f64> = body.take("valid_s", "seconds, 1 to 3600", &mut errors);
    let valid_for = valid.and_then(|seconds| {
        let found = (1.0..=3_600.0).contains(&seconds);
        if !found {
            let problem = format!("{seconds} is out of range: expected 1 to 3600");
            errors.push(FieldProblem::new("valid_s", problem));
        }
        found.then(|| Duration::from_secs_f64(seconds))
    });
    body.nothing_else(&["utilisation", "valid_s"], &mut errors);
    let (Some(valid_for), true) = (valid_for, errors.is_empty()) else {
        return Err(Problem::invalid(errors));
    };
    let acting = state.acting(&operator);
    acting
        .set_utilisation(dependency, utilisation, valid_for)
        .await?;
    Ok(Json(Done { done: true }))
}
