//! Policies: reading, setting, revisions.

use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use hedgerow_core::event::Via;
use hedgerow_core::rollout::RolloutPlan;
use hedgerow_core::view::{FleetSnapshot, PolicyView};
use hedgerow_dashboard::backend::{Operator, PolicyRevision, RolloutStep, Saved};
use hedgerow_protocol::ids::{DependencyName, Revision};
use hedgerow_protocol::policy::{Policy, PolicyDraft};
use serde::Serialize;
use serde_json::{Map, Value};

use super::ApiState;
use super::body::{Object, unknown};
use super::caller::Caller;
use super::look::Dependency;
use super::problem::{FieldProblem, Problem};
use crate::acts::Acting;

/// Fields of a body that sets a policy; all but `reason` may be left out.
const FIELDS: [&str; 16] = [
    "dependency",
    "intent",
    "percentile",
    "goal",
    "budget",
    "pool",
    "objective_ms",
    "holdout",
    "error_limit",
    "threshold_min_ms",
    "threshold_max_ms",
    "probation",
    "attempts",
    "hedge_on_error",
    "rollout",
    "reason",
];

/// GET /api/v1/policies
pub(super) async fn list(State(state): State<ApiState>) -> Json<Vec<PolicyView>> {
    Json(state.engine.snapshot().policies.values().cloned().collect())
}

/// GET /api/v1/policies/{dependency}: the policy in force, its revision as ETag.
pub(super) async fn show(
    State(state): State<ApiState>,
    Dependency(dependency): Dependency,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let policy = in_force(&state.engine.snapshot(), &dependency)?;
    let tag = etag(policy.revision);
    let held = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok());
    let same = held.is_some_and(|list| list.split(',').any(|held| held.trim() == tag));
    let mut response = if same {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        Json(policy).into_response()
    };
    let tag = HeaderValue::from_str(&tag).expect("a number in quotes is a header's value");
    response.headers_mut().insert(header::ETAG, tag);
    Ok(response)
}

/// GET /api/v1/policies/{dependency}/history
pub(super) async fn history(
    State(state): State<ApiState>,
    Dependency(dependency): Dependency,
) -> Result<Json<Vec<PolicyRevision>>, Problem> {
    let revisions = state.store.policy_history(&dependency).await?;
    if revisions.is_empty() {
        // Known, and never set: an empty list. Unknown: not found.
        in_force(&state.engine.snapshot(), &dependency)?;
    }
    Ok(Json(revisions))
}

#[derive(Debug, Serialize)]
pub(super) struct Set {
    revision: Revision,
    changed: bool,
}

/// PUT /api/v1/policies/{dependency}: puts a whole policy in force; fields left out take the
/// defaults of a new dependency, as in the configuration file. With `If-Match` only over that
/// revision. With `"rollout": {"stages": [0.05, 0.25, 1], "stay_s": 120}`, each of whose fields may
/// be left out, in steps; otherwise for all agents at once.
pub(super) async fn set(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    Dependency(dependency): Dependency,
    headers: HeaderMap,
    mut body: Object,
) -> Result<Response, Problem> {
    let expected = if_match(&headers, &state.engine.snapshot(), &dependency)?;
    let mut errors = Vec::new();
    let reason = body.take_reason(&mut errors);
    let rollout = rollout(&mut body.0, &mut errors);
    let policy = policy(body.0, &dependency, &mut errors);
    let Some(policy) = policy.filter(|_| errors.is_empty()) else {
        return Err(Problem::invalid(errors));
    };
    let acting = state.acting(&operator);
    let saved = acting
        .set_policy(policy, expected, rollout, &reason)
        .await?;
    Ok(answer(saved))
}

fn answer(saved: Saved) -> Response {
    let tag = HeaderValue::from_str(&etag(saved.revision)).expect("a number in quotes");
    let answer = Json(Set {
        revision: saved.revision,
        changed: saved.changed,
    });
    ([(header::ETAG, tag)], answer).into_response()
}

/// DELETE /api/v1/policies/{dependency}/rollout: takes it back. With `If-Match` only that of this
/// revision.
pub(super) async fn take_back(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    Dependency(dependency): Dependency,
    headers: HeaderMap,
    body: Object,
) -> Result<Response, Problem> {
    let step = RolloutStep::Back;
    step_rollout(&state, &operator, dependency, &headers, body, step).await
}

