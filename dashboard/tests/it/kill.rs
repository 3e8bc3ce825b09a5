//! U8: the kill switch.

use axum::http::StatusCode;
use hedgerow_core::event::KillScope;

use crate::ask::{fleet_pages, get, post};
use crate::fleet;
use crate::stage::{EDITOR, VIEWER};

#[tokio::test]
async fn u08_it_says_what_it_stops_before_it_stops_anything() {
    let (stage, router) = fleet_pages();
    let all = get(&router, "/kill", EDITOR).await.text();
    assert!(
        all.contains("This stops hedging on 12 dependencies"),
        "{all}"
    );
    assert!(all.contains("in 11 agents"), "{all}");
    let one = get(&router, "/kill?scope=dependency&dependency=catalog", EDITOR)
        .await
        .text();
    assert!(
        one.contains("This stops hedging on 1 dependency (2 routes, 2 hedging now)"),
        "{one}"
    );
    assert!(stage.state(|s| s.kills.is_empty()));
    let viewer = get(&router, "/kill", VIEWER).await;
    assert!(viewer.text().contains("needs the role operator"));
    assert!(!viewer.body.contains("method=\"post\" action=\"/kill\""));
}

#[tokio::test]
async fn u08_one_reason_switches_off_and_every_page_says_so() {
    let (stage, router) = fleet_pages();
    let none = post(
        &router,
        "/kill",
        EDITOR,
        &[("engaged", "on"), ("reason", " ")],
    )
    .await;
    assert_eq!(none.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(none.text().contains("a reason is needed"));
    let form = [
        ("scope", "dependency"),
        ("dependency", "catalog"),
        ("engaged", "on"),
        ("reason", "wrong prices"),
    ];
    let done = post(&router, "/kill", EDITOR, &form).await;
    assert_eq!(done.location(), "/kill?scope=dependency&dependency=catalog");
    let kills = stage.state(|s| s.kills.clone());
    assert_eq!(
        kills[0].scope,
        KillScope::Dependency(fleet::dependency("catalog"))
    );
    for path in ["/", "/agents", "/record", "/policies/catalog"] {
        let text = get(&router, path, VIEWER).await.text();
        assert!(
            text.contains("Kill switch: hedging is off for catalog by dana"),
            "{path}"
        );
        assert!(text.contains("wrong prices acked 10 of 12"), "{path}");
    }
    let own = get(&router, done.location(), EDITOR).await.text();
    assert!(own.contains("Engaged: acked 10 of 12 agents"), "{own}");
    assert!(own.contains("Not yet confirmed: storefront"), "{own}");
}

#[tokio::test]
async fn u08_switching_on_again_asks_for_more() {
    let (stage, router) = fleet_pages();
    post(
        &router,
        "/kill",
        EDITOR,
        &[("engaged", "on"), ("reason", "drill")],
    )
    .await;
    let hasty = post(
        &router,
        "/kill",
        EDITOR,
        &[("engaged", "off"), ("reason", "over")],
    )
    .await;
    assert_eq!(hasty.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        hasty
            .text()
            .contains("type everything to release the switch")
    );
    assert!(hasty.body.contains("value=\"over\""), "the reason is kept");
    assert_eq!(stage.state(|s| s.kills.len()), 1);
    let form = [
        ("engaged", "off"),
        ("reason", "over"),
        ("confirm", "everything"),
    ];
    let meant = post(&router, "/kill", EDITOR, &form).await;
    assert_eq!(meant.location(), "/kill");
    assert!(stage.state(|s| s.kills.is_empty()));
}

#[tokio::test]
async fn a_malformed_order_is_refused_with_what_was_expected() {
    let (stage, router) = fleet_pages();
    for (form, words) in [
        (
            vec![("scope", "moon"), ("engaged", "on"), ("reason", "x")],
            "expected everything, or dependency",
        ),
        (
            vec![("engaged", "maybe"), ("reason", "x")],
            "expected on or off",
        ),
        (
            vec![("dependency", "a b"), ("engaged", "on"), ("reason", "x")],
            "letters, digits",
        ),
        (
            vec![("scope", "dependency"), ("engaged", "on"), ("reason", "x")],
            "must not be blank",
        ),
    ] {
        let answer = post(&router, "/kill", EDITOR, &form).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{form:?}");
        assert!(answer.text().contains(words), "{form:?}: {}", answer.text());
    }
    assert!(stage.state(|s| s.kills.is_empty()));
}
