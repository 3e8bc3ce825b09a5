//! A whole service: it answers `GET /basket/{item}` by asking a catalog, whose replicas it calls
//! over HTTP, hedged by a Hedgerow agent.
//!
//! ```text
//! CATALOG_REPLICAS=127.0.0.1:9001,127.0.0.1:9002 \
//! HEDGEROW_CONTROLLER=http://127.0.0.1:7420 HEDGEROW_TOKEN=... \
//! cargo run --example axum_service
//! ```

use std::iter::successors;
use std::process::ExitCode;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{Error as RequestError, HeaderMap, Request, StatusCode};
use axum::response::IntoResponse;
use axum::routing::get;
use hedgerow_agent::{
    Agent, Attempt, Call, CallError, HEDGE_HEADER, HEDGE_MARK, Replicas, Route, Verdict,
};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use prometheus::{Registry, TextEncoder};

/// What a handler needs. Clones share one route and one connection pool.
#[derive(Clone)]
struct Shop {
    catalog: Route,
    http: Client<HttpConnector, Empty<Bytes>>,
    metrics: Registry,
}

/// What went wrong with one attempt.
#[derive(Debug, thiserror::Error)]
enum CatalogError {
    #[error("the catalog answered {0}")]
    Status(StatusCode),
    #[error("the request could not be made")]
    Request(#[from] RequestError),
    #[error("the catalog could not be reached")]
    Connect(#[from] hyper_util::client::legacy::Error),
    #[error("the catalog's answer broke off")]
    Body(#[from] hyper::Error),
}

#[tokio::main]
#[expect(clippy::print_stderr, reason = "where whoever starts it looks")]
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
    let metrics = Registry::new();
    let agent = Agent::builder()
        .service("shop")
        .registry(metrics.clone())
        .from_env() // HEDGEROW_CONTROLLER, HEDGEROW_TOKEN or HEDGEROW_TOKEN_FILE, ...
        .connect()
        .await?;

    let replicas = std::env::var("CATALOG_REPLICAS").unwrap_or("127.0.0.1:9001".to_owned());
    let catalog = agent
        .route("catalog", "get-item")
        .replicas(Replicas::new(
            replicas.split(',').map(|replica| (replica.trim(), None)),
        )?)
        .deadline(Duration::from_secs(2))
        .max_in_flight(256)
        .build()?;

    let shop = Shop {
        catalog,
        http: Client::builder(TokioExecutor::new()).build_http(),
        metrics,
    };
    let app = Router::new()
        .route("/basket/{item}", get(basket))
        .route("/metrics", get(scrape))
        .with_state(shop);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    axum::serve(listener, app)
        .with_graceful_shutdown(async {
            // Without the signal there is nothing to wait for.
            let _ = tokio::signal::ctrl_c().await;
        })
        .await?;
    // Tells the controller that this agent left and is not lost.
    agent.shutdown().await;
    Ok(())
}

async fn basket(
    State(shop): State<Shop>,
    Path(item): Path<u32>,
    headers: HeaderMap,
) -> Result<Bytes, StatusCode> {
    // A request that is itself a hedge is not hedged once more.
    let is_hedge = headers
        .get(HEDGE_HEADER)
        .is_some_and(|mark| mark == HEDGE_MARK);
    let call = Call::idempotent().already_hedge(is_hedge);
    let http = shop.http.clone();
    let answer = shop
        .catalog
        .call_with(call, meaning, move |attempt| {
            fetch(http.clone(), attempt, item)
        })
        .await;
    answer.map_err(|error| match error {
        CallError::Failed(CatalogError::Status(StatusCode::NOT_FOUND)) => StatusCode::NOT_FOUND,
        CallError::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::BAD_GATEWAY,
    })
}

/// One attempt, whole: a hedge that wins has its body, too.
async fn fetch(
    http: Client<HttpConnector, Empty<Bytes>>,
    attempt: Attempt,
    item: u32,
) -> Result<Bytes, CatalogError> {
    let mut request = Request::get(format!("http://{}/item/{item}", attempt.replica()));
    for (name, value) in attempt.headers() {
        request = request.header(name, value);
    }
    let answer = http.request(request.body(Empty::new())?).await?;
    if !answer.status().is_success() {
        return Err(CatalogError::Status(answer.status()));
    }
    Ok(answer.into_body().collect().await?.to_bytes())
}

/// What an answer means for hedging.
fn meaning(result: &Result<Bytes, CatalogError>) -> Verdict {
    match result {
        Ok(_) => Verdict::Good,
        Err(CatalogError::Status(StatusCode::TOO_MANY_REQUESTS)) => Verdict::PushBack,
        Err(CatalogError::Status(status)) if status.is_client_error() => Verdict::NegativeAnswer,
        Err(CatalogError::Request(_)) => Verdict::Fatal,
        Err(_) => Verdict::Retryable,
    }
}

async fn scrape(State(shop): State<Shop>) -> impl IntoResponse {
    TextEncoder::new()
        .encode_to_string(&shop.metrics.gather())
        .map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}