/// POST /api/v1/policies/{dependency}/rollout/advance: the next step, without waiting for it.
pub(super) async fn advance(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    Dependency(dependency): Dependency,
    headers: HeaderMap,
    body: Object,
) -> Result<Response, Problem> {
    let step = RolloutStep::On;
    step_rollout(&state, &operator, dependency, &headers, body, step).await
}

async fn step_rollout(
    state: &ApiState,
    operator: &Operator,
    dependency: DependencyName,
    headers: &HeaderMap,
    body: Object,
    step: RolloutStep,
) -> Result<Response, Problem> {
    let expected = if_match(headers, &state.engine.snapshot(), &dependency)?;
    let reason = body.only_reason()?;
    let acting = Acting {
        engine: &state.engine,
        operator,
        via: Via::Api,
    };
    let saved = acting
        .step_rollout(dependency, expected, step, &reason)
        .await?;
    Ok(answer(saved))
}

/// Takes the plan of a rollout out; pushes what is wrong with it.
fn rollout(fields: &mut Map<String, Value>, errors: &mut Vec<FieldProblem>) -> Option<RolloutPlan> {
    const EXPECTED: &str = "expected {\"stages\": [0.05, 0.25, 1], \"stay_s\": 120}, or no such \
                            field for all agents at once";
    let mut wrong = |field: String, message: String| {
        errors.push(FieldProblem::new(field, message));
        None
    };
    let Value::Object(plan) = fields.remove("rollout")? else {
        return wrong("rollout".into(), EXPECTED.into());
    };
    let default = RolloutPlan::default();
    let (mut stages, mut stay) = (default.stages().to_vec(), default.stay());
    for (field, value) in plan {
        let name = format!("rollout.{field}");
        match field.as_str() {
            "stages" => match serde_json::from_value(value) {
                Ok(read) => stages = read,
                Err(error) => return wrong(name, format!("{error}: {EXPECTED}")),
            },
            "stay_s" => match value.as_f64().map(Duration::try_from_secs_f64) {
                Some(Ok(read)) => stay = read,
                _ => return wrong(name, format!("expected 30 to 3600, not {value}")),
            },
            _ => return wrong(name, EXPECTED.into()),
        }
    }
    RolloutPlan::new(stages, stay)
        .map_err(|problem| wrong(problem.field().into(), problem.to_string()))
        .ok()
}

/// The policy in force; of a dependency that agents report but nobody set one for, the one it has
/// then, with revision 0.
fn in_force(fleet: &FleetSnapshot, dependency: &DependencyName) -> Result<PolicyView, Problem> {
    if let Some(view) = fleet.policies.get(dependency) {
        return Ok(view.clone());
    }
    if fleet
        .routes
        .keys()
        .any(|route| route.dependency == *dependency)
    {
        let policy = Policy::observing(dependency.clone());
        return Ok(PolicyView {
            revision: Revision(0),
            policy,
            since: fleet.started,
            rollout: None,
        });
    }
    Err(Problem::not_found(format!(
        "no dependency {dependency} is known; it appears when an agent reports it or a policy is set for it"
    )))
}

fn etag(revision: Revision) -> String {
    format!("\"{revision}\"")
}

fn if_match(
    headers: &HeaderMap,
    fleet: &FleetSnapshot,
    dependency: &DependencyName,
) -> Result<Option<Revision>, Problem> {
    let Some(value) = headers.get(header::IF_MATCH) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        // Any revision, as long as there is one.
        let set = fleet.policies.get(dependency).map(|view| view.revision);
        return set.map(Some).ok_or_else(|| {
            Problem::not_found(format!(
                "no policy has been set for {dependency}: nothing matches *"
            ))
        });
    }
    text.strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .and_then(|text| text.parse().ok())
        .map(|revision| Some(Revision(revision)))
        .ok_or_else(|| {
            Problem::malformed(
                "If-Match: expected the ETag of the policy you edited, such as \"7\", or nothing",
            )
        })
}

