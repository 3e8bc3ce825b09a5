//! What the editor of a policy does besides its form: revisions, taking away, steps, who holds it.

use axum::http::StatusCode;
use hedgerow_protocol::ids::Revision;
use hedgerow_protocol::policy::{Intent, PolicyScope};

use crate::ask::{get, post, stream_start};
use crate::fleet;
use crate::policies::{form, form_with, row, wide_pages};
use crate::stage::{ADMIN, EDITOR, VIEWER};

#[tokio::test]
async fn u07_a_scope_without_a_policy_begins_with_the_wider_one_that_holds() {
    let (stage, router) = wide_pages();
    let page = get(&router, "/policies/pricing", EDITOR).await;
    let text = page.text();
    for said in [
        "pricing has no policy of its own: pri* (revision 6, hedge) holds",
        "inherited from pri*: 4 %",
        "No change against pri*. Saved, it becomes pricing's own.",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(page.body.contains("name=\"budget\" value=\"0.04\""));
    assert!(page.body.contains("value=\"hedge\" checked"));
    assert!(!text.contains("Take this policy away"));
    let mut fields = form("0.06", "0", "its own");
    fields.push(("step", "review"));
    let review = post(&router, "/policies/pricing", EDITOR, &form_with(&fields)).await;
    assert!(review.text().contains("Now, by pri*"), "{}", review.text());
    let saved = post(
        &router,
        "/policies/pricing",
        EDITOR,
        &form("0.06", "0", "its own"),
    )
    .await;
    assert_eq!(saved.location(), "/policies/pricing");
    let scope: PolicyScope = "pricing".parse().unwrap();
    let own = stage
        .state(|s| s.histories[&scope][0].policy.clone())
        .unwrap();
    assert!((own.budget().get() - 0.06).abs() < 1e-9);
    let text = get(&router, "/policies/pricing", EDITOR).await.text();
    assert!(
        text.contains("Then pri* (revision 6, hedge) holds, on 1 route"),
        "{text}"
    );
    assert!(text.contains("pri* has 4 %"), "{text}");
}

#[tokio::test]
async fn u07_of_two_who_set_the_first_policy_the_second_is_shown_the_first() {
    let (_, router) = wide_pages();
    let scope = "/policies/geo%20lookup";
    let first = post(&router, scope, EDITOR, &form("0.06", "0", "mine")).await;
    assert_eq!(first.status, StatusCode::SEE_OTHER);
    let second = post(&router, scope, ADMIN, &form("0.07", "0", "no, mine")).await;
    assert_eq!(second.status, StatusCode::CONFLICT);
    let text = second.text();
    assert!(text.contains("Budget 0.08 0.06"), "{text}");
    assert!(second.body.contains("name=\"budget\" value=\"0.07\""));
}

#[tokio::test]
async fn u07_a_policy_is_taken_away_with_what_holds_then_said_before_and_can_be_gone_back_to() {
    let (stage, router) = wide_pages();
    let text = get(&router, "/policies/catalog", EDITOR).await.text();
    assert!(
        text.contains("Then * (revision 4, observe) holds, on 1 route"),
        "{text}"
    );
    assert!(
        text.contains("Hedging hedge observe Budget 0.08 0.05"),
        "{text}"
    );
    let remove = "/policies/catalog/remove";
    let silent = post(
        &router,
        remove,
        EDITOR,
        &[("expected", "3"), ("reason", "")],
    )
    .await;
    assert_eq!(silent.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(silent.text().contains("a reason is needed"));
    let late = post(
        &router,
        remove,
        EDITOR,
        &[("expected", "2"), ("reason", "x")],
    )
    .await;
    assert_eq!(late.status, StatusCode::CONFLICT);
    assert!(
        late.text().contains("Percentile 0.97 0.95"),
        "{}",
        late.text()
    );
    let viewer = post(
        &router,
        remove,
        VIEWER,
        &[("expected", "3"), ("reason", "x")],
    )
    .await;
    assert_eq!(viewer.status, StatusCode::FORBIDDEN);
    assert_eq!(stage.state(|s| s.history.len()), 3);

    let form = [("expected", "3"), ("reason", "the pattern will do")];
    let gone = post(&router, remove, EDITOR, &form).await;
    assert_eq!(gone.location(), "/policies/catalog");
    let page = get(&router, "/policies/catalog", EDITOR).await;
    let text = page.text();
    assert!(
        text.contains("catalog has no policy of its own: * (revision 4"),
        "{text}"
    );
    assert!(text.contains("Revision 4 taken away"), "{text}");
    assert!(page.body.contains("name=\"expected\" value=\"4\""));
    // The same again: there is nothing to be taken away.
    let again = post(&router, remove, EDITOR, &form).await;
    assert_eq!(again.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn u07_a_policy_that_was_taken_away_is_gone_back_to() {
    let (stage, router) = wide_pages();
    let gone = [("expected", "3"), ("reason", "the pattern will do")];
    post(&router, "/policies/catalog/remove", EDITOR, &gone).await;
    // A save from a page that was opened before is stale.
    let stale = post(
        &router,
        "/policies/catalog",
        ADMIN,
        &form("0.06", "3", "mine"),
    )
    .await;
    assert_eq!(stale.status, StatusCode::CONFLICT);
    assert!(
        stale.text().contains("Policy revision 3 taken away"),
        "{}",
        stale.text()
    );

    let back = [
        ("revision", "3"),
        ("expected", "4"),
        ("reason", "it did not"),
    ];
    let back = post(&router, "/policies/catalog/revert", EDITOR, &back).await;
    assert_eq!(back.status, StatusCode::SEE_OTHER);
    let newest = stage.state(|s| s.history[0].clone());
    assert_eq!(newest.revision, Revision(5));
    assert_eq!(newest.policy.unwrap().intent(), Intent::Hedge);
    // And back to where it was taken away.
    let away = [("revision", "4"), ("expected", "5")];
    let away = post(&router, "/policies/catalog/revert", EDITOR, &away).await;
    assert_eq!(away.status, StatusCode::SEE_OTHER);
    assert!(stage.state(|s| s.history[0].policy.is_none()));
}

#[tokio::test]
async fn u07_the_way_back_shows_its_reason_and_demands_one() {
    let (stage, router) = wide_pages();
    let page = get(&router, "/policies/catalog", EDITOR).await;
    assert!(
        page.body
            .contains("name=\"reason\" value=\"back to revision 1\" required")
    );
    let empty = [("revision", "1"), ("expected", "3"), ("reason", "  ")];
    let refused = post(&router, "/policies/catalog/revert", EDITOR, &empty).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(stage.state(|s| s.history.len()), 3);
}

#[tokio::test]
async fn b71_the_same_form_sent_twice_is_one_change() {
    let (stage, router) = wide_pages();
    let fields = form("0.07", "3", "fewer");
    let (one, other) = tokio::join!(
        post(&router, "/policies/catalog", EDITOR, &fields),
        post(&router, "/policies/catalog", EDITOR, &fields)
    );
    for answer in [one, other] {
        assert_eq!(answer.status, StatusCode::SEE_OTHER);
        assert!(answer.location().starts_with("/policies/catalog"));
    }
    assert_eq!(stage.state(|s| s.history.len()), 4);
}

#[tokio::test]
async fn c20_a_save_that_changes_nothing_says_so_and_makes_no_revision() {
    let (stage, router) = wide_pages();
    let same = post(
        &router,
        "/policies/catalog",
        EDITOR,
        &form("0.08", "3", "again"),
    )
    .await;
    assert_eq!(same.location(), "/policies/catalog?unchanged=yes");
    let text = get(&router, same.location(), EDITOR).await.text();
    assert!(
        text.contains("Nothing was changed. What was saved says the same"),
        "{text}"
    );
    assert_eq!(stage.state(|s| s.history.len()), 3);
}

#[tokio::test]
async fn u07_after_a_save_the_page_counts_who_holds_it_until_all_do() {
    let (stage, router) = wide_pages();
    let held = get(&router, "/policies/catalog", VIEWER).await.text();
    assert!(held.contains("revision 3: held by all 4 agents"), "{held}");
    post(
        &router,
        "/policies/catalog",
        EDITOR,
        &form("0.07", "3", "fewer"),
    )
    .await;
    let waiting = get(&router, "/policies/catalog", VIEWER).await;
    let text = waiting.text();
    assert!(text.contains("revision 4: acked 0 of 4"), "{text}");
    assert!(text.contains("not confirmed yet"), "{text}");
    // Half of them confirm.
    let mut snapshot = fleet::with_wider(fleet::snapshot(1));
    for agent in snapshot.agents.iter_mut().take(6) {
        for route in &mut agent.routes {
            route.held.revision = Revision(4);
            route.wanted.revision = Revision(4);
        }
    }
    stage.publish(snapshot);
    let live = "/live?page=policy&dependency=catalog&seen=3";
    let stream = stream_start(&router, live, VIEWER, 60).await;
    assert!(stream.contains("acked 2 of 4"), "{stream}");
    assert!(
        stream.contains("Revision 4 was saved since this page was opened"),
        "{stream}"
    );
}

#[tokio::test]
async fn u07_the_steps_of_a_rollout_are_typed_and_checked_beside_their_fields() {
    let (stage, router) = wide_pages();
    let mut fields = form("0.07", "3", "with care");
    fields.extend([
        ("rollout", "steps"),
        ("stages", "10, 5, 100"),
        ("stay_s", "10"),
    ]);
    let refused = post(&router, "/policies/catalog", EDITOR, &fields).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    for (id, said) in [
        ("stages", "each larger than the one before"),
        ("stay_s", "30 to 3600 seconds"),
    ] {
        let beside = refused
            .body
            .split(&format!("id=\"{id}-error\">"))
            .nth(1)
            .unwrap();
        let beside = beside.split("</p>").next().unwrap();
        assert!(beside.contains(said), "{id}: {beside}");
    }
    assert!(
        refused
            .body
            .contains("name=\"stages\" value=\"10, 5, 100\""),
        "kept"
    );
    fields.extend([("stages", "10, 50, 100"), ("stay_s", "300")]);
    let saved = post(&router, "/policies/catalog", EDITOR, &form_with(&fields)).await;
    assert_eq!(saved.status, StatusCode::SEE_OTHER);
    let rollout = stage.state(|s| s.rollout.clone()).unwrap();
    assert_eq!(rollout.stages, [0.1, 0.5, 1.0]);
    assert_eq!(rollout.stay.as_secs(), 300);
    let list = get(&router, "/policies", VIEWER).await;
    let row = row(&list, "/policies/catalog");
    assert!(
        row.contains("in steps 50 % of the agents, step 2 of 3: 8 of 9 hold it"),
        "{row}"
    );
    let mut pattern = form("0.06", "6", "x");
    pattern.push(("rollout", "steps"));
    let pattern = post(&router, "/policies/pri%2A", EDITOR, &pattern).await;
    assert_eq!(pattern.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        pattern
            .text()
            .contains("a pattern is in force for all agents at once")
    );
}

#[tokio::test]
async fn u07_the_editor_stands_while_the_store_cannot_be_read() {
    let (stage, router) = wide_pages();
    stage.state(|s| s.store_away = true);
    let page = get(&router, "/policies/catalog", EDITOR).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(
        page.text()
            .contains("the store could not be read: the disk is full")
    );
    assert!(page.body.contains("name=\"expected\" value=\"3\""));
    let list = get(&router, "/policies", EDITOR).await;
    assert!(row(&list, "/policies/catalog").contains("its revisions could not be read"));
}

#[tokio::test]
async fn u07_a_pattern_follows_the_next_wider_one() {
    let (_, router) = wide_pages();
    let own = get(&router, "/policies/pri%2A", EDITOR).await.text();
    assert!(own.contains("Then * (revision 4, observe) holds"), "{own}");
    assert!(own.contains("A pattern's policy is in force for all agents at once"));
    let narrower = get(&router, "/policies/pric%2A", EDITOR).await.text();
    assert!(
        narrower.contains("inherited from pri*: hedge"),
        "{narrower}"
    );
    let all = get(&router, "/policies/%2A", EDITOR).await.text();
    assert!(all.contains("It covers 13 routes and governs 1."), "{all}");
    assert!(
        all.contains("Then no policy holds: calls are observed"),
        "{all}"
    );
    let operation = get(&router, "/policies/catalog%20get-item", EDITOR)
        .await
        .text();
    assert!(
        operation.contains("inherited from catalog: 8 %"),
        "{operation}"
    );
}
