//! Hedges and retries on one budget and one deadline.
//!
//! A retry layer around a hedged call multiplies: three tries of two copies are six requests, in the
//! very minute in which the dependency can bear them least, each try with a deadline of its own. Here
//! the policy says how many copies a call may have (`attempts`) and that a failure sends one
//! (`hedge_on_error`): a copy for slowness and a copy for a failure pay from the same budget, end at
//! the same deadline, and are counted against the same most. So take the retry layer away, rather
//! than putting it around.
//!
//! Three servers fail two requests of a hundred and stall on three. `cargo run --example retries`
//! sends 3,000 calls with `hedge_on_error` off, then on, and counts at the servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{Request, StatusCode};
use axum::routing::get;
use futures::StreamExt as _;
use hedgerow_agent::{Agent, Attempt, Call, Intent, Policy, PolicyDraft, Replicas, Route, Verdict};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Http = Client<HttpConnector, Empty<Bytes>>;

/// Hedges allowed as a share of finished calls, whatever they are sent for.
pub(crate) const BUDGET: f64 = 0.12;
/// Copies of a call at most.
pub(crate) const ATTEMPTS: u64 = 3;
const CALLS: u64 = 3_000;
const IN_FLIGHT: usize = 20;

/// What came of 3,000 calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Summary {
    /// Calls made.
    pub(crate) calls: u64,
    /// Calls that failed.
    pub(crate) failed: u64,
    /// Requests the servers saw.
    pub(crate) requests: u64,
    /// Copies sent on error, by the agent's own count.
    pub(crate) on_error: u64,
    /// Most hedges the route may save up.
    pub(crate) cap: f64,
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<(), Error> {
    for hedge_on_error in [false, true] {
        let it = run(hedge_on_error).await?;
        println!(
            "hedge_on_error = {hedge_on_error}: {} of {} calls failed; {} requests at the servers, \
             {:.1} % extra where {:.1} % are allowed, {} of them on error",
            it.failed,
            it.calls,
            it.requests,
            100.0 * (it.requests as f64 / it.calls as f64 - 1.0),
            100.0 * (BUDGET + it.cap / it.calls as f64),
            it.on_error,
        );
    }
    Ok(())
}

/// Three servers, a route that knows its threshold, 3,000 calls.
pub(crate) async fn run(hedge_on_error: bool) -> Result<Summary, Error> {
    let requests = Arc::new(AtomicU64::new(0));
    let mut addresses = Vec::new();
    for _ in 0..3 {
        addresses.push(serve(requests.clone()).await?);
    }
    let agent = Agent::builder().service("shop").connect().await?;
    let route = agent
        .route("catalog", "get")
        .replicas(Replicas::new(
            addresses.iter().map(|address| (address.as_str(), None)),
        )?)
        .deadline(Duration::from_secs(2))
        .hedge_standalone(policy(hedge_on_error)?)
        .build()?;
    let http: Http = Client::builder(TokioExecutor::new()).build_http();
    // Until there are enough calls for a threshold no call is hedged for being slow.
    while route.snapshot().effective.threshold.is_none() {
        calls(&route, &http, 100).await;
    }
    let (before, on_error) = (requests.load(Ordering::Relaxed), sent_on_error(&route));
    let failed = calls(&route, &http, CALLS).await;
    let summary = Summary {
        calls: CALLS,
        failed,
        requests: requests.load(Ordering::Relaxed) - before,
        on_error: sent_on_error(&route) - on_error,
        cap: route.snapshot().effective.cap,
    };
    agent.shutdown().await;
    Ok(summary)
}

fn policy(hedge_on_error: bool) -> Result<Policy, Error> {
    let observing = Policy::observing("catalog".parse()?);
    Ok(Policy::try_from(PolicyDraft {
        intent: Intent::Hedge,
        budget: BUDGET,
        attempts: ATTEMPTS,
        hedge_on_error,
        ..observing.into()
    })?)
}

fn sent_on_error(route: &Route) -> u64 {
    route.snapshot().totals.hedged_on_error
}

/// How many of so many calls failed.
async fn calls(route: &Route, http: &Http, calls: u64) -> u64 {
    let results = futures::stream::iter(0..calls).map(|_| {
        let http = http.clone();
        route.call_with(Call::idempotent(), meaning, move |attempt| {
            fetch(http.clone(), attempt)
        })
    });
    let failed = results
        .buffer_unordered(IN_FLIGHT)
        .filter(|result| std::future::ready(result.is_err()));
    failed.count().await as u64
}

async fn fetch(http: Http, attempt: Attempt) -> Result<Bytes, Error> {
    let mut request = Request::get(format!("http://{}/", attempt.replica()));
    for (name, value) in attempt.headers() {
        request = request.header(name, value);
    }
    let answer = http.request(request.body(Empty::new())?).await?;
    if !answer.status().is_success() {
        return Err(format!("the catalog answered {}", answer.status()).into());
    }
    Ok(answer.into_body().collect().await?.to_bytes())
}

/// Any failure may go better elsewhere.
fn meaning(result: &Result<Bytes, Error>) -> Verdict {
    Verdict::of_result(result)
}

/// A server that takes some milliseconds, stalls on three requests of a hundred and fails two.
async fn serve(requests: Arc<AtomicU64>) -> Result<String, Error> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let app = Router::new().route("/", get(answer)).with_state(requests);
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(address)
}

async fn answer(State(requests): State<Arc<AtomicU64>>) -> StatusCode {
    // Multiplied by a large odd number, the count comes out evenly spread.
    let count = requests.fetch_add(1, Ordering::Relaxed);
    let kind = (count.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % 100;
    if kind < 2 {
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    let stalls = kind < 5;
    let took = Duration::from_millis(if stalls { 300 } else { 3 + kind / 10 });
    tokio::time::sleep(took).await;
    StatusCode::OK
}
