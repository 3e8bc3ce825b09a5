//! Real HTTP replicas of a dependency, each with a latency of its own, and a client for them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Request, StatusCode};
use axum::routing::{get, post};
use hedgerow_agent::{Attempt, HEDGE_HEADER, Intent, Policy, PolicyDraft, Replicas};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;
use tokio::time::sleep;

/// Bytes of an answer: more than any buffer on the way holds.
pub(crate) const ANSWER: usize = 512 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Requests that came in.
    pub(crate) requests: AtomicU64,
    /// Those marked as hedges.
    pub(crate) hedges: AtomicU64,
    /// Those answered whole.
    pub(crate) answered: AtomicU64,
    /// Those whose client went away first.
    pub(crate) cancelled: AtomicU64,
    delay_us: AtomicU64,
    status: AtomicU64,
}

/// One replica.
#[derive(Debug, Clone)]
pub(crate) struct Replica {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Arc<Seen>,
}

impl Replica {
    /// Requests that came in so far.
    pub(crate) fn requests(&self) -> u64 {
        self.seen.requests.load(Ordering::Relaxed)
    }

    pub(crate) async fn start() -> Self {
        let seen = Arc::new(Seen::default());
        seen.status.store(200, Ordering::Relaxed);
        let app = Router::new()
            .route("/item", get(answer))
            .route("/stock", get(stock))
            .route("/order", post(answer))
            .with_state(seen.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { address, seen }
    }

    pub(crate) fn takes(&self, delay: Duration) {
        self.seen
            .delay_us
            .store(delay.as_micros() as u64, Ordering::Relaxed);
    }

    pub(crate) fn answers(&self, status: u16) {
        self.seen.status.store(u64::from(status), Ordering::Relaxed);
    }
}

/// Counts a request whose handler was dropped before it answered.
struct Cancelled(Arc<Seen>, bool);

impl Drop for Cancelled {
    fn drop(&mut self) {
        if !self.1 {
            self.0.cancelled.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn answer(State(seen): State<Arc<Seen>>, headers: HeaderMap) -> (StatusCode, Body) {
    seen.requests.fetch_add(1, Ordering::Relaxed);
    if headers.contains_key(HEDGE_HEADER) {
        seen.hedges.fetch_add(1, Ordering::Relaxed);
    }
    let mut cancelled = Cancelled(seen.clone(), false);
    sleep(Duration::from_micros(seen.delay_us.load(Ordering::Relaxed))).await;
    cancelled.1 = true;
    seen.answered.fetch_add(1, Ordering::Relaxed);
    let status = StatusCode::from_u16(seen.status.load(Ordering::Relaxed) as u16).unwrap();
    (status, Body::from(vec![b'x'; ANSWER]))
}

/// A small answer, after the delay and up to as long again: a latency that has a p95.
async fn stock(State(seen): State<Arc<Seen>>) -> StatusCode {
    let nth = seen.requests.fetch_add(1, Ordering::Relaxed);
    let delay = Duration::from_micros(seen.delay_us.load(Ordering::Relaxed));
    // Seven and twenty have no common factor: every twentieth part, in no particular order.
    sleep(delay + delay * (nth * 7 % 20) as u32 / 20).await;
    StatusCode::NO_CONTENT
}

pub(crate) type Http = Client<HttpConnector, Empty<Bytes>>;

pub(crate) fn client() -> Http {
    Client::builder(TokioExecutor::new()).build_http()
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HttpError {
    Status(u16),
    Transport(String),
}

/// One attempt: the answer's length.
pub(crate) async fn fetch(
    http: Http,
    attempt: Attempt,
    method: &'static str,
    path: &'static str,
) -> Result<usize, HttpError> {
    let transport = |error: &dyn std::fmt::Display| HttpError::Transport(error.to_string());
    let uri = format!("http://{}{path}", attempt.replica());
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in attempt.headers() {
        request = request.header(name, value);
    }
    let request = request.body(Empty::new()).unwrap();
    let answer = http.request(request).await.map_err(|e| transport(&e))?;
    if !answer.status().is_success() {
        return Err(HttpError::Status(answer.status().as_u16()));
    }
    let body = answer
        .into_body()
        .collect()
        .await
        .map_err(|e| transport(&e))?
        .to_bytes();
    Ok(body.len())
}

pub(crate) fn list(replicas: &[Replica]) -> Replicas {
    let names: Vec<_> = replicas
        .iter()
        .map(|replica| replica.address.to_string())
        .collect();
    Replicas::new(names.iter().map(|name| (name.as_str(), None))).unwrap()
}

/// The default policy, hedging, with nothing held out.
pub(crate) fn hedging_policy() -> Policy {
    let observing = Policy::observing("catalog".parse().unwrap());
    let draft = PolicyDraft {
        intent: Intent::Hedge,
        budget: 0.25,
        holdout: 0.0,
        ..observing.into()
    };
    Policy::try_from(draft).unwrap()
}