/// Reads a policy; every field that cannot stand is pushed to `errors`.
pub(super) fn policy(
    mut fields: Map<String, Value>,
    dependency: &DependencyName,
    errors: &mut Vec<FieldProblem>,
) -> Option<Policy> {
    match fields.get("dependency") {
        None => {}
        Some(Value::String(name)) if name.trim() == dependency.as_str() => {}
        Some(_) => {
            let message = format!("expected {dependency}, as in the address, or nothing");
            errors.push(FieldProblem::new("dependency", message));
        }
    }
    fields.insert("dependency".into(), dependency.as_str().into());
    // Each by itself: serde's own error would not name the field, and stop at the first.
    let before = errors.len();
    for (field, value) in &fields {
        if !FIELDS.contains(&field.as_str()) {
            errors.push(unknown(field, &FIELDS));
        } else if let Err(problem) = one_field(dependency, field, value) {
            errors.push(FieldProblem::new(field.clone(), problem));
        }
    }
    if errors.len() > before {
        return None;
    }
    let draft: PolicyDraft = serde_json::from_value(Value::Object(fields))
        .map_err(|e| errors.push(FieldProblem::new("policy", e.to_string())))
        .ok()?;
    Policy::try_from(draft)
        .map_err(|refused| {
            errors.extend(
                refused
                    .0
                    .into_iter()
                    .map(|e| FieldProblem::new(e.field, e.message)),
            );
        })
        .ok()
}

fn one_field(dependency: &DependencyName, field: &str, value: &Value) -> Result<(), String> {
    let mut alone = Map::new();
    alone.insert("dependency".into(), dependency.as_str().into());
    alone.insert(field.into(), value.clone());
    serde_json::from_value::<PolicyDraft>(Value::Object(alone))
        .map(|_| ())
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use hedgerow_protocol::units::Quantile;

    use super::*;

    fn read(json: &str) -> Result<Policy, Vec<(String, String)>> {
        let Value::Object(fields) = serde_json::from_str(json).unwrap() else {
            unreachable!()
        };
        let mut errors = Vec::new();
        policy(
            fields,
            &DependencyName::new("catalog").unwrap(),
            &mut errors,
        )
        .filter(|_| errors.is_empty())
        .ok_or_else(|| {
            errors
                .into_iter()
                .map(|e| (e.field.into(), e.message))
                .collect()
        })
    }

    #[test]
    fn every_field_of_a_policy_is_a_field_here() {
        let draft = PolicyDraft {
            threshold_min_ms: Some(1.0),
            threshold_max_ms: Some(2.0),
            goal: Some(0.99),
            pool: Some("checkout".into()),
            objective_ms: Some(100.0),
            ..Policy::observing(DependencyName::new("catalog").unwrap()).into()
        };
        let Value::Object(fields) = serde_json::to_value(draft).unwrap() else {
            unreachable!()
        };
        let mut known: Vec<_> = fields
            .keys()
            .map(String::as_str)
            .chain(["rollout", "reason"])
            .collect();
        let mut expected = FIELDS;
        known.sort_unstable();
        expected.sort_unstable();
        assert_eq!(known, expected);
    }

    #[test]
    fn b60_null_blank_and_unknown_fields_are_all_named_at_once() {
        let errors =
            read(r#"{"percentile": null, "budget": "x", "percentil": 0.95, "dependency": ""}"#)
                .unwrap_err();
        let fields: Vec<_> = errors.iter().map(|(field, _)| field.as_str()).collect();
        assert_eq!(fields, ["dependency", "budget", "percentil", "percentile"]);
        assert!(
            errors[2]
                .1
                .contains("expected one of dependency, intent, percentile")
        );
    }

    #[test]
    fn c06_a_percentile_of_95_is_refused_with_the_accepted_range() {
        let errors = read(r#"{"percentile": 95}"#).unwrap_err();
        assert_eq!(errors[0].0, "percentile");
        assert!(
            errors[0].1.contains("from 0.92 to 0.999"),
            "{}",
            errors[0].1
        );
    }

    #[test]
    fn a_goal_and_a_pool_are_taken_and_a_pool_without_an_objective_is_refused() {
        let policy = read(r#"{"goal": 0.999, "pool": "checkout", "objective_ms": 120}"#).unwrap();
        assert_eq!(policy.goal().map(Quantile::get), Some(0.999));
        assert_eq!(
            policy.pool().map(ToString::to_string),
            Some("checkout".into())
        );
        let errors = read(r#"{"goal": 99, "pool": "checkout"}"#).unwrap_err();
        let fields: Vec<_> = errors.iter().map(|(field, _)| field.as_str()).collect();
        assert_eq!(fields, ["goal", "objective_ms"]);
    }

    #[test]
    fn fields_left_out_take_the_defaults() {
        let policy = read(r#"{"intent": "hedge"}"#).unwrap();
        assert!((policy.budget().get() - 0.08).abs() < 1e-12);
        assert_eq!(policy.dependency().as_str(), "catalog");
    }
}
