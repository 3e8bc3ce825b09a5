//! The tower layer.

#[path = "../../examples/tower_layer.rs"]
#[allow(dead_code, reason = "its main is for running it by itself")]
mod tower_layer;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hedgerow_agent::layer::{HedgeLayer, HedgePolicy};
use hedgerow_agent::{
    Agent, Attempt, AttemptKind, Call, CallError, HEDGE_MARK, Policy, PolicyDraft, Replicas, Route,
    Verdict,
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};
use tower::{Layer, Service, ServiceExt};

use crate::catalog::hedging_policy;

/// A request of the service under test: where it goes and how long the primary takes.
#[derive(Debug, Clone)]
struct Get {
    replica: String,
    kind: Option<AttemptKind>,
    primary_ms: u64,
    streams: bool,
}

impl Get {
    fn taking(primary_ms: u64) -> Self {
        Self {
            replica: String::new(),
            kind: None,
            primary_ms,
            streams: false,
        }
    }
}

#[derive(Clone)]
struct Reads;

impl HedgePolicy<Get, String, String> for Reads {
    fn call(&self, _: &Get) -> Call {
        Call::idempotent()
    }
    fn duplicate(&self, request: &Get) -> Option<Get> {
        (!request.streams).then(|| request.clone())
    }
    fn prepare(&self, request: Get, attempt: &Attempt) -> Get {
        Get {
            replica: attempt.replica().to_string(),
            kind: Some(attempt.kind()),
            ..request
        }
    }
    fn classify(&self, result: &Result<String, String>) -> Verdict {
        match result {
            Err(error) if error == "not found" => Verdict::NegativeAnswer,
            result => Verdict::of_result(result),
        }
    }
}

async fn hedging_route() -> Route {
    route_by(hedging_policy()).await
}

async fn route_by(policy: Policy) -> Route {
    let agent = Agent::builder().service("shop").connect().await.unwrap();
    let replicas = Replicas::new([("a:1", None), ("b:1", None), ("c:1", None)]).unwrap();
    let route = agent
        .route("catalog", "get")
        .replicas(replicas)
        .hedge_standalone(policy)
        .build()
        .unwrap();
    for _ in 0..300 {
        let attempts = |_: Attempt| async {
            sleep(Duration::from_millis(5)).await;
            Ok::<_, ()>(())
        };
        route.call(Call::idempotent(), attempts).await.unwrap();
    }
    sleep(Duration::from_secs(2)).await;
    route
}

