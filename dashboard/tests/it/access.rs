//! Who gets in, and what comes with every answer.

use axum::http::{StatusCode, header};
use hedgerow_dashboard::{OPEN_ROUTES, PROTECTED_ROUTES, Settings, router};

use crate::ask::{any, fleet_pages, get, post, post_from};
use crate::stage::{ADMIN, LINK, PASSWORD, VIEWER};

/// A route's pattern with something real in each place.
fn concrete(path: &str) -> String {
    path.replace("{dependency}", "catalog")
        .replace("{scope}", "catalog")
        .replace("{operation}", "get-item")
        .replace("{scope}", "catalog%20get-item")
}

#[tokio::test]
async fn s10_every_route_without_a_session_leads_to_the_login() {
    let (_, router) = fleet_pages();
    assert!(PROTECTED_ROUTES.len() > 10);
    for (method, path) in PROTECTED_ROUTES {
        let path = concrete(path);
        for session in ["", "nobody's"] {
            let answer = any(&router, method, &path, session).await;
            if path == "/live" {
                assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{method} {path}");
            } else {
                assert_eq!(answer.status, StatusCode::SEE_OTHER, "{method} {path}");
                assert!(answer.location().starts_with("/login"), "{method} {path}");
            }
            assert!(
                !answer.body.contains("catalog"),
                "{method} {path} tells something"
            );
        }
    }
    for path in ["/nowhere", "/dependencies", "/api", "/dependencies/a/b/c"] {
        let answer = get(&router, path, "").await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{path}");
    }
}

#[tokio::test]
async fn every_route_answers_somebody_signed_in_and_is_never_cached() {
    let (_, router) = fleet_pages();
    for (method, path) in PROTECTED_ROUTES
        .iter()
        .filter(|(m, p)| *m == "get" && *p != "/live")
    {
        // Who may come in is for administrators alone.
        let session = if *path == "/access" { ADMIN } else { VIEWER };
        let answer = any(&router, method, &concrete(path), session).await;
        assert_eq!(answer.status, StatusCode::OK, "{method} {path}");
        assert_eq!(answer.headers[header::CACHE_CONTROL], "no-store", "{path}");
    }
    for (method, path) in OPEN_ROUTES
        .iter()
        .filter(|(m, p)| *m == "get" && !p.contains('{') && !p.starts_with("/login/sso"))
    {
        assert_eq!(
            any(&router, method, path, "").await.status,
            StatusCode::OK,
            "{path}"
        );
    }
}

