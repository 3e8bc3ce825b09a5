//! A generated gRPC client over several endpoints, hedged as its service config says.
//!
//! ```text
//! CATALOG_REPLICAS=127.0.0.1:9001,127.0.0.1:9002 \
//! cargo run --example tonic_client --features tonic,service-config
//! ```

use std::error::Error;
use std::io::{Write, stderr, stdout};
use std::iter::successors;
use std::process::ExitCode;
use std::time::Duration;

use hedgerow_agent::integrations::service_config::ServiceConfig;
use hedgerow_agent::integrations::tonic::HedgedChannel;
use hedgerow_agent::{Agent, Replicas};
use tonic::Request;

use self::shop::catalog_client::CatalogClient;
use self::shop::{GetRequest, ListRequest};

/// Generated from `shop/catalog.proto`.
#[allow(
    clippy::allow_attributes_without_reason,
    clippy::pedantic,
    missing_debug_implementations,
    unreachable_pub,
    unused_qualifications,
    reason = "generated"
)]
#[path = "shop/shop.v1.rs"]
#[rustfmt::skip]
pub(crate) mod shop;

/// What the catalog's owners say of it, as they say it to every gRPC client.
const SERVICE_CONFIG: &str = r#"{
    "methodConfig": [{
        "name": [
            { "service": "shop.v1.Catalog", "method": "Get" },
            { "service": "shop.v1.Catalog", "method": "List" }
        ],
        "timeout": "2s",
        "hedgingPolicy": {
            "maxAttempts": 2,
            "hedgingDelay": "0.050s",
            "nonFatalStatusCodes": ["UNAVAILABLE", "INTERNAL"]
        }
    }],
    "retryThrottling": { "maxTokens": 10, "tokenRatio": 0.08 }
}"#;

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

/// Reads so many items, and then a list of them; what there is to say about it.
pub(crate) async fn run(replicas: &[&str], reads: u32) -> Result<Vec<String>, Box<dyn Error>> {
    let config = ServiceConfig::parse(SERVICE_CONFIG)?;
    let mut lines: Vec<_> = config.notes().iter().map(ToString::to_string).collect();

    let agent = Agent::builder().service("checkout").connect().await?;
    let replicas = Replicas::new(replicas.iter().map(|replica| (*replica, None)))?;
    let route = agent
        .route("catalog", "read")
        .replicas(replicas.clone())
        .hedge_standalone(config.policy("catalog")?)
        .build()?;
    let channel = HedgedChannel::builder(route.clone(), replicas)
        .service_config(config)
        .endpoint(|endpoint| Ok(endpoint.connect_timeout(Duration::from_secs(1))))
        .build()?;

    // From here on, nothing of Hedgerow.
    let mut catalog = CatalogClient::new(channel);
    for id in 0..reads {
        let request = GetRequest {
            id,
            ..GetRequest::default()
        };
        catalog.get(request).await?;
    }
    let mut request = Request::new(ListRequest { count: reads });
    request.set_timeout(Duration::from_secs(5)); // for all attempts together
    let mut items = catalog.list(request).await?.into_inner();
    let mut listed = 0;
    while let Some(item) = items.message().await? {
        listed += u32::from(!item.picture.is_empty());
    }

    let totals = route.snapshot().totals;
    lines.push(format!("{reads} read, {listed} listed"));
    lines.push(format!(
        "{} calls, {} hedged",
        totals.started, totals.hedged
    ));
    agent.shutdown().await;
    Ok(lines)
}
