//! Who may what (S6, S9, S10, S12).

use std::time::Duration;

use hedgerow_control_plane::api::ROUTES;
use hedgerow_control_plane::auth;
use hedgerow_dashboard::backend::Role;
use serde_json::{Value, json};

use super::{get, problem, put};
use crate::logged::Log;
use crate::standing::Standing;

/// A path of a route's pattern, with names filled in.
fn filled(pattern: &str) -> String {
    pattern
        .replace("{dependency}", "catalog")
        .replace("{scope}", "catalog")
        .replace("{instance}", "0190b5a0-0000-7000-8000-000000000000")
        .replace("{operation}", "get")
        .replace("{name}", "app.css")
        .replace("{id}", "0123456789ab")
}

#[tokio::test]
async fn s10_every_route_of_api_and_pages_needs_somebody() {
    let standing = Standing::start().await;
    let beyond = [
        ("get", "/api/v1"),
        ("get", "/api/v1/"),
        ("get", "/api/v1/nothing"),
        ("delete", "/api/v1/fleet"),
        ("options", "/api/v1/fleet"),
        ("patch", "/api/v1/policies/catalog"),
        ("get", "/api/v1/policies/%00"),
        ("get", "/api/v1//fleet"),
    ];
    for (method, path) in ROUTES.iter().chain(&beyond) {
        for cookie in ["", "hedgerow_session=", "hedgerow_session=guess"] {
            let request = standing
                .request(method, &filled(path))
                .header("cookie", cookie);
            let body = problem(request.send().await.unwrap(), 401).await;
            assert_eq!(
                body["type"], "urn:hedgerow:problem:nobody",
                "{method} {path}"
            );
        }
        for header in ["Bearer guess", "Bearer ", "Basic YWRtaW46YWRtaW4=", "guess"] {
            let request = standing
                .request(method, &filled(path))
                .header("authorization", header);
            let status = request.send().await.unwrap().status();
            assert!(
                matches!(status.as_u16(), 401 | 429),
                "{method} {path} {header}: {status}"
            );
        }
    }
    let nowhere = [
        ("get", "/nothing"),
        ("post", "/nothing"),
        ("delete", "/agents"),
    ];
    for (method, path) in hedgerow_dashboard::PROTECTED_ROUTES.iter().chain(&nowhere) {
        let origin = format!("http://{}", standing.address);
        let request = standing
            .request(method, &filled(path))
            .header("origin", origin);
        let response = request.send().await.unwrap();
        let to_login = response.status().is_redirection()
            && response.headers()["location"]
                .to_str()
                .unwrap()
                .starts_with("/login");
        let refused = matches!(response.status().as_u16(), 401 | 405);
        assert!(
            to_login || refused,
            "{method} {path}: {}",
            response.status()
        );
    }
}

#[tokio::test]
async fn s10_a_known_caller_gets_in_by_token_and_by_session() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Viewer).await;
    let session = standing.session("ada", Role::Viewer).await;
    for (method, path) in ROUTES.iter().filter(|(method, _)| *method == "get") {
        for (name, value) in [
            ("authorization", format!("Bearer {token}")),
            ("cookie", format!("a=b; hedgerow_session={session}")),
        ] {
            let request = standing.request(method, &filled(path)).header(name, value);
            let response = request.send().await.unwrap();
            let status = response.status().as_u16();
            // Nobody has reported a route or set a policy; who may come in is not for a viewer.
            let administrators = ["operators", "tokens", "agent-tokens"];
            let expected = match path.strip_prefix("/api/v1/") {
                Some(it) if administrators.contains(&it) => 403,
                _ if path.contains('{') => 404,
                _ => 200,
            };
            assert_eq!(status, expected, "{path} by {name}");
            assert_eq!(response.headers()["cache-control"], "no-store");
            assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        }
    }
}

