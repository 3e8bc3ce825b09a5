//! Signing in, by password, by a one-time link or by a provider, and out.

pub(crate) mod sso;

use askama::Template;
use axum::Extension;
use axum::extract::{Form, Query, State};
use axum::http::{Extensions, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

use crate::assets;
use crate::backend::{Backend, Session, SignInError};
use crate::format::url_part;
use crate::fragment::html;
use crate::guard::{COOKIE, Viewer, peer_of};
use crate::router::App;

/// What `bare.html` needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bare {
    pub(crate) css: &'static str,
    pub(crate) early: &'static str,
    pub(crate) icon: &'static str,
}

impl Bare {
    pub(crate) fn new() -> Self {
        Self {
            css: assets::address("app.css"),
            early: assets::address("early.js"),
            icon: assets::address("icon.svg"),
        }
    }
}

#[derive(Debug, Template)]
#[template(path = "login.html")]
struct LoginPage {
    bare: Bare,
    name: String,
    next: String,
    problem: Option<String>,
    sso: Option<SsoButton>,
}

/// What leads to the provider of single sign-on. A link, not a form: the content security policy lets
/// forms lead to these pages only, also by way of a redirect.
#[derive(Debug)]
struct SsoButton {
    provider: String,
    address: String,
}

/// The link's own page: it shows a button that posts, so that a mail program or chat that looks
/// at links beforehand does not spend it.
#[derive(Debug, Template)]
#[template(path = "link.html")]
struct LinkPage {
    bare: Bare,
    token: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Next {
    next: String,
}

/// GET /login
pub(crate) async fn page<B: Backend>(
    State(app): State<App<B>>,
    Query(query): Query<Next>,
) -> Response {
    login_page(&app, StatusCode::OK, String::new(), query.next, None)
}

fn login_page<B: Backend>(
    app: &App<B>,
    status: StatusCode,
    name: String,
    next: String,
    problem: Option<String>,
) -> Response {
    let sso = app.backend.single_sign_on().map(|provider| SsoButton {
        provider,
        address: match inside(&next) {
            "/" => "/login/sso".into(),
            next => format!("/login/sso?next={}", url_part(next)),
        },
    });
    html(
        status,
        &LoginPage {
            bare: Bare::new(),
            name,
            next,
            problem,
            sso,
        },
    )
}

/// The sign-in page with what went wrong on it.
fn failed<B: Backend>(app: &App<B>, error: &SignInError, name: String, next: String) -> Response {
    login_page(app, status_of(error), name, next, Some(error.to_string()))
}

#[derive(Deserialize)]
pub(crate) struct Credentials {
    #[serde(default)]
    name: String,
    #[serde(default)]
    password: String,
    #[serde(default)]
    next: String,
}

/// POST /login
pub(crate) async fn sign_in<B: Backend>(
    State(app): State<App<B>>,
    extensions: Extensions,
    Form(form): Form<Credentials>,
) -> Response {
    match app
        .backend
        .sign_in(form.name.trim(), &form.password, peer_of(&extensions))
        .await
    {
        Ok(session) => signed_in(&app, &session, &form.next),
        Err(error) => failed(&app, &error, form.name, form.next),
    }
}

#[derive(Deserialize)]
pub(crate) struct Link {
    #[serde(default)]
    token: String,
}

/// GET /login/link
pub(crate) async fn link<B: Backend>(
    State(_): State<App<B>>,
    Query(query): Query<Link>,
) -> Response {
    html(
        StatusCode::OK,
        &LinkPage {
            bare: Bare::new(),
            token: query.token,
        },
    )
}

/// POST /login/link
pub(crate) async fn sign_in_by_link<B: Backend>(
    State(app): State<App<B>>,
    extensions: Extensions,
    Form(form): Form<Link>,
) -> Response {
    match app
        .backend
        .sign_in_by_link(form.token.trim(), peer_of(&extensions))
        .await
    {
        Ok(session) => signed_in(&app, &session, "/"),
        Err(error) => failed(&app, &error, String::new(), String::new()),
    }
}

fn status_of(error: &SignInError) -> StatusCode {
    match error {
        SignInError::Wrong | SignInError::LinkSpent | SignInError::NotBegun => {
            StatusCode::UNAUTHORIZED
        }
        SignInError::NotAllowed(_) | SignInError::NameTaken(_) => StatusCode::FORBIDDEN,
        SignInError::Provider(_) => StatusCode::BAD_GATEWAY,
        SignInError::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
        SignInError::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Sets the cookie and goes where one wanted to go.
fn signed_in<B>(app: &App<B>, session: &Session, next: &str) -> Response {
    let cookie = cookie(
        &session.cookie,
        session.lasts.as_secs(),
        app.settings.secure_cookies,
    );
    let Ok(mut value) = HeaderValue::from_str(&cookie) else {
        tracing::error!("the session's value cannot stand in a cookie");
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    value.set_sensitive(true);
    ([(header::SET_COOKIE, value)], Redirect::to(inside(next))).into_response()
}

fn cookie(value: &str, max_age_s: u64, secure: bool) -> String {
    let secure = if secure { "; Secure" } else { "" };
    format!("{COOKIE}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={max_age_s}{secure}")
}

/// Only a path of these pages; anything else would send people away after the login.
fn inside(next: &str) -> &str {
    let plain = next.bytes().all(|b| b.is_ascii_graphic() && b != b'\\');
    if plain && next.starts_with('/') && !next.starts_with("//") {
        next
    } else {
        "/"
    }
}

/// POST /logout
pub(crate) async fn sign_out<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
) -> Response {
    app.backend.sign_out(&viewer.session).await;
    let gone = cookie("", 0, app.settings.secure_cookies);
    ([(header::SET_COOKIE, gone)], Redirect::to("/login")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_login_one_stays_on_these_pages() {
        for (next, goes) in [
            ("/agents?q=a", "/agents?q=a"),
            ("", "/"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("https://evil.example", "/"),
            ("/a\nb", "/"),
        ] {
            assert_eq!(inside(next), goes, "{next:?}");
        }
    }

    #[test]
    fn the_cookie_is_out_of_scripts_and_other_sites_reach() {
        assert_eq!(
            cookie("abc", 3600, true),
            "hedgerow_session=abc; Path=/; HttpOnly; SameSite=Lax; Max-Age=3600; Secure"
        );
        assert!(!cookie("abc", 3600, false).contains("Secure"));
    }
}
