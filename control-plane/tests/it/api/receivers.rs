//! Receivers: how they do, a test notice, and what they got.

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use hedgerow_control_plane::alerts::{Delivering, Receivers};
use hedgerow_control_plane::auth;
use hedgerow_core::effect::{AlertState, Record};
use hedgerow_core::moment::Moment;
use hedgerow_core::view::AlertRule;
use hedgerow_dashboard::backend::{ActError, Backend as _, Operator, Role};
use hedgerow_protocol::ids::RouteKey;
use reqwest::Response;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{errors, get, problem};
use crate::alerts::catch::Catch;
use crate::alerts::kinds::{alertmanager, email, made, pagerduty, slack, webhook};
use crate::alerts::program::Mailbox;
use crate::running::Running;
use crate::standing::Standing;

async fn standing(catch: &Catch, mail_port: u16) -> Standing {
    let all = [
        made("chat", slack(catch.address)),
        made("am", alertmanager(catch.address)),
        made("duty", pagerduty(catch.address)),
        made("hook", webhook(catch.address)),
        made("mail", email(mail_port)),
    ];
    let receivers = Receivers::new(&all, Delivering::default());
    Standing::start_with(TempDir::new().unwrap(), receivers).await
}

async fn test(standing: &Standing, token: &str, name: &str, body: &Value) -> Response {
    standing
        .request("post", &format!("/api/v1/receivers/{name}/test"))
        .bearer_auth(token)
        .json(body)
        .send()
        .await
        .unwrap()
}

#[tokio::test]
async fn u11_a_test_notice_goes_the_real_way_and_says_what_was_answered() {
    let catch = Catch::start().await;
    let mailbox = Mailbox::start(&["plain"]);
    let standing = standing(&catch, mailbox.port).await;
    let token = standing.token("ci", Role::Operator).await;
    // Programs are told the end too, people are not.
    for (name, messages, status) in [
        ("chat", 1, "200"),
        ("am", 2, "200"),
        ("duty", 2, "200"),
        ("hook", 2, "200"),
        ("mail", 0, "250"),
    ] {
        let before = catch.taken().len();
        let answer = test(&standing, &token, name, &json!({})).await;
        assert_eq!(answer.status(), 200, "{name}");
        let outcome: Value = answer.json().await.unwrap();
        assert_eq!(outcome["delivered"], true, "{name}: {outcome}");
        assert_eq!(outcome["status"], status, "{name}");
        assert!(outcome["took_ms"].is_u64(), "{name}");
        let sent = catch.taken()[before..].to_vec();
        assert_eq!(sent.len(), messages, "{name}");
        for body in sent {
            assert!(
                body.to_string().contains("asked for by token:ci"),
                "{name}: {body}"
            );
        }
    }
    let letters = mailbox.exactly(1).await;
    assert_eq!(
        letters[0]["headers"]["subject"],
        "[test] TestNotice: hedgerow test"
    );
    assert_eq!(
        get(&standing, &token, "/api/v1/deliveries").await["items"],
        json!([])
    );
    let record = get(&standing, &token, "/api/v1/audit").await.to_string();
    assert_eq!(record.matches("receiver.test").count(), 5, "{record}");
    standing.stop().await;
}

#[tokio::test]
async fn u11_a_test_that_fails_says_why_without_the_answers_text() {
    let catch = Catch::start().await;
    catch.answers(|n| match n {
        0 => (StatusCode::FORBIDDEN, "canary-answer").into_response(),
        1 => StatusCode::OK.into_response(),
        _ => StatusCode::BAD_GATEWAY.into_response(),
    });
    let standing = standing(&catch, 2525).await;
    let token = standing.token("ci", Role::Operator).await;
    for (name, status) in [
        ("chat", "answered 403"),
        ("duty", "it took the beginning, but its end: answered 502"),
    ] {
        let answer = test(&standing, &token, name, &json!({})).await;
        let outcome: Value = answer.json().await.unwrap();
        assert_eq!(outcome["delivered"], false);
        assert_eq!(outcome["status"], status);
    }
    standing.stop().await;
}