#[tokio::test]
async fn s07_no_page_carries_code_or_style_and_every_answer_forbids_it() {
    let (_, router) = fleet_pages();
    let paths = PROTECTED_ROUTES
        .iter()
        .chain(OPEN_ROUTES)
        .filter(|(m, p)| *m == "get" && *p != "/live" && !p.contains("{name}"))
        .map(|(_, p)| concrete(p));
    for path in paths.chain(["/nowhere".to_owned()]) {
        let answer = get(&router, &path, ADMIN).await;
        let policy = answer.headers[header::CONTENT_SECURITY_POLICY]
            .to_str()
            .unwrap();
        assert!(
            policy.contains("default-src 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert_eq!(answer.headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        for forbidden in [
            " style=",
            "<style",
            " onclick",
            " onload",
            "javascript:",
            "hx-on",
            "http://",
            "https://",
        ] {
            let body = answer.body.replace("http://hedgerow.test:7420", "");
            assert!(!body.contains(forbidden), "{path} has {forbidden}");
        }
        assert_eq!(
            answer.body.matches("<script").count(),
            answer.body.matches("<script src=\"/assets/").count(),
            "{path}"
        );
    }
}

#[tokio::test]
async fn s06_a_change_asked_for_by_another_site_is_refused() {
    let (stage, router) = fleet_pages();
    for from in [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        let answer = post_from(&router, "/kill", ADMIN, from).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{from:?}");
        assert!(answer.text().contains("Nothing was changed"), "{from:?}");
    }
    assert!(stage.state(|s| s.kills.is_empty()));
    let ours = post_from(&router, "/kill", ADMIN, ("origin", "http://hedgerow.test")).await;
    assert_eq!(ours.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn s06_nothing_changes_by_get() {
    let (stage, router) = fleet_pages();
    get(&router, "/kill?scope=everything&engaged=on&reason=x", ADMIN).await;
    get(&router, &format!("/login/link?token={LINK}"), "").await;
    get(&router, "/logout", ADMIN).await;
    assert!(stage.state(|s| s.kills.is_empty() && !s.link_spent && s.signed_out.is_empty()));
}

#[tokio::test]
async fn pages_answer_only_to_their_own_names_where_those_are_set() {
    let (stage, _) = fleet_pages();
    let settings = Settings {
        hosts: vec!["ops.example:8443".into()],
        ..Settings::default()
    };
    let router = router(stage, settings);
    let answer = get(&router, "/login", "").await;
    assert_eq!(answer.status, StatusCode::MISDIRECTED_REQUEST);
}

#[tokio::test]
async fn signing_in_sets_a_cookie_and_goes_where_one_wanted_to_go() {
    let (stage, _) = fleet_pages();
    let router = router(
        stage,
        Settings {
            secure_cookies: true,
            ..Settings::default()
        },
    );
    let asked = get(&router, "/agents?q=cart", "").await;
    assert_eq!(asked.location(), "/login?next=%2Fagents%3Fq%3Dcart");
    let form = [
        ("name", "ada"),
        ("password", PASSWORD),
        ("next", "/agents?q=cart"),
    ];
    let answer = post(&router, "/login", "", &form).await;
    assert_eq!(
        (answer.status, answer.location()),
        (StatusCode::SEE_OTHER, "/agents?q=cart")
    );
    let cookie = answer.headers[header::SET_COOKIE].to_str().unwrap();
    for part in [
        "hedgerow_session=",
        "HttpOnly",
        "SameSite=Lax",
        "Secure",
        "Path=/",
    ] {
        assert!(cookie.contains(part), "{cookie}");
    }
}

#[tokio::test]
async fn s11_a_wrong_password_and_a_hasty_guesser_are_told_so() {
    let (_, router) = fleet_pages();
    let wrong = post(&router, "/login", "", &[("name", "ada"), ("password", "x")]).await;
    assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
    assert!(wrong.text().contains("name or password is wrong"));
    assert!(
        wrong.body.contains("value=\"ada\""),
        "what was typed is kept"
    );
    assert!(!wrong.headers.contains_key(header::SET_COOKIE));
    let hasty = post(
        &router,
        "/login",
        "",
        &[("name", "hasty"), ("password", "x")],
    )
    .await;
    assert_eq!(hasty.status, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn a_link_signs_in_once_and_only_by_its_button() {
    let (_, router) = fleet_pages();
    for _ in 0..2 {
        let looked = get(&router, &format!("/login/link?token={LINK}"), "").await;
        assert!(looked.body.contains("action=\"/login/link\""));
    }
    let first = post(&router, "/login/link", "", &[("token", LINK)]).await;
    assert_eq!(
        (first.status, first.location()),
        (StatusCode::SEE_OTHER, "/")
    );
    let second = post(&router, "/login/link", "", &[("token", LINK)]).await;
    assert_eq!(second.status, StatusCode::UNAUTHORIZED);
    assert!(second.text().contains("has been used or has expired"));
}

#[tokio::test]
async fn signing_out_ends_the_session() {
    let (_, router) = fleet_pages();
    let out = post(&router, "/logout", ADMIN, &[]).await;
    assert_eq!(out.location(), "/login");
    assert!(
        out.headers[header::SET_COOKIE]
            .to_str()
            .unwrap()
            .contains("Max-Age=0")
    );
    assert_eq!(get(&router, "/", ADMIN).await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn assets_are_kept_for_ever_and_need_no_session() {
    let (_, router) = fleet_pages();
    let page = get(&router, "/login", "").await;
    let css = page
        .body
        .split('"')
        .find(|part| part.contains(".css"))
        .unwrap()
        .to_owned();
    let asset = get(&router, &css, "").await;
    assert_eq!(asset.status, StatusCode::OK);
    assert!(
        asset.headers[header::CACHE_CONTROL]
            .to_str()
            .unwrap()
            .contains("immutable")
    );
    assert_eq!(
        get(&router, "/assets/app.css", "").await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        get(&router, "/assets/..%2FCargo.toml", "").await.status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn error_pages_lead_back() {
    let (_, router) = fleet_pages();
    for path in [
        "/nowhere",
        "/dependencies/%3Cscript%3E/x",
        "/kill?scope=moon",
        "/policies/catalog?revision=99",
    ] {
        let answer = get(&router, path, ADMIN).await;
        assert!(answer.status.is_client_error(), "{path}: {}", answer.status);
        assert!(answer.body.contains("href=\"/\""), "{path} leads nowhere");
    }
}