#[tokio::test]
async fn the_cookie_of_the_pages_is_the_one_the_api_takes() {
    let standing = Standing::start().await;
    auth::add_operator(&standing.store, "ada", Role::Viewer, None)
        .await
        .unwrap();
    let link = auth::new_login_link(&standing.store, "ada", Duration::from_mins(1))
        .await
        .unwrap();
    let sign_in = standing
        .request("post", "/login/link")
        .header("origin", format!("http://{}", standing.address))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("token={link}"));
    let response = sign_in.send().await.unwrap();
    let cookie = response.headers()["set-cookie"].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap();
    let request = standing
        .request("get", "/api/v1/fleet")
        .header("cookie", cookie);
    assert_eq!(request.send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn s06_a_session_changes_nothing_from_another_site() {
    let standing = Standing::start().await;
    let session = standing.session("ada", Role::Administrator).await;
    let kill = json!({"scope": "everything", "engaged": true, "reason": "test"});
    let own = format!("http://{}", standing.address);
    let send = async |name: &'static str, value: &str| {
        let request = standing
            .request("post", "/api/v1/kill")
            .header("cookie", format!("hedgerow_session={session}"))
            .header(name, value)
            .json(&kill);
        request.send().await.unwrap()
    };
    for (name, value) in [
        ("x-nothing", "neither header"),
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        let body = problem(send(name, value).await, 403).await;
        assert_eq!(
            body["type"], "urn:hedgerow:problem:foreign",
            "{name}: {value}"
        );
    }
    assert!(standing.engine.snapshot().kills.is_empty());
    assert_eq!(send("origin", &own).await.status(), 200);
    // No change by GET, whatever the address says.
    let get = standing
        .request(
            "get",
            "/api/v1/kill?scope=everything&engaged=false&reason=x",
        )
        .header("cookie", format!("hedgerow_session={session}"));
    assert_eq!(get.send().await.unwrap().status(), 200);
    assert_eq!(standing.engine.snapshot().kills.len(), 1, "it still stands");
}

/// An act, the least role for it, and what the least role gets: nobody has reported a route.
fn acts() -> Vec<(&'static str, &'static str, Value, Role, u16)> {
    const RELEASE: &str = "/api/v1/routes/catalog/get/release";
    const ACCEPT: &str = "/api/v1/routes/catalog/get/accept-base";
    const SWITCHBACK: &str = "/api/v1/routes/catalog/get/switchback";
    const ROLLOUT: &str = "/api/v1/policies/catalog/rollout";
    const ADVANCE: &str = "/api/v1/policies/catalog/rollout/advance";
    const REVERT: &str = "/api/v1/policies/catalog/revert";
    const BUSY: &str = "/api/v1/dependencies/search/utilisation";
    const TWICE: &str = "/api/v1/routes/catalog/get/duplicates";
    const SILENCE: &str = "/api/v1/silences/77";
    const ACKNOWLEDGE: &str = "/api/v1/alerts/none/acknowledge";
    let policy = json!({"intent": "hedge", "reason": "test"});
    let kill = json!({"scope": "everything", "engaged": true, "reason": "test"});
    let busy = json!({"utilisation": 0.5, "valid_s": 60});
    let revert = json!({"revision": 1, "reason": "test"});
    let twice = json!({"executed": 3, "over_s": 60});
    let silence = json!({"minutes": 5, "reason": "test"});
    let comment = json!({"comment": "test"});
    let reason = || json!({"reason": "test"});
    vec![
        ("put", "/api/v1/policies/catalog", policy, Role::Editor, 200),
        ("post", "/api/v1/kill", kill, Role::Operator, 200),
        ("post", RELEASE, reason(), Role::Operator, 404),
        ("post", ACCEPT, reason(), Role::Editor, 404),
        ("post", SWITCHBACK, reason(), Role::Operator, 404),
        ("delete", SWITCHBACK, reason(), Role::Operator, 404),
        ("delete", ROLLOUT, reason(), Role::Operator, 404),
        ("post", ADVANCE, reason(), Role::Editor, 404),
        ("put", BUSY, busy, Role::Operator, 404),
        ("post", REVERT, revert, Role::Editor, 200),
        (
            "delete",
            "/api/v1/policies/catalog",
            reason(),
            Role::Editor,
            200,
        ),
        ("put", TWICE, twice, Role::Operator, 404),
        ("post", "/api/v1/silences", silence, Role::Operator, 200),
        ("delete", SILENCE, reason(), Role::Operator, 404),
        ("post", ACKNOWLEDGE, comment, Role::Operator, 404),
    ]
}

/// The same of who may come in.
fn acts_on_access() -> Vec<(&'static str, &'static str, Value, Role, u16)> {
    let reason = || json!({"reason": "test"});
    vec![
        (
            "get",
            "/api/v1/operators",
            Value::Null,
            Role::Administrator,
            200,
        ),
        (
            "get",
            "/api/v1/tokens",
            Value::Null,
            Role::Administrator,
            200,
        ),
        (
            "get",
            "/api/v1/agent-tokens",
            Value::Null,
            Role::Administrator,
            200,
        ),
        (
            "delete",
            "/api/v1/operators/eve",
            reason(),
            Role::Administrator,
            404,
        ),
        (
            "post",
            "/api/v1/operators/eve/link",
            reason(),
            Role::Administrator,
            404,
        ),
        (
            "delete",
            "/api/v1/tokens/none",
            reason(),
            Role::Administrator,
            404,
        ),
        (
            "delete",
            "/api/v1/agent-tokens/0",
            reason(),
            Role::Administrator,
            404,
        ),
    ]
}

