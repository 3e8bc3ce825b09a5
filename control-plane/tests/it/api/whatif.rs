//! What hedging would cost and buy, over the API: now, and in the last hours.

use std::time::Duration;

use hedgerow_control_plane::auth;
use hedgerow_control_plane::store::Store;
use hedgerow_dashboard::backend::Role;
use hedgerow_protocol::ids::Sequence;
use hedgerow_protocol::latency::{SparseHistogram, bucket_of};
use hedgerow_protocol::report::Report;
use hedgerow_protocol::session::{AgentMessage, SentReport};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::{errors, problem};
use crate::raw_agent::RawAgent;
use crate::replay::two_hours;
use crate::running::{Running, SHOP_TOKEN, route};
use crate::standing::{Standing, eventually};

const REPLAY: &str = "/api/v1/routes/catalog/get/replay";
const WHATIF: &str = "/api/v1/routes/catalog/get/whatif";

async fn replay(standing: &Standing, token: &str, body: &Value) -> reqwest::Response {
    standing
        .request("post", REPLAY)
        .bearer_auth(token)
        .json(body)
        .send()
        .await
        .unwrap()
}

#[tokio::test]
async fn the_last_hours_are_replayed_under_the_policy_in_force_or_another() {
    let standing = Standing::start_in(two_hours().await).await;
    let token = standing.token("ci", Role::Viewer).await;
    let answer = async |body: Value| -> Value {
        let response = replay(&standing, &token, &body).await;
        assert_eq!(response.status(), 200);
        response.json().await.unwrap()
    };
    let stands = answer(json!({})).await;
    assert_eq!(stands["minutes"], 120);
    assert_eq!(stands["rows"].as_array().unwrap().len(), 120);
    assert!(!stands["assumed"].as_array().unwrap().is_empty());
    let rate = |replayed: &Value| replayed["hedge_rate"].as_f64().unwrap();
    let p95 = |replayed: &Value, which: &str| replayed[which]["p95"].as_f64().unwrap();
    assert!(rate(&stands) > 0.02);

    let last = answer(json!({"hours": 1.5, "policy": {"percentile": 0.94}})).await;
    assert!((88..=90).contains(&last["minutes"].as_u64().unwrap()));
    assert!(p95(&last, "hedged_ms") < p95(&last, "unhedged_ms"));
    let off = answer(json!({"policy": {"intent": "off"}})).await;
    assert_eq!(rate(&off), 0.0);
    assert_eq!(p95(&off, "hedged_ms"), p95(&off, "unhedged_ms"));
    standing.stop().await;
}

#[tokio::test]
async fn b60_what_cannot_be_replayed_or_computed_is_said_by_field() {
    let standing = Standing::start_in(two_hours().await).await;
    let token = standing.token("ci", Role::Viewer).await;
    for (body, field, expected) in [
        (json!({"hours": 25}), "hours", "at most 24"),
        (json!({"hours": "6"}), "hours", "at most 24"),
        (
            json!({"policy": 7}),
            "policy",
            "expected the fields of a policy",
        ),
        (
            json!({"policy": {"percentile": 95}}),
            "percentile",
            "from 0.92 to 0.999",
        ),
        (
            json!({"policy": {"percentil": 0.95}}),
            "percentil",
            "expected one of",
        ),
        (
            json!({"reason": "x"}),
            "reason",
            "expected one of policy, hours",
        ),
    ] {
        let problem = problem(replay(&standing, &token, &body).await, 422).await;
        let errors = errors(&problem);
        assert!(
            errors
                .iter()
                .any(|(at, message)| *at == field && message.contains(expected)),
            "{body}: {errors:?}"
        );
    }
    eventually("the route is known", async || {
        standing.engine.snapshot().routes.contains_key(&route())
    })
    .await;
    let ask = async |path: &str| {
        standing
            .request("get", path)
            .bearer_auth(&token)
            .send()
            .await
            .unwrap()
    };
    for (query, status, expected) in [
        ("?goal=p99", 422, "a goal needs a share"),
        ("?budget=0.03", 422, "a budget needs a goal"),
        ("?goal=99&budget=0.03", 422, "p99.9"),
        ("?goal=p99&budget=3", 422, "at most 0.25"),
        ("?gaol=p99", 400, "expected goal=PERCENTILE"),
        ("", 404, "no call of catalog get ended"),
    ] {
        let problem = problem(ask(&format!("{WHATIF}{query}")).await, status).await;
        assert!(problem.to_string().contains(expected), "{query}: {problem}");
    }
    let unknown = problem(ask("/api/v1/routes/cart/put/whatif").await, 404).await;
    assert!(
        unknown["detail"]
            .as_str()
            .unwrap()
            .contains("no route cart put")
    );
    standing.stop().await;
}

#[tokio::test]
async fn the_curve_is_that_of_what_agents_reported() {
    let running = Running::start().await;
    let agent = RawAgent::attach(&running.grpc(), SHOP_TOKEN).await;
    let bucket = |ms| bucket_of(Duration::from_millis(ms)) as u16;
    let mut report = agent.route_report(&route(), 1_000);
    report.primary.done =
        SparseHistogram::try_from_pairs([(bucket(10), 940), (bucket(200), 60)]).unwrap();
    report.treated = report.primary.done.clone();
    agent
        .send(AgentMessage::Report(SentReport {
            held_hash: agent.held_hash(),
            report: Report {
                sequence: Sequence(1),
                covers: Duration::from_secs(1),
                wall_clock_ms: 1_700_000_000_000,
                routes: vec![report],
            },
        }))
        .await;
    let store = Store::open(&running.folder.path().join("hedgerow.db"))
        .await
        .unwrap();
    let token = auth::new_api_token(&store, "ci", Role::Viewer, None)
        .await
        .unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let address = format!(
        "http://{}{WHATIF}?goal=p99&budget=0.06",
        running.app.http_address()
    );
    let begun = tokio::time::Instant::now();
    let answer: Value = loop {
        let response = client
            .get(&address)
            .bearer_auth(token.expose_secret())
            .send()
            .await
            .unwrap();
        if response.status() == 200 {
            break response.json().await.unwrap();
        }
        assert!(
            begun.elapsed() < crate::running::SOON,
            "{}",
            response.status()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(answer["attempts"], 1_000);
    assert_eq!(answer["phi"], Value::Null);
    let hedged = answer["hedged"].as_array().unwrap();
    assert!((hedged[0]["extra_load"].as_f64().unwrap() - 0.06).abs() < 1e-9);
    let ms = |value: &Value| value.as_f64().unwrap();
    assert!((ms(&answer["unhedged_ms"]["p99"]) / 200.0 - 1.0).abs() < 0.03);
    assert!((ms(&answer["goal"]["goal_ms"]) / 20.0 - 1.0).abs() < 0.03);
    running.app.stop().await;
}

#[tokio::test]
async fn s10_nobody_is_told_nothing() {
    let standing = Standing::start().await;
    for (method, path) in [("get", WHATIF), ("post", REPLAY)] {
        let nobody = standing.request(method, path).send().await.unwrap();
        problem(nobody, 401).await;
    }
    standing.stop().await;
}
