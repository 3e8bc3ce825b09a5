//! The API's description is true: it has every route and no other, and what is answered is as it
//! says, with nothing beside it.

use std::collections::BTreeSet;

use hedgerow_control_plane::api::ROUTES;
use hedgerow_control_plane::auth;
use hedgerow_dashboard::backend::Role;
use reqwest::Method;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::steered::Steered;

fn description() -> Value {
    serde_json::from_str(include_str!("../../../openapi.json")).unwrap()
}

fn operations(description: &Value) -> Vec<(String, String, Value)> {
    let paths = description["paths"].as_object().unwrap();
    let each = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap();
        methods
            .iter()
            .map(|(method, operation)| (method.clone(), path.clone(), operation.clone()))
    });
    each.collect()
}

#[test]
fn every_route_is_described_and_nothing_else() {
    let described: BTreeSet<_> = operations(&description())
        .into_iter()
        .map(|(method, path, _)| (method, path))
        .collect();
    let routes = ROUTES
        .iter()
        .map(|(method, path)| ((*method).into(), (*path).into()));
    assert_eq!(described, routes.collect::<BTreeSet<(String, String)>>());
}

#[test]
fn every_operation_has_a_name_of_its_own_its_parameters_and_its_refusals() {
    let mut names = BTreeSet::new();
    for (method, path, operation) in operations(&description()) {
        let name = operation["operationId"].as_str().unwrap().to_owned();
        assert!(names.insert(name.clone()), "{name} is there twice");
        assert!(
            operation["summary"]
                .as_str()
                .is_some_and(|it| !it.is_empty()),
            "{name}"
        );
        for needed in ["401", "default"] {
            assert!(
                operation["responses"][needed].is_object(),
                "{name} {needed}"
            );
        }
        let in_path: BTreeSet<_> = path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
            .collect();
        let parameters = operation["parameters"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let described: BTreeSet<_> = parameters
            .iter()
            .filter(|it| it["in"] == "path")
            .map(|it| it["name"].as_str().unwrap())
            .collect();
        assert_eq!(in_path, described, "{method} {path}");
    }
}

/// An answer's schema by itself, with what it refers to.
fn schema(description: &Value, operation: &Value, status: u16) -> Option<Value> {
    let answer = &operation["responses"][status.to_string()]["content"]["application/json"];
    let mut schema = answer["schema"].as_object()?.clone();
    schema.insert("components".into(), description["components"].clone());
    Some(schema.into())
}

/// Changes in an order in which each has something to answer about.
fn changes() -> Vec<(&'static str, &'static str, Value)> {
    let reason = || json!({"reason": "a test"});
    vec![
        (
            "put",
            "/api/v1/policies/{scope}",
            json!({"intent": "hedge", "budget": 0.06, "reason": "a test"}),
        ),
        (
            "post",
            "/api/v1/policies/{scope}/plan",
            json!({"intent": "hedge", "budget": 0.02}),
        ),
        (
            "post",
            "/api/v1/policies/{scope}/revert",
            json!({"revision": 1, "reason": "a test"}),
        ),
        (
            "post",
            "/api/v1/silences",
            json!({"minutes": 5, "rule": "SharedSlowdown", "reason": "a test"}),
        ),
        (
            "post",
            "/api/v1/routes/{dependency}/{operation}/replay",
            json!({}),
        ),
        (
            "put",
            "/api/v1/dependencies/{dependency}/utilisation",
            json!({"utilisation": 0.2, "valid_s": 60}),
        ),
        (
            "put",
            "/api/v1/routes/{dependency}/{operation}/duplicates",
            json!({"executed": 3, "over_s": 60}),
        ),
        (
            "post",
            "/api/v1/routes/{dependency}/{operation}/accept-base",
            reason(),
        ),
        (
            "post",
            "/api/v1/routes/{dependency}/{operation}/release",
            reason(),
        ),
        (
            "post",
            "/api/v1/kill",
            json!({"scope": "dependency", "dependency": "search", "engaged": true, "reason": "a test"}),
        ),
    ]
}

/// The same, of who may come in.
fn changes_of_access() -> Vec<(&'static str, &'static str, Value)> {
    let reason = || json!({"reason": "a test"});
    vec![
        (
            "post",
            "/api/v1/operators",
            json!({"name": "ada", "role": "viewer", "reason": "a test"}),
        ),
        (
            "put",
            "/api/v1/operators/{name}",
            json!({"role": "editor", "reason": "a test"}),
        ),
        ("post", "/api/v1/operators/{name}/link", reason()),
        (
            "post",
            "/api/v1/tokens",
            json!({"name": "ada", "role": "viewer", "days": 3, "reason": "a test"}),
        ),
        (
            "post",
            "/api/v1/agent-tokens",
            json!({"service": "shop", "reason": "a test"}),
        ),
    ]
}

#[tokio::test]
async fn what_is_answered_is_as_the_description_says() {
    let steered = Steered::start().await;
    let store = steered.running.app.store();
    let admin = auth::new_api_token(store, "root", Role::Administrator, None)
        .await
        .unwrap();
    let base = format!("http://{}", steered.running.app.http_address());
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let send = async |method: &str, path: &str, body: &Value| {
        let method: Method = method.to_uppercase().parse().unwrap();
        let request = http.request(method, format!("{base}{path}"));
        let request = request.bearer_auth(admin.expose_secret());
        let request = if body.is_null() {
            request
        } else {
            request.json(body)
        };
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    let (_, agents) = send("get", "/api/v1/agents", &Value::Null).await;
    let agents: Value = serde_json::from_str(&agents).unwrap();
    let instance = agents["items"][0]["instance"].as_str().unwrap().to_owned();
    let changes = [changes(), changes_of_access()].concat();
    let description = description();
    let all = operations(&description);
    let find = |method: &str, path: &str| {
        let mut all = all.iter();
        let found = all.find(|(m, p, _)| m == method && p == path);
        found.unwrap_or_else(|| panic!("{method} {path}")).2.clone()
    };
    let looks = all.iter().filter(|(method, ..)| method == "get");
    let looks = looks.map(|(method, path, _)| (method.as_str(), path.as_str(), Value::Null));
    let (mut checked, mut problems) = (0, Vec::new());
    for (method, path, body) in changes.into_iter().chain(looks) {
        let address = path
            .replace("{dependency}", "catalog")
            .replace("{operation}", "get")
            .replace("{scope}", "catalog")
            .replace("{instance}", &instance)
            .replace("{name}", "ada");
        let (status, text) = send(method, &address, &body).await;
        assert!(
            matches!(status, 200 | 201),
            "{method} {address}: {status} {text}"
        );
        let Some(schema) = schema(&description, &find(method, path), status) else {
            continue;
        };
        let Ok(answer) = serde_json::from_str::<Value>(&text) else {
            continue; // A file, as its own tests read it.
        };
        let validator = jsonschema::validator_for(&schema).unwrap();
        for problem in validator.iter_errors(&answer) {
            let problem = format!("{method} {path} {}: {problem}", problem.instance_path());
            problems.push(problem.chars().take(300).collect::<String>());
        }
        checked += 1;
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(checked > 30, "{checked}");
    steered.stop().await;
}
