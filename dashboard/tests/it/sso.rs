//! Signing in by a provider.

use axum::Router;
use axum::http::{StatusCode, header};
use hedgerow_dashboard::{Settings, router};

use crate::ask::{Answer, fleet_pages, get, get_with};
use crate::doors::CODE;

fn pages() -> Router {
    let (stage, _) = fleet_pages();
    stage.state(|s| s.sso = Some("Example <ID>".into()));
    let settings = Settings {
        secure_cookies: true,
        ..Settings::default()
    };
    router(stage, settings)
}

fn cookies(answer: &Answer) -> Vec<String> {
    let all = answer.headers.get_all(header::SET_COOKIE).iter();
    all.map(|value| value.to_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn the_way_to_the_provider_is_a_link_and_keeps_where_one_wanted_to_go() {
    let router = pages();
    let page = get(&router, "/login?next=%2Fagents%3Fq%3Da", "").await;
    assert!(
        page.body
            .contains("href=\"/login/sso?next=%2Fagents%3Fq%3Da\""),
        "{}",
        page.body
    );
    assert!(page.text().contains("Sign in with Example"));
    assert!(!page.body.contains("<ID>"));
    for away in ["//evil.example", "https%3A%2F%2Fevil.example", ""] {
        let page = get(&router, &format!("/login?next={away}"), "").await;
        assert!(
            page.body.contains("href=\"/login/sso\""),
            "{away}: {}",
            page.body
        );
    }
    let begun = get(&router, "/login/sso?next=%2Fagents", "").await;
    assert_eq!(begun.status, StatusCode::SEE_OTHER);
    assert_eq!(
        begun.location(),
        "https://id.example.org/authorize?state=s-1"
    );
    assert_eq!(begun.headers[header::CACHE_CONTROL], "no-store");
    assert_eq!(
        cookies(&begun),
        ["hedgerow_sso=s-1~agents; Path=/login/sso; HttpOnly; SameSite=Lax; Max-Age=600; Secure"]
    );
}

#[tokio::test]
async fn the_way_back_signs_in_and_leads_to_these_pages_only() {
    let router = pages();
    let back = format!("/login/sso/back?code={CODE}&state=s-1");
    for (kept, leads_to) in [
        ("s-1~agents", "/agents"),
        ("s-1~~evil.example", "/"),
        ("s-1https:~~evil.example", "/"),
    ] {
        let answer = get_with(&router, &back, &format!("hedgerow_sso={kept}")).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER);
        assert_eq!(answer.location(), leads_to);
        let cookies = cookies(&answer);
        assert!(cookies[0].starts_with("hedgerow_session="), "{cookies:?}");
        assert!(cookies[1].starts_with("hedgerow_sso=; ") && cookies[1].contains("Max-Age=0"));
    }
}

#[tokio::test]
async fn a_way_back_that_does_not_hold_is_the_sign_in_page_with_its_reason() {
    let router = pages();
    let kept = "hedgerow_sso=s-1~agents";
    for (path, cookie, status, words) in [
        (
            "?code=x&state=s-1",
            kept,
            403,
            "&#60;dana&#62; may not sign in here",
        ),
        (
            "?code=taken&state=s-1",
            kept,
            403,
            "the name dana belongs to another account",
        ),
        ("?code=x&state=s-2", kept, 401, "not begun in this browser"),
        ("?code=x&state=s-1", "a=b", 401, "not begun in this browser"),
        (
            "?error=access_denied",
            kept,
            502,
            "the provider did not let you in (access_denied)",
        ),
        (
            "?error=%3Cb%3ECall+us",
            kept,
            502,
            "the provider refused it",
        ),
        ("", kept, 401, "not begun in this browser"),
    ] {
        let answer = get_with(&router, &format!("/login/sso/back{path}"), cookie).await;
        assert_eq!(answer.status.as_u16(), status, "{path}");
        assert!(answer.body.contains(words), "{path}: {}", answer.body);
        assert!(!answer.body.contains("Call us"), "{path}");
        let cookies = cookies(&answer);
        assert_eq!(cookies.len(), 1, "{path}: {cookies:?}");
        assert!(
            cookies[0].starts_with("hedgerow_sso=; "),
            "{path}: over, whatever came of it"
        );
    }
    let away = get(&router, "/login/sso?next=%2Faway", "").await;
    assert_eq!(away.status, StatusCode::BAD_GATEWAY);
    assert!(away.text().contains("could not be connected to"));
    assert!(
        away.body.contains("action=\"/login\""),
        "a password still works"
    );
}

#[tokio::test]
async fn without_a_provider_there_is_no_way_to_one() {
    let (_, router) = fleet_pages();
    let page = get(&router, "/login", "").await;
    assert!(!page.body.contains("/login/sso"));
    for path in ["/login/sso", "/login/sso/back?code=x&state=y"] {
        let answer = get(&router, path, "").await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
        assert!(!answer.headers.contains_key(header::SET_COOKIE), "{path}");
    }
}
