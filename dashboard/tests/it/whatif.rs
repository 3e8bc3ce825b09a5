//! What a policy would do, in its editor: the curve and the replay.

use axum::http::StatusCode;

use crate::ask::{Answer, fleet_pages, get, post};
use crate::stage::{EDITOR, VIEWER};

const POLICY: &str = "/policies/catalog";

fn form<'a>(budget: &'a str, step: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("intent", "hedge"),
        ("percentile", "0.95"),
        ("budget", budget),
        ("holdout", "0.01"),
        ("error_limit", "0.05"),
        ("probation", "on"),
        ("expected", "3"),
        ("route", "catalog get-item"),
        ("step", step),
    ]
}

/// The text in the element with an id, up to its section's end.
fn part(answer: &Answer, id: &str) -> String {
    let rest = answer.body.split(&format!("id=\"{id}\"")).nth(1).unwrap();
    let rest = rest.split("</section>").next().unwrap();
    let part = Answer {
        status: answer.status,
        headers: answer.headers.clone(),
        body: format!("<{rest}"),
    };
    part.text()
}

/// The number before some words.
fn figure(text: &str, before: &str, after: &str) -> f64 {
    let rest = text.split(before).nth(1).unwrap();
    rest.split(after).next().unwrap().trim().parse().unwrap()
}

