//! Policies of operations, dependencies and patterns by the API: set, asked about before, taken away,
//! and put in force again.

use hedgerow_dashboard::backend::Role;
use serde_json::{Value, json};

use super::{answer, change};
use crate::standing::Standing;

#[tokio::test]
async fn u07_a_policy_is_for_a_pattern_a_dependency_or_an_operation() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Editor).await;
    for (scope, number) in [("cat*", 1), ("catalog", 2), ("catalog%20get-item", 3)] {
        let path = format!("/api/v1/policies/{scope}");
        let body = json!({"intent": "hedge", "reason": "a test"});
        let (status, saved) = change(&standing, &token, ("put", &path), &body).await;
        assert_eq!(
            (status, &saved["revision"]),
            (200, &json!(number)),
            "{scope}: {saved}"
        );
    }
    let (_, all) = answer(&standing, &token, "/api/v1/policies").await;
    let of = |it: &Value| {
        (
            it["policy"]["dependency"].clone(),
            it["policy"]["operation"].clone(),
        )
    };
    let scopes: Vec<_> = all["items"].as_array().unwrap().iter().map(of).collect();
    let expected = [
        (json!("catalog"), Value::Null),
        (json!("catalog"), json!("get-item")),
        (json!("cat*"), Value::Null),
    ];
    assert_eq!(scopes, expected);
    let (_, first) = answer(&standing, &token, "/api/v1/policies?limit=2").await;
    assert_eq!(first["next"], "catalog get-item");
    let rest = "/api/v1/policies?limit=2&after=catalog%20get-item";
    let (_, rest) = answer(&standing, &token, rest).await;
    assert_eq!(
        (rest["items"].as_array().unwrap().len(), &rest["next"]),
        (1, &Value::Null)
    );
}

#[tokio::test]
async fn a_policy_names_what_its_address_does_or_nothing() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Editor).await;
    for (body, field) in [
        (json!({"dependency": "search", "reason": "x"}), "dependency"),
        (json!({"operation": "list", "reason": "x"}), "operation"),
    ] {
        let put = ("put", "/api/v1/policies/catalog%20get");
        let (status, problem) = change(&standing, &token, put, &body).await;
        assert_eq!(status, 422, "{problem}");
        assert_eq!(problem["errors"][0]["field"], field);
    }
    let put = ("put", "/api/v1/policies/catalog%20get");
    let body = json!({"dependency": "catalog", "operation": "get", "reason": "x"});
    assert_eq!(change(&standing, &token, put, &body).await.0, 200);
}

#[tokio::test]
async fn u07_what_saving_would_change_is_said_before_and_changes_nothing() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Editor).await;
    let plan = ("post", "/api/v1/policies/catalog/plan");
    let (status, new) = change(
        &standing,
        &token,
        plan,
        &json!({"intent": "hedge", "budget": 0.02}),
    )
    .await;
    assert_eq!(status, 200, "{new}");
    assert_eq!(
        (&new["before"], &new["revision"]),
        (&Value::Null, &json!(0))
    );
    let changes = json!([
        {"field": "budget", "before": 0.08, "after": 0.02},
        {"field": "intent", "before": "observe", "after": "hedge"},
    ]);
    assert_eq!(new["changes"], changes);
    let notes = new["notes"].to_string();
    assert!(
        notes.contains("no agent has reported catalog yet"),
        "{notes}"
    );
    assert!(
        notes.contains("below the rate the percentile aims at"),
        "{notes}"
    );
    let (status, _) = answer(&standing, &token, "/api/v1/policies/catalog").await;
    assert_eq!(status, 404, "nothing was set");
    let (status, refused) = change(&standing, &token, plan, &json!({"percentile": 95})).await;
    assert_eq!(
        (status, &refused["errors"][0]["field"]),
        (422, &json!("percentile"))
    );
}

#[tokio::test]
async fn u07_a_policy_is_taken_away_and_an_old_revision_put_in_force_again() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Editor).await;
    let viewer = standing.token("tv", Role::Viewer).await;
    let (path, reason) = ("/api/v1/policies/catalog", json!({"reason": "a test"}));
    let set = json!({"intent": "hedge", "budget": 0.03, "reason": "first"});
    assert_eq!(change(&standing, &token, ("put", path), &set).await.0, 200);
    assert_eq!(
        change(&standing, &viewer, ("delete", path), &reason)
            .await
            .0,
        403
    );
    let (status, gone) = change(&standing, &token, ("delete", path), &reason).await;
    assert_eq!((status, &gone["revision"]), (200, &json!(2)));
    assert_eq!(
        change(&standing, &token, ("delete", path), &reason).await.0,
        404
    );
    assert_eq!(answer(&standing, &token, path).await.0, 404);

    let revert = ("post", "/api/v1/policies/catalog/revert");
    let wanted = json!({"revision": 1, "reason": "it was better"});
    let (status, back) = change(&standing, &token, revert, &wanted).await;
    assert_eq!((status, &back["revision"]), (200, &json!(3)));
    let (_, policy) = answer(&standing, &token, path).await;
    assert_eq!(policy["policy"]["budget"], 0.03);
    let missing = json!({"revision": 9, "reason": "x"});
    assert_eq!(change(&standing, &token, revert, &missing).await.0, 404);

    let (_, history) = answer(&standing, &token, "/api/v1/policies/catalog/history").await;
    let items = history["items"].as_array().unwrap();
    let numbers: Vec<_> = items
        .iter()
        .map(|it| it["revision"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [3, 2, 1]);
    assert_eq!(items[1]["policy"], Value::Null, "taken away");
    let (_, record) = answer(
        &standing,
        &token,
        "/api/v1/audit?dependency=catalog&limit=1",
    )
    .await;
    assert_eq!(record["items"][0]["action"], "policy.set");
}
