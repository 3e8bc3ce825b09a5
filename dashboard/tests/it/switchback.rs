//! A switchback on its route's page.

use std::sync::Arc;
use std::time::Duration;

use hedgerow_core::event::{Actor, Via};
use hedgerow_core::view::{
    ArmView, DifferenceView, FleetSnapshot, SwitchbackResult, SwitchbackView,
};

use crate::ask::{get, pages};
use crate::fleet;
use crate::stage::{EDITOR, VIEWER};

const PAGE: &str = "/dependencies/catalog/get-item";
const WORDS: &str = "hedging makes p99 177 ms worse: 97 ms off, 274 ms on; worse in 9 of 10 rounds";

fn arm(p99: u64) -> ArmView {
    ArmView {
        calls: 60_000,
        calls_per_s: Some(300.0),
        p50: Some(Duration::from_millis(12)),
        p95: Some(Duration::from_millis(40)),
        p99: Some(Duration::from_millis(p99)),
        error_rate: None,
        hedge_rate: Some(0.05),
    }
}

/// The fleet with a switchback on one route: begun 250 s ago, over or not.
fn with_switchback(ended: Option<&str>) -> FleetSnapshot {
    let mut snapshot = fleet::snapshot(0);
    let started = snapshot.at.as_millis() - 250_000;
    let p99 = DifferenceView {
        what: "p99",
        unit: "ms",
        median: 177.0,
        low: Some(150.0),
        high: Some(191.0),
        higher: 9,
        lower: 1,
        rounds: 10,
        chance: 0.021,
        certain: true,
    };
    let view = SwitchbackView {
        started: hedgerow_core::moment::Moment::from_millis(started),
        by: Actor {
            name: "<b>dana</b>".into(),
            via: Via::Page,
        },
        reason: "is it the load?".into(),
        rounds: 10,
        rounds_done: 4,
        hedging: ended.is_none().then_some(true),
        ends: hedgerow_core::moment::Moment::from_millis(started + 600_000),
        ended: ended.map(Into::into),
        result: Some(SwitchbackResult {
            words: WORDS.into(),
            on: arm(274),
            off: arm(97),
            differences: vec![p99],
            per_round: Vec::new(),
            left_out: 2,
        }),
    };
    let key = fleet::route("catalog", "get-item");
    let route = Arc::make_mut(snapshot.routes.get_mut(&key).unwrap());
    route.switchback = Some(Arc::new(view));
    snapshot
}

#[tokio::test]
async fn a_switchback_shows_how_it_goes_and_what_it_found() {
    let (_, router) = pages(with_switchback(None));
    let page = get(&router, PAGE, EDITOR).await;
    let text = page.text();
    for said in [
        "4 of 10 rounds done, hedging now, 5 min 50 s left",
        "is it the load?",
        WORDS,
        "2 rounds had too few calls",
        "+177 (+150 to +191), more than chance",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!page.body.contains("<b>dana"), "names are text");
    assert!(page.body.contains("action=\"/switchback\""));
    assert!(page.body.contains("action=\"/switchback/stop\""));

    let (_, router) = pages(with_switchback(Some("the policy was changed")));
    let page = get(&router, PAGE, VIEWER).await;
    let text = page.text();
    assert!(
        text.contains("ended after 4 of 10 rounds: the policy was changed"),
        "{text}"
    );
    assert!(
        !page.body.contains("action=\"/switchback\""),
        "a viewer only looks"
    );
}
