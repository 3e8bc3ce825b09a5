//! Policies that are put in force in steps, by REST (U7).

use hedgerow_dashboard::backend::Role;
use reqwest::Response;
use serde_json::{Value, json};

use super::{errors, get, problem, put};
use crate::standing::Standing;

const POLICY: &str = "/api/v1/policies/catalog";

async fn step(standing: &Standing, token: &str, back: bool, tag: Option<&str>) -> Response {
    let (method, path) = if back {
        ("delete", "/api/v1/policies/catalog/rollout")
    } else {
        ("post", "/api/v1/policies/catalog/rollout/advance")
    };
    let mut request = standing
        .request(method, path)
        .bearer_auth(token)
        .json(&json!({"reason": "a test"}));
    if let Some(tag) = tag {
        request = request.header("if-match", tag);
    }
    request.send().await.unwrap()
}

async fn said(response: Response) -> (u16, Value) {
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn u07_a_policy_is_rolled_out_looked_at_moved_on_and_taken_back() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Editor).await;
    let old = json!({"intent": "hedge", "budget": 0.05, "reason": "first"});
    put(&standing, &token, &old, None).await;
    let new = json!({
        "intent": "hedge", "budget": 0.1, "reason": "more",
        "rollout": {"stages": [0.1, 0.5, 1], "stay_s": 60}
    });
    let saved = put(&standing, &token, &new, Some("\"1\"")).await;
    assert_eq!(saved.headers()["etag"], "\"2\"");
    assert_eq!(
        said(saved).await,
        (200, json!({"revision": 2, "changed": true}))
    );

    let view = get(&standing, &token, POLICY).await;
    assert_eq!(
        (&view["revision"], &view["policy"]["budget"]),
        (&json!(2), &json!(0.1))
    );
    let rollout = &view["rollout"];
    assert_eq!(rollout["stages"], json!([0.1, 0.5, 1.0]));
    assert_eq!(rollout["stay_ms"], 60_000.0);
    assert_eq!(
        (&rollout["stage"], &rollout["base"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(rollout["base_policy"]["budget"], 0.05);
    assert_eq!(rollout["actor"]["name"], "token:ci");

    let late = problem(step(&standing, &token, false, Some("\"1\"")).await, 412).await;
    assert_eq!(late["current"], 2, "{late}");
    let on = said(step(&standing, &token, false, Some("\"2\"")).await).await;
    assert_eq!(on, (200, json!({"revision": 2, "changed": true})));
    let view = get(&standing, &token, POLICY).await;
    assert_eq!(view["rollout"]["stage"], 2);

    let back = said(step(&standing, &token, true, None).await).await;
    assert_eq!(back, (200, json!({"revision": 3, "changed": true})));
    let view = get(&standing, &token, POLICY).await;
    assert_eq!(
        (&view["policy"]["budget"], &view["rollout"]),
        (&json!(0.05), &Value::Null)
    );
    let gone = problem(step(&standing, &token, true, None).await, 404).await;
    assert!(
        gone["detail"]
            .as_str()
            .unwrap()
            .contains("no rollout of catalog")
    );

    let record = get(&standing, &token, "/api/v1/audit?dependency=catalog").await;
    let actions = record.to_string();
    for action in ["rollout.begin", "rollout.advance", "rollout.revert"] {
        assert!(actions.contains(action), "{actions}");
    }
    assert_eq!(standing.count("SELECT count(*) FROM rollouts").await, 0);
}

#[tokio::test]
async fn b60_what_is_wrong_with_a_plan_is_named_by_its_field() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Editor).await;
    for (rollout, field, expected) in [
        (json!(true), "rollout", "expected {\"stages\""),
        (
            json!({"stages": [0.5]}),
            "rollout.stages",
            "the last of them 1",
        ),
        (
            json!({"stages": [0.5, 0.1, 1]}),
            "rollout.stages",
            "larger than the one before",
        ),
        (json!({"stages": "5 %"}), "rollout.stages", "expected"),
        (
            json!({"stages": [1], "stay_s": 5}),
            "rollout.stay_s",
            "expected 30 to 3600",
        ),
        (
            json!({"stay_s": -1}),
            "rollout.stay_s",
            "expected 30 to 3600",
        ),
        (
            json!({"stay_s": null}),
            "rollout.stay_s",
            "expected 30 to 3600",
        ),
        (
            json!({"shares": [1]}),
            "rollout.shares",
            "expected {\"stages\"",
        ),
    ] {
        let body = json!({"intent": "hedge", "reason": "x", "rollout": rollout});
        let problem = problem(put(&standing, &token, &body, None).await, 422).await;
        let errors = errors(&problem);
        assert_eq!(errors[0].0, field, "{problem}");
        assert!(errors[0].1.contains(expected), "{problem}");
    }
    assert_eq!(standing.count("SELECT count(*) FROM policies").await, 0);
    // What is left out takes its default.
    let body = json!({"intent": "hedge", "reason": "x", "rollout": {}});
    put(&standing, &token, &body, None).await;
    let view = get(&standing, &token, POLICY).await;
    assert_eq!(view["rollout"]["stages"], json!([0.05, 0.25, 1.0]));
}

#[tokio::test]
async fn b69_a_rollout_is_still_under_way_after_a_restart() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Editor).await;
    for body in [
        json!({"intent": "hedge", "budget": 0.05, "reason": "first"}),
        json!({"intent": "hedge", "budget": 0.1, "reason": "more", "rollout": {}}),
    ] {
        put(&standing, &token, &body, None).await;
    }
    step(&standing, &token, false, None).await;
    let before = get(&standing, &token, POLICY).await;
    let standing = Standing::start_in(standing.stop().await).await;
    let after = get(&standing, &token, POLICY).await;
    for field in ["stages", "stage", "base", "base_policy", "actor", "since"] {
        assert_eq!(after["rollout"][field], before["rollout"][field], "{field}");
    }
    assert_eq!(after["revision"], before["revision"]);
}
