//! U10: alerts by where they stand, silences, acknowledgements.

use axum::http::StatusCode;
use hedgerow_core::view::AlertRule;
use hedgerow_dashboard::backend::{Backend as _, Delivery};

use crate::ask::{fleet_pages, get, post, stream_start};
use crate::fleet;
use crate::stage::{EDITOR, VIEWER};

#[tokio::test]
async fn u10_alerts_stand_in_groups_with_delivery_for_each_receiver() {
    let (_, router) = fleet_pages();
    let page = get(&router, "/alerts", VIEWER).await;
    let text = page.text().replace("&#62;", ">");
    for words in [
        "Firing 3",
        "Pending 1",
        "Resolved in the last hour 1",
        "demand 14.2 % > 10 % of eligible calls for 10 s",
        "chat firing waiting 4 14:01:55 – connection refused; next try in 8 s",
        "on-call firing delivered 2",
        "since 14:01:55 (1 min 12 s)",
        "1 notice about earlier alerts",
    ] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    let firing = text.find("Firing 3").unwrap();
    assert!(firing < text.find("Pending 1").unwrap());
    let at = fleet::START.as_millis() - 72_000;
    let chart = format!("/dependencies/search/query?at={at}#charts");
    assert!(page.body.contains(&chart), "no link to the chart: {chart}");
    // A viewer sees all of it, and no form.
    assert!(!page.body.contains("action=\"/alerts/"));
}

#[tokio::test]
async fn u10_an_alert_shows_its_notices_however_many_others_were_told_since() {
    let (stage, router) = fleet_pages();
    let newest = stage.deliveries(1).await.unwrap().remove(0);
    let another = |n: i64| Delivery {
        id: newest.id + n,
        alert: format!("another-{n}"),
        ..newest.clone()
    };
    let others: Vec<_> = (1..=1000).rev().map(another).collect();
    stage.state(|s| s.newer_deliveries = others);
    let text = get(&router, "/alerts", VIEWER).await.text();
    for words in [
        "chat firing waiting 4",
        "on-call firing delivered 2",
        "200 notices about earlier alerts",
    ] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
}

