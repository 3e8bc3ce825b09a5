//! A receiver on a real socket, whose answer can be changed.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpListener;

#[derive(Debug, Clone)]
pub(super) struct Got {
    pub(super) id: String,
    pub(super) timestamp: i64,
    pub(super) signature: String,
    pub(super) bytes: Vec<u8>,
    pub(super) body: Value,
    pub(super) answered: u16,
}

impl Got {
    pub(super) fn kind(&self) -> &str {
        self.body["type"].as_str().unwrap()
    }
    pub(super) fn episode(&self) -> &str {
        self.body["data"]["alert"].as_str().unwrap()
    }
}

/// What a receiver answers to its request of this number, from 0.
pub(super) type Answer = Box<dyn Fn(usize) -> Response + Send>;

/// A receiver whose answer can be changed.
#[derive(Clone)]
pub(super) struct Sink {
    got: Arc<Mutex<Vec<Got>>>,
    answer: Arc<Mutex<Answer>>,
}

async fn take(State(sink): State<Sink>, headers: HeaderMap, bytes: Bytes) -> Response {
    let text = |name: &str| headers[name].to_str().unwrap().to_owned();
    let mut got = sink.got.lock();
    let response = (sink.answer.lock())(got.len());
    got.push(Got {
        id: text("webhook-id"),
        timestamp: text("webhook-timestamp").parse().unwrap(),
        signature: text("webhook-signature"),
        body: serde_json::from_slice(&bytes).unwrap(),
        bytes: bytes.to_vec(),
        answered: response.status().as_u16(),
    });
    response
}

impl Sink {
    pub(super) fn new() -> Self {
        let answer: Answer = Box::new(|_| StatusCode::NO_CONTENT.into_response());
        Self {
            got: Arc::default(),
            answer: Arc::new(Mutex::new(answer)),
        }
    }

    pub(super) fn answers(&self, answer: impl Fn(usize) -> Response + Send + 'static) {
        *self.answer.lock() = Box::new(answer);
    }

    pub(super) async fn serve(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        self.serve_on(listener);
        address
    }

    pub(super) fn serve_on(&self, listener: TcpListener) {
        let app = Router::new().fallback(take).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    }

    pub(super) fn got(&self) -> Vec<Got> {
        self.got.lock().clone()
    }

    /// What it took, as (episode, kind), in order.
    pub(super) fn taken(&self) -> Vec<(String, String)> {
        self.got()
            .into_iter()
            .filter(|got| (200..300).contains(&got.answered))
            .map(|got| (got.episode().to_owned(), got.kind().to_owned()))
            .collect()
    }
}
