//! Slack and PagerDuty: what they are sent, by the schema of their descriptions.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use hedgerow_core::effect::AlertState;
use hedgerow_protocol::ids::RouteKey;
use serde_json::Value;

use super::catch::Catch;
use super::kinds::{ROUTING_KEY, made, pagerduty, slack};
use super::{Post, firing, hostile, resolved};
use crate::standing::eventually;

/// What an incoming webhook takes: a text, and 1 to 50 blocks of at most 3,000 characters each.
/// Gives back the texts of the blocks.
fn slack_texts(body: &Value) -> Vec<String> {
    assert!(!body["text"].as_str().unwrap().is_empty());
    let blocks = body["blocks"].as_array().unwrap();
    assert!((1..=50).contains(&blocks.len()));
    let texts = blocks.iter().map(|block| {
        assert_eq!(block["type"], "section");
        assert_eq!(block["text"]["type"], "mrkdwn");
        let text = block["text"]["text"].as_str().unwrap();
        assert!((1..=3000).contains(&text.chars().count()), "{text}");
        text.to_owned()
    });
    texts.collect()
}

#[tokio::test]
async fn p15_slack_gets_what_is_due_of_a_dependency_in_one_message() {
    let catch = Catch::start().await;
    let mut post = Post::new(vec![made("chat", slack(catch.address))]).await;
    let elsewhere = AlertState {
        route: RouteKey::new("cart", "add").unwrap(),
        ..firing("e3")
    };
    let named = AlertState {
        replica: Some("10.0.0.7:8080".into()),
        ..firing("e2")
    };
    let all = [firing("e1"), named.clone(), elsewhere];
    post.write_all(&all, &["chat"]).await;
    post.until_done().await;
    post.write_all(&[resolved(&firing("e1")), resolved(&named)], &["chat"])
        .await;
    post.until_done().await;
    let mut texts: Vec<_> = catch.taken().iter().map(slack_texts).collect();
    texts[..2].sort_by_key(Vec::len);
    assert_eq!(texts.len(), 3, "{texts:#?}");
    assert_eq!(texts[0][0], "*Firing: SharedSlowdown, `cart`*");
    assert_eq!(texts[1][0], "*Firing: 2 alerts, `catalog`*");
    assert_eq!(texts[2][0], "*Resolved: 2 alerts, `catalog`*");
    assert!(
        texts[1][1].starts_with("SharedSlowdown `get`\n9 of 10 replicas are slow together\nsince ")
    );
    assert!(texts[1][2].starts_with("SharedSlowdown `get`, replica `10.0.0.7:8080`\n"));
    assert!(texts[2][1].ends_with(", for 40 s"), "{}", texts[2][1]);
    let deliveries = post.deliveries().await;
    assert_eq!(deliveries.len(), 5, "each is counted by itself");
    assert!(
        deliveries
            .iter()
            .all(|it| it.state == "delivered" && it.attempts == 1)
    );
    post.stop().await;
}

#[tokio::test]
async fn b77_slack_gets_no_older_episode_after_a_newer_one_of_the_same_subject() {
    let catch = Catch::start().await;
    catch.answers(|n| match n {
        0 => (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "1")]).into_response(),
        _ => StatusCode::OK.into_response(),
    });
    let mut post = Post::new(vec![made("chat", slack(catch.address))]).await;
    let episode = |id: &str| AlertState {
        summary: format!("episode {id}"),
        ..firing(id)
    };
    post.write(episode("e1"), &["chat"]).await;
    eventually("the first is put off", async || {
        post.deliveries().await[0].attempts == 1
    })
    .await;
    post.write(resolved(&episode("e1")), &["chat"]).await;
    post.write(episode("e2"), &["chat"]).await;
    post.until_done().await;
    let texts: Vec<_> = catch.taken().iter().map(slack_texts).collect();
    assert_eq!(texts.len(), 3, "{texts:#?}");
    for (text, [title, episode]) in texts.iter().zip([
        ["*Firing:", "episode e1"],
        ["*Resolved:", "episode e1"],
        ["*Firing:", "episode e2"],
    ]) {
        assert!(text[0].starts_with(title), "{texts:#?}");
        assert!(text[1].contains(episode), "{texts:#?}");
    }
    post.stop().await;
}

