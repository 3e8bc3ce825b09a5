//! What is refused, and how it is said.

use hedgerow_dashboard::backend::Role;
use reqwest::Response;
use serde_json::json;

use super::{errors, get, problem, put};
use crate::standing::Standing;

#[tokio::test]
async fn a_kill_switch_says_exactly_what_it_is_for_or_does_nothing() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Operator).await;
    let table = [
        (json!({"engaged": true, "reason": "x"}), "scope"),
        (
            json!({"scope": "all", "engaged": true, "reason": "x"}),
            "scope",
        ),
        (
            json!({"scope": "dependency", "engaged": true, "reason": "x"}),
            "dependency",
        ),
        (
            json!({"scope": "dependency", "dependency": "<b>", "engaged": true, "reason": "x"}),
            "dependency",
        ),
        (
            json!({"scope": "everything", "dependency": "catalog", "engaged": true, "reason": "x"}),
            "dependency",
        ),
        (
            json!({"scope": "everything", "engaged": "yes", "reason": "x"}),
            "engaged",
        ),
        (json!({"scope": "everything", "engaged": true}), "reason"),
        (
            json!({"scope": "everything", "engaged": true, "reason": "x", "engage": false}),
            "engage",
        ),
        (
            json!({"scope": "everything", "engaged": true, "reason": "x".repeat(1001)}),
            "reason",
        ),
    ];
    for (body, field) in table {
        let request = standing
            .request("post", "/api/v1/kill")
            .bearer_auth(&token)
            .json(&body);
        let problem = problem(request.send().await.unwrap(), 422).await;
        assert!(
            errors(&problem).iter().any(|(f, _)| *f == field),
            "{body}: {problem}"
        );
    }
    assert!(standing.engine.snapshot().kills.is_empty());
}

async fn send(
    standing: &Standing,
    token: &str,
    (method, path): (&str, &str),
    kind: &str,
    body: impl Into<Vec<u8>>,
) -> Response {
    let request = standing.request(method, path).bearer_auth(token);
    request
        .header("content-type", kind)
        .body(body.into())
        .send()
        .await
        .unwrap()
}

#[tokio::test]
async fn what_is_not_there_or_cannot_be_asked_for_is_a_problem() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Administrator).await;
    for (path, status) in [
        ("/api/v1/nothing", 404),
        ("/api/v1/routes/catalog/pkg.Svc%2FGet", 404),
        ("/api/v1/policies/catalog", 404),
        ("/api/v1/policies/catalog/history", 404),
        ("/api/v1/policies/%3Cb%3E", 422),
        ("/api/v1/routes/catalog/%3Cb%3E", 422),
        ("/api/v1/audit?limit=0", 422),
        ("/api/v1/audit?limit=1001", 422),
        ("/api/v1/audit?dependency=%3Cb%3E", 422),
        ("/api/v1/audit?limit=x", 400),
        ("/api/v1/audit?befor=1", 400),
        ("/api/v1/audit?since=yesterday", 422),
        ("/api/v1/routes?state=gone", 422),
        ("/api/v1/policies?after=%3Cb%3E", 422),
        ("/api/v1/policies/cat*%20get", 422),
        ("/api/v1/agents?limit=0", 422),
    ] {
        problem(send(&standing, &token, ("get", path), "", "").await, status).await;
    }
    let response = send(
        &standing,
        &token,
        ("patch", "/api/v1/policies/catalog"),
        "",
        "",
    )
    .await;
    let allowed = response.headers()["allow"].to_str().unwrap().to_owned();
    assert!(
        allowed.contains("PUT") && allowed.contains("GET"),
        "{allowed}"
    );
    problem(response, 405).await;
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_a_problem() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Administrator).await;
    let kill = ("post", "/api/v1/kill");
    let json = "application/json";
    problem(send(&standing, &token, kill, "text/plain", "{}").await, 415).await;
    for body in ["", "{", "[]", "7", "\"x\"", "{\"reason\": \"x\"} {}"] {
        problem(send(&standing, &token, kill, json, body).await, 400).await;
    }
    problem(send(&standing, &token, kill, json, b"\xff\xfe").await, 400).await;
    let twice = r#"{"scope": "everything", "engaged": false, "engaged": true, "reason": "x"}"#;
    let twice = problem(send(&standing, &token, kill, json, twice).await, 400).await;
    assert!(
        twice["detail"]
            .as_str()
            .unwrap()
            .contains("\"engaged\" is there twice"),
        "{twice}"
    );
    let large = send(&standing, &token, kill, json, vec![b' '; 64 * 1024 + 1]).await;
    let large = problem(large, 413).await;
    assert!(
        large["detail"].as_str().unwrap().contains("65536"),
        "{large}"
    );
    // Deeply nested, and a number no float holds: refused, not fallen over.
    problem(
        send(&standing, &token, kill, json, vec![b'['; 60_000]).await,
        400,
    )
    .await;
    let number = r#"{"percentile": 1e999, "reason": "x"}"#;
    let put = ("put", "/api/v1/policies/catalog");
    problem(send(&standing, &token, put, json, number).await, 400).await;
}

#[tokio::test]
async fn the_record_is_read_page_by_page() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Editor).await;
    for i in 0..5 {
        let body = json!({"intent": "hedge", "budget": 0.05 + f64::from(i) * 0.01, "reason": format!("step {i}")});
        assert_eq!(put(&standing, &token, &body, None).await.status(), 200);
    }
    let mut before = String::new();
    let mut reasons = Vec::new();
    loop {
        let path = format!("/api/v1/audit?dependency=catalog&limit=2{before}");
        let page = get(&standing, &token, &path).await;
        for line in page["items"].as_array().unwrap() {
            reasons.push(line["reason"].as_str().unwrap().to_owned());
        }
        match page["next"].as_str() {
            Some(next) => before = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(reasons, ["step 4", "step 3", "step 2", "step 1", "step 0"]);
}

#[tokio::test]
async fn s08_a_reason_reads_as_it_was_written_or_is_refused() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Operator).await;
    let kill = async |reason: &str| {
        let body = json!({"scope": "everything", "engaged": true, "reason": reason});
        let path = ("post", "/api/v1/kill");
        send(
            &standing,
            &token,
            path,
            "application/json",
            body.to_string(),
        )
        .await
    };
    for (reason, said) in [
        ("fire\nada released it", "U+000A"),
        ("fire\u{202E}erif", "U+202E"),
        ("\u{200B}\u{200B}", "cannot be seen"),
    ] {
        let refused = problem(kill(reason).await, 422).await;
        let text = refused.to_string();
        assert!(text.contains(said) && text.contains("expected"), "{text}");
    }
    assert!(standing.engine.snapshot().kills.is_empty());
    assert!(kill("fire").await.status().is_success());
}

#[tokio::test]
async fn a_kill_switch_for_what_nobody_knows_stands_and_says_so() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Operator).await;
    let kill = async |engaged: bool| {
        let body = json!({"scope": "dependency", "dependency": "catalogue", "engaged": engaged, "reason": "fire"});
        let path = ("post", "/api/v1/kill");
        let answer = send(
            &standing,
            &token,
            path,
            "application/json",
            body.to_string(),
        )
        .await;
        answer.json::<serde_json::Value>().await.unwrap()
    };
    let engaged = json!({"changed": true, "acked": {"n": 0, "m": 0}, "known": false});
    assert_eq!(kill(true).await, engaged);
    assert_eq!(standing.engine.snapshot().kills.len(), 1);
    assert_eq!(
        kill(false).await,
        json!({"changed": true, "known": false}),
        "nothing is in force any more"
    );
}
