//! U14: the controller itself.

use crate::ask::{get, pages, stream_start};
use crate::fleet;
use crate::stage::VIEWER;

#[tokio::test]
async fn u14_the_controller_says_whether_it_keeps_up_and_what_it_refused() {
    let mut snapshot = fleet::snapshot(0);
    snapshot.controller.reports_refused = 2;
    snapshot.controller.undecodable = 1;
    snapshot.controller.writes_pending = 4;
    let (_, router) = pages(snapshot);
    let text = get(&router, "/controller", VIEWER).await.text();
    for words in [
        "Reports /s 12.0 over 10 s, of 12 agents",
        "Report lag ms 3.40",
        "Decision took ms 2.84",
        "Store B 48.3 M",
        "Writes pending 4",
        "Outbox 1",
        "Open pages 3",
        "Memory B 212 M",
        "Identity leader",
        "Version 0.1.0",
        "Epoch 2",
        "Refused reports 2",
        "Not decodable messages 1",
        "hedged is 9, more than crossed (3)",
    ] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
}

#[tokio::test]
async fn u14_a_store_that_takes_no_writes_is_said_first() {
    let mut snapshot = fleet::snapshot(0);
    snapshot.controller.write_problem = Some("disk full".into());
    let (_, router) = pages(snapshot);
    let page = get(&router, "/controller", VIEWER).await;
    let text = page.text();
    let main = text
        .find("The store does not take writes: disk full")
        .unwrap();
    assert!(main < text.find("Keeping up").unwrap());
    let live = stream_start(&router, "/live?page=controller", VIEWER, 60).await;
    assert!(live.contains("hx-target=\"#process\""), "{live}");
}
