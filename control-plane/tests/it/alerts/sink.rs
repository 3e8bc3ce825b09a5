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
pub(crate) struct Got {
    pub(crate) id: String,
    pub(crate) timestamp: i64,
    pub(crate) signature: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) body: Value,
    pub(crate) answered: u16,
}

impl Got {
    pub(crate) fn kind(&self) -> &str {
        self.body["type"].as_str().unwrap()
    }
    pub(crate) fn episode(&self) -> &str {
        self.body["data"]["alert"].as_str().unwrap()
    }
}

/// What a receiver answers to its request of this number, from 0.
pub(crate) type Answer = Box<dyn Fn(usize) -> Response + Send>;

/// A receiver whose answer can be changed.
#[derive(Clone)]
pub(crate) struct Sink {
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
    pub(crate) fn new() -> Self {
        let answer: Answer = Box::new(|_| StatusCode::NO_CONTENT.into_response());
        Self {
            got: Arc::default(),
            answer: Arc::new(Mutex::new(answer)),
        }
    }

    pub(crate) fn answers(&self, answer: impl Fn(usize) -> Response + Send + 'static) {
        *self.answer.lock() = Box::new(answer);
    }

    pub(crate) async fn serve(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        self.serve_on(listener);
        address
    }

    pub(crate) fn serve_on(&self, listener: TcpListener) {
        let app = Router::new().fallback(take).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    }

    pub(crate) fn got(&self) -> Vec<Got> {
        self.got.lock().clone()
    }

    /// What it took, as (episode, kind), in order.
    pub(crate) fn taken(&self) -> Vec<(String, String)> {
        self.got()
            .into_iter()
            .filter(|got| (200..300).contains(&got.answered))
            .map(|got| (got.episode().to_owned(), got.kind().to_owned()))
            .collect()
    }
}
