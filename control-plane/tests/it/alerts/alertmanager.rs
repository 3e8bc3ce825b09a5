//! Debian's Alertmanager: fires once, resolves once, and not by itself.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use hedgerow_control_plane::alerts::Delivering;
use hedgerow_core::effect::AlertState;
use serde_json::Value;

use super::catch::Catch;
use super::kinds::{alertmanager, made};
use super::program::Alertmanager;
use super::{Post, brisk, firing, resolved};
use crate::standing::eventually;

/// Patient enough for a busy Alertmanager, and telling again five times a second.
fn settings() -> Delivering {
    let mut settings = brisk();
    settings.timeout = Duration::from_secs(10);
    settings.resend_every = Duration::from_millis(200);
    settings
}

/// What Alertmanager told its own receiver: (status, startsAt), in order.
fn told(hook: &Catch) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let bodies = hook.taken();
    let alerts = bodies
        .iter()
        .flat_map(|body| body["alerts"].as_array().unwrap());
    alerts
        .map(|it| (text(&it["status"]), text(&it["startsAt"])))
        .collect()
}

fn statuses(hook: &Catch) -> Vec<String> {
    told(hook).into_iter().map(|(status, _)| status).collect()
}

async fn post(address: std::net::SocketAddr, settings: Delivering) -> Post {
    let mut post = Post::new(Vec::new()).await;
    post.restart(settings, vec![made("am", alertmanager(address))])
        .await;
    post
}

#[tokio::test]
async fn p15_b76_b79_alertmanager_fires_once_and_resolves_once_also_over_a_restart() {
    let hook = Catch::start().await;
    let real = Alertmanager::start(hook.address).await;
    let address = real.address;
    let mut post = post(address, settings()).await;
    // Two episodes with the same labels.
    for (episode, told_before) in [("e1", 0), ("e2", 2)] {
        let alert = AlertState {
            since: firing(episode)
                .since
                .plus(Duration::from_secs(10 * told_before)),
            ..firing(episode)
        };
        post.write(alert.clone(), &["am"]).await;
        eventually("it fires", async || {
            told(&hook).len() > told_before as usize
        })
        .await;
        post.restart(settings(), vec![made("am", alertmanager(address))])
            .await;
        let restarted = jiff::Timestamp::now();
        eventually("it is told again", async || {
            let alerts = real.firing().await;
            let told_at = alerts.first().and_then(|it| it["updatedAt"].as_str());
            told_at.is_some_and(|it| it.parse::<jiff::Timestamp>().unwrap() > restarted)
        })
        .await;
        let end = alert.since.plus(Duration::from_secs(5));
        let alert = AlertState {
            resolved: Some(end),
            ..alert
        };
        post.write(alert, &["am"]).await;
        eventually("it resolves", async || {
            told(&hook).len() > told_before as usize + 1
        })
        .await;
        assert!(real.firing().await.is_empty());
    }
    post.until_done().await;
    assert_eq!(
        statuses(&hook),
        ["firing", "resolved", "firing", "resolved"],
        "{:?}",
        told(&hook)
    );
    let deliveries = post.deliveries().await;
    assert_eq!(deliveries.len(), 4, "telling again is no notice");
    assert!(deliveries.iter().all(|it| it.attempts == 1));
}

#[tokio::test]
async fn b78_alertmanager_does_not_resolve_while_the_condition_is_true() {
    let hook = Catch::start().await;
    let real = Alertmanager::start(hook.address).await;
    let mut settings = settings();
    // It forgets quickly, so that it would forget within this test.
    settings.held_for = Duration::from_secs(6);
    settings.resend_every = Duration::from_millis(500);
    let mut post = post(real.address, settings).await;
    post.write(firing("e1"), &["am"]).await;
    let ends = async || {
        let alerts = real.firing().await;
        let end = alerts.first().and_then(|it| it["endsAt"].as_str());
        end.map(|it| it.parse::<jiff::Timestamp>().unwrap())
    };
    eventually("it fires", async || ends().await.is_some()).await;
    let first = ends().await.unwrap();
    // Well past the end that it was first told.
    eventually("it goes on", async || {
        assert!(!statuses(&hook).contains(&"resolved".to_owned()));
        jiff::Timestamp::now() > first + Duration::from_secs(3)
    })
    .await;
    assert!(ends().await.unwrap() > first);
    assert_eq!(statuses(&hook), ["firing"]);
    // What nobody tells it of any more ends: that it went on was the telling.
    post.stop().await;
    eventually("it resolves", async || {
        statuses(&hook) == ["firing", "resolved"]
    })
    .await;
}

#[tokio::test]
async fn b77_episodes_with_the_same_labels_are_told_one_after_the_other() {
    let catch = Catch::start().await;
    catch.answers(|n| match n {
        0..3 => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        _ => StatusCode::OK.into_response(),
    });
    let mut settings = settings();
    settings.resend_every = Duration::from_mins(10);
    let mut post = post(catch.address, settings).await;
    let (first, second) = (firing("e1"), firing("e2"));
    let all = [first.clone(), resolved(&first), second.clone()];
    post.write_all(&all, &["am"]).await;
    post.until_done().await;
    let told: Vec<_> = catch
        .taken()
        .into_iter()
        .map(|body| {
            let alert = &body[0];
            let ends: jiff::Timestamp = alert["endsAt"].as_str().unwrap().parse().unwrap();
            ends < jiff::Timestamp::now()
        })
        .collect();
    assert_eq!(told, [false, true, false], "begun, ended, begun");
    let caught = catch.caught();
    assert_eq!(caught[0].path, "/api/v2/alerts");
    assert_eq!(caught[0].headers["authorization"], "Bearer canary-token");
    post.stop().await;
}

#[tokio::test]
async fn s08_hostile_text_is_a_value_like_any_other_to_alertmanager() {
    let hook = Catch::start().await;
    let real = Alertmanager::start(hook.address).await;
    let post = post(real.address, settings()).await;
    for (i, text) in super::hostile().into_iter().enumerate() {
        let alert = AlertState {
            replica: Some(text.clone()),
            summary: text.clone(),
            ..firing(&format!("e{i}"))
        };
        post.write(alert, &["am"]).await;
        eventually("Alertmanager has it as it is", async || {
            let alerts = real.firing().await;
            alerts
                .iter()
                .any(|it| it["labels"]["replica"] == *text && it["annotations"]["summary"] == *text)
        })
        .await;
    }
    let alerts = real.firing().await;
    for (label, value) in [
        ("alertname", "SharedSlowdown"),
        ("dependency", "catalog"),
        ("operation", "get"),
        ("severity", "page"),
    ] {
        assert!(
            alerts.iter().all(|it| it["labels"][label] == value),
            "{label}"
        );
    }
    post.until_done().await;
}
