//! The overview, and a route's page.

use std::sync::Arc;

use axum::http::StatusCode;
use hedgerow_core::view::{NoData, PoolView};

use crate::ask::{Answer, fleet_pages, get, pages};
use crate::fleet;
use crate::stage::{ADMIN, VIEWER};

/// Names of the rows, in their order.
fn rows(answer: &Answer) -> Vec<String> {
    answer
        .body
        .split("<a class=\"dep\" href=\"")
        .skip(1)
        .map(|part| {
            part.split('"')
                .next()
                .unwrap()
                .trim_start_matches("/dependencies/")
                .to_owned()
        })
        .collect()
}

#[tokio::test]
async fn u01_worst_comes_first_and_what_needs_a_person_stands_above() {
    let (_, router) = fleet_pages();
    let page = get(&router, "/", VIEWER).await;
    let rows = rows(&page);
    assert_eq!(
        &rows[..3],
        ["checkout/charge", "search/query", "sessions/get"]
    );
    assert_eq!(rows[3], "recommendations/rank");
    assert_eq!(rows.len(), fleet::ROUTES.len());
    let text = page.text();
    assert!(
        text.contains("HedgeRateHigh sessions get demand 14.2 %"),
        "{text}"
    );
}

#[tokio::test]
async fn u01_a_fleet_in_order_says_that_nothing_needs_a_person() {
    let mut snapshot = fleet::snapshot(0);
    snapshot.alerts.clear();
    snapshot
        .agents
        .retain(|a| a.state == hedgerow_core::view::AgentState::Live);
    let (_, router) = pages(snapshot);
    assert!(
        get(&router, "/", VIEWER)
            .await
            .text()
            .contains("Nothing needs a person.")
    );
}

#[tokio::test]
async fn u02_why_hedging_is_off_is_answered_without_a_click() {
    let (_, router) = fleet_pages();
    let text = get(&router, "/", VIEWER).await.text();
    for words in [
        "off error rate 6.1 % > 5 %",
        "off shared slowdown (9 of 10 replicas slow together)",
        "no effect one replica",
        "observing no policy yet",
    ] {
        assert!(
            text.replace("&#62;", ">").contains(words),
            "{words} is not in {text}"
        );
    }
    let route = get(&router, "/dependencies/search/query", VIEWER)
        .await
        .text();
    for words in [
        "Figures at the decision",
        "median / base 4.60 x 2.50 x 3 s",
        "tries again in 9 s",
    ] {
        assert!(route.contains(words), "{words} is not in {route}");
    }
}

#[tokio::test]
async fn b42_no_traffic_is_a_dash_and_why_never_zero() {
    let mut snapshot = fleet::snapshot(0);
    let key = fleet::route("hedgerow.v2.Ledger/Balance", "Get");
    for (reason, words) in [
        (NoData::NoTraffic, "no traffic"),
        (NoData::NoAgents, "no agents report it"),
        (NoData::AgentsStale, "its agents have gone silent"),
        (NoData::JustStarted, "the controller has just started"),
        (NoData::TooFew, "not enough traffic"),
    ] {
        let mut view = (*snapshot.routes[&key]).clone();
        view.no_data = Some(reason);
        view.figures = None;
        snapshot.routes.insert(key.clone(), Arc::new(view));
        let (_, router) = pages(snapshot.clone());
        let page = get(&router, "/?q=ledger", VIEWER).await;
        let row = page.body.split("<tbody id=\"rows\">").nth(1).unwrap();
        let row = row.split("</tbody>").next().unwrap();
        assert!(row.contains(words), "{words}: {row}");
        assert!(row.matches('–').count() >= 9, "{row}");
        assert!(!row.contains(">0<"), "{row}");
        let own = get(
            &router,
            "/dependencies/hedgerow.v2.Ledger%2FBalance/Get",
            VIEWER,
        )
        .await;
        assert!(own.text().contains(words));
    }
}

#[tokio::test]
async fn what_a_pool_lends_stands_beside_the_hedge_rate() {
    let mut snapshot = fleet::snapshot(0);
    let key = fleet::route("catalog", "list");
    let mut view = (*snapshot.routes[&key]).clone();
    view.pool = Some(PoolView {
        pool: "checkout".parse().unwrap(),
        budget: 0.031,
        own: 0.05,
    });
    view.figures.as_mut().unwrap().budget = 0.031;
    snapshot.routes.insert(key, Arc::new(view));
    let (_, router) = pages(snapshot);
    let page = get(&router, "/dependencies/catalog/list", VIEWER).await;
    let text = page.text();
    let words = "budget 3.1 % of its own 5 %, lent by pool checkout";
    assert!(text.contains(words), "{text}");
}

#[tokio::test]
async fn u01_filter_and_sort_live_in_the_address() {
    let (_, router) = fleet_pages();
    let filtered = get(&router, "/?q=CATALOG%20on", VIEWER).await;
    assert_eq!(rows(&filtered), ["catalog/list", "catalog/get-item"]);
    assert!(filtered.body.contains("value=\"CATALOG on\""));
    let by_calls = get(&router, "/?sort=calls", VIEWER).await;
    assert_eq!(rows(&by_calls)[0], "feature-flags/evaluate");
    assert_eq!(
        rows(&by_calls).last().unwrap(),
        "hedgerow.v2.Ledger%2FBalance/Get"
    );
    let unknown = get(&router, "/?sort=moon", VIEWER).await;
    assert_eq!(unknown.status, StatusCode::OK);
    let none = get(&router, "/?q=zzz", VIEWER).await;
    assert!(none.text().contains("No route matches zzz"));
}

#[tokio::test]
async fn c09_a_named_replica_is_named_with_its_cure() {
    let (_, router) = fleet_pages();
    let text = get(&router, "/dependencies/catalog/list", VIEWER)
        .await
        .text();
    assert!(
        text.contains("catalog-4 is what is slow. Ejecting it is the cure"),
        "{text}"
    );
    assert!(text.contains("on probation"), "{text}");
}

#[tokio::test]
async fn u04_every_chart_has_a_title_words_and_a_table() {
    let (_, router) = fleet_pages();
    let page = get(&router, "/dependencies/search/query", VIEWER).await;
    let charts: Vec<_> = page.body.split("id=\"chart-").skip(1).collect();
    assert_eq!(charts.len(), 7);
    for chart in charts {
        for part in [
            "<title id=",
            "<desc id=",
            // Its marks are links: what an image holds, nobody reaches.
            "role=\"group\"",
            "<details",
            "<th scope=\"col\"",
            "class=\"offspan\"",
            "m-mode",
            "m-policy",
            "m-alert",
        ] {
            assert!(chart.contains(part), "{part}");
        }
    }
    for level in [
        "call a person 10 %",
        "budget 8 %",
        "target 4.95 %",
        "off above 5 %",
    ] {
        assert!(page.body.contains(level), "{level}");
    }
}

#[tokio::test]
async fn a_route_nobody_reported_says_so_and_still_takes_a_policy() {
    let (_, router) = fleet_pages();
    let page = get(&router, "/dependencies/new-thing/get", ADMIN).await;
    assert_eq!(page.status, StatusCode::NOT_FOUND);
    assert!(page.text().contains("Not reported yet"));
    assert!(page.body.contains("/policies/new-thing"));
}

#[tokio::test]
async fn a_row_reads_as_agreed() {
    let (_, router) = fleet_pages();
    let page = get(&router, "/?q=search", VIEWER).await;
    let row = page.body.split("<tbody id=\"rows\">").nth(1).unwrap();
    let row = row.split("<td class=\"sparkcell\">").next().unwrap();
    insta::assert_snapshot!(row);
}
