//! To the provider of single sign-on, and back from it.
//!
//! Invariant: the browser is sent to the provider of the settings or to these pages, and nowhere that
//! a request names.

use axum::extract::{Query, State};
use axum::http::{Extensions, HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

use super::{Next, failed, inside, signed_in};
use crate::backend::{Backend, SignInError};
use crate::guard::{cookie_of, peer_of};
use crate::pages::error;
use crate::router::App;

/// The cookie that a browser keeps while it is at the provider. It comes back with a link from
/// another site, so it cannot be `SameSite=Strict`; it signs nobody in by itself.
const COOKIE: &str = "hedgerow_sso";

/// GET /login/sso
pub(crate) async fn begin<B: Backend>(
    State(app): State<App<B>>,
    Query(query): Query<Next>,
) -> Response {
    if app.backend.single_sign_on().is_none() {
        return not_set_up();
    }
    let next = inside(&query.next);
    match app.backend.begin_single_sign_on(next).await {
        Ok(begun) => {
            let lasts = begun.lasts.as_secs();
            let kept = cookie(&begun.keep, lasts, app.settings.secure_cookies);
            kept.map_or_else(
                || StatusCode::INTERNAL_SERVER_ERROR.into_response(),
                |kept| ([(header::SET_COOKIE, kept)], Redirect::to(&begun.address)).into_response(),
            )
        }
        Err(error) => failed(&app, &error, String::new(), next.to_owned()),
    }
}

/// What a provider sends back.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
pub(crate) struct Back {
    code: String,
    state: String,
    error: String,
}

/// GET /login/sso/back
pub(crate) async fn back<B: Backend>(
    State(app): State<App<B>>,
    headers: HeaderMap,
    extensions: Extensions,
    Query(query): Query<Back>,
) -> Response {
    if app.backend.single_sign_on().is_none() {
        return not_set_up();
    }
    let mut response = ended(&app, &headers, &extensions, &query).await;
    if let Some(gone) = cookie("", 0, app.settings.secure_cookies) {
        response.headers_mut().append(header::SET_COOKIE, gone);
    }
    response
}

async fn ended<B: Backend>(
    app: &App<B>,
    headers: &HeaderMap,
    extensions: &Extensions,
    query: &Back,
) -> Response {
    if !query.error.is_empty() {
        let error = SignInError::Provider(refusal(&query.error));
        return failed(app, &error, String::new(), String::new());
    }
    let kept = cookie_of(headers, COOKIE).unwrap_or_default();
    let ended = app
        .backend
        .end_single_sign_on(&query.code, &query.state, kept, peer_of(extensions))
        .await;
    match ended {
        Ok(ended) => signed_in(app, &ended.session, &ended.next),
        Err(error) => failed(app, &error, String::new(), String::new()),
    }
}

/// The provider's refusal by its code. Anybody can make up a link with another text in it: only what
/// reads as a code is shown.
fn refusal(code: &str) -> String {
    let is_code = code.len() <= 64 && code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    match code {
        "access_denied" => "the provider did not let you in (access_denied)".into(),
        code if is_code => format!("the provider refused it ({code})"),
        _ => "the provider refused it".into(),
    }
}

fn cookie(value: &str, max_age_s: u64, secure: bool) -> Option<HeaderValue> {
    let secure = if secure { "; Secure" } else { "" };
    let text = format!(
        "{COOKIE}={value}; Path=/login/sso; HttpOnly; SameSite=Lax; Max-Age={max_age_s}{secure}"
    );
    let Ok(mut value) = HeaderValue::from_str(&text) else {
        tracing::error!("what a browser is to keep cannot stand in a cookie");
        return None;
    };
    value.set_sensitive(true);
    Some(value)
}

fn not_set_up() -> Response {
    error::plain(
        StatusCode::NOT_FOUND,
        "No single sign-on",
        "This controller has no provider of single sign-on: the setting is [oidc]. Sign in with a \
         name and password, or by a link.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s07_of_a_refusal_only_a_code_is_shown() {
        assert!(refusal("access_denied").contains("access_denied"));
        assert!(refusal("server_error").contains("(server_error)"));
        for hostile in ["<b>", "Call 555 now", &"x".repeat(65)] {
            assert_eq!(refusal(hostile), "the provider refused it");
        }
    }

    #[test]
    fn what_is_kept_meanwhile_is_out_of_scripts_reach_and_short() {
        let kept = cookie("abc", 600, true).unwrap();
        assert_eq!(
            kept.to_str().unwrap(),
            "hedgerow_sso=abc; Path=/login/sso; HttpOnly; SameSite=Lax; Max-Age=600; Secure"
        );
        assert!(kept.is_sensitive());
    }
}
