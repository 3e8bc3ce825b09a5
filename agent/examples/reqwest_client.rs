//! A reqwest client over several replicas, hedged.
//!
//! ```text
//! CATALOG_REPLICAS=127.0.0.1:9001,127.0.0.1:9002 \
//! cargo run --example reqwest_client --features reqwest
//! ```

use std::error::Error;
use std::io::{Write, stderr, stdout};
use std::iter::successors;
use std::process::ExitCode;
use std::time::Duration;

use hedgerow_agent::integrations::reqwest::HedgedClient;
use hedgerow_agent::{Agent, Call, Intent, Policy, PolicyDraft, Replicas};
use reqwest::{Client, Method};

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
    let http = Client::builder()
        .connect_timeout(Duration::from_millis(500))
        .build()?;
    let catalog = HedgedClient::new(http, route.clone());

    let mut bytes = 0;
    for _ in 0..reads {
        let read = catalog.request(Method::GET, "/item").build()?;
        let item = catalog.execute(read).await?.error_for_status()?;
        bytes += item.bytes().await?.len();
    }
    // A search changes nothing, though its method does not say so.
    let search = catalog.request(Method::POST, "/item").body("shoes");
    let found = catalog.execute_as(Call::idempotent(), search.build()?);
    found.await?.error_for_status()?.bytes().await?;
    // An order does. It is sent once.
    let order = catalog.request(Method::POST, "/item").body("one pair");
    catalog.execute(order.build()?).await?.error_for_status()?;

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
