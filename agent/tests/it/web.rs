//! A real HTTP server that does what a test wants: one replica of a catalog.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::routing::get;
use hedgerow_agent::Replicas;
use hedgerow_agent::integrations::mark::is_hedge;
use http::{HeaderMap, Response, StatusCode};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::time::sleep;

/// Chunks of an answer, and their size: 512 KiB, more than any buffer on the way holds.
const CHUNKS: usize = 64;
const CHUNK: usize = 8 * 1024;
/// Longer than any test.
pub(crate) const FOR_EVER: Duration = Duration::from_hours(1);

/// What a replica does with a request.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Before its head.
    pub(crate) takes: Duration,
    pub(crate) status: u16,
    pub(crate) retry_after: bool,
    /// Its body goes on for so many chunks, and then stalls.
    pub(crate) stalls_after: Option<usize>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            takes: Duration::ZERO,
            status: 200,
            retry_after: false,
            stalls_after: None,
        }
    }
}

#[derive(Debug, Default)]
struct Shared {
    letter: u8,
    plans: Mutex<[Plan; 2]>,
    requests: AtomicU64,
    hedges: AtomicU64,
    resets: AtomicU64,
    /// The body of the last request.
    received: Mutex<Bytes>,
}

/// One replica.
#[derive(Debug, Clone)]
pub(crate) struct Replica {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

impl Replica {
    /// Its bodies consist of `letter`.
    pub(crate) async fn start(letter: u8) -> Self {
        let shared = Arc::new(Shared {
            letter,
            ..Shared::default()
        });
        let app = Router::new()
            .route("/item", get(answer).post(answer))
            .with_state(shared.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { address, shared }
    }

    pub(crate) async fn two() -> [Self; 2] {
        [Self::start(b'a').await, Self::start(b'b').await]
    }

    /// What it does with every request from now on.
    pub(crate) fn does(&self, plan: Plan) {
        self.does_each(plan.clone(), plan);
    }

    /// The same, told apart.
    pub(crate) fn does_each(&self, primaries: Plan, hedges: Plan) {
        *self.shared.plans.lock() = [primaries, hedges];
    }

    pub(crate) fn received(&self) -> Bytes {
        self.shared.received.lock().clone()
    }
}

fn sum(replicas: &[Replica], counter: impl Fn(&Shared) -> &AtomicU64) -> u64 {
    let counts = replicas.iter().map(|it| counter(&it.shared));
    counts.map(|count| count.load(Ordering::SeqCst)).sum()
}

/// Requests that came in, at all of them.
pub(crate) fn requests(replicas: &[Replica]) -> u64 {
    sum(replicas, |it| &it.requests)
}

/// Those marked as hedges.
pub(crate) fn hedges(replicas: &[Replica]) -> u64 {
    sum(replicas, |it| &it.hedges)
}

/// Those that ended before their answer did.
pub(crate) fn resets(replicas: &[Replica]) -> u64 {
    sum(replicas, |it| &it.resets)
}

pub(crate) fn list(replicas: &[Replica]) -> Replicas {
    let names: Vec<_> = replicas.iter().map(|it| it.address.to_string()).collect();
    Replicas::new(names.iter().map(|name| (name.as_str(), None))).unwrap()
}

/// A body that is one replica's, from its first byte to its last.
pub(crate) fn whole(body: &[u8]) {
    assert_eq!(body.len(), CHUNKS * CHUNK);
    assert!(
        body.iter().all(|byte| *byte == body[0]),
        "no other mixed in"
    );
}

/// Counts a request that is dropped before its answer's end.
struct Open(Arc<Shared>, bool);

impl Open {
    fn ends(&mut self) {
        self.1 = false;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.1 {
            self.0.resets.fetch_add(1, Ordering::SeqCst);
        }
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    received: Bytes,
) -> Response<Body> {
    shared.requests.fetch_add(1, Ordering::SeqCst);
    let hedge = is_hedge(&headers);
    shared.hedges.fetch_add(u64::from(hedge), Ordering::SeqCst);
    *shared.received.lock() = received;
    let plan = shared.plans.lock()[usize::from(hedge)].clone();
    let mut open = Open(shared.clone(), true);
    sleep(plan.takes).await;
    let mut response = Response::builder().status(plan.status);
    if plan.retry_after {
        response = response.header("retry-after", "1");
    }
    if plan.status != StatusCode::OK {
        open.ends();
        let text = format!(
            "{} of {}",
            plan.status,
            if hedge { "a hedge" } else { "a primary" }
        );
        return response.body(Body::from(text)).unwrap();
    }
    let chunks = futures::stream::unfold((0, open), move |(nth, mut open)| async move {
        if plan.stalls_after == Some(nth) {
            sleep(FOR_EVER).await;
        }
        if nth == CHUNKS {
            open.ends();
            return None;
        }
        let chunk = Bytes::from(vec![open.0.letter; CHUNK]);
        Some((Ok::<_, std::convert::Infallible>(chunk), (nth + 1, open)))
    });
    response.body(Body::from_stream(chunks)).unwrap()
}
