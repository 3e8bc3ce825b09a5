//! hyper-util's client over several replicas, hedged as a tower service.
//!
//! ```text
//! CATALOG_REPLICAS=127.0.0.1:9001,127.0.0.1:9002 \
//! cargo run --example hyper_client --features hyper-client
//! ```

use std::error::Error;
use std::io::{Write, stderr, stdout};
use std::iter::successors;
use std::process::ExitCode;
use std::time::Duration;

use axum::body::Bytes;
use hedgerow_agent::integrations::hyper::HedgedHttp;
use hedgerow_agent::{Agent, Call, Intent, Policy, PolicyDraft, Replicas};
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tower::ServiceExt;

#[tokio::main]
async fn main() -> ExitCode {
    let Err(error) = program().await else {
        return ExitCode::SUCCESS;
    };
    // With its causes: an error's Display is its outer line only.
    let causes = successors(error.source(), |cause| (*cause).source());
    let whole = causes.fold(error.to_string(), |whole, cause| {
        format!("{whole}: {cause}")
    });
    let _ = writeln!(stderr(), "{whole}");
    ExitCode::FAILURE
}

async fn program() -> Result<(), Box<dyn Error>> {
    let replicas = std::env::var("CATALOG_REPLICAS").unwrap_or("127.0.0.1:9001".to_owned());
    let replicas: Vec<_> = replicas.split(',').map(str::trim).collect();
    let lines = run(&replicas, 1_000).await?;
    writeln!(stdout(), "{}", lines.join("\n"))?;
    Ok(())
}

/// Reads so many items, searches, and orders one; what there is to say about it.
pub(crate) async fn run(replicas: &[&str], reads: u32) -> Result<Vec<String>, Box<dyn Error>> {
    let agent = Agent::builder().service("checkout").connect().await?;
    let policy = PolicyDraft {
        intent: Intent::Hedge,
        ..Policy::observing("catalog".parse()?).into()
    };
    let route = agent
        .route("catalog", "get-item")
        .replicas(Replicas::new(replicas.iter().map(|it| (*it, None)))?)
        .hedge_standalone(policy.try_into()?)
        .deadline(Duration::from_secs(2))
        .build()?;
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let catalog = HedgedHttp::new(client, route.clone());

    let mut bytes = 0;
    for _ in 0..reads {
        let read = Request::get("/item").body(Full::default())?;
        let item = catalog.clone().oneshot(read).await?;
        // The permit is kept until the last byte is here.
        bytes += item.into_body().collect().await?.to_bytes().len();
    }
    // A search changes nothing, though its method does not say so.
    let search = Request::post("/item")
        .extension(Call::idempotent())
        .body(Full::from("shoes"))?;
    catalog.clone().oneshot(search).await?;
    // An order does. It is sent once.
    let order = Request::post("/item").body(Full::from("one pair"))?;
    catalog.clone().oneshot(order).await?;

    let totals = route.snapshot().totals;
    agent.shutdown().await;
    Ok(vec![
        format!("{reads} items, {bytes} bytes"),
        format!(
            "{} eligible calls, {} others, {} hedged",
            totals.started, totals.not_eligible, totals.hedged
        ),
    ])
}
