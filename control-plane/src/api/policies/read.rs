//! A policy, and the plan of its rollout, from a body.

use std::time::Duration;

use hedgerow_core::rollout::RolloutPlan;
use hedgerow_protocol::policy::{Policy, PolicyDraft, PolicyScope};
use serde_json::{Map, Value};

use crate::api::body::unknown;
use crate::api::problem::FieldProblem;

/// Fields of a body that sets a policy, beside those of a draft.
const BESIDE: [&str; 2] = ["rollout", "reason"];

/// Reads a policy; every field that cannot stand is pushed to `errors`.
pub(in crate::api) fn policy(
    mut fields: Map<String, Value>,
    scope: &PolicyScope,
    errors: &mut Vec<FieldProblem>,
) -> Option<Policy> {
    let named = [
        ("dependency", Some(scope.dependency_text().to_owned())),
        ("operation", operation_of(scope)),
    ];
    for (field, expected) in named {
        match (fields.get(field), &expected) {
            (None, _) => {}
            (Some(Value::String(name)), Some(expected)) if name.trim() == expected => {}
            (Some(_), expected) => {
                let expected = expected
                    .as_deref()
                    .map_or_else(String::new, |it| format!("{it}, as in the address, or "));
                errors.push(FieldProblem::new(
                    field,
                    format!("expected {expected}nothing"),
                ));
            }
        }
        match expected {
            Some(expected) => fields.insert(field.into(), expected.into()),
            None => fields.remove(field),
        };
    }
    // Each by itself: serde's own error would not name the field, and stop at the first.
    let before = errors.len();
    for (field, value) in &fields {
        if !PolicyDraft::FIELDS.contains(&field.as_str()) {
            let known = [&PolicyDraft::FIELDS[..], &BESIDE].concat();
            errors.push(unknown(field, &known));
        } else if let Err(problem) = one_field(scope, field, value) {
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

fn one_field(scope: &PolicyScope, field: &str, value: &Value) -> Result<(), String> {
    let mut alone = Map::new();
    alone.insert("dependency".into(), scope.dependency_text().into());
    alone.insert(field.into(), value.clone());
    serde_json::from_value::<PolicyDraft>(Value::Object(alone))
        .map(|_| ())
        .map_err(|error| error.to_string())
}

fn operation_of(scope: &PolicyScope) -> Option<String> {
    scope.operation().map(ToString::to_string)
}

/// Takes the plan of a rollout out; pushes what is wrong with it.
pub(super) fn rollout(
    fields: &mut Map<String, Value>,
    errors: &mut Vec<FieldProblem>,
) -> Option<RolloutPlan> {
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

#[cfg(test)]
mod tests {
    use hedgerow_protocol::units::Quantile;

    use super::*;

    fn read(json: &str) -> Result<Policy, Vec<(String, String)>> {
        let Value::Object(fields) = serde_json::from_str(json).unwrap() else {
            unreachable!()
        };
        let mut errors = Vec::new();
        policy(fields, &"catalog".parse().unwrap(), &mut errors)
            .filter(|_| errors.is_empty())
            .ok_or_else(|| {
                errors
                    .into_iter()
                    .map(|e| (e.field.into(), e.message))
                    .collect()
            })
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
                .contains("expected one of dependency, operation, intent")
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
        assert_eq!(policy.scope().to_string(), "catalog");
    }
}
