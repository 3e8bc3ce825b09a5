//! What is sent to an open page is what the page would show: byte for byte.

use axum::http::header;
use hedgerow_core::rollout::RolloutPlan;

use crate::ask::{fleet_pages, get, get_part, next_message, open_stream, pages, stream_start};
use crate::fleet;
use crate::stage::ADMIN;

#[tokio::test]
async fn a_page_contains_its_fragment_byte_for_byte() {
    let (_, router) = fleet_pages();
    for path in ["/", "/?q=catalog&sort=p99", "/agents", "/agents?q=cart"] {
        let whole = get(&router, path, ADMIN).await;
        let part = get_part(&router, path, ADMIN).await;
        assert!(
            part.body.len() > 1000 && whole.body.len() > part.body.len(),
            "{path}"
        );
        assert!(whole.body.contains(&part.body), "{path}");
        assert_eq!(part.headers[header::VARY], "HX-Request");
        assert_eq!(whole.headers[header::VARY], "HX-Request");
    }
}

/// The contents of each partial in a stream's bytes, by the id it is for.
fn partials(stream: &str) -> Vec<(String, String)> {
    let text: String = stream
        .lines()
        .filter_map(|line| {
            line.strip_prefix("data: ")
                .or_else(|| line.strip_prefix("data:"))
        })
        .collect::<Vec<_>>()
        .join("\n");
    text.split("<hx-partial hx-target=\"#")
        .skip(1)
        .map(|part| {
            let (id, rest) = part.split_once('"').unwrap();
            let (_, rest) = rest.split_once('>').unwrap();
            (
                id.to_owned(),
                rest.split("</hx-partial>").next().unwrap().to_owned(),
            )
        })
        .collect()
}

#[tokio::test]
async fn what_a_stream_sends_stands_in_the_page() {
    for (page, live) in [
        ("/", "/live?page=overview"),
        (
            "/dependencies/search/query",
            "/live?page=route&dependency=search&operation=query",
        ),
        (
            "/dependencies/catalog/list?range=6h",
            "/live?page=route&dependency=catalog&operation=list&range=6h",
        ),
        ("/agents", "/live?page=agents"),
        (
            "/agents?q=cart&state=live&sort=skew",
            "/live?page=agents&q=cart&state=live&sort=skew",
        ),
        ("/alerts", "/live?page=alerts"),
        ("/kill", "/live?page=kill"),
        ("/policies", "/live?page=policies"),
        ("/receivers", "/live?page=receivers"),
        ("/controller", "/live?page=controller"),
        ("/policies/catalog", "/live?page=policy&dependency=catalog"),
    ] {
        let (stage, router) = fleet_pages();
        stage.state(|s| {
            let base = s.history[1].clone();
            let plan = RolloutPlan::default();
            s.rollout = Some(fleet::rollout(&plan, base.revision, base.policy.unwrap()));
        });
        stage.publish(fleet::snapshot(0));
        let whole = get(&router, page, ADMIN).await;
        let stream = stream_start(&router, live, ADMIN, 60).await;
        let parts = partials(&stream);
        assert!(parts.len() > 2, "{page}: {}", parts.len());
        for (id, html) in parts {
            assert!(
                whole.body.contains(&format!("id=\"{id}\"")),
                "{page} has no {id}"
            );
            assert!(whole.body.contains(&html), "{page}: {id} differs");
        }
    }
}

#[tokio::test]
async fn u06_a_new_column_is_sent_as_the_map_the_page_contains() {
    let (stage, router) = fleet_pages();
    let path = "/live?page=route&dependency=catalog&operation=list";
    let mut stream = open_stream(&router, path, ADMIN).await;
    let first = partials(&next_message(&mut stream).await.unwrap());
    assert!(first.iter().any(|(id, _)| id == "heat"));
    // Within the same ten seconds there is none; after them there are both parts of both maps.
    stage.publish(fleet::snapshot(1));
    let second = partials(&next_message(&mut stream).await.unwrap());
    assert!(!second.iter().any(|(id, _)| id.starts_with("heat")));
    stage.publish(fleet::snapshot(20));
    let third = next_message(&mut stream).await.unwrap();
    assert!(third.contains("hx-target=\"#heat-p95-map\" hx-swap=\"innerHTML\""));
    let page = get(&router, "/dependencies/catalog/list", ADMIN).await.body;
    let maps: Vec<_> = partials(&third)
        .into_iter()
        .filter(|(id, _)| id.starts_with("heat"))
        .collect();
    assert!(
        maps.len() >= 3,
        "{:?}",
        maps.iter().map(|it| &it.0).collect::<Vec<_>>()
    );
    for (id, html) in maps {
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
        assert!(page.contains(&html), "{id} differs");
    }
}

#[tokio::test]
async fn only_what_changed_is_sent() {
    let (stage, router) = fleet_pages();
    let later = stage.clone();
    let news = tokio::spawn(async move {
        // After the first message: once with the same figures, then with others.
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        later.publish(fleet::snapshot(0));
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        let mut snapshot = fleet::snapshot(0);
        let key = fleet::route("geo", "lookup");
        let mut view = (*snapshot.routes[&key]).clone();
        view.acked.n = 3;
        snapshot.routes.insert(key, view.into());
        later.publish(snapshot);
    });
    let first = stream_start(&router, "/live?page=overview", ADMIN, 60).await;
    let both = stream_start(&router, "/live?page=overview", ADMIN, first.len() + 100).await;
    news.await.unwrap();
    let sent = partials(&both[first.len()..]);
    assert_eq!(
        sent.len(),
        1,
        "{:?}",
        sent.iter().map(|(id, _)| id).collect::<Vec<_>>()
    );
    assert!(sent[0].1.contains("3/12"));
}

#[tokio::test]
async fn a_stream_ends_with_the_session() {
    let (stage, router) = fleet_pages();
    let later = stage.clone();
    let clock = tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        later.state(|s| s.signed_out.push(ADMIN.into()));
        for second in 1..25 {
            later.publish(fleet::snapshot(second));
            tokio::time::sleep(std::time::Duration::from_millis(40)).await;
        }
    });
    // Read to the end: it would never come if the stream outlived the session.
    let all = stream_start(&router, "/live?page=frame", ADMIN, usize::MAX);
    tokio::time::timeout(std::time::Duration::from_secs(20), all)
        .await
        .unwrap();
    clock.await.unwrap();
}

#[tokio::test]
async fn u13_the_start_page_turns_into_the_table_by_itself() {
    let empty = hedgerow_core::view::FleetSnapshot {
        at: fleet::START,
        ..hedgerow_core::view::FleetSnapshot::default()
    };
    let (stage, router) = pages(empty);
    let start = get(&router, "/", ADMIN).await.text();
    assert!(start.contains("Waiting for the first report"), "{start}");
    assert!(start.contains("Agent::builder()"));
    let later = stage.clone();
    let first_report = tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        later.publish(fleet::snapshot(0));
    });
    let first = stream_start(&router, "/live?page=overview", ADMIN, 60).await;
    let both = stream_start(&router, "/live?page=overview", ADMIN, first.len() + 100).await;
    first_report.await.unwrap();
    let (_, table) = partials(&both[first.len()..])
        .into_iter()
        .find(|(id, _)| id == "fleet")
        .unwrap();
    assert!(table.contains("get-item"));
}