#[tokio::test]
async fn s12_only_an_operator_sends_test_notices() {
    let catch = Catch::start().await;
    let standing = standing(&catch, 2525).await;
    let viewer = standing.token("eve", Role::Viewer).await;
    let answer = test(&standing, &viewer, "chat", &json!({})).await;
    problem(answer, 403).await;
    let eve = Operator {
        name: "eve".into(),
        role: Role::Viewer,
    };
    let refused = standing.ui.test_receiver(&eve, "chat").await;
    assert!(matches!(refused, Err(ActError::Forbidden { .. })));
    let operator = standing.token("ci", Role::Operator).await;
    let unknown = test(&standing, &operator, "nobody", &json!({})).await;
    let unknown = problem(unknown, 404).await;
    assert!(unknown["detail"].as_str().unwrap().contains("nobody"));
    let odd = test(&standing, &operator, "chat", &json!({"receiver": "x"})).await;
    assert_eq!(errors(&problem(odd, 422).await)[0].0, "receiver");
    assert!(catch.caught().is_empty());
    let count = standing.count("SELECT count(*) FROM audit WHERE action = 'receiver.test'");
    assert_eq!(count.await, 0);
    standing.stop().await;
}

#[tokio::test]
async fn u11_receivers_are_listed_with_how_they_do_and_without_their_secrets() {
    let catch = Catch::start().await;
    let standing = standing(&catch, 2525).await;
    let token = standing.token("ci", Role::Viewer).await;
    let alert = |n: u64| AlertState {
        id: format!("e{n}"),
        rule: AlertRule::SharedSlowdown,
        route: RouteKey::new("catalog", "get").unwrap(),
        replica: None,
        summary: "slow".into(),
        since: Moment::from_millis(1_700_000_000_000 + n),
        resolved: None,
    };
    let alerts: Vec<_> = (0..5).map(|n| Record::Alert(alert(n))).collect();
    let names = ["chat", "hook"].map(String::from);
    standing.store.write(&alerts, &names).await.unwrap();
    let list = get(&standing, &token, "/api/v1/receivers").await;
    assert!(!list.to_string().contains("canary"), "{list}");
    assert_eq!(list["next"], Value::Null);
    let items = list["items"].as_array().unwrap();
    let shown: Vec<_> = items
        .iter()
        .map(|it| {
            format!(
                "{} {} {} {}",
                it["name"], it["kind"], it["to"], it["waiting"]
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            r#""am" "alertmanager" "127.0.0.1" 0"#,
            r#""chat" "slack" "127.0.0.1" 5"#,
            r#""duty" "pagerduty" "127.0.0.1" 0"#,
            r#""hook" "webhook" "127.0.0.1" 5"#,
            r#""mail" "email" "example.net, example.org" 0"#,
        ]
    );
    let pages = standing.ui.receivers().await.unwrap();
    assert_eq!(serde_json::to_value(pages).unwrap(), list["items"]);
    let mut seen = Vec::new();
    let mut after = String::new();
    loop {
        let path = format!("/api/v1/deliveries?receiver=chat&limit=2{after}");
        let page = get(&standing, &token, &path).await;
        for item in page["items"].as_array().unwrap() {
            assert_eq!(item["receiver"], "chat");
            seen.push(item["alert"].as_str().unwrap().to_owned());
        }
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(seen, ["e4", "e3", "e2", "e1", "e0"]);
    for query in ["limit=0", "limit=1001", "colour=green"] {
        let answer = standing
            .request("get", &format!("/api/v1/deliveries?{query}"))
            .bearer_auth(&token);
        let status = answer.send().await.unwrap().status();
        assert!(status == 422 || status == 400, "{query}: {status}");
    }
    standing.stop().await;
}

#[tokio::test]
async fn u11_receivers_of_the_configuration_are_those_of_the_api() {
    let catch = Catch::start().await;
    let receiver = format!(
        "[[receiver]]\nname = \"chat\"\nkind = \"slack\"\nurl = \"http://{}/\"\nallow_private = true\n",
        catch.address
    );
    let running = Running::start_with(&receiver, |_| {}).await;
    let store = running.app.store();
    let token = auth::new_api_token(store, "ci", Role::Operator, None).await;
    let url = format!(
        "http://{}/api/v1/receivers/chat/test",
        running.app.http_address()
    );
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer = client
        .post(url)
        .bearer_auth(token.unwrap().expose_secret())
        .json(&json!({}))
        .send()
        .await
        .unwrap();
    let outcome: Value = answer.json().await.unwrap();
    assert_eq!(outcome["delivered"], true, "{outcome}");
    // The page of receivers, at the controller's own address.
    let sent = catch.taken()[0].to_string();
    let link = format!("http://{}/receivers|", running.app.http_address());
    assert!(sent.contains(&link), "{sent}");
    running.app.stop().await;
}
