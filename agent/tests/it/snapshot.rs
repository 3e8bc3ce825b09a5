//! Snapshots, as a debug page gives them out.

use std::collections::BTreeSet;

use axum::routing::get;
use axum::{Json, Router};
use hedgerow_agent::{Agent, AgentSnapshot, Call};
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::net::TcpListener;

use crate::catalog::client;
use crate::paused::{Does, MS, call, warm};

async fn agent() -> Agent {
    Agent::builder().service("shop").connect().await.unwrap()
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_is_written_with_units_and_reasons_in_names() {
    let route = warm(&agent().await).await;
    let soon = Does::Answers(MS);
    let slow = Does::Answers(200 * MS);
    let marked = Call::idempotent().already_hedge(true);
    call(&route, marked, slow, soon).await.unwrap();
    call(&route, Call::idempotent(), Does::Fails, soon)
        .await
        .unwrap_err();
    call(&route, Call::idempotent(), Does::Never, soon)
        .await
        .unwrap();

    let snapshot = route.snapshot();
    let shown = serde_json::to_value(&snapshot).unwrap();
    assert_eq!(shown["dependency"], "catalog");
    assert_eq!(shown["operation"], "get");
    assert_eq!(shown["link"], "none");
    assert_eq!(shown["totals"]["started"], snapshot.totals.started);
    assert_eq!(shown["totals"]["failed"], 1);
    assert_eq!(shown["totals"]["refused"]["already_hedge"], 1);
    assert_eq!(shown["totals"]["refused"]["budget"], 0);
    let hedges = ["hedges_sent", "hedges_won"].map(|sum| shown["totals"][sum].as_u64().unwrap());
    let of = &snapshot.totals;
    assert_eq!(hedges, [of.hedges(), of.hedges_won()]);
    assert!(hedges[1] >= 1, "the last call's");
    assert_eq!(shown["further_refused"]["no_replica"], 0);
    assert_eq!(shown["policy"]["source"], "code");
    assert_eq!(shown["policy"]["intent"], "hedge");
    assert_eq!(shown["policy"]["attempts"], 2);
    assert_eq!(shown["policy"]["threshold_min_ms"], Value::Null);
    assert_eq!(shown["effective"]["mode"], "on");
    assert_eq!(shown["effective"]["reason"], Value::Null);
    let threshold_ms = shown["effective"]["threshold_ms"].as_f64().unwrap();
    let threshold = snapshot.effective.threshold.unwrap().get();
    assert!((threshold_ms - threshold.as_secs_f64() * 1e3).abs() < 1e-9);
    assert_eq!(shown["treated"]["count"], snapshot.treated.count());
    let p99_ms = shown["treated"]["p99_ms"].as_f64().unwrap();
    assert!((15.0..250.0).contains(&p99_ms), "{p99_ms}");
    assert_eq!(shown["holdout"]["count"], 0);
    assert_eq!(
        shown["holdout"]["p99_ms"],
        Value::Null,
        "no calls, no quantile"
    );
}

/// Names of a value and of all that is in it; lists by their first entry.
fn names(value: &Value, path: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let path = format!("{path}.{name}");
                names(value, &path, into);
                into.insert(path);
            }
        }
        Value::Array(array) => {
            if let Some(first) = array.first() {
                names(first, path, into);
            }
        }
        _ => {}
    }
}

#[tokio::test]
async fn the_guide_shows_a_snapshot_as_it_is() {
    let guide = include_str!("../../guides/what-to-look-at.md");
    let shown = guide.split("```jsonc\n").nth(1).unwrap();
    let shown = shown.split("```").next().unwrap();
    let bare = |line: &str| line.split(" //").next().unwrap().to_owned();
    let shown = shown.lines().map(bare).collect::<Vec<_>>().join("\n");
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let route = agent().await.route("catalog", "get").build().unwrap();
    let real = serde_json::to_value(route.snapshot()).unwrap();
    let [mut in_guide, mut in_code] = [BTreeSet::new(), BTreeSet::new()];
    names(&shown, "", &mut in_guide);
    names(&real, "", &mut in_code);
    // Nobody is named here: those fields are of another test.
    in_guide.retain(|name| !name.starts_with(".named."));
    assert_eq!(in_guide, in_code);
}

#[tokio::test]
async fn an_agents_snapshot_has_every_route_over_http() {
    let agent = agent().await;
    let routes = ["get", "list"].map(|operation| agent.route("catalog", operation).build());
    let page = agent.clone();
    let handler = move || async move { Json::<AgentSnapshot>(page.snapshot()) };
    let app = Router::new().route("/debug/hedging", get(handler));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });

    let uri = format!("http://{address}/debug/hedging").parse().unwrap();
    let answer = client().get(uri).await.unwrap();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    let shown: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(
        keys(&shown),
        BTreeSet::from(["instance", "link", "routes", "unreported_routes"])
    );
    assert_eq!(shown["instance"], agent.instance().to_string());
    let operations = shown["routes"].as_array().unwrap().iter();
    let operations: Vec<_> = operations.map(|route| &route["operation"]).collect();
    assert_eq!(operations, ["get", "list"]);
    assert!(routes.iter().all(Result::is_ok));
}
