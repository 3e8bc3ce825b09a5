//! Setting policies, by whoever may (B60, B69, B71, C06, C20).

use hedgerow_core::event::KillScope;
use hedgerow_dashboard::backend::Role;
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use super::{errors, get, problem, put};
use crate::standing::Standing;

#[tokio::test]
async fn c06_a_percentile_of_95_is_refused_with_the_accepted_range() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Editor).await;
    let body = json!({"intent": "hedge", "percentile": 95, "budget": 8, "reason": "test"});
    let problem = problem(put(&standing, &token, &body, None).await, 422).await;
    let errors = errors(&problem);
    assert_eq!(errors[0].0, "percentile");
    assert_eq!(
        errors[0].1,
        "95 is out of range: expected a number from 0.92 to 0.999"
    );
    assert_eq!(errors[1].0, "budget");
    assert_eq!(standing.count("SELECT count(*) FROM policies").await, 0);
}

#[tokio::test]
async fn b60_what_a_policy_lacks_or_has_too_much_is_named_field_by_field() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Editor).await;
    let table = [
        (
            json!({"percentile": null, "reason": "x"}),
            "percentile",
            "null",
        ),
        (
            json!({"budget": "", "reason": "x"}),
            "budget",
            "expected f64",
        ),
        (
            json!({"intent": "HEDGE", "reason": "x"}),
            "intent",
            "`off`, `observe`, `hedge`",
        ),
        (
            json!({"percentil": 0.95, "reason": "x"}),
            "percentil",
            "expected one of dependency",
        ),
        (
            json!({"dependency": "other", "reason": "x"}),
            "dependency",
            "expected catalog",
        ),
        (
            json!({"dependency": " ", "reason": "x"}),
            "dependency",
            "expected catalog",
        ),
        (json!({"intent": "hedge"}), "reason", "is missing"),
        (
            json!({"intent": "hedge", "reason": "  "}),
            "reason",
            "say why",
        ),
        (
            json!({"intent": "hedge", "reason": 7}),
            "reason",
            "is not a text",
        ),
        (
            json!({"threshold_min_ms": 9, "threshold_max_ms": 3, "reason": "x"}),
            "threshold_max_ms",
            "at least",
        ),
    ];
    for (body, field, message) in table {
        let problem = problem(put(&standing, &token, &body, None).await, 422).await;
        let found = errors(&problem)
            .into_iter()
            .any(|(f, m)| f == field && m.contains(message));
        assert!(found, "{body}: {problem}");
    }
    let blank = standing
        .request("put", "/api/v1/policies/%20")
        .bearer_auth(&token)
        .json(&json!({"reason": "x"}));
    let problem = problem(blank.send().await.unwrap(), 422).await;
    assert_eq!(errors(&problem)[0].0, "dependency");
    assert_eq!(standing.count("SELECT count(*) FROM policies").await, 0);
}

#[tokio::test]
async fn c20_saving_twice_changes_once() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Editor).await;
    let body = json!({"intent": "hedge", "percentile": 0.95, "reason": "first"});
    for (changed, reason) in [(true, "first"), (false, "second"), (false, "third")] {
        let mut body = body.clone();
        body["reason"] = reason.into();
        let response = put(&standing, &token, &body, None).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["etag"], "\"1\"");
        let answer: Value = response.json().await.unwrap();
        assert_eq!(answer, json!({"revision": 1, "changed": changed}));
    }
    assert_eq!(standing.count("SELECT count(*) FROM policies").await, 1);
    let sets = standing
        .count("SELECT count(*) FROM audit WHERE action = 'policy.set'")
        .await;
    assert_eq!(sets, 1);
}

