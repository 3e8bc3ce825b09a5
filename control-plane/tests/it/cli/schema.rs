//! The JSON Schema of policy files is true: its ranges are the protocol's, its fields are those that
//! are read, and what it takes the program takes.

use std::path::{Path, PathBuf};

use hedgerow_core::rollout::{STAGES_MAX, STAY_DEFAULT, STAY_MAX, STAY_MIN};
use hedgerow_protocol::ids::NAME_LEN_MAX;
use hedgerow_protocol::limits::{ATTEMPTS_MAX, BUDGET_MAX};
use hedgerow_protocol::policy::{
    ERROR_LIMIT_RANGE, GOAL_RANGE, HOLDOUT_MAX, PERCENTILE_RANGE, Policy, PolicyDraft,
};
use hedgerow_protocol::units::{AttemptLimit, Budget, millis};
use serde_json::{Value, json};

use super::answering::Answering;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn schema() -> Value {
    let text = std::fs::read_to_string(folder().join("policy.schema.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_schemas_ranges_are_the_protocols() {
    let schema = schema();
    let field = |name: &str| schema["$defs"]["policy"]["properties"][name].clone();
    let number = |value: &Value| value.as_f64().unwrap();
    let range = |name: &str| {
        let field = field(name);
        (number(&field["minimum"]), number(&field["maximum"]))
    };
    assert_eq!(range("percentile"), PERCENTILE_RANGE);
    assert_eq!(range("goal"), GOAL_RANGE);
    assert_eq!(range("holdout"), (0.0, HOLDOUT_MAX));
    assert_eq!(range("error_limit"), ERROR_LIMIT_RANGE);
    assert_eq!(range("attempts"), (2.0, f64::from(ATTEMPTS_MAX)));
    assert!(AttemptLimit::new(1).is_err() && AttemptLimit::new(2).is_ok());
    let budget = field("budget");
    assert_eq!(number(&budget["exclusiveMinimum"]), 0.0);
    assert_eq!(number(&budget["maximum"]), BUDGET_MAX);
    assert!(Budget::new(0.0).is_err());
    let ms = &schema["$defs"]["milliseconds"];
    let (least, most) = (number(&ms["minimum"]), number(&ms["maximum"]));
    assert!(millis(least).is_ok() && millis(least * 0.999).is_err());
    assert!(millis(most).is_ok() && millis(most * 1.001).is_err());
    let length = number(&schema["$defs"]["name"]["maxLength"]) as usize;
    assert_eq!(length, NAME_LEN_MAX);

    let plan = &field("rollout")["properties"];
    let seconds = |name: &str| number(&plan["stay_s"][name]);
    assert_eq!(seconds("minimum"), STAY_MIN.as_secs_f64());
    assert_eq!(seconds("maximum"), STAY_MAX.as_secs_f64());
    assert_eq!(seconds("default"), STAY_DEFAULT.as_secs_f64());
    assert_eq!(plan["stages"]["maxItems"], STAGES_MAX);
}

#[test]
fn the_schemas_defaults_are_those_of_a_new_dependency() {
    let schema = schema();
    let fields = schema["$defs"]["policy"]["properties"].as_object().unwrap();
    let observing = serde_json::to_value(PolicyDraft::from(Policy::observing(
        "catalog".parse().unwrap(),
    )))
    .unwrap();
    for (field, value) in observing.as_object().unwrap() {
        if !matches!(field.as_str(), "dependency" | "operation") {
            assert_eq!(fields[field]["default"], *value, "{field}");
        }
    }
    for (field, about) in fields {
        let has_default = observing.get(field).is_some_and(|value| !value.is_null());
        let is_name = matches!(field.as_str(), "dependency" | "operation");
        assert!(
            is_name || has_default == about.get("default").is_some(),
            "{field}"
        );
        assert!(
            about["description"]
                .as_str()
                .is_some_and(|it| it.ends_with('.')),
            "{field}"
        );
    }
}

fn examples() -> Vec<PathBuf> {
    let folder = folder().join("../deploy/policies");
    let files = std::fs::read_dir(folder).unwrap();
    let files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 2, "{files:?}");
    files
}

/// As the program reads a file: by way of a controller that is sent everything, and says so.
async fn read(path: &Path) -> Vec<Value> {
    let controller = Answering::start().await;
    controller.everything(&json!({
        "before": null, "after": {}, "changes": [], "notes": [], "revision": 0,
    }));
    let ran = controller
        .run(&["policy", "diff", "-f", path.to_str().unwrap(), "-o", "json"])
        .await;
    let planned = ran.said(6, &[]).json();
    let scopes = planned.as_array().unwrap().iter();
    scopes
        .map(|planned| {
            let scope = planned["scope"].as_str().unwrap().to_owned();
            let encoded = scope.replace(' ', "%20").replace('*', "%2A");
            let asked = controller.asked(&format!("POST /api/v1/policies/{encoded}/plan"));
            let mut body = asked[0].body.clone();
            let (dependency, operation) = scope
                .split_once(' ')
                .map_or((scope.as_str(), None), |(dependency, operation)| {
                    (dependency, Some(operation))
                });
            body["dependency"] = dependency.into();
            if let Some(operation) = operation {
                body["operation"] = operation.into();
            }
            body
        })
        .collect()
}

#[tokio::test]
async fn the_examples_fit_the_schema_and_are_read() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for path in examples() {
        let policies = read(&path).await;
        assert!(!policies.is_empty());
        for document in [json!({"policies": policies}), policies[0].clone()] {
            let problems: Vec<_> = validator
                .iter_errors(&document)
                .map(|it| it.to_string())
                .collect();
            assert!(problems.is_empty(), "{}: {problems:?}", path.display());
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let first = text.lines().next().unwrap();
        let named = first
            .strip_prefix("# yaml-language-server: $schema=")
            .unwrap();
        assert!(path.parent().unwrap().join(named).is_file(), "{named}");
    }
}

/// What one refuses the other does: an editor and the program do not argue.
#[tokio::test]
async fn what_the_schema_refuses_the_program_refuses_too() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let controller = Answering::start().await;
    controller.everything(&json!({"before": null, "changes": [], "revision": 0}));
    let cases = [
        (json!({"dependency": "catalog"}), true),
        (
            json!({"dependency": "catalog", "intent": "off", "goal": 0.99}),
            true,
        ),
        (
            json!({"policies": [{"dependency": "cat*", "attempts": 3}]}),
            true,
        ),
        (
            json!({"dependency": "catalog", "pool": "p", "objective_ms": 100}),
            true,
        ),
        (
            json!({"dependency": "catalog", "rollout": {"stages": [0.5, 1]}}),
            true,
        ),
        (json!({"budget": 0.05}), false),
        (json!({"dependency": "catalog", "budget": 0}), false),
        (json!({"dependency": "catalog", "budget": 0.26}), false),
        (json!({"dependency": "catalog", "percentile": 95}), false),
        (json!({"dependency": "catalog", "goal": null}), false),
        (json!({"dependency": "catalog", "attempts": 4}), false),
        (json!({"dependency": "catalog", "attempts": 2.5}), false),
        (json!({"dependency": "catalog", "intent": "on"}), false),
        (json!({"dependency": "catalog", "intent": false}), false),
        (json!({"dependency": "catalog", "probation": "yes"}), false),
        (
            json!({"dependency": "catalog", "threshold_min_ms": 0.05}),
            false,
        ),
        (json!({"dependency": "catalog", "pool": "p"}), false),
        (json!({"dependency": "catalog", "percentil": 0.95}), false),
        (json!({"dependency": 7}), false),
        (json!({"dependency": "catalog", "rollout": [0.5, 1]}), false),
        (json!({"policies": {"dependency": "catalog"}}), false),
        (json!({"policies": [], "dependency": "catalog"}), false),
        (json!([{"dependency": "catalog"}]), false),
    ];
    for (document, fits) in cases {
        assert_eq!(
            validator.is_valid(&document),
            fits,
            "the schema: {document}"
        );
        // JSON is YAML.
        controller.file("p.yaml", &document.to_string());
        let ran = controller.run(&["policy", "diff", "-f", "p.yaml"]).await;
        assert_eq!(
            ran.code,
            if fits { 6 } else { 1 },
            "the program: {document}: {ran:?}"
        );
    }
}
