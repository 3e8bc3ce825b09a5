//! Who calls: an API token, or the dashboard's session where the dashboard itself asks.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, Request, State};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use hedgerow_dashboard::backend::Operator;

use super::ApiState;
use super::problem::Problem;

/// The dashboard's session cookie.
const COOKIE: &str = "hedgerow_session";

/// Whoever calls, known. Every handler runs behind [`demand`], which puts it there.
#[derive(Debug, Clone)]
pub(super) struct Caller(pub(super) Operator);

/// Lets only known callers through.
pub(super) async fn demand(
    State(state): State<ApiState>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    match identify(&state, &parts).await {
        Ok(caller) => {
            parts.extensions.insert(caller);
            next.run(Request::from_parts(parts, body)).await
        }
        Err(problem) => problem.into_response(),
    }
}

async fn identify(state: &ApiState, request: &Parts) -> Result<Caller, Problem> {
    let headers = &request.headers;
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        // A caller that shows a token is judged by it alone, whatever cookie comes along.
        let token = value
            .to_str()
            .ok()
            .and_then(bearer)
            .ok_or_else(Problem::nobody)?;
        return Ok(Caller(state.auth.bearer(token, peer(request)).await?));
    }
    let session = session(headers).ok_or_else(Problem::nobody)?;
    let operator = state
        .auth
        .session(session)
        .await?
        .ok_or_else(Problem::nobody)?;
    if !request.method.is_safe() && !from_our_pages(headers, &request.uri) {
        return Err(Problem::foreign());
    }
    Ok(Caller(operator))
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn session(headers: &HeaderMap) -> Option<&str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(name, value)| *name == COOKIE && !value.is_empty())
        .map(|(_, value)| value)
}

/// Whether a change with a session comes from the dashboard's own pages (S6). A browser says so in
/// one of two headers; a request with neither is refused, since a program has tokens.
fn from_our_pages(headers: &HeaderMap, uri: &Uri) -> bool {
    if let Some(site) = headers.get("sec-fetch-site") {
        return site == "same-origin";
    }
    // HTTP/1 names the host in a header, HTTP/2 in the address.
    let host = headers
        .get(header::HOST)
        .and_then(|v| v.to_str().ok())
        .or_else(|| uri.authority().map(Authority::as_str));
    let origin = headers
        .get(header::ORIGIN)
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.split_once("://"));
    matches!((origin, host), (Some((_, origin)), Some(host)) if origin.eq_ignore_ascii_case(host))
}

fn peer(request: &Parts) -> Option<IpAddr> {
    request
        .extensions
        .get::<ConnectInfo<SocketAddr>>()
        .map(|ConnectInfo(peer)| peer.ip())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn s06_a_session_changes_things_from_our_own_pages_only() {
        let table: &[(&[(&'static str, &'static str)], bool)] = &[
            (&[], false),
            (&[("origin", "http://h:1")], true),
            (&[("origin", "https://H:1")], true),
            (&[("origin", "http://h:2")], false),
            (&[("origin", "http://evil.example")], false),
            (&[("origin", "null")], false),
            (&[("sec-fetch-site", "same-origin")], true),
            (
                &[("sec-fetch-site", "same-site"), ("origin", "http://h:1")],
                false,
            ),
            (
                &[("sec-fetch-site", "cross-site"), ("origin", "http://h:1")],
                false,
            ),
            (
                &[("sec-fetch-site", "none"), ("origin", "http://h:1")],
                false,
            ),
        ];
        for (pairs, expected) in table {
            let mut headers: HeaderMap = pairs
                .iter()
                .map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v)))
                .collect();
            headers.insert(header::HOST, HeaderValue::from_static("h:1"));
            assert_eq!(
                from_our_pages(&headers, &Uri::from_static("/")),
                *expected,
                "{pairs:?}"
            );
        }
    }

    #[test]
    fn a_bearer_token_is_read_whatever_its_schemes_case() {
        assert_eq!(bearer("Bearer abc"), Some("abc"));
        assert_eq!(bearer("bearer abc"), Some("abc"));
        assert_eq!(bearer("Basic abc"), None);
        assert_eq!(bearer("abc"), None);
    }
}
