//! A client process of the demo: a service that calls the catalog over HTTP through the agent, at a
//! steady rate, whatever the answers do (an open loop, so that slowness does not hide itself).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use clap::Args;
use hedgerow_agent::{Agent, Attempt, AttemptKind, Call, Replicas, Route};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::time::{Instant, MissedTickBehavior};

use super::line::{Caller, Line};
use super::until_stdin_ends;

/// What the demo calls.
pub(crate) const DEPENDENCY: &str = "catalog";
/// Which of its operations.
pub(crate) const OPERATION: &str = "get-item";
/// The service the clients are.
pub(crate) const SERVICE: &str = "shop";

const DEADLINE: Duration = Duration::from_secs(3);
/// Well above what is alive at once when everything is five times slower.
const ATTEMPTS_IN_FLIGHT_MAX: usize = 512;

/// Settings of a client process.
#[derive(Debug, Clone, Args)]
pub struct ClientArgs {
    /// The controller's address for agents.
    #[arg(long)]
    controller: String,
    /// A replica, as NAME=ADDRESS; once for each.
    #[arg(long = "replica", value_parser = replica, required = true)]
    replicas: Vec<(String, SocketAddr)>,
    /// Calls a second.
    #[arg(long, default_value_t = 200.0)]
    rate: f64,
    /// Which client this is.
    #[arg(long)]
    client: usize,
}

fn replica(text: &str) -> Result<(String, SocketAddr), String> {
    let (name, address) = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?} is not a replica: expected NAME=ADDRESS:PORT"))?;
    let address = address
        .parse()
        .map_err(|e| format!("{address:?} is not an address: {e}"))?;
    Ok((name.to_owned(), address))
}

#[derive(Clone)]
struct Catalog {
    http: Client<HttpConnector, Empty<Bytes>>,
    addresses: Arc<BTreeMap<String, SocketAddr>>,
}

#[derive(Debug, thiserror::Error)]
enum CatalogError {
    #[error("the catalog answered {0}")]
    Status(http::StatusCode),
    #[error("the catalog did not answer: {0}")]
    Transport(String),
}

impl Catalog {
    async fn get_item(&self, attempt: &Attempt) -> Result<Bytes, CatalogError> {
        let address = self
            .addresses
            .get(attempt.replica().as_str())
            .ok_or_else(|| CatalogError::Transport("unknown replica".into()))?;
        let mut request = http::Request::get(format!("http://{address}/item"));
        for (name, value) in attempt.headers() {
            request = request.header(name, value);
        }
        let request = request
            .body(Empty::new())
            .map_err(|error| CatalogError::Transport(error.to_string()))?;
        let answer = self
            .http
            .request(request)
            .await
            .map_err(|error| CatalogError::Transport(error.to_string()))?;
        if !answer.status().is_success() {
            return Err(CatalogError::Status(answer.status()));
        }
        let body = answer
            .into_body()
            .collect()
            .await
            .map_err(|error| CatalogError::Transport(error.to_string()))?;
        Ok(body.to_bytes())
    }
}

#[derive(Default)]
struct Counters {
    calls: AtomicU64,
    failed: AtomicU64,
    failed_despite_primary: AtomicU64,
    extra_attempts: AtomicU64,
}

impl Counters {
    fn read(&self) -> Caller {
        Caller {
            calls: self.calls.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            failed_despite_primary: self.failed_despite_primary.load(Ordering::Relaxed),
            extra_attempts: self.extra_attempts.load(Ordering::Relaxed),
        }
    }
}

/// Runs until its standard input ends, which is when the demo ends, however it ends.
pub async fn run(args: ClientArgs) -> anyhow::Result<()> {
    let agent = Agent::builder()
        .service(SERVICE)
        .controller(&args.controller)
        .from_env()
        .connect()
        .await
        .context("the demo's agent could not be built")?;
    let replicas = Replicas::new(
        args.replicas
            .iter()
            .map(|(name, _)| (name.as_str(), None::<&str>)),
    )?;
    let route = agent
        .route(DEPENDENCY, OPERATION)
        .replicas(replicas)
        .deadline(DEADLINE)
        .max_in_flight(ATTEMPTS_IN_FLIGHT_MAX)
        .build()?;
    let catalog = Catalog {
        http: Client::builder(TokioExecutor::new()).build_http(),
        addresses: Arc::new(args.replicas.iter().cloned().collect()),
    };
    let counters = Arc::new(Counters::default());

    let load = tokio::spawn(offer_load(
        route.clone(),
        catalog,
        Arc::clone(&counters),
        args.rate,
        args.client as u64,
    ));
    tokio::select! {
        () = print_lines(&route, &counters, args.client) => {}
        () = until_stdin_ends() => {}
    }
    load.abort();
    agent.shutdown().await;
    Ok(())
}

async fn offer_load(route: Route, catalog: Catalog, counters: Arc<Counters>, rate: f64, seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed.wrapping_add(7_919));
    let mut next = Instant::now();
    loop {
        // Poisson arrivals: what a service with many users sees.
        next += Duration::from_secs_f64(-(1.0 - random.random::<f64>()).ln() / rate);
        tokio::time::sleep_until(next).await;
        tokio::spawn(one_call(
            route.clone(),
            catalog.clone(),
            Arc::clone(&counters),
        ));
    }
}

async fn one_call(route: Route, catalog: Catalog, counters: Arc<Counters>) {
    let primary_answered = AtomicBool::new(false);
    let primary_answered = Arc::new(primary_answered);
    let extra = Arc::clone(&counters);
    let answer = route
        .call(Call::idempotent(), |attempt: Attempt| {
            let catalog = catalog.clone();
            let primary_answered = Arc::clone(&primary_answered);
            if attempt.kind() == AttemptKind::Hedge {
                extra.extra_attempts.fetch_add(1, Ordering::Relaxed);
            }
            async move {
                let result = catalog.get_item(&attempt).await;
                if attempt.kind() == AttemptKind::Primary && result.is_ok() {
                    primary_answered.store(true, Ordering::Relaxed);
                }
                result
            }
        })
        .await;
    counters.calls.fetch_add(1, Ordering::Relaxed);
    if answer.is_err() {
        counters.failed.fetch_add(1, Ordering::Relaxed);
        if primary_answered.load(Ordering::Relaxed) {
            counters
                .failed_despite_primary
                .fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[expect(
    clippy::print_stdout,
    reason = "standard output is how the demo hears of its clients"
)]
async fn print_lines(route: &Route, counters: &Counters, client: usize) {
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        seconds.tick().await;
        let seen = route.snapshot();
        let line = Line {
            client,
            caller: counters.read(),
            totals: seen.totals,
            treated: seen.treated.to_sparse().iter().collect(),
            holdout: seen.holdout.to_sparse().iter().collect(),
            budget: seen.effective.budget.get(),
            cap: seen.effective.cap,
            revision: seen.effective.stamp.revision.0,
            epoch: seen.effective.stamp.epoch.0,
        };
        match serde_json::to_string(&line) {
            Ok(text) => println!("{text}"),
            Err(error) => tracing::error!(%error, "a line could not be written"),
        }
    }
}
