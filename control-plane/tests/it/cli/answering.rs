//! A controller that answers as the contract says, and writes down what it was asked.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::{StatusCode, header};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Ran, hedgerow};

/// What was asked: `POST /api/v1/kill`, its `If-Match` and its body.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    pub(super) what: String,
    pub(super) over: Option<String>,
    pub(super) body: Value,
}

type Answers = BTreeMap<String, Vec<(u16, Value)>>;

#[derive(Debug, Clone, Default)]
struct Shared {
    everything: Arc<Mutex<Option<Value>>>,
    answers: Arc<Mutex<Answers>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

pub(super) struct Answering {
    address: SocketAddr,
    shared: Shared,
    pub(super) folder: TempDir,
}

impl Answering {
    pub(super) async fn start() -> Self {
        let shared = Shared::default();
        let app = Router::new().fallback(answer).with_state(shared.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self {
            address,
            shared,
            folder: TempDir::new().unwrap(),
        }
    }

    /// To this, answer that: once, or the last of several for ever.
    pub(super) fn to(&self, what: &str, status: u16, body: Value) -> &Self {
        let mut answers = self.shared.answers.lock().unwrap();
        answers
            .entry(what.to_owned())
            .or_default()
            .push((status, body));
        self
    }

    /// To whatever is asked and has no answer of its own.
    pub(super) fn everything(&self, body: &Value) {
        *self.shared.everything.lock().unwrap() = Some(body.clone());
    }

    /// What every controller answers without a token, where nothing else was said.
    pub(super) fn open(&self) {
        let mut answers = self.shared.answers.lock().unwrap();
        for path in ["healthz", "readyz", "metrics"] {
            answers
                .entry(format!("GET /{path}"))
                .or_insert_with(|| vec![(200, json!("well"))]);
        }
    }

    /// Whether this was asked, and how often.
    pub(super) fn asked(&self, what: &str) -> Vec<Asked> {
        let asked = self.shared.asked.lock().unwrap();
        asked.iter().filter(|it| it.what == what).cloned().collect()
    }

    /// Everything that was asked, reading left out.
    pub(super) fn changes(&self) -> Vec<String> {
        let asked = self.shared.asked.lock().unwrap();
        let changes = asked.iter().map(|it| it.what.clone());
        changes
            .filter(|it| !it.starts_with("GET") && !it.ends_with("/plan"))
            .collect()
    }

    pub(super) fn file(&self, name: &str, text: &str) -> &Self {
        std::fs::write(self.folder.path().join(name), text).unwrap();
        self
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) async fn run(&self, arguments: &[&str]) -> Ran {
        hedgerow(&self.url(), "hat_token", self.folder.path(), arguments).await
    }
}

async fn answer(State(shared): State<Shared>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let what = format!("{} {}", parts.method, parts.uri);
    let body = body.collect().await.unwrap().to_bytes();
    let over = parts.headers.get(header::IF_MATCH);
    shared.asked.lock().unwrap().push(Asked {
        what: what.clone(),
        over: over.map(|it| it.to_str().unwrap().to_owned()),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    });
    let needs_token = parts.uri.path().starts_with("/api/");
    if needs_token
        && parts
            .headers
            .get(header::AUTHORIZATION)
            .is_none_or(|it| it != "Bearer hat_token")
    {
        return with(
            401,
            &json!({"title": "Not signed in", "detail": "expected a token"}),
        );
    }
    let mut answers = shared.answers.lock().unwrap();
    let Some(known) = answers.get_mut(&what) else {
        if let Some(body) = &*shared.everything.lock().unwrap() {
            return with(200, body);
        }
        return with(
            404,
            &json!({"title": "Not found", "detail": format!("nothing at {what}")}),
        );
    };
    let (status, body) = known[0].clone();
    if known.len() > 1 {
        known.remove(0);
    }
    with(status, &body)
}

fn with(status: u16, body: &Value) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    let kind = if status.is_success() {
        "application/json"
    } else {
        "application/problem+json"
    };
    (status, [(header::CONTENT_TYPE, kind)], body.to_string()).into_response()
}