#[tokio::test]
async fn b71_the_same_save_twice_at_once_is_one_change() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Editor).await;
    put(
        &standing,
        &token,
        &json!({"intent": "observe", "reason": "first"}),
        None,
    )
    .await;
    let body = json!({"intent": "hedge", "reason": "second"});
    let saves = (0..8).map(|_| put(&standing, &token, &body, Some("\"1\"")));
    let statuses: Vec<_> = futures::future::join_all(saves)
        .await
        .iter()
        .map(Response::status)
        .collect();
    assert!(statuses.contains(&StatusCode::OK), "{statuses:?}");
    let ok_or_stale = |s: &StatusCode| matches!(s.as_u16(), 200 | 412);
    assert!(statuses.iter().all(ok_or_stale), "{statuses:?}");
    let policy = get(&standing, &token, "/api/v1/policies/catalog").await;
    assert_eq!(
        (&policy["revision"], &policy["policy"]["intent"]),
        (&json!(2), &json!("hedge"))
    );
    assert_eq!(standing.count("SELECT count(*) FROM policies").await, 2);
}

#[tokio::test]
async fn a_save_over_a_stale_revision_is_refused_with_the_one_in_force() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Editor).await;
    for (i, intent) in ["hedge", "off"].into_iter().enumerate() {
        let tag = (i > 0).then(|| format!("\"{i}\""));
        let body = json!({"intent": intent, "reason": "test"});
        assert_eq!(
            put(&standing, &token, &body, tag.as_deref()).await.status(),
            200
        );
    }
    let body = json!({"intent": "observe", "reason": "late"});
    let stale = problem(put(&standing, &token, &body, Some("\"1\"")).await, 412).await;
    assert_eq!(stale["current"], 2);
    for tag in ["1", "\"x\"", "W/\"1\"", "\"1\", \"2\""] {
        let refused = problem(put(&standing, &token, &body, Some(tag)).await, 400).await;
        assert!(
            refused["detail"]
                .as_str()
                .unwrap()
                .contains("such as \"7\""),
            "{tag}"
        );
    }
    let policy = get(&standing, &token, "/api/v1/policies/catalog").await;
    assert_eq!(
        (&policy["revision"], &policy["policy"]["intent"]),
        (&json!(2), &json!("off"))
    );

    let held = standing
        .request("get", "/api/v1/policies/catalog")
        .bearer_auth(&token)
        .header("if-none-match", "\"2\"");
    let response = held.send().await.unwrap();
    assert_eq!(
        (response.status(), &response.headers()["etag"]),
        (StatusCode::NOT_MODIFIED, &"\"2\"".parse().unwrap())
    );
}

#[tokio::test]
async fn what_was_set_is_there_after_a_restart_and_one_off_switch_too() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Editor).await;
    put(
        &standing,
        &token,
        &json!({"intent": "hedge", "reason": "test"}),
        None,
    )
    .await;
    let before = get(&standing, &token, "/api/v1/policies/catalog").await;
    let kill = json!({"scope": "dependency", "dependency": "catalog", "engaged": true, "reason": "incident"});
    let send = async |standing: &Standing, body: &Value| {
        let request = standing
            .request("post", "/api/v1/kill")
            .bearer_auth(&token)
            .json(body);
        request.send().await.unwrap()
    };
    let answer: Value = send(&standing, &kill).await.json().await.unwrap();
    assert_eq!(
        answer,
        json!({"changed": true, "acked": {"n": 0, "m": 0}, "known": true})
    );
    let answer: Value = send(&standing, &kill).await.json().await.unwrap();
    assert_eq!(
        answer,
        json!({"changed": false, "acked": {"n": 0, "m": 0}, "known": true})
    );

    let standing = Standing::start_in(standing.stop().await).await;
    let after = get(&standing, &token, "/api/v1/policies/catalog").await;
    assert_eq!(after, before, "B69");
    let kills = standing.engine.snapshot().kills.clone();
    assert_eq!(kills.len(), 1);
    assert_eq!(
        kills[0].state.scope,
        KillScope::Dependency("catalog".parse().unwrap())
    );
    assert_eq!(kills[0].state.reason, "incident");
}
