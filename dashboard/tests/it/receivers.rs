//! U11: receivers, and the test button.

use axum::http::StatusCode;

use crate::ask::{fleet_pages, get, post};
use crate::stage::{EDITOR, VIEWER};

#[tokio::test]
async fn u11_each_receiver_says_how_it_does() {
    let (_, router) = fleet_pages();
    let text = get(&router, "/receivers", VIEWER).await.text();
    for words in [
        "chat failing slack hooks.slack.example 1 1 – none was delivered yet connection refused",
        "on-call delivers pagerduty events.pagerduty.example 0 0 14:02:47 none",
        "team-mail not used yet email shop.example 0 0",
        "needs the role operator",
    ] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
}

#[tokio::test]
async fn u11_a_test_goes_the_real_way_and_shows_the_answer() {
    let (stage, router) = fleet_pages();
    let page = get(&router, "/receivers", EDITOR).await;
    assert_eq!(page.body.matches("action=\"/receivers/test\"").count(), 3);
    for (receiver, words) in [
        (
            "on-call",
            "Test notice to on-call : delivered answered 204 in 12.0 ms",
        ),
        (
            "chat",
            "Test notice to chat : not delivered connection refused after 12.0 ms",
        ),
    ] {
        let answer = post(
            &router,
            "/receivers/test",
            EDITOR,
            &[("receiver", receiver)],
        )
        .await;
        assert_eq!(answer.status, StatusCode::OK);
        assert!(answer.text().contains(words), "{}", answer.text());
    }
    assert_eq!(stage.state(|s| s.tested.clone()), ["on-call", "chat"]);
}

#[tokio::test]
async fn u11_nobody_tests_what_they_may_not_or_what_is_not_there() {
    let (stage, router) = fleet_pages();
    let viewer = post(&router, "/receivers/test", VIEWER, &[("receiver", "chat")]).await;
    assert_eq!(viewer.status, StatusCode::FORBIDDEN);
    let unknown = post(&router, "/receivers/test", EDITOR, &[("receiver", "moon")]).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    assert!(unknown.text().contains("not sent"), "{}", unknown.text());
    assert!(stage.state(|s| s.tested.is_empty()));
}

#[tokio::test]
async fn u11_without_receivers_the_page_says_how_to_get_one() {
    let (stage, router) = fleet_pages();
    stage.state(|s| s.receivers.clear());
    let text = get(&router, "/receivers", EDITOR).await.text();
    assert!(text.contains("No receiver is set up"), "{text}");
}
