//! Asking the router, as a browser or a stranger would.

use axum::Router;
use axum::body::Body;
use axum::http::request::Builder;
use axum::http::{HeaderMap, Request, StatusCode, header};
use hedgerow_core::view::FleetSnapshot;
use hedgerow_dashboard::{Settings, router};
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use crate::fleet;
use crate::stage::Stage;

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn location(&self) -> &str {
        self.headers
            .get(header::LOCATION)
            .map_or("", |v| v.to_str().unwrap())
    }

    /// The text with every tag taken out and white space made one.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        let mut inside = false;
        for c in self.body.chars() {
            match c {
                '<' => inside = true,
                '>' => {
                    inside = false;
                    out.push(' ');
                }
                c if !inside => out.push(c),
                _ => {}
            }
        }
        out.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// A stage with the realistic fleet on it, and its pages.
pub(crate) fn fleet_pages() -> (Stage, Router) {
    pages(fleet::snapshot(0))
}

pub(crate) fn pages(snapshot: FleetSnapshot) -> (Stage, Router) {
    let stage = Stage::new(snapshot.clone());
    stage.publish(snapshot);
    (stage.clone(), router(stage, Settings::default()))
}

pub(crate) async fn send(router: &Router, request: Request<Body>) -> Answer {
    let response = router.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer {
        status: parts.status,
        headers: parts.headers,
        body: String::from_utf8(body.to_vec()).unwrap_or_default(),
    }
}

fn request(method: &str, path: &str, session: &str) -> Builder {
    let mut builder = Request::builder()
        .method(method.to_uppercase().as_str())
        .uri(path)
        .header(header::HOST, "hedgerow.test");
    if !session.is_empty() {
        builder = builder.header(header::COOKIE, format!("hedgerow_session={session}"));
    }
    builder
}

pub(crate) async fn get(router: &Router, path: &str, session: &str) -> Answer {
    send(
        router,
        request("GET", path, session).body(Body::empty()).unwrap(),
    )
    .await
}

/// With cookies of the caller's.
pub(crate) async fn get_with(router: &Router, path: &str, cookies: &str) -> Answer {
    let request = request("GET", path, "").header(header::COOKIE, cookies);
    send(router, request.body(Body::empty()).unwrap()).await
}

/// As htmx asks.
pub(crate) async fn get_part(router: &Router, path: &str, session: &str) -> Answer {
    let request = request("GET", path, session)
        .header("hx-request", "true")
        .body(Body::empty())
        .unwrap();
    send(router, request).await
}

pub(crate) async fn post(
    router: &Router,
    path: &str,
    session: &str,
    form: &[(&str, &str)],
) -> Answer {
    let request = request("POST", path, session)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(header::ORIGIN, "http://hedgerow.test")
        .header("sec-fetch-site", "same-origin")
        .body(Body::from(encode(form)))
        .unwrap();
    send(router, request).await
}

/// A form as another site's page would send it.
pub(crate) async fn post_from(
    router: &Router,
    path: &str,
    session: &str,
    (name, value): (&str, &str),
) -> Answer {
    let request = request("POST", path, session)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(name, value)
        .body(Body::from(encode(&[
            ("scope", "everything"),
            ("engaged", "on"),
            ("reason", "x"),
        ])))
        .unwrap();
    send(router, request).await
}

pub(crate) async fn any(router: &Router, method: &str, path: &str, session: &str) -> Answer {
    send(
        router,
        request(method, path, session).body(Body::empty()).unwrap(),
    )
    .await
}

fn encode(form: &[(&str, &str)]) -> String {
    let part = |text: &str| {
        text.bytes()
            .map(|b| {
                if b.is_ascii_alphanumeric() {
                    char::from(b).to_string()
                } else {
                    format!("%{b:02X}")
                }
            })
            .collect::<String>()
    };
    form.iter()
        .map(|(k, v)| format!("{}={}", part(k), part(v)))
        .collect::<Vec<_>>()
        .join("&")
}

/// The first messages of an open stream, until `n` bytes or its end.
pub(crate) async fn stream_start(router: &Router, path: &str, session: &str, n: usize) -> String {
    let request = request("GET", path, session).body(Body::empty()).unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let mut body = response.into_body();
    let mut out = String::new();
    while out.len() < n {
        let Some(frame) = body.frame().await else {
            break;
        };
        if let Ok(data) = frame.unwrap().into_data() {
            out.push_str(&String::from_utf8_lossy(&data));
        }
    }
    out
}

/// A stream that stays open.
pub(crate) async fn open_stream(router: &Router, path: &str, session: &str) -> Body {
    let request = request("GET", path, session).body(Body::empty()).unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    response.into_body()
}

/// Its next message, comments passed over; None: it has ended.
pub(crate) async fn next_message(stream: &mut Body) -> Option<String> {
    loop {
        let data = stream.frame().await?.unwrap().into_data().unwrap();
        let text = String::from_utf8(data.to_vec()).unwrap();
        if text.starts_with("data:") {
            return Some(text);
        }
    }
}
