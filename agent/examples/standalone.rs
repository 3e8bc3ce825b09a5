//! An agent without a controller: its policy is in a file, its threshold, its budget and who is on
//! probation come from its own figures.
//!
//! ```text
//! cargo run -p hedgerow-agent --example standalone
//! HEDGEROW_POLICY_FILE=policies.toml cargo run -p hedgerow-agent --example standalone
//! ```
//! Three servers answer in 10 to 30 ms. From the 15th second on one of them takes ten times as long,
//! until the 35th. What the route does is printed once a second, and its whole snapshot at the end.
//! Change the policy file meanwhile, `intent = "off"` for one: within some seconds that holds.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is what the program is for"
)]

use std::fmt::Write;
use std::iter::successors;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{Request, StatusCode};
use axum::routing::get;
use hedgerow_agent::protocol::report::Totals;
use hedgerow_agent::{
    Agent, Attempt, Call, CallError, ConfigError, Replicas, Route, RouteSnapshot,
};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;
use tokio::time::{MissedTickBehavior, interval, sleep};

/// What the file says where the environment names none.
pub(crate) const POLICY: &str = r#"
[[policy]]
dependency = "catalog"
intent = "hedge"
percentile = 0.95
budget = 0.08
"#;

#[tokio::main]
async fn main() -> ExitCode {
    let Err(error) = program().await else {
        return ExitCode::SUCCESS;
    };
    // With its causes: an error's Display is its outer line only.
    let causes = successors(error.source(), |cause| cause.source());
    let whole = causes.fold(error.to_string(), |whole, cause| {
        format!("{whole}: {cause}")
    });
    eprintln!("{whole}");
    ExitCode::FAILURE
}

async fn program() -> Result<(), Box<dyn std::error::Error>> {
    let servers = [
        Server::start().await?,
        Server::start().await?,
        Server::start().await?,
    ];
    let folder = tempfile::tempdir()?;
    let own = folder.path().join("policies.toml");
    std::fs::write(&own, POLICY)?;
    let path = std::env::var_os("HEDGEROW_POLICY_FILE").map_or(own, Into::into);
    println!("policy file: {}", path.display());

    let agent = agent(&path).await?;
    let route = route(&agent, &servers)?;
    let load = tokio::spawn(load(route.clone()));
    let mut before = route.snapshot().totals;
    for second in 1..=50 {
        match second {
            15 => servers[2].slow_down(10),
            35 => servers[2].slow_down(1),
            _ => {}
        }
        sleep(Duration::from_secs(1)).await;
        let snapshot = route.snapshot();
        println!("{second:>3} s  {}", line(&before, &snapshot));
        before = snapshot.totals;
    }
    load.abort();
    // As a debug page gives it out; what each line means is in `guides/what-to-look-at.md`.
    println!("{}", serde_json::to_string_pretty(&route.snapshot())?);
    // From here on calls would go on, without a hedge.
    agent.shutdown().await;
    Ok(())
}

/// An agent whose policies are in a file. Bad ones are refused here, with line and column; later,
/// the last good ones hold.
pub(crate) async fn agent(policy_file: &Path) -> Result<Agent, ConfigError> {
    Agent::builder()
        .service("shop")
        .policy_file(policy_file)
        .connect()
        .await
}

/// One operation of the dependency the policy is for.
pub(crate) fn route(
    agent: &Agent,
    servers: &[Server],
) -> Result<Route, Box<dyn std::error::Error>> {
    let addresses: Vec<_> = servers.iter().map(|it| it.address.to_string()).collect();
    let replicas = Replicas::new(addresses.iter().map(|it| (it.as_str(), None)))?;
    let route = agent
        .route("catalog", "get-item")
        .replicas(replicas)
        .deadline(Duration::from_secs(2))
        .build()?;
    Ok(route)
}

/// Two hundred calls a second, until it is dropped.
pub(crate) async fn load(route: Route) {
    let http = Client::builder(TokioExecutor::new()).build_http();
    let mut every = interval(Duration::from_millis(5));
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        let (route, http) = (route.clone(), http.clone());
        tokio::spawn(async move {
            // What went wrong is in the route's counters.
            let _: Result<Bytes, CallError<FetchError>> = route
                .call(Call::idempotent(), move |attempt| {
                    fetch(http.clone(), attempt)
                })
                .await;
        });
    }
}

/// What went wrong with one attempt.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("the catalog answered {0}")]
    Status(StatusCode),
    #[error("the request could not be made")]
    Request(#[from] http::Error),
    #[error("the catalog could not be reached")]
    Connect(#[from] hyper_util::client::legacy::Error),
    #[error("the catalog's answer broke off")]
    Body(#[from] hyper::Error),
}

async fn fetch(
    http: Client<HttpConnector, Empty<Bytes>>,
    attempt: Attempt,
) -> Result<Bytes, FetchError> {
    let mut request = Request::get(format!("http://{}/item", attempt.replica()));
    for (name, value) in attempt.headers() {
        request = request.header(name, value);
    }
    let answer = http.request(request.body(Empty::new())?).await?;
    if !answer.status().is_success() {
        return Err(FetchError::Status(answer.status()));
    }
    Ok(answer.into_body().collect().await?.to_bytes())
}

/// What the route did since `before`, in a line.
pub(crate) fn line(before: &Totals, now: &RouteSnapshot) -> String {
    let effective = &now.effective;
    let started = now.totals.started - before.started;
    let hedged = now.totals.hedged - before.hedged;
    let share = 100.0 * hedged as f64 / (started as f64).max(1.0);
    let mode = match effective.mode.reason() {
        Some(reason) => format!("{} ({})", effective.mode.as_str(), reason.as_str()),
        None => effective.mode.as_str().to_owned(),
    };
    let threshold = effective.threshold.map_or_else(
        || "no threshold yet".to_owned(),
        |threshold| format!("threshold {:.1} ms", threshold.get().as_secs_f64() * 1e3),
    );
    let mut line = format!("{mode:<9}  {started:>4} calls, {share:>4.1} % hedged, {threshold}");
    // Writing to a string cannot fail.
    for named in &now.named {
        let _ = write!(line, "; {named}");
    }
    for replica in &now.probation {
        let _ = write!(line, "; {replica} is on probation");
    }
    if let Some(no_effect) = now.no_effect {
        let _ = write!(line, "; {no_effect}");
    }
    line
}

/// One replica of the catalog.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    times: Arc<AtomicU32>,
}

impl Server {
    pub(crate) async fn start() -> std::io::Result<Self> {
        let times = Arc::new(AtomicU32::new(1));
        let app = Router::new()
            .route("/item", get(item))
            .with_state(times.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(Self { address, times })
    }

    /// From now on answers take so many times as long as usual.
    pub(crate) fn slow_down(&self, times: u32) {
        self.times.store(times, Ordering::Relaxed);
    }
}

async fn item(State(times): State<Arc<AtomicU32>>) -> &'static str {
    let usual = Duration::from_micros(rand::random_range(10_000..30_000));
    sleep(usual * times.load(Ordering::Relaxed)).await;
    "an item"
}
