//! A percentile of 95 where 0.95 is meant, on each way in (C06): refused with the accepted range,
//! and nothing that was stored or running is lost.

use std::time::Duration;

use hedgerow_control_plane::auth;
use hedgerow_control_plane::store::Store;
use hedgerow_dashboard::backend::Role;
use hedgerow_protocol::ids::{DependencyName, Revision};
use reqwest::Response;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::refused;
use crate::running::{Running, hedging};

const RANGE: &str = "from 0.92 to 0.999";

/// The policy of before is in force, and the only one.
async fn assert_untouched(running: &Running) {
    let catalog = DependencyName::new("catalog").unwrap();
    let policy = running.snapshot().policies[&catalog.clone().into()].clone();
    assert_eq!(
        (policy.revision, policy.policy),
        (Revision(1), hedging(0.08))
    );
    let history = running
        .app
        .store()
        .policy_history(&catalog.clone().into())
        .await
        .unwrap();
    assert_eq!(history.len(), 1);
}

async fn post_form(running: &Running, fields: &str) -> Response {
    let store = running.app.store();
    auth::add_operator(store, "ada", Role::Editor, None)
        .await
        .unwrap();
    let link = auth::new_login_link(store, "ada", Duration::from_mins(1))
        .await
        .unwrap();
    let base = format!("http://{}", running.app.http_address());
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let form = |path: &str, body: String| {
        client
            .post(format!("{base}{path}"))
            .header("origin", &base)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body)
    };
    let signed_in = form("/login/link", format!("token={link}"))
        .send()
        .await
        .unwrap();
    let cookie = signed_in.headers()["set-cookie"].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    form("/policies/catalog", fields.to_owned())
        .header("cookie", cookie)
        .send()
        .await
        .unwrap()
}

#[tokio::test]
async fn c06_the_form_refuses_a_percentile_of_95_beside_its_field() {
    let running = Running::start().await;
    running.set_policy(hedging(0.08)).await;
    let fields = "intent=hedge&percentile=95&budget=8&holdout=1&error_limit=5&reason=a+test\
                  &threshold_min_ms=&threshold_max_ms=&expected=1&step=save";
    let answer = post_form(&running, fields).await;
    assert_eq!(answer.status(), 422);
    let page = answer.text().await.unwrap();
    assert!(page.contains(RANGE), "{page}");
    assert!(
        page.contains("value=\"95\""),
        "what was typed is still there: {page}"
    );
    assert_untouched(&running).await;
    running.app.stop().await;
}

#[tokio::test]
async fn c06_the_api_refuses_a_percentile_of_95_by_name() {
    let running = Running::start().await;
    running.set_policy(hedging(0.08)).await;
    let token = auth::new_api_token(running.app.store(), "ci", Role::Editor, None)
        .await
        .unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!(
        "http://{}/api/v1/policies/catalog",
        running.app.http_address()
    );
    let request = client.put(url).bearer_auth(token.expose_secret());
    let body = json!({"intent": "hedge", "percentile": 95, "reason": "a test"});
    let answer = request.json(&body).send().await.unwrap();
    assert_eq!(answer.status(), 422);
    let problem: Value = answer.json().await.unwrap();
    assert_eq!(problem["errors"][0]["field"], "percentile");
    let message = problem["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains(RANGE), "{message}");
    assert_untouched(&running).await;
    running.app.stop().await;
}

#[tokio::test]
async fn c06_serve_does_not_start_with_a_percentile_of_95_and_leaves_the_store_alone() {
    let folder = TempDir::new().unwrap();
    let config = "http = \"127.0.0.1:0\"\ngrpc = \"127.0.0.1:0\"\nstore = \"hedgerow.db\"\n\
                  [[policy]]\ndependency = \"catalog\"\nintent = \"hedge\"\npercentile = 95\n";
    std::fs::write(folder.path().join("h.toml"), config).unwrap();
    // Fails where the command ends well.
    let error = refused(&["serve", "--config", "h.toml"], folder.path());
    for part in ["[[policy]] number 1", "catalog", "percentile", "95", RANGE] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
    assert!(!folder.path().join("hedgerow.db").exists());

    let store = Store::open(&folder.path().join("hedgerow.db"))
        .await
        .unwrap();
    store.close().await;
    refused(&["serve", "--config", "h.toml"], folder.path());
    let store = Store::open(&folder.path().join("hedgerow.db"))
        .await
        .unwrap();
    let restored = store.restore().await.unwrap();
    assert!(restored.policies.is_empty() && restored.epoch.0 == 0);
}
