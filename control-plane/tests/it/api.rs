//! The REST API over a real socket: who may what (S6, S10, S12), what is refused and how.

use std::time::Duration;

use hedgerow_control_plane::api::ROUTES;
use hedgerow_control_plane::auth;
use hedgerow_core::event::KillScope;
use hedgerow_dashboard::backend::Role;
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use crate::logged::Log;
use crate::standing::Standing;

/// A path of a route's pattern, with names filled in.
fn filled(pattern: &str) -> String {
    pattern
        .replace("{dependency}", "catalog")
        .replace("{operation}", "get")
        .replace("{name}", "app.css")
}

async fn problem(response: Response, status: u16) -> Value {
    let address = response.url().clone();
    assert_eq!(response.status(), status, "{address}");
    assert_eq!(
        response.headers()["content-type"],
        "application/problem+json",
        "{address}"
    );
    let problem: Value = response.json().await.unwrap();
    assert_eq!(problem["status"], status);
    for field in ["type", "title", "detail"] {
        assert!(
            problem[field].as_str().is_some_and(|text| !text.is_empty()),
            "{problem}"
        );
    }
    problem
}

fn errors(problem: &Value) -> Vec<(&str, &str)> {
    let errors = problem["errors"].as_array().unwrap();
    errors
        .iter()
        .map(|e| (e["field"].as_str().unwrap(), e["message"].as_str().unwrap()))
        .collect()
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
            // Nobody has reported a route or set a policy.
            let expected = if path.contains('{') { 404 } else { 200 };
            assert_eq!(status, expected, "{path} by {name}");
            assert_eq!(response.headers()["cache-control"], "no-store");
            assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        }
    }
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
    assert_eq!(get.send().await.unwrap().status(), 405);
}

#[tokio::test]
async fn s12_a_role_does_what_it_may_and_nothing_more() {
    let standing = Standing::start().await;
    let policy = json!({"intent": "hedge", "reason": "test"});
    let kill = json!({"scope": "everything", "engaged": true, "reason": "test"});
    let reason = json!({"reason": "test"});
    // An act, the least role for it, and what the least role gets: nobody has reported a route.
    let acts = [
        (
            "put",
            "/api/v1/policies/catalog",
            &policy,
            Role::Editor,
            200,
        ),
        ("post", "/api/v1/kill", &kill, Role::Operator, 200),
        (
            "post",
            "/api/v1/routes/catalog/get/release",
            &reason,
            Role::Operator,
            404,
        ),
        (
            "post",
            "/api/v1/routes/catalog/get/accept-base",
            &reason,
            Role::Editor,
            404,
        ),
    ];
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
    let line = &body["lines"][0];
    assert_eq!(line["action"], "policy.set");
    assert_eq!(line["target"], "catalog");
    assert_eq!(line["actor"], json!({"name": "token:ci", "via": "api"}));
    assert_eq!(line["reason"], "we measured");
    let history = get(&standing, &token, "/api/v1/policies/catalog/history").await;
    assert_eq!(history[0]["revision"], 1);
    assert_eq!(history[0]["actor"]["name"], "token:ci");
}

async fn put(standing: &Standing, token: &str, body: &Value, if_match: Option<&str>) -> Response {
    let mut request = standing
        .request("put", "/api/v1/policies/catalog")
        .bearer_auth(token)
        .json(body);
    if let Some(tag) = if_match {
        request = request.header("if-match", tag);
    }
    request.send().await.unwrap()
}

async fn get(standing: &Standing, token: &str, path: &str) -> Value {
    let response = standing
        .request("get", path)
        .bearer_auth(token)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200, "{path}");
    response.json().await.unwrap()
}

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
    assert_eq!(answer, json!({"changed": true}));
    let answer: Value = send(&standing, &kill).await.json().await.unwrap();
    assert_eq!(answer, json!({"changed": false}));

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

