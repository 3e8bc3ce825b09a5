//! What hedging would cost and buy on a route: from its latencies now, and from its last hours.

use axum::Json;
use axum::extract::{Query, State};
use hedgerow_core::moment::Moment;
use hedgerow_core::whatif::{Goal, Latencies, Percentile, replay};
use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::policy::Policy;
use hedgerow_protocol::units::{Budget, Ratio};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ApiState;
use super::body::Object;
use super::look::Route;
use super::policies;
use super::problem::{FieldProblem, Problem};
use crate::engine::EngineError;
use crate::store::MINUTES_KEPT;
use crate::whatif::json::{Answer, Figure, figure};
use crate::whatif::replayed::Replayed;
use crate::whatif::{JSON_ROWS, figures};

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Asked {
    goal: Option<String>,
    budget: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(super) struct Now {
    attempts: u64,
    window_ms: u64,
    /// The share of slowness that calls have in common with their hedges; null: too few hedges to
    /// tell, and taken as 0.
    phi: Figure,
    threshold_ms: Figure,
    probability: f64,
    hedge_rate: Figure,
    #[serde(flatten)]
    answer: Answer,
}

/// GET /api/v1/routes/{dependency}/{operation}/whatif?goal=p99&budget=0.03: the curve of delays over
/// the last five minutes at most, and what is best for a goal where one is named.
pub(super) async fn now(
    State(state): State<ApiState>,
    Route(route): Route,
    query: Result<Query<Asked>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<Now>, Problem> {
    let Query(asked) = query.map_err(|e| {
        Problem::malformed(format!(
            "{}; expected goal=PERCENTILE and budget=SHARE, or none of them",
            e.body_text()
        ))
    })?;
    let wanted = wanted(&asked)?;
    known(&state, &route)?;
    let latencies = state
        .engine
        .latencies(route.clone())
        .await
        .map_err(|gone| {
            let EngineError::Gone = gone else {
                return Problem::internal();
            };
            Problem::unavailable("the controller is shutting down")
        })?;
    let Some(latencies) = latencies else {
        return Err(Problem::not_found(format!(
            "no call of {route} ended in the last five minutes: there is nothing to compute from"
        )));
    };
    blocking(move || curve(&latencies, wanted)).await?.map(Json)
}

fn curve(latencies: &Latencies, wanted: Option<(Percentile, Budget)>) -> Result<Now, Problem> {
    let sample = latencies.distribution().map_err(|error| {
        tracing::error!(error = %error, "a route's latencies make no distribution");
        Problem::internal()
    })?;
    let phi = latencies.phi.unwrap_or(Ratio::ZERO);
    let goal = wanted.map(|(percentile, budget)| Goal::new(percentile, budget).with_shared(phi));
    let best = goal.as_ref().map(|goal| sample.best(goal));
    let curve = sample.curve(phi, JSON_ROWS);
    Ok(Now {
        attempts: latencies.attempts,
        window_ms: u64::try_from(latencies.window.as_millis()).unwrap_or(u64::MAX),
        phi: latencies.phi.and_then(|phi| figures::number(phi.get())),
        threshold_ms: figure(latencies.threshold),
        probability: latencies.probability.get(),
        hedge_rate: latencies.hedge_rate.and_then(figures::number),
        answer: Answer::new(&sample, &curve, goal.as_ref().zip(best.as_ref())),
    })
}

fn wanted(asked: &Asked) -> Result<Option<(Percentile, Budget)>, Problem> {
    let mut errors = Vec::new();
    let goal = asked.goal.as_deref().map(|text| {
        text.parse()
            .map_err(|e: hedgerow_core::whatif::PercentileError| {
                errors.push(FieldProblem::new("goal", e.to_string()));
            })
    });
    let budget = asked.budget.map(|share| {
        Budget::new(share).map_err(|e| errors.push(FieldProblem::new("budget", e.to_string())))
    });
    match (goal, budget) {
        (None, None) => Ok(None),
        (Some(Ok(goal)), Some(Ok(budget))) => Ok(Some((goal, budget))),
        (goal, budget) => {
            if budget.is_none() {
                let message = "is missing: a goal needs a share of calls it may cost, such as 0.03";
                errors.push(FieldProblem::new("budget", message));
            }
            if goal.is_none() {
                let message = "is missing: a budget needs a goal, such as p99";
                errors.push(FieldProblem::new("goal", message));
            }
            Err(Problem::invalid(errors))
        }
    }
}

/// POST /api/v1/routes/{dependency}/{operation}/replay with {"policy": {...}, "hours": 6}: what a
/// policy would have done with the traffic of the last hours; without one, the newest one.
pub(super) async fn last_hours(
    State(state): State<ApiState>,
    Route(route): Route,
    mut body: Object,
) -> Result<Json<Replayed>, Problem> {
    let mut errors = Vec::new();
    let hours = hours(&mut body, &mut errors);
    let policy = policy(&state, &route, body.0.remove("policy"), &mut errors);
    body.nothing_else(&["policy", "hours"], &mut errors);
    let (Some(hours), Some(policy), true) = (hours, policy, errors.is_empty()) else {
        return Err(Problem::invalid(errors));
    };
    let now = state.engine.clock().now().as_millis();
    let since = Moment::from_millis(now.saturating_sub((hours * 3.6e6) as u64));
    let minutes = state.store.minutes(&route, since).await?;
    if minutes.is_empty() {
        known(&state, &route)?;
    }
    let replayed = blocking(move || Replayed::from(&replay(&minutes, &policy))).await?;
    Ok(Json(replayed))
}

fn hours(body: &mut Object, errors: &mut Vec<FieldProblem>) -> Option<f64> {
    let most = MINUTES_KEPT.as_secs_f64() / 3600.0;
    let Some(value) = body.0.remove("hours") else {
        return Some(most);
    };
    let hours = value
        .as_f64()
        .filter(|hours| *hours > 0.0 && *hours <= most);
    if hours.is_none() {
        let message = format!("{value} cannot be: expected a number above 0 and at most {most}");
        errors.push(FieldProblem::new("hours", message));
    }
    hours
}

fn policy(
    state: &ApiState,
    route: &RouteKey,
    given: Option<Value>,
    errors: &mut Vec<FieldProblem>,
) -> Option<Policy> {
    let mut fields: Map<String, Value> = match given {
        None => {
            let fleet = state.engine.snapshot();
            let in_force = fleet.policy_for(route);
            return Some(in_force.map_or_else(
                || Policy::observing(route.clone().into()),
                |it| it.policy.clone(),
            ));
        }
        Some(Value::Object(fields)) => fields,
        Some(_) => {
            let message = "is not an object: expected the fields of a policy, or nothing";
            errors.push(FieldProblem::new("policy", message));
            return None;
        }
    };
    // What it would have done is asked of a policy that does something.
    fields
        .entry("intent")
        .or_insert_with(|| Value::from("hedge"));
    // For the route, or for its dependency: either may be named.
    let scope = if fields.contains_key("operation") {
        route.clone().into()
    } else {
        route.dependency.clone().into()
    };
    policies::policy(fields, &scope, errors)
}

/// Not found where nobody has reported the route.
fn known(state: &ApiState, route: &RouteKey) -> Result<(), Problem> {
    if state.engine.snapshot().routes.contains_key(route) {
        return Ok(());
    }
    Err(Problem::not_found(format!(
        "no route {route} is known; it appears when an agent reports it"
    )))
}

/// Thousands of rows, or a day of minutes: not on a thread that serves others.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(error = %error, "a computation did not end");
        Problem::internal()
    })
}