#[tokio::test]
async fn s12_a_role_does_what_it_may_and_nothing_more() {
    let standing = Standing::start().await;
    let acts = [acts(), acts_on_access()].concat();
    for role in [
        Role::Viewer,
        Role::Operator,
        Role::Editor,
        Role::Administrator,
    ] {
        let token = standing.token(&format!("{role:?}"), role).await;
        for (method, path, body, least, status) in &acts {
            let before = standing.count("SELECT count(*) FROM audit").await;
            let request = standing
                .request(method, path)
                .bearer_auth(&token)
                .json(body);
            let response = request.send().await.unwrap();
            if role >= *least {
                assert_eq!(response.status(), *status, "{role:?} {path}");
            } else {
                let body = problem(response, 403).await;
                assert_eq!(body["type"], "urn:hedgerow:problem:role");
                assert!(
                    body["detail"]
                        .as_str()
                        .unwrap()
                        .contains(&format!("{least:?}"))
                );
                let after = standing.count("SELECT count(*) FROM audit").await;
                assert_eq!(before, after, "{role:?} {path}");
            }
        }
    }
}

#[tokio::test]
async fn s12_an_act_and_its_line_of_the_record_are_written_together() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Editor).await;
    put(
        &standing,
        &token,
        &json!({"intent": "hedge", "reason": "we measured"}),
        None,
    )
    .await;
    let body = get(&standing, &token, "/api/v1/audit?dependency=catalog").await;
    let line = &body["items"][0];
    assert_eq!(line["action"], "policy.set");
    assert_eq!(line["target"], "catalog");
    assert_eq!(line["actor"], json!({"name": "token:ci", "via": "api"}));
    assert_eq!(line["reason"], "we measured");
    let history = get(&standing, &token, "/api/v1/policies/catalog/history").await;
    assert_eq!(history["items"][0]["revision"], 1);
    assert_eq!(history["items"][0]["actor"]["name"], "token:ci");
}

#[tokio::test]
async fn s09_a_secret_shows_in_no_log_answer_page_or_record() {
    const CANARY: &str = "canary password 7f3a91";
    let log = Log::default();
    let _guard = log.capture();
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Administrator).await;
    let session = standing.session("ada", Role::Administrator).await;
    auth::add_operator(&standing.store, "eve", Role::Viewer, Some(CANARY.into()))
        .await
        .unwrap();
    let link = auth::new_login_link(&standing.store, "eve", Duration::from_mins(1))
        .await
        .unwrap();
    let origin = format!("http://{}", standing.address);
    let mut shown = String::new();
    for (path, form) in [
        ("/login", format!("name=eve&password={CANARY}x")),
        ("/login", format!("name={CANARY}&password={CANARY}")),
        ("/login", format!("name=eve&password={CANARY}")),
        ("/login/link", format!("token={link}")),
        ("/login/link", format!("token={link}")),
    ] {
        let request = standing
            .request("post", path)
            .header("origin", &origin)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form);
        let response = request.send().await.unwrap();
        if path == "/login/link" {
            shown.push_str(&response.text().await.unwrap());
        }
    }
    for path in [
        "/api/v1/fleet",
        "/api/v1/audit",
        "/api/v1/nothing",
        "/",
        "/record",
        "/agents",
        "/alerts",
        "/kill",
        "/nothing",
    ] {
        for request in [
            standing.request("get", path).bearer_auth(&token),
            standing
                .request("get", path)
                .header("cookie", format!("hedgerow_session={session}")),
            standing
                .request("get", path)
                .bearer_auth(format!("{token}x")),
        ] {
            shown.push_str(&request.send().await.unwrap().text().await.unwrap());
        }
    }
    let log = log.text();
    assert!(
        log.contains("sign-in refused") && log.contains("API token refused"),
        "{log}"
    );
    for secret in [CANARY, &token, &session, &link] {
        assert!(!log.contains(secret), "the log holds {secret}");
        assert!(!shown.contains(secret), "an answer holds {secret}");
    }
}
