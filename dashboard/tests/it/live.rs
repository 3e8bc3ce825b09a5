//! One event stream a tab: counted, ended with its page, quiet when what it is about is gone.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, BodyDataStream};
use axum::http::{Request, StatusCode, header};
use futures::StreamExt as _;
use hedgerow_dashboard::{Settings, router};
use tower::ServiceExt as _;

use crate::ask::{fleet_pages, get, get_part};
use crate::stage::ADMIN;
use crate::{big, fleet};

async fn open(router: &Router, query: &str) -> (StatusCode, BodyDataStream) {
    let request = Request::builder()
        .uri(format!("/live?{query}"))
        .header(header::HOST, "hedgerow.test")
        .header(header::COOKIE, format!("hedgerow_session={ADMIN}"))
        .body(Body::empty())
        .unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    (response.status(), response.into_body().into_data_stream())
}

#[tokio::test]
async fn b81_200_tabs_opened_and_killed_leave_nothing() {
    let (stage, router) = fleet_pages();
    let mut tabs = Vec::new();
    for i in 0..200 {
        let query = ["page=overview", "page=agents", "page=frame", "page=alerts"][i % 4];
        let (status, mut body) = open(&router, query).await;
        assert_eq!(status, StatusCode::OK);
        // Some are killed before their first message, some after.
        if i % 3 == 0 {
            body.next().await.unwrap().unwrap();
        }
        tabs.push(body);
    }
    assert_eq!(stage.open_pages(), 200);
    drop(tabs);
    assert_eq!(stage.open_pages(), 0);
    // The controller goes on as before.
    stage.publish(fleet::snapshot(1));
    assert_eq!(get(&router, "/", ADMIN).await.status, StatusCode::OK);
}

#[tokio::test]
async fn b81_a_stream_that_ends_by_itself_is_not_counted_on() {
    let (stage, router) = fleet_pages();
    let (_, body) = open(&router, "page=frame").await;
    stage.state(|s| s.signed_out.push(ADMIN.into()));
    stage.publish(fleet::snapshot(1));
    let read = body.collect::<Vec<_>>();
    tokio::time::timeout(Duration::from_secs(20), read)
        .await
        .unwrap();
    assert_eq!(stage.open_pages(), 0);
}

/// The value of an attribute of the element that holds the stream.
fn stream_element(body: &str) -> Vec<(String, String)> {
    body.split("<div id=\"live-")
        .skip(1)
        .map(|part| {
            let id = part.split('"').next().unwrap().to_owned();
            let connect = part.split("hx-sse:connect=\"").nth(1).unwrap();
            (id, connect.split('"').next().unwrap().to_owned())
        })
        .collect()
}

#[tokio::test]
async fn b82_a_panel_swapped_ten_times_holds_one_stream() {
    let (stage, router) = fleet_pages();
    let whole = stream_element(&get(&router, "/?q=cat", ADMIN).await.body);
    assert_eq!(whole.len(), 1);
    for second in 1..=10 {
        stage.publish(fleet::snapshot(second));
        let part = stream_element(&get_part(&router, "/?q=cat", ADMIN).await.body);
        assert_eq!(part.len(), 1, "one element holds the one stream");
        assert_eq!(part[0].0, whole[0].0, "the same filter keeps its stream");
    }
    let other = stream_element(&get_part(&router, "/?q=cart", ADMIN).await.body);
    assert_ne!(other[0].0, whole[0].0, "another filter has another");
}

#[tokio::test]
async fn b84_a_dependency_that_goes_while_its_page_is_open_ends_the_stream_with_a_word() {
    let (stage, router) = fleet_pages();
    let (status, body) = open(&router, "page=route&dependency=geo&operation=lookup").await;
    assert_eq!(status, StatusCode::OK);
    let publisher = stage.clone();
    let publishing = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let mut snapshot = fleet::snapshot(1);
        snapshot.routes.remove(&fleet::route("geo", "lookup"));
        publisher.publish(snapshot);
    });
    let read = body
        .map(|piece| String::from_utf8(piece.unwrap().to_vec()).unwrap())
        .collect::<String>();
    let all = tokio::time::timeout(Duration::from_secs(20), read)
        .await
        .expect("the stream ends by itself");
    publishing.await.unwrap();
    let last = all.trim_end().rsplit("\n\n").next().unwrap();
    assert!(last.contains("event: gone"), "{last}");
    assert!(last.contains("geo lookup is gone: no agent reports it any more"));
    assert_eq!(stage.open_pages(), 0);
    // Whoever asks again all the same is told at once that there is nothing: no storm.
    let (again, _) = open(&router, "page=route&dependency=geo&operation=lookup").await;
    assert_eq!(again, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn b84_after_a_restart_a_route_is_waited_for_not_given_up() {
    let (stage, router) = fleet_pages();
    let mut snapshot = fleet::snapshot(0);
    snapshot.routes.remove(&fleet::route("geo", "lookup"));
    snapshot.started = snapshot.at;
    stage.publish(snapshot);
    let (status, mut body) = open(&router, "page=route&dependency=geo&operation=lookup").await;
    assert_eq!(status, StatusCode::OK);
    body.next().await.unwrap().unwrap();
    stage.publish(fleet::snapshot(1));
    let mut seen = String::new();
    while !seen.contains("hx-target=\"#verdict\"") {
        let piece = tokio::time::timeout(Duration::from_secs(20), body.next())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        seen.push_str(&String::from_utf8_lossy(&piece));
    }
}

#[tokio::test]
async fn u01_a_thousand_rows_are_sent_in_turn_and_in_pieces() {
    let (stage, _) = fleet_pages();
    let publish = |second| stage.publish(big::snapshot(second));
    publish(0);
    let router = router(stage.clone(), Settings::default());
    let page = get(&router, "/", ADMIN).await;
    assert_eq!(page.body.matches("<tr id=\"r-").count(), 1000);
    let (_, connect) = stream_element(&page.body).remove(0);
    let query = connect.replace("&#38;", "&").replace("/live?", "");
    assert!(query.contains("tick=7500"), "{query}");
    let (_, mut body) = open(&router, &query).await;
    let (mut messages, mut seen) = (Vec::new(), BTreeSet::new());
    for second in 1..=3 {
        let sent = read_round(&mut body).await;
        let ids = sent.iter().flat_map(|m| m.split("<tr id=\"").skip(1));
        let ids: Vec<_> = ids
            .map(|it| it.split('"').next().unwrap().to_owned())
            .collect();
        assert!(ids.len() <= 80, "{} rows for one snapshot", ids.len());
        assert!(second == 1 || ids.len() >= 40, "{} rows", ids.len());
        seen.extend(ids);
        messages.extend(sent);
        publish(second);
    }
    assert!(seen.len() >= 80, "others come in turn: {}", seen.len());
    for message in &messages {
        assert!(message.matches("<tr id=\"r-").count() <= 20);
        assert!(message.len() < 200_000, "{}", message.len());
    }
}

/// Everything that comes until nothing has for a while.
async fn read_round(body: &mut BodyDataStream) -> Vec<String> {
    let mut pieces = Vec::new();
    while let Ok(piece) = tokio::time::timeout(Duration::from_millis(1500), body.next()).await {
        pieces.push(String::from_utf8(piece.unwrap().unwrap().to_vec()).unwrap());
    }
    pieces
}
