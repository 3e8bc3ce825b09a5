//! What the controller tells about itself.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::response::IntoResponse as _;
use parking_lot::Mutex;
use tokio::net::TcpListener;

use crate::logged::Log;
use crate::process::Process;
use crate::raw_agent::RawAgent;
use crate::running::{Running, SHOP_TOKEN, hedging, route};

#[tokio::test]
async fn metrics_tell_of_the_fleet_and_of_the_controller_and_of_nothing_unknown() {
    let running = Running::start().await;
    running.set_policy(hedging(0.08)).await;
    let mut agent = RawAgent::attach(&running.grpc(), SHOP_TOKEN).await;
    agent.report(1, &[route()], 100).await;
    agent.acknowledged(1).await;
    running
        .until("the route is known", |it| it.route(&route()))
        .await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("http://{}/metrics", running.app.http_address());
    let text = client.get(&url).send().await.unwrap().text().await.unwrap();
    for line in [
        "hedgerow_controller_agents{state=\"live\"} 1",
        "hedgerow_controller_reports_total{outcome=\"counted\"} 1",
        "hedgerow_controller_writes_total{outcome=\"stored\"}",
        "hedgerow_controller_mode{dependency=\"catalog\",mode=\"",
        "hedgerow_controller_tick_seconds_count",
        "hedgerow_controller_pushes_total",
        "hedgerow_controller_calls_total{dependency=\"catalog\",operation=\"get\"} 100",
        "hedgerow_controller_hedges_total{dependency=\"catalog\",operation=\"get\"} 0",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    // No hedge was sent: its rate of winning is unknown, not 0.
    assert!(!text.contains("hedgerow_controller_win_rate{"), "{text}");
    for path in ["healthz", "readyz"] {
        let url = format!("http://{}/{path}", running.app.http_address());
        assert_eq!(
            client.get(&url).send().await.unwrap().status(),
            200,
            "{path}"
        );
    }
    running.app.stop().await;
}

/// A receiver of traces: takes whatever is posted over HTTP/2 and answers "taken".
async fn collector() -> (String, Arc<Mutex<Vec<u8>>>) {
    let taken = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&taken);
    let router = Router::new().fallback(move |body: Bytes| {
        kept.lock().extend_from_slice(&body);
        async { [("content-type", "application/grpc"), ("grpc-status", "0")].into_response() }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, taken)
}

#[tokio::test]
async fn traces_of_ticks_orders_and_writes_go_where_they_are_wanted() {
    let (address, taken) = collector().await;
    let seed = "[[policy]]\ndependency = \"catalog\"\nintent = \"hedge\"";
    let more = format!("[telemetry]\notlp_endpoint = \"{address}\"\n{seed}");
    let process = Process::start(&more).await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let (_, well) = process.leave().await;
    assert!(well);
    let bytes = taken.lock().clone();
    for name in ["hedgerow-controller", "tick", "order", "decide", "write"] {
        assert!(
            bytes
                .windows(name.len())
                .any(|window| window == name.as_bytes()),
            "no {name} among {} bytes of traces",
            bytes.len()
        );
    }
}

#[tokio::test]
async fn whoever_asks_for_readiness_again_and_again_does_not_take_the_right_to_write() {
    let running = Running::start().await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("http://{}/readyz", running.app.http_address());
    let ready = async || client.get(&url).send().await.unwrap().status() == 200;
    assert!(ready().await);
    // Somebody else writes for long: whoever asked for the right to write now would wait for it.
    let held = running.app.store().pool().begin_with("BEGIN IMMEDIATE");
    let held = held.await.unwrap();
    let asked = tokio::time::timeout(Duration::from_secs(3), ready()).await;
    assert_eq!(asked, Ok(true));
    held.rollback().await.unwrap();
    running.app.stop().await;
}

#[tokio::test]
async fn what_was_done_by_whom_is_logged_once_it_is_stored() {
    let log = Log::default();
    let _guard = log.capture();
    let running = Running::start().await;
    running.set_policy(hedging(0.08)).await;
    running.app.stop().await;
    let text = log.text();
    let lines: Vec<_> = text
        .lines()
        .filter(|line| line.contains("recorded") && line.contains("policy.set"))
        .collect();
    assert_eq!(lines.len(), 1, "{text}");
    assert!(
        lines[0].contains("ada") && lines[0].contains("budget=0.08"),
        "{}",
        lines[0]
    );
}
