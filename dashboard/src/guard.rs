//! Who may ask: a session for everything but the login (S10), nothing changed from another site
//! (S6), and headers that keep a page from running what it did not bring (S7).

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, Request, State};
use axum::http::uri::{Authority, PathAndQuery};
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};

use crate::backend::{Backend, Operator};
use crate::format::url_part;
use crate::pages::error;
use crate::router::App;

/// The session cookie's name.
pub(crate) const COOKIE: &str = "hedgerow_session";

/// What a page may load and where its forms may go: itself and nothing else, no inline code or style.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data:; connect-src 'self'; font-src 'self'; form-action 'self'; \
     frame-ancestors 'none'; base-uri 'none'";

/// Whoever asks, signed in.
#[derive(Debug, Clone)]
pub(crate) struct Viewer {
    pub(crate) operator: Operator,
    /// The cookie's value, to end the session and to check it again on an open stream.
    pub(crate) session: String,
}

/// Lets only signed-in people through; everyone else goes to the login and comes back after it.
pub(crate) async fn demand_session<B: Backend>(
    State(app): State<App<B>>,
    mut request: Request,
    next: Next,
) -> Response {
    let session = session_of(request.headers()).map(str::to_owned);
    let operator = match &session {
        Some(session) => app.backend.operator(session).await,
        None => None,
    };
    match (session, operator) {
        (Some(session), Some(operator)) => {
            request
                .extensions_mut()
                .insert(Viewer { operator, session });
            next.run(request).await
        }
        // A script cannot follow a redirect to a page usefully: it is told so plainly.
        _ if request.uri().path() == "/live" || request.headers().contains_key("hx-request") => (
            StatusCode::UNAUTHORIZED,
            "signed out; sign in again at /login",
        )
            .into_response(),
        _ => Redirect::to(&login_address(request.method(), request.uri())).into_response(),
    }
}

/// The login's address, with the way back for what was only looked at.
fn login_address(method: &Method, uri: &Uri) -> String {
    match uri.path_and_query().map_or("/", PathAndQuery::as_str) {
        "/" => "/login".into(),
        path if method == Method::GET => format!("/login?next={}", url_part(path)),
        _ => "/login".into(),
    }
}

/// The session cookie's value.
pub(crate) fn session_of(headers: &HeaderMap) -> Option<&str> {
    cookie_of(headers, COOKIE)
}

/// A cookie's value.
pub(crate) fn cookie_of<'a>(headers: &'a HeaderMap, wanted: &str) -> Option<&'a str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(name, value)| *name == wanted && !value.is_empty())
        .map(|(_, value)| value)
}

/// Refuses changes asked for by another site's page, and requests for a name that is not ours.
pub(crate) async fn refuse_foreign<B: Backend>(
    State(app): State<App<B>>,
    request: Request,
    next: Next,
) -> Response {
    let host = host_of(&request).unwrap_or_default();
    let hosts = &app.settings.hosts;
    if !hosts.is_empty() && !hosts.iter().any(|h| h.eq_ignore_ascii_case(&host)) {
        return error::plain(
            StatusCode::MISDIRECTED_REQUEST,
            "Not a name of this controller",
            "The address you used is not among those this controller answers to; its setting \
             `hosts` lists them.",
        );
    }
    if !request.method().is_safe() && !from_here(request.headers(), &host) {
        return error::plain(
            StatusCode::FORBIDDEN,
            "Asked for by another site",
            "A change has to come from these pages themselves, and this one did not. Nothing was \
             changed. Go to the overview and do it there.",
        );
    }
    next.run(request).await
}

fn host_of(request: &Request) -> Option<String> {
    host(request.headers(), request.uri())
}

/// The name these pages were asked for by. HTTP/1 has it in a header, HTTP/2 in the address.
pub(crate) fn host(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    headers
        .get(header::HOST)
        .and_then(|value| value.to_str().ok())
        .or_else(|| uri.authority().map(Authority::as_str))
        .map(str::to_owned)
}

/// Whether a change comes from our own pages. Browsers always send `Sec-Fetch-Site` to trustworthy
/// addresses, and `Origin` with every POST; without either it is not a browser, so nobody's cookie
/// is being abused.
fn from_here(headers: &HeaderMap, host: &str) -> bool {
    let text = |name: HeaderName| headers.get(name).map(|v| v.to_str().unwrap_or("?"));
    if let Some(site) = text(HeaderName::from_static("sec-fetch-site"))
        && !matches!(site, "same-origin" | "none")
    {
        return false;
    }
    match text(header::ORIGIN) {
        None => true,
        Some(origin) => origin
            .split_once("://")
            .is_some_and(|(_, origin_host)| origin_host.eq_ignore_ascii_case(host)),
    }
}

/// Headers every answer carries.
pub(crate) async fn security_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "same-origin"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("permissions-policy"),
            "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // Pages show the fleet as it is now and to whom it is shown: never from a cache.
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Where the request comes from, where the server says.
pub(crate) fn peer_of(extensions: &Extensions) -> Option<IpAddr> {
    extensions
        .get::<ConnectInfo<SocketAddr>>()
        .map(|ConnectInfo(peer)| peer.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect()
    }

    #[test]
    fn s06_only_our_own_pages_change_anything() {
        for (pairs, ours) in [
            (&[][..], true),
            (&[("origin", "http://h:1")], true),
            (&[("origin", "http://evil:1")], false),
            (&[("origin", "null")], false),
            (&[("origin", "http://h:2")], false),
            (
                &[("sec-fetch-site", "same-origin"), ("origin", "http://h:1")],
                true,
            ),
            (&[("sec-fetch-site", "cross-site")], false),
            (
                &[("sec-fetch-site", "same-site"), ("origin", "http://h:1")],
                false,
            ),
            (&[("sec-fetch-site", "none")], true),
        ] {
            assert_eq!(from_here(&headers(pairs), "h:1"), ours, "{pairs:?}");
        }
    }

    #[test]
    fn the_session_is_found_among_other_cookies() {
        let map = headers(&[("cookie", "a=b; hedgerow_session=xyz; c=d")]);
        assert_eq!(session_of(&map), Some("xyz"));
        assert_eq!(
            session_of(&headers(&[("cookie", "hedgerow_session=")])),
            None
        );
        assert_eq!(
            session_of(&headers(&[("cookie", "xhedgerow_session=1")])),
            None
        );
    }
}
