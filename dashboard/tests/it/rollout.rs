//! A policy that is put in force in steps.

use axum::http::StatusCode;
use hedgerow_protocol::ids::Revision;

use crate::ask::{fleet_pages, get, post};
use crate::stage::{EDITOR, VIEWER};

const POLICY: &str = "/policies/catalog";
const STEP: &str = "/policies/catalog/rollout";

fn form<'a>(percentile: &'a str, expected: &'a str, rollout: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("intent", "hedge"),
        ("percentile", percentile),
        ("budget", "0.08"),
        ("holdout", "0.01"),
        ("error_limit", "0.05"),
        ("threshold_min_ms", ""),
        ("threshold_max_ms", "250"),
        ("probation", "on"),
        ("rollout", rollout),
        ("expected", expected),
        ("reason", "fewer hedges"),
    ]
}

#[tokio::test]
async fn u07_a_policy_is_put_in_force_in_steps_and_the_page_shows_how_far_it_is() {
    let (stage, router) = fleet_pages();
    let page = get(&router, POLICY, EDITOR).await;
    assert!(page.body.contains("value=\"all\" checked"));
    assert!(!page.body.contains("Take back"));
    let answer = post(&router, POLICY, EDITOR, &form("0.96", "3", "steps")).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    assert!(stage.state(|s| s.rollout.is_some()));
    let page = get(&router, POLICY, EDITOR).await;
    let text = page.text();
    for said in [
        "Revision 4 is in force for 25 % of the agents",
        "Revision 4 in force for 25 %",
        "5 % over 25 % now 100 % to come",
        "well so far",
        "8 of 9 agents in the share hold it, of 40 in all; the others hold revision 3",
        "Begun by dana (page)",
        "get-item calls failed 0.520 0.610 %",
        "get-item callers&#39; p99 61.3 – no value: too few calls ms",
        "Take back",
        "Next step now",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(
        page.body.contains("page=policy&amp;dependency=catalog")
            || page.body.contains("page=policy&#38;dependency=catalog")
    );
}

#[tokio::test]
async fn u07_taking_a_rollout_back_asks_for_a_reason_and_the_right_revision() {
    let (stage, router) = fleet_pages();
    post(&router, POLICY, EDITOR, &form("0.96", "3", "steps")).await;
    let back = |expected, reason| [("step", "back"), ("expected", expected), ("reason", reason)];
    let silent = post(&router, STEP, EDITOR, &back("4", " ")).await;
    assert_eq!(silent.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(silent.text().contains("a reason is needed"));
    let late = post(&router, STEP, EDITOR, &back("3", "too slow")).await;
    assert_eq!(late.status, StatusCode::CONFLICT);
    assert!(stage.state(|s| s.rollout.is_some()), "nothing changed");
    let viewer = post(&router, STEP, VIEWER, &back("4", "x")).await;
    assert_eq!(viewer.status, StatusCode::FORBIDDEN);
    let page = get(&router, POLICY, VIEWER).await.text();
    assert!(page.contains("well so far") && !page.contains("Take back"));
    let on = [("step", "on"), ("expected", "4"), ("reason", "it is fine")];
    let on = post(&router, STEP, EDITOR, &on).await;
    assert_eq!((on.status, on.location()), (StatusCode::SEE_OTHER, POLICY));
    let text = get(&router, POLICY, EDITOR).await.text();
    assert!(text.contains("25 % over 100 % now"), "{text}");
    let done = post(&router, STEP, EDITOR, &back("4", "too slow")).await;
    assert_eq!(
        (done.status, done.location()),
        (StatusCode::SEE_OTHER, POLICY)
    );
    let newest = stage.state(|s| s.history[0].clone());
    assert_eq!(
        (newest.revision, newest.reason.as_str()),
        (Revision(5), "too slow")
    );
    assert!((newest.policy.unwrap().percentile().get() - 0.95).abs() < 1e-9);
    let gone = post(&router, STEP, EDITOR, &back("5", "again")).await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
    assert!(gone.text().contains("no rollout of catalog is under way"));
}

#[tokio::test]
async fn b60_an_unknown_way_to_put_it_in_force_is_refused_beside_its_field() {
    let (stage, router) = fleet_pages();
    let answer = post(&router, POLICY, EDITOR, &form("0.96", "3", "slowly")).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    let field = answer.body.split("id=\"rollout-error\">").nth(1).unwrap();
    assert!(field.starts_with("expected one of all, steps</p>"));
    assert_eq!(stage.state(|s| s.history.len()), 3);
}
