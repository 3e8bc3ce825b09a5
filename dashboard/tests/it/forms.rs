//! The policy form, the acts on a route, and the record.

use axum::http::StatusCode;
use hedgerow_protocol::ids::Revision;
use hedgerow_protocol::units::Quantile;

use crate::ask::{fleet_pages, get, post};
use crate::fleet;
use crate::stage::{ADMIN, EDITOR, VIEWER};

const POLICY: &str = "/policies/catalog";

fn form<'a>(percentile: &'a str, expected: &'a str, reason: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("intent", "hedge"),
        ("percentile", percentile),
        ("budget", "0.08"),
        ("holdout", "0.01"),
        ("error_limit", "0.05"),
        ("threshold_min_ms", ""),
        ("threshold_max_ms", "250"),
        ("probation", "on"),
        ("expected", expected),
        ("reason", reason),
    ]
}

#[tokio::test]
async fn c06_a_percentile_of_95_is_refused_beside_its_field_with_the_accepted_range() {
    let (stage, router) = fleet_pages();
    let answer = post(
        &router,
        POLICY,
        EDITOR,
        &form("95", "3", "more of the tail"),
    )
    .await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    let field = answer
        .body
        .split("id=\"percentile-error\">")
        .nth(1)
        .unwrap();
    let field = field.split("</p>").next().unwrap();
    assert_eq!(
        field,
        "95 is out of range: expected a number from 0.92 to 0.999"
    );
    assert!(
        answer.body.contains("name=\"percentile\" value=\"95\""),
        "what was typed is kept"
    );
    assert!(
        answer.body.contains("value=\"more of the tail\""),
        "the reason is kept"
    );
    assert_eq!(stage.state(|s| s.history.len()), 3, "nothing was saved");
}

#[tokio::test]
async fn u07_an_aim_and_a_pool_are_chosen_in_the_form_and_shown_as_they_are() {
    let (stage, router) = fleet_pages();
    let mut fields = form("0.95", "3", "p99 is what hurts");
    fields.extend([("goal", "0.99"), ("pool", "checkout")]);
    let refused = post(&router, POLICY, EDITOR, &fields).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    let text = refused.text();
    assert!(text.contains("is needed in a pool (checkout)"), "{text}");
    let chosen = "name=\"goal\" value=\"0.99\" checked";
    assert!(refused.body.contains(chosen), "what was chosen is kept");

    fields.push(("objective_ms", "120"));
    let saved = post(&router, POLICY, EDITOR, &fields).await;
    assert_eq!(saved.status, StatusCode::SEE_OTHER);
    let policy = stage.state(|s| s.history[0].policy.clone()).unwrap();
    assert_eq!(policy.goal().map(Quantile::get), Some(0.99));
    assert_eq!(
        policy.pool().map(ToString::to_string),
        Some("checkout".into())
    );
    let page = get(&router, POLICY, EDITOR).await;
    assert!(page.body.contains(chosen));
    assert!(page.body.contains("name=\"pool\" value=\"checkout\""));
    let text = page.text();
    assert!(
        text.contains("Aim percentile p99 under the budget"),
        "{text}"
    );
    assert!(text.contains("Objective none 120 ms"), "{text}");
}

#[tokio::test]
async fn u07_a_good_policy_becomes_a_new_revision() {
    let (stage, router) = fleet_pages();
    let answer = post(&router, POLICY, EDITOR, &form("0.96", "3", "fewer hedges")).await;
    assert_eq!(
        (answer.status, answer.location()),
        (StatusCode::SEE_OTHER, POLICY)
    );
    let newest = stage.state(|s| s.history[0].clone());
    assert_eq!(
        (newest.revision, newest.reason.as_str()),
        (Revision(4), "fewer hedges")
    );
    assert!((newest.policy.unwrap().percentile().get() - 0.96).abs() < 1e-9);
    let page = get(&router, POLICY, EDITOR).await.text();
    assert!(page.contains("Revision 4 in force"), "{page}");
    assert!(page.contains("Percentile 0.95 0.96"), "{page}");
}