#[tokio::test]
async fn a_kill_switch_says_exactly_what_it_is_for_or_does_nothing() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Operator).await;
    let table = [
        (json!({"engaged": true, "reason": "x"}), "scope"),
        (
            json!({"scope": "all", "engaged": true, "reason": "x"}),
            "scope",
        ),
        (
            json!({"scope": "dependency", "engaged": true, "reason": "x"}),
            "dependency",
        ),
        (
            json!({"scope": "dependency", "dependency": "<b>", "engaged": true, "reason": "x"}),
            "dependency",
        ),
        (
            json!({"scope": "everything", "dependency": "catalog", "engaged": true, "reason": "x"}),
            "dependency",
        ),
        (
            json!({"scope": "everything", "engaged": "yes", "reason": "x"}),
            "engaged",
        ),
        (json!({"scope": "everything", "engaged": true}), "reason"),
        (
            json!({"scope": "everything", "engaged": true, "reason": "x", "engage": false}),
            "engage",
        ),
        (
            json!({"scope": "everything", "engaged": true, "reason": "x".repeat(1001)}),
            "reason",
        ),
    ];
    for (body, field) in table {
        let request = standing
            .request("post", "/api/v1/kill")
            .bearer_auth(&token)
            .json(&body);
        let problem = problem(request.send().await.unwrap(), 422).await;
        assert!(
            errors(&problem).iter().any(|(f, _)| *f == field),
            "{body}: {problem}"
        );
    }
    assert!(standing.engine.snapshot().kills.is_empty());
}

#[tokio::test]
async fn every_error_is_a_problem_that_says_what_was_expected() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Administrator).await;
    let send = async |method: &str, path: &str, kind: &str, body: Vec<u8>| {
        let request = standing.request(method, path).bearer_auth(&token);
        request
            .header("content-type", kind)
            .body(body)
            .send()
            .await
            .unwrap()
    };
    let json = "application/json";
    problem(send("get", "/api/v1/nothing", json, vec![]).await, 404).await;
    problem(
        send("get", "/api/v1/routes/catalog/pkg.Svc%2FGet", json, vec![]).await,
        404,
    )
    .await;
    problem(
        send("get", "/api/v1/policies/catalog", json, vec![]).await,
        404,
    )
    .await;
    problem(
        send("get", "/api/v1/policies/catalog/history", json, vec![]).await,
        404,
    )
    .await;
    problem(
        send("get", "/api/v1/audit?limit=0", json, vec![]).await,
        422,
    )
    .await;
    problem(
        send("get", "/api/v1/audit?limit=1001", json, vec![]).await,
        422,
    )
    .await;
    problem(
        send("get", "/api/v1/audit?limit=x", json, vec![]).await,
        400,
    )
    .await;
    problem(
        send("get", "/api/v1/audit?befor=1", json, vec![]).await,
        400,
    )
    .await;
    let response = send("delete", "/api/v1/policies/catalog", json, vec![]).await;
    let allowed = response.headers()["allow"].to_str().unwrap().to_owned();
    assert!(
        allowed.contains("PUT") && allowed.contains("GET"),
        "{allowed}"
    );
    problem(response, 405).await;
    problem(
        send("post", "/api/v1/kill", "text/plain", b"{}".to_vec()).await,
        415,
    )
    .await;
    problem(send("post", "/api/v1/kill", json, b"{".to_vec()).await, 400).await;
    problem(
        send("post", "/api/v1/kill", json, b"[]".to_vec()).await,
        400,
    )
    .await;
    problem(
        send("post", "/api/v1/kill", json, b"\xff\xfe".to_vec()).await,
        400,
    )
    .await;
    let large = send("post", "/api/v1/kill", json, vec![b' '; 64 * 1024 + 1]).await;
    let large = problem(large, 413).await;
    assert!(
        large["detail"].as_str().unwrap().contains("65536"),
        "{large}"
    );
    // Deeply nested, and a number no float holds: refused, not fallen over.
    problem(
        send("post", "/api/v1/kill", json, vec![b'['; 60_000]).await,
        400,
    )
    .await;
    let body = br#"{"percentile": 1e999, "reason": "x"}"#.to_vec();
    problem(
        send("put", "/api/v1/policies/catalog", json, body).await,
        400,
    )
    .await;
}

#[tokio::test]
async fn the_record_is_read_page_by_page() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Editor).await;
    for i in 0..5 {
        let body = json!({"intent": "hedge", "budget": 0.05 + f64::from(i) * 0.01, "reason": format!("step {i}")});
        assert_eq!(put(&standing, &token, &body, None).await.status(), 200);
    }
    let mut before = String::new();
    let mut reasons = Vec::new();
    loop {
        let path = format!("/api/v1/audit?dependency=catalog&limit=2{before}");
        let page = get(&standing, &token, &path).await;
        for line in page["lines"].as_array().unwrap() {
            reasons.push(line["reason"].as_str().unwrap().to_owned());
        }
        match page["next"].as_i64() {
            Some(next) => before = format!("&before={next}"),
            None => break,
        }
    }
    assert_eq!(reasons, ["step 4", "step 3", "step 2", "step 1", "step 0"]);
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