#[tokio::test]
async fn u05_the_curve_stands_in_the_editor_with_today_the_policy_target_and_budget() {
    let (_, router) = fleet_pages();
    let page = get(&router, POLICY, VIEWER).await;
    let text = part(&page, "whatif");
    for said in [
        "With this policy calls slower than",
        "as hedged now",
        "this policy",
        "without hedging",
        "budget 8 %",
        "target 4.95 %",
        "p99 hedged",
        "p99.9 unhedged",
        "primaries of the last 5 min",
        "2.00 % of slowness is shared by a call and its hedge, as measured",
        "the load of the hedges makes nothing slower",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let (with, without) = (
        figure(&text, ": p99 ", " ms instead"),
        figure(&text, "instead of ", " ms without"),
    );
    assert!(with < without * 0.8, "{with} for {without}");
    // Today's point and the policy's, in both panels.
    assert_eq!(page.body.matches("class=\"dot d-now\"").count(), 3);
    assert_eq!(page.body.matches("class=\"dot d-typed\"").count(), 3);
    assert!(page.body.contains("<title id=\"whatif-t\">"));
}

#[tokio::test]
async fn u05_what_is_typed_moves_the_point_as_one_types_and_without_script() {
    let (stage, router) = fleet_pages();
    let loads: Vec<f64> = {
        let mut loads = Vec::new();
        for budget in ["0.08", "0.02"] {
            let check = post(
                &router,
                "/policies/catalog/check",
                VIEWER,
                &form(budget, ""),
            )
            .await;
            assert_eq!(check.status, StatusCode::OK);
            let text = check.text();
            loads.push(figure(&text, "are hedged, ", " % of all"));
            assert!(text.contains(&format!(
                "budget {} %",
                if budget == "0.08" { 8 } else { 2 }
            )));
            let review = post(&router, POLICY, VIEWER, &form(budget, "review")).await;
            let sent = check
                .body
                .split("<hx-partial hx-target=\"#whatif\" hx-swap=\"innerMorph\">");
            let sent = sent.last().unwrap().split("</hx-partial>").next().unwrap();
            assert!(
                review.body.contains(sent),
                "what is sent stands in the page"
            );
        }
        loads
    };
    assert!(loads[1] < 2.0 && loads[0] > 3.0, "{loads:?}");
    assert_eq!(stage.state(|s| s.history.len()), 3);
}

#[tokio::test]
async fn u05_the_check_answers_beside_each_field_and_leaves_the_point_away() {
    let (_, router) = fleet_pages();
    let check = post(&router, "/policies/catalog/check", EDITOR, &form("8", "")).await;
    let beside = check
        .body
        .split("hx-target=\"#budget-error\" hx-swap=\"innerMorph\">")
        .nth(1);
    let beside = beside.unwrap().split("</hx-partial>").next().unwrap();
    assert!(beside.contains("at most 0.25"), "{beside}");
    let empty = "hx-target=\"#holdout-error\" hx-swap=\"innerMorph\"></hx-partial>";
    assert!(check.body.contains(empty), "{}", check.body);
    assert!(check.text().contains("the curve has no point for it"));
    assert!(!check.body.contains("d-typed"));
}

#[tokio::test]
async fn u05_a_goal_shows_its_best_and_a_policy_that_does_not_hedge_says_so() {
    let (_, router) = fleet_pages();
    let mut goal = form("0.03", "review");
    goal.push(("goal", "0.999"));
    let text = part(&post(&router, POLICY, EDITOR, &goal).await, "whatif");
    assert!(
        text.contains("the best for p99.9 under the budget of 3 %"),
        "{text}"
    );
    assert!(!text.contains("target"), "{text}");
    let mut off = form("0.03", "review");
    off[0] = ("intent", "off");
    let text = part(&post(&router, POLICY, EDITOR, &off).await, "whatif");
    assert!(
        text.contains("This policy is off: nothing would be hedged"),
        "{text}"
    );
    off[0] = ("intent", "observe");
    let text = part(&post(&router, POLICY, EDITOR, &off).await, "whatif");
    assert!(text.contains("only observes"), "{text}");
}

#[tokio::test]
async fn u05_where_slowness_is_shared_the_curve_promises_nothing_and_says_what_is_now() {
    let (_, router) = fleet_pages();
    let text = part(&get(&router, "/policies/search", VIEWER).await, "whatif");
    for said in [
        "p99 would stay at",
        "now off: shared slowdown (9 of 10 replicas slow together)",
        "93.0 % of slowness is shared",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!text.contains("as hedged now"), "{text}");
}

#[tokio::test]
async fn u05_the_route_is_chosen_and_no_latencies_are_a_dash_and_why() {
    let (_, router) = fleet_pages();
    let page = get(&router, "/policies/catalog?route=catalog%20list", VIEWER).await;
    assert!(
        page.body
            .contains("<option value=\"catalog list\" selected>")
    );
    assert!(
        part(&page, "whatif").contains("catalog list , as of"),
        "{}",
        part(&page, "whatif")
    );
    // The busiest where nothing, or nothing that is covered, was chosen.
    let other = get(&router, "/policies/catalog?route=search%20query", VIEWER).await;
    assert!(
        other
            .body
            .contains("<option value=\"catalog get-item\" selected>")
    );
    let silent = get(&router, "/policies/hedgerow.v2.Ledger%2FBalance", VIEWER).await;
    let text = part(&silent, "whatif");
    assert!(text.contains("– no curve:"), "{text}");
    assert!(
        text.contains("no call of it has ended in the last five minutes"),
        "{text}"
    );
    let nobody = part(&get(&router, "/policies/shipping", VIEWER).await, "whatif");
    assert!(
        nobody.contains("no agent has reported a route that this policy covers"),
        "{nobody}"
    );
}

#[tokio::test]
async fn u05_hours_are_replayed_under_what_is_typed_before_it_is_saved() {
    let (stage, router) = fleet_pages();
    let mut asked = form("0.02", "replay");
    asked.push(("hours", "1"));
    let page = post(&router, POLICY, EDITOR, &asked).await;
    assert_eq!(page.status, StatusCode::OK);
    let text = part(&page, "replay");
    assert!(
        text.contains("With this policy the last 1 h would have hedged"),
        "{text}"
    );
    let hedged = figure(&text, "would have hedged ", " %,");
    assert!(hedged > 0.5 && hedged <= 2.0, "{text}");
    let (with, without) = (
        figure(&text, "p99 ", " ms instead"),
        figure(&text, "instead of ", " ms without"),
    );
    assert!(with < without, "{text}");
    for said in [
        "under the one in force",
        "In fact 4.80 % were hedged",
        "60 stored minutes, over 1 h",
        "as it was",
        "What is assumed",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(page.body.contains("<option value=\"1\" selected>"));
    assert!(page.body.contains("name=\"budget\" value=\"0.02\""), "kept");
    assert_eq!(stage.state(|s| s.history.len()), 3, "nothing was saved");
    // The open form is sent the same.
    let open = post(&router, "/policies/catalog/replay", EDITOR, &asked).await;
    assert!(page.body.contains(&open.body));
    // Nothing is replayed unasked.
    let unasked = get(&router, POLICY, EDITOR).await;
    assert!(!unasked.body.contains("id=\"chart-replay\""));
}

#[tokio::test]
async fn u05_a_replay_without_data_or_with_other_hours_is_a_dash_and_why() {
    let (stage, router) = fleet_pages();
    let asked = |hours| [form("0.02", "replay"), vec![("hours", hours)]].concat();
    for hours in ["2", "-1", "all"] {
        let text = part(
            &post(&router, POLICY, EDITOR, &asked(hours)).await,
            "replay",
        );
        assert!(text.contains("expected one of 1, 6, 24"), "{text}");
    }
    let bad = [form("8", "replay"), vec![("hours", "1")]].concat();
    let text = part(&post(&router, POLICY, EDITOR, &bad).await, "replay");
    assert!(text.contains("what was typed cannot stand"), "{text}");
    let quiet = "/policies/hedgerow.v2.Ledger%2FBalance";
    let text = part(&post(&router, quiet, EDITOR, &asked("6")).await, "replay");
    assert!(
        text.contains("– no replay:") && text.contains("is stored of the last 6 h"),
        "{text}"
    );
    stage.state(|s| s.store_away = true);
    let text = part(&post(&router, POLICY, EDITOR, &asked("1")).await, "replay");
    assert!(text.contains("the disk is full"), "{text}");
}

#[tokio::test]
async fn s07_a_hostile_route_in_the_address_is_nothing() {
    let (_, router) = fleet_pages();
    for route in [
        "%3Cscript%3Ealert(1)%3C/script%3E",
        "%22%3E%3Cimg%20src=x%3E",
        "a%0Ab",
    ] {
        let page = get(&router, &format!("{POLICY}?route={route}"), EDITOR).await;
        assert_eq!(page.status, StatusCode::OK);
        assert!(!page.body.contains("alert(1)") && !page.body.contains("<img src=x"));
    }
}
