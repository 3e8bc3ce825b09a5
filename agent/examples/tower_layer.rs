//! Any tower service that can be cloned, hedged by a layer: here a line protocol over TCP, in the
//! midst of a stack of tower's own layers.
//!
//! ```text
//! CATALOG_REPLICAS=127.0.0.1:9001,127.0.0.1:9002 cargo run --example tower_layer
//! ```

use std::error::Error;
use std::future::Future;
use std::io::{self, Write, stderr, stdout};
use std::iter::successors;
use std::pin::Pin;
use std::process::ExitCode;
use std::time::Duration;

use hedgerow_agent::layer::{HedgeLayer, HedgePolicy};
use hedgerow_agent::{Agent, Attempt, Call, Intent, Policy, PolicyDraft, Replicas, Verdict};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tower::{Service, ServiceBuilder, ServiceExt};

/// One line there, one line back.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) replica: String,
    pub(crate) line: String,
}

/// What may run twice, and where it goes.
#[derive(Debug, Clone)]
struct Lines;

impl HedgePolicy<Ask, String, io::Error> for Lines {
    fn call(&self, request: &Ask) -> Call {
        if request.line.starts_with("get ") {
            Call::idempotent()
        } else {
            Call::not_idempotent()
        }
    }

    fn duplicate(&self, request: &Ask) -> Option<Ask> {
        Some(request.clone())
    }

    fn prepare(&self, request: Ask, attempt: &Attempt) -> Ask {
        // This protocol's way to mark a hedge is a word in front.
        let words = attempt.headers().map(|(_, mark)| mark);
        let words: Vec<_> = words.chain([request.line.as_str()]).collect();
        Ask {
            replica: attempt.replica().to_string(),
            line: words.join(" "),
        }
    }

    fn classify(&self, result: &io::Result<String>) -> Verdict {
        match result {
            Ok(line) if line == "busy" => Verdict::PushBack,
            result => Verdict::of_result(result),
        }
    }
}

/// The client, as it was before it was hedged.
fn ask(request: Ask) -> Pin<Box<dyn Future<Output = io::Result<String>> + Send>> {
    Box::pin(async move {
        let mut stream = TcpStream::connect(&request.replica).await?;
        stream
            .write_all(format!("{}\n", request.line).as_bytes())
            .await?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).await?;
        Ok(answer.trim_end().to_owned())
    })
}

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

/// Asks so many times, and changes something once; what there is to say about it.
pub(crate) async fn run(replicas: &[&str], reads: u32) -> Result<Vec<String>, Box<dyn Error>> {
    let agent = Agent::builder().service("checkout").connect().await?;
    let policy = PolicyDraft {
        intent: Intent::Hedge,
        ..Policy::observing("catalog".parse()?).into()
    };
    let route = agent
        .route("catalog", "lines")
        .replicas(Replicas::new(replicas.iter().map(|it| (*it, None)))?)
        .hedge_standalone(policy.try_into()?)
        .deadline(Duration::from_secs(2))
        .build()?;

    let mut catalog = ServiceBuilder::new()
        .layer(HedgeLayer::new(route.clone(), Lines))
        .concurrency_limit(64) // each attempt takes its own place
        .service_fn(ask);

    let ask = |line: String| Ask {
        replica: String::new(),
        line,
    };
    let mut answer = String::new();
    for id in 0..reads {
        answer = catalog
            .ready()
            .await?
            .call(ask(format!("get {id}")))
            .await?;
    }
    catalog.ready().await?.call(ask("put 7".to_owned())).await?;

    let totals = route.snapshot().totals;
    agent.shutdown().await;
    Ok(vec![
        format!("the last answer: {answer}"),
        format!(
            "{} eligible calls, {} others, {} hedged",
            totals.started, totals.not_eligible, totals.hedged
        ),
    ])
}