fn service(
    sent: &Arc<AtomicU64>,
) -> impl Service<Get, Response = String, Error = String, Future: Send> + Clone + Send + 'static {
    let sent = sent.clone();
    tower::service_fn(move |request: Get| {
        sent.fetch_add(1, Ordering::Relaxed);
        async move {
            if request.kind == Some(AttemptKind::Primary) {
                sleep(Duration::from_millis(request.primary_ms)).await;
            }
            match request.primary_ms {
                3 => Err("not found".to_owned()),
                _ => Ok(request.replica),
            }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_layered_service_is_hedged_like_any_call() {
    let route = hedging_route().await;
    let sent = Arc::new(AtomicU64::new(0));
    let hedged = HedgeLayer::new(route.clone(), Reads).layer(service(&sent));

    let began = Instant::now();
    let answer = hedged.clone().oneshot(Get::taking(5_000)).await.unwrap();
    assert!(["a:1", "b:1", "c:1"].contains(&answer.as_str()));
    assert!(began.elapsed() < Duration::from_millis(100));
    assert_eq!(
        (route.snapshot().totals.won, sent.load(Ordering::Relaxed)),
        (1, 2)
    );

    assert_eq!(
        hedged.clone().oneshot(Get::taking(3)).await,
        Err(CallError::Failed("not found".to_owned()))
    );
    assert_eq!(
        route.snapshot().totals.failed,
        0,
        "a negative answer is an answer"
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_be_had_twice_is_not_eligible() {
    let route = hedging_route().await;
    let sent = Arc::new(AtomicU64::new(0));
    let hedged = HedgeLayer::new(route.clone(), Reads).layer(service(&sent));
    let streaming = Get {
        streams: true,
        ..Get::taking(500)
    };
    hedged.oneshot(streaming).await.unwrap();
    assert_eq!(
        (
            route.snapshot().totals.not_eligible,
            sent.load(Ordering::Relaxed)
        ),
        (1, 1)
    );
}

/// Counts its duplicates, and makes only so many.
#[derive(Clone)]
struct Counting {
    made: Arc<AtomicU64>,
    most: u64,
}

impl HedgePolicy<Get, String, String> for Counting {
    fn call(&self, _: &Get) -> Call {
        Call::idempotent()
    }
    fn duplicate(&self, request: &Get) -> Option<Get> {
        let made = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        (made <= self.most).then(|| request.clone())
    }
    fn prepare(&self, request: Get, attempt: &Attempt) -> Get {
        Reads.prepare(request, attempt)
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_is_duplicated_once_beforehand_and_once_for_each_attempt_made() {
    let route = hedging_route().await;
    let sent = Arc::new(AtomicU64::new(0));
    // Slow enough to be hedged, or not; the duplicates that makes.
    for (primary_ms, most, duplicates) in [(1, 9, 1), (5_000, 9, 2), (5_000, 1, 2)] {
        let policy = Counting {
            made: Arc::default(),
            most,
        };
        let made = policy.made.clone();
        // The layer is Clone, too: a stack of layers can be made again from the same one.
        let layer = HedgeLayer::new(route.clone(), policy).clone();
        let hedged = layer.layer(service(&sent));
        hedged.oneshot(Get::taking(primary_ms)).await.unwrap();
        assert_eq!(made.load(Ordering::Relaxed), duplicates);
    }
    assert_eq!(
        route.snapshot().totals.won,
        2,
        "the one kept is as good, where there is no other"
    );
}

#[tokio::test(start_paused = true)]
async fn a_third_attempt_has_a_request_of_its_own() {
    let draft = PolicyDraft {
        attempts: 3,
        ..hedging_policy().into()
    };
    let route = route_by(draft.try_into().unwrap()).await;
    for (most, duplicates, answers) in [(9, 3, true), (1, 2, false)] {
        let made = Arc::new(AtomicU64::new(0));
        let sent = Arc::new(AtomicU64::new(0));
        let counter = sent.clone();
        let third_answers = tower::service_fn(move |request: Get| {
            let nth = counter.fetch_add(1, Ordering::Relaxed);
            async move {
                let waits = if nth < 2 { 60 } else { 0 };
                sleep(Duration::from_secs(waits)).await;
                Ok::<_, String>(request.replica)
            }
        });
        let policy = Counting {
            made: made.clone(),
            most,
        };
        let hedged = HedgeLayer::new(route.clone(), policy).layer(third_answers);
        let answer = hedged.oneshot(Get::taking(0)).await;
        assert_eq!(answer.is_ok(), answers, "{answer:?}");
        assert_eq!(made.load(Ordering::Relaxed), duplicates);
        // Where the policy cannot keep its word, the attempt is not sent, and nothing panics.
        assert_eq!(sent.load(Ordering::Relaxed), if answers { 3 } else { 2 });
    }
    assert_eq!(route.snapshot().totals.hedged_again, 2);
}

/// Answers each line, and says whether it was marked.
async fn line_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (read, mut write) = stream.split();
                let mut line = String::new();
                BufReader::new(read).read_line(&mut line).await.unwrap();
                let line = line.trim_start_matches(HEDGE_MARK).trim();
                // A client that is gone is no error of this server.
                let _ = write.write_all(format!("{line} done\n").as_bytes()).await;
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_runs_against_real_servers() {
    let replicas = [line_server().await, line_server().await];
    let names: Vec<_> = replicas.iter().map(String::as_str).collect();
    let lines = tower_layer::run(&names, 20).await.unwrap();
    assert_eq!(
        lines,
        [
            "the last answer: get 19 done",
            "20 eligible calls, 1 others, 0 hedged"
        ]
    );
}
