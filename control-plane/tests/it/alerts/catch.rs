//! Takes any JSON by HTTP, and can be told what to answer.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpListener;

use super::sink::Answer;

#[derive(Debug, Clone)]
pub(crate) struct Caught {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    pub(crate) taken: bool,
}

#[derive(Clone)]
pub(crate) struct Catch {
    caught: Arc<Mutex<Vec<Caught>>>,
    answer: Arc<Mutex<Answer>>,
    pub(crate) address: SocketAddr,
}

async fn take(State(it): State<Catch>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let mut caught = it.caught.lock();
    let response = (it.answer.lock())(caught.len());
    caught.push(Caught {
        path: uri.path().to_owned(),
        headers,
        body: serde_json::from_slice(&body).unwrap(),
        taken: response.status().is_success(),
    });
    response
}

impl Catch {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let answer: Answer = Box::new(|_| StatusCode::OK.into_response());
        let catch = Self {
            caught: Arc::default(),
            answer: Arc::new(Mutex::new(answer)),
            address: listener.local_addr().unwrap(),
        };
        let app = catch.router();
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        catch
    }

    /// To be served elsewhere too.
    pub(crate) fn router(&self) -> Router {
        Router::new().fallback(take).with_state(self.clone())
    }

    pub(crate) fn answers(&self, answer: impl Fn(usize) -> Response + Send + 'static) {
        *self.answer.lock() = Box::new(answer);
    }

    pub(crate) fn caught(&self) -> Vec<Caught> {
        self.caught.lock().clone()
    }

    /// Bodies of what it took.
    pub(crate) fn taken(&self) -> Vec<Value> {
        let caught = self.caught().into_iter().filter(|it| it.taken);
        caught.map(|it| it.body).collect()
    }
}
