//! The tower layer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hedgerow_agent::layer::{HedgeLayer, HedgePolicy};
use hedgerow_agent::{Agent, Attempt, AttemptKind, Call, CallError, Replicas, Route, Verdict};
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
    let agent = Agent::builder().service("shop").connect().await.unwrap();
    let replicas = Replicas::new([("a:1", None), ("b:1", None)]).unwrap();
    let route = agent
        .route("catalog", "get")
        .replicas(replicas)
        .hedge_standalone(hedging_policy())
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
    assert!(["a:1", "b:1"].contains(&answer.as_str()));
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