#[tokio::test]
async fn u07_a_stale_save_is_refused_with_what_changed_and_may_be_repeated_knowingly() {
    let (stage, router) = fleet_pages();
    post(
        &router,
        POLICY,
        EDITOR,
        &form("0.97", "3", "the other one was faster"),
    )
    .await;
    let late = post(&router, POLICY, ADMIN, &form("0.98", "3", "mine")).await;
    assert_eq!(late.status, StatusCode::CONFLICT);
    let text = late.text();
    assert!(
        text.contains("you edited revision 3, revision 4 is in force"),
        "{text}"
    );
    assert!(
        text.contains("Changed meanwhile by somebody else"),
        "{text}"
    );
    assert!(text.contains("Percentile 0.95 0.97"), "{text}");
    assert!(
        late.body.contains("name=\"percentile\" value=\"0.98\""),
        "what was typed is kept"
    );
    assert!(late.body.contains("name=\"expected\" value=\"4\""));
    assert_eq!(stage.state(|s| s.history.len()), 4);
    let again = post(&router, POLICY, ADMIN, &form("0.98", "4", "mine")).await;
    assert_eq!(again.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn u07_the_diff_is_shown_before_saving_and_saves_nothing() {
    let (stage, router) = fleet_pages();
    let mut reviewed = form("0.96", "3", "");
    reviewed.push(("step", "review"));
    let answer = post(&router, POLICY, EDITOR, &reviewed).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(
        answer
            .text()
            .contains("Percentile 0.95 0.96 Threshold at most no limit 250 ms")
    );
    let checked = post(
        &router,
        &format!("{POLICY}/check"),
        EDITOR,
        &form("0.96", "3", ""),
    )
    .await;
    assert!(
        checked.text().contains("Percentile 0.95 0.96"),
        "{}",
        checked.text()
    );
    let review = checked.body.split("<hx-partial").next().unwrap();
    assert!(
        answer.body.contains(review),
        "the check's answer is the form's own part"
    );
    assert_eq!(stage.state(|s| s.history.len()), 3);
}

#[tokio::test]
async fn u07_a_revision_is_gone_back_to_by_one_click() {
    let (stage, router) = fleet_pages();
    let filled = get(&router, &format!("{POLICY}?revision=1"), EDITOR).await;
    assert!(filled.body.contains("name=\"percentile\" value=\"0.99\""));
    let form = [("revision", "1"), ("expected", "3")];
    let answer = post(&router, &format!("{POLICY}/revert"), EDITOR, &form).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    let newest = stage.state(|s| s.history[0].clone());
    assert_eq!(
        (newest.revision, newest.reason.as_str()),
        (Revision(4), "back to revision 1")
    );
    assert!((newest.policy.unwrap().percentile().get() - 0.99).abs() < 1e-9);
}

#[tokio::test]
async fn a_change_without_a_reason_is_refused() {
    let (_, router) = fleet_pages();
    let answer = post(&router, POLICY, EDITOR, &form("0.96", "3", "  ")).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(answer.text().contains("a reason is needed"));
}

#[tokio::test]
async fn s12_a_viewer_changes_nothing_and_is_told_why() {
    let (stage, router) = fleet_pages();
    let page = get(&router, POLICY, VIEWER).await;
    assert!(page.text().contains("needs the role editor"));
    assert!(!page.body.contains("Save as a new revision"));
    let route = [
        ("dependency", "catalog"),
        ("operation", "get-item"),
        ("reason", "x"),
    ];
    let revert = [("revision", "1"), ("reason", "x")];
    let kill = [("scope", "everything"), ("engaged", "on"), ("reason", "x")];
    for (path, form) in [
        (POLICY, form("0.96", "3", "x")),
        ("/policies/catalog/revert", revert.to_vec()),
        ("/kill", kill.to_vec()),
        ("/release", route.to_vec()),
        ("/accept-base", route.to_vec()),
        ("/switchback", route.to_vec()),
        ("/switchback/stop", route.to_vec()),
    ] {
        let answer = post(&router, path, VIEWER, &form).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path}");
        assert!(
            answer.text().contains("your role does not allow this"),
            "{path}"
        );
    }
    assert!(stage.state(|s| s.history.len() == 3 && s.kills.is_empty()));
}

#[tokio::test]
async fn a_policy_without_effect_says_why() {
    let (_, router) = fleet_pages();
    let page = get(&router, "/policies/inventory", EDITOR).await;
    assert!(page.text().contains("no effect: one replica"));
    let unknown = get(&router, "/policies/shipping", EDITOR).await;
    assert!(
        unknown
            .text()
            .contains("no agent has reported this dependency")
    );
    post(
        &router,
        "/kill",
        EDITOR,
        &[("engaged", "on"), ("reason", "drill")],
    )
    .await;
    let killed = get(&router, POLICY, EDITOR).await;
    assert!(
        killed
            .text()
            .contains("no effect while the kill switch for everything is on, by dana")
    );
}

#[tokio::test]
async fn acts_on_a_route_lead_back_to_its_page() {
    let (_, router) = fleet_pages();
    for path in [
        "/release",
        "/accept-base",
        "/switchback",
        "/switchback/stop",
    ] {
        let form = [
            ("dependency", "search"),
            ("operation", "query"),
            ("reason", "it is so"),
        ];
        let answer = post(&router, path, EDITOR, &form).await;
        assert_eq!(answer.location(), "/dependencies/search/query");
        let unknown = [
            ("dependency", "nobody"),
            ("operation", "x"),
            ("reason", "y"),
        ];
        let answer = post(&router, path, EDITOR, &unknown).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
        let hostile = [("dependency", "<b>"), ("operation", "x"), ("reason", "y")];
        let answer = post(&router, path, EDITOR, &hostile).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
}

#[tokio::test]
async fn u12_the_record_is_paged_and_filtered() {
    let (_, router) = fleet_pages();
    let first = get(&router, "/record", VIEWER).await;
    assert_eq!(first.body.matches("<tr id=\"line-").count(), 50);
    assert!(first.body.contains("href=\"/record?before=11\""));
    let second = get(&router, "/record?before=11", VIEWER).await;
    assert_eq!(second.body.matches("<tr id=\"line-").count(), 10);
    assert!(!second.body.contains(">Older<"));
    let about = get(&router, "/record?dependency=search", VIEWER).await;
    assert_eq!(about.body.matches("<tr id=\"line-").count(), 12);
    assert!(!about.body.contains("checkout charge"));
    let odd = get(&router, "/record?dependency=a%20b", VIEWER).await;
    assert!(odd.text().contains("letters, digits and"), "{}", odd.text());
    assert!(first.text().contains(&format!(
        "{} UTC controller controller mode.off",
        "2026-03-01 14:01:53"
    )));
    assert!(fleet::START.as_millis() > 0);
}

#[tokio::test]
async fn u10_alerts_show_whether_anybody_was_told() {
    let (_, router) = fleet_pages();
    let text = get(&router, "/alerts", VIEWER).await.text();
    assert!(text.contains("chat firing waiting 4"), "{text}");
    assert!(
        text.contains("connection refused; next try in 8 s"),
        "{text}"
    );
    assert!(text.contains("given up"), "{text}");
}

#[tokio::test]
async fn u09_agents_show_what_they_hold_against_what_they_should() {
    let (_, router) = fleet_pages();
    let page = get(&router, "/agents?q=refused", VIEWER).await;
    let text = page.text();
    assert!(
        text.contains("refused: lease: 2s is out of range"),
        "{text}"
    );
    let stale = get(&router, "/agents?q=stale", VIEWER).await.text();
    assert!(stale.contains("2.3.6 2.3.7 pending"), "{stale}");
}