#[tokio::test]
async fn u10_somebody_takes_an_alert_on_with_a_comment_and_an_end() {
    let (stage, router) = fleet_pages();
    let form = |comment, minutes| [("alert", "a-3"), ("comment", comment), ("minutes", minutes)];
    let none = post(&router, "/alerts/acknowledge", EDITOR, &form(" ", "")).await;
    assert_eq!(none.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(none.text().contains("Nothing was changed"));
    let odd = post(&router, "/alerts/acknowledge", EDITOR, &form("x", "soon")).await;
    assert!(odd.text().contains("expected a whole number from 1"));
    let done = post(&router, "/alerts/acknowledge", EDITOR, &form("on it", "60")).await;
    assert_eq!(done.location(), "/alerts");
    let by = stage.state(|s| s.acknowledged[0].1.clone());
    assert_eq!(
        by.until.unwrap().since(by.at),
        std::time::Duration::from_hours(1)
    );
    let text = get(&router, "/alerts", VIEWER).await.text();
    assert!(text.contains("Firing 2"), "{text}");
    assert!(text.contains("Acknowledged 1"), "{text}");
    assert!(
        text.contains("dana works on it since 14:03:07 , until 15:03:07 : on it"),
        "{text}"
    );
    // What somebody works on needs no other person.
    let overview = get(&router, "/", VIEWER).await.text();
    assert!(!overview.contains("HedgeRateHigh sessions get demand"));
    assert!(overview.contains("1 alert acknowledged or silenced"));
    let refused = post(&router, "/alerts/acknowledge", VIEWER, &form("me", "")).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn u10_an_alert_is_silenced_from_its_own_form_and_told_again_after() {
    let (stage, router) = fleet_pages();
    let page = get(&router, "/alerts", EDITOR).await;
    assert!(page.body.contains("name=\"replica\" value=\"catalog-4\""));
    let form = [
        ("rule", "ReplicaSlow"),
        ("dependency", "catalog"),
        ("operation", "list"),
        ("replica", "catalog-4"),
        ("minutes", "240"),
        ("reason", "being replaced"),
    ];
    let done = post(&router, "/alerts/silence", EDITOR, &form).await;
    assert_eq!(done.location(), "/alerts");
    let silence = stage.state(|s| s.silences[0].clone());
    assert_eq!(silence.matches.rule, Some(AlertRule::ReplicaSlow));
    assert_eq!(silence.ends.since(silence.since).as_secs(), 240 * 60);
    let text = get(&router, "/alerts", EDITOR).await.text();
    for words in [
        "Silenced 1",
        "Its notices are kept back by silence 1",
        "ReplicaSlow, on catalog list, replica catalog-4 1 dana being replaced",
        "in 4 h",
    ] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    let ended = post(
        &router,
        "/alerts/silence/end",
        EDITOR,
        &[("id", "1"), ("reason", "replaced")],
    )
    .await;
    assert_eq!(ended.location(), "/alerts");
    assert!(stage.state(|s| s.silences.is_empty()));
    let again = post(
        &router,
        "/alerts/silence/end",
        EDITOR,
        &[("id", "1"), ("reason", "replaced")],
    )
    .await;
    assert_eq!(again.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn u10_a_silence_that_cannot_stand_comes_back_as_it_was_typed() {
    let (stage, router) = fleet_pages();
    for (form, words) in [
        (
            vec![("minutes", "60"), ("reason", "quiet")],
            "would silence every alert",
        ),
        (
            vec![("rule", "Moon"), ("minutes", "60"), ("reason", "quiet")],
            "expected one of HedgeRateHigh",
        ),
        (
            vec![("operation", "get"), ("minutes", "60"), ("reason", "quiet")],
            "an operation needs its dependency",
        ),
        (
            vec![
                ("dependency", "a b"),
                ("minutes", "60"),
                ("reason", "quiet"),
            ],
            "dependency",
        ),
        (
            vec![
                ("dependency", "catalog"),
                ("minutes", "0"),
                ("reason", "quiet"),
            ],
            "expected a whole number from 1 to 43200",
        ),
    ] {
        let answer = post(&router, "/alerts/silence", EDITOR, &form).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{form:?}");
        assert!(answer.text().contains(words), "{form:?}: {}", answer.text());
        assert!(answer.body.contains("value=\"quiet\""), "{form:?}");
    }
    assert!(stage.state(|s| s.silences.is_empty()));
    let all = [
        ("everything", "on"),
        ("minutes", "30"),
        ("reason", "game day"),
    ];
    let done = post(&router, "/alerts/silence", EDITOR, &all).await;
    assert_eq!(done.location(), "/alerts");
    let text = get(&router, "/alerts", VIEWER).await.text();
    assert!(text.contains("every alert 4 dana game day"), "{text}");
}

#[tokio::test]
async fn u10_the_form_of_a_wider_silence_is_filled_in_by_its_address() {
    let (_, router) = fleet_pages();
    let page = get(
        &router,
        "/alerts?rule=SharedSlowdown&dependency=search",
        EDITOR,
    )
    .await;
    assert!(page.body.contains("<option selected>SharedSlowdown"));
    assert!(page.body.contains("name=\"dependency\" value=\"search\""));
}

#[tokio::test]
async fn u10_an_open_page_of_somebody_who_may_not_act_gets_no_forms() {
    let (_, router) = fleet_pages();
    let viewer = stream_start(&router, "/live?page=alerts", VIEWER, 60).await;
    assert!(viewer.contains("HedgeRateHigh") && !viewer.contains("/alerts/silence"));
    let editor = stream_start(&router, "/live?page=alerts", EDITOR, 60).await;
    assert!(editor.contains("/alerts/silence"));
}
