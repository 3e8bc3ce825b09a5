//! The REST API over a real socket.

mod alerts;
mod openapi;
mod policies;
mod receivers;
mod refused;
mod rollout;
mod scopes;
mod steered;
mod whatif;
mod who;
mod whole;

use reqwest::Response;
use serde_json::Value;

use crate::standing::Standing;

async fn problem(response: Response, status: u16) -> Value {
    let address = response.url().clone();
    assert_eq!(response.status(), status, "{address}");
    assert_eq!(
        response.headers()["content-type"],
        "application/problem+json",
        "{address}"
    );
    let problem: Value = response.json().await.unwrap();
    assert_eq!(problem["status"], status);
    for field in ["type", "title", "detail"] {
        assert!(
            problem[field].as_str().is_some_and(|text| !text.is_empty()),
            "{problem}"
        );
    }
    problem
}

fn errors(problem: &Value) -> Vec<(&str, &str)> {
    let errors = problem["errors"].as_array().unwrap();
    errors
        .iter()
        .map(|e| (e["field"].as_str().unwrap(), e["message"].as_str().unwrap()))
        .collect()
}

async fn put(standing: &Standing, token: &str, body: &Value, if_match: Option<&str>) -> Response {
    let mut request = standing
        .request("put", "/api/v1/policies/catalog")
        .bearer_auth(token)
        .json(body);
    if let Some(tag) = if_match {
        request = request.header("if-match", tag);
    }
    request.send().await.unwrap()
}

async fn get(standing: &Standing, token: &str, path: &str) -> Value {
    let response = standing
        .request("get", path)
        .bearer_auth(token)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200, "{path}");
    response.json().await.unwrap()
}

/// An answer's status and body.
async fn answer(standing: &Standing, token: &str, path: &str) -> (u16, Value) {
    let request = standing.request("get", path).bearer_auth(token);
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

/// The same of a change.
async fn change(
    standing: &Standing,
    token: &str,
    (method, path): (&str, &str),
    body: &Value,
) -> (u16, Value) {
    let request = standing.request(method, path).bearer_auth(token).json(body);
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}