#[tokio::test]
async fn s08_slack_shows_hostile_text_as_text() {
    let catch = Catch::start().await;
    let post = Post::new(vec![made("chat", slack(catch.address))]).await;
    for (i, text) in hostile().into_iter().enumerate() {
        let alert = AlertState {
            replica: Some(text.clone()),
            summary: text,
            ..firing(&format!("e{i}"))
        };
        post.write(alert, &["chat"]).await;
        post.until_done().await;
    }
    for body in catch.taken() {
        for text in slack_texts(&body) {
            assert!(!text.contains(['<', '>', '\u{202E}', '\u{2067}']), "{text}");
            // Marks of formatting are ours, or stand in code.
            let marks = |c| text.matches(c).count();
            assert!(marks('`') % 2 == 0, "{text}");
        }
    }
    assert!(catch.taken().len() >= hostile().len());
}

#[tokio::test]
async fn p15_b79_pagerduty_triggers_and_resolves_each_episode_by_its_key() {
    let catch = Catch::start().await;
    catch.answers(|n| match n {
        0 => (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "1")]).into_response(),
        _ => StatusCode::ACCEPTED.into_response(),
    });
    let receiver = made("duty", pagerduty(catch.address));
    assert!(!format!("{receiver:?}").contains("canary"));
    let mut post = Post::new(vec![receiver]).await;
    let began = std::time::Instant::now();
    post.write(firing("e1"), &["duty"]).await;
    post.until_done().await;
    assert!(
        began.elapsed() >= Duration::from_secs(1),
        "it asked for time"
    );
    post.write_all(&[resolved(&firing("e1")), firing("e2")], &["duty"])
        .await;
    post.until_done().await;
    post.write(resolved(&firing("e2")), &["duty"]).await;
    post.until_done().await;
    let mut events = Vec::new();
    for event in catch.taken() {
        assert_eq!(event["routing_key"], ROUTING_KEY);
        let payload = &event["payload"];
        for field in ["summary", "source", "timestamp"] {
            assert!(!payload[field].as_str().unwrap().is_empty(), "{event}");
        }
        assert!(payload["summary"].as_str().unwrap().chars().count() <= 1024);
        assert_eq!(payload["severity"], "critical");
        assert_eq!(payload["custom_details"]["dependency"], "catalog");
        let text = |field: &str| event[field].as_str().unwrap().to_owned();
        events.push((text("dedup_key"), text("event_action")));
    }
    for episode in ["e1", "e2"] {
        let of_it: Vec<_> = events.iter().filter(|(key, _)| key == episode).collect();
        let actions: Vec<_> = of_it.iter().map(|(_, action)| action.as_str()).collect();
        assert_eq!(actions, ["trigger", "resolve"], "{episode}");
    }
    assert_eq!(events.len(), 4);
    assert!(catch.caught().iter().all(|it| it.path == "/v2/enqueue"));
    post.stop().await;
}

#[tokio::test]
async fn s08_pagerduty_gets_hostile_text_as_text_and_within_its_bounds() {
    let catch = Catch::start().await;
    let post = Post::new(vec![made("duty", pagerduty(catch.address))]).await;
    for (i, text) in hostile().into_iter().enumerate() {
        let alert = AlertState {
            id: format!("{i}{text}"),
            replica: Some(text.clone()),
            summary: text,
            ..firing("")
        };
        post.write(alert, &["duty"]).await;
        post.until_done().await;
    }
    for event in catch.taken() {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        assert!(text(&event["dedup_key"]).chars().count() <= 255);
        assert!(text(&event["payload"]["summary"]).chars().count() <= 1024);
        let shown = event["payload"].to_string();
        assert!(!shown.contains(['\u{202E}', '\u{2067}', '\n']), "{shown}");
    }
    assert_eq!(catch.taken().len(), hostile().len());
}
