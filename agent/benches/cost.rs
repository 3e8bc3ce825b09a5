//! What the agent adds to a call that is not hedged, beside `tower::hedge` in the same run.
//!
//! Two kinds of call: one that is answered when first polled, so that no timer is armed, and one
//! that is answered when polled again. `cargo bench -p hedgerow-agent` prints nanoseconds a call
//! beyond the same call bare, the least of several rounds, and fails where ours is not cheaper.

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hedgerow_agent::{Agent, Attempt, Call, Intent, Policy, PolicyDraft, Replicas, Route};
use tower::hedge::Hedge;
use tower::{Service, ServiceExt};

/// Few enough that a round often ends before anything else gets the processor.
const CALLS: u32 = 2_000;
const ROUNDS: u32 = 400;

/// Answers at once, or when polled again.
#[derive(Clone, Copy)]
struct Answer {
    polls_left: u32,
}

impl Future for Answer {
    type Output = Result<u64, std::convert::Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.polls_left == 0 {
            return Poll::Ready(Ok(7));
        }
        self.polls_left -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[derive(Clone)]
struct Always;

impl tower::hedge::Policy<u32> for Always {
    fn clone_request(&self, request: &u32) -> Option<u32> {
        Some(*request)
    }
    fn can_retry(&self, _: &u32) -> bool {
        true
    }
}

async fn hedging_route() -> Result<Route, Box<dyn std::error::Error>> {
    let agent = Agent::builder().service("bench").connect().await?;
    let observing = Policy::observing("catalog".parse()?);
    let policy = Policy::try_from(PolicyDraft {
        intent: Intent::Hedge,
        threshold_min_ms: Some(50.0),
        ..observing.into()
    })?;
    let replicas = Replicas::new([("a:1", None), ("b:1", None), ("c:1", None)])?;
    let route = agent
        .route("catalog", "get")
        .replicas(replicas)
        .hedge_standalone(policy)
        .build()?;
    for _ in 0..300 {
        route
            .call(Call::idempotent(), |_: Attempt| Answer { polls_left: 1 })
            .await?;
    }
    // A second goes by, and the route has its threshold.
    tokio::time::sleep(Duration::from_millis(2_200)).await;
    assert!(
        route.snapshot().effective.threshold.is_some(),
        "the route hedges"
    );
    Ok(route)
}

fn ns_a_call(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
}

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "a bench says what it found")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let route = hedging_route().await?;
    // With enough latencies to hedge by, as in a service that has run for a while.
    let mut service = Hedge::new_with_mock_latencies(
        tower::service_fn(|polls_left: u32| Answer { polls_left }),
        Always,
        1000,
        0.95,
        Duration::from_hours(1),
        &[50; 2000],
    );
    let mut worse = false;
    for polls_left in [0, 1] {
        let (mut bare, mut ours, mut towers) = (f64::MAX, f64::MAX, f64::MAX);
        for _ in 0..ROUNDS {
            let began = Instant::now();
            for _ in 0..CALLS {
                black_box(black_box(Answer { polls_left }).await?);
            }
            bare = bare.min(ns_a_call(began));

            let began = Instant::now();
            for _ in 0..CALLS {
                let call = route.call(Call::idempotent(), |_: Attempt| Answer { polls_left });
                black_box(call.await?);
            }
            ours = ours.min(ns_a_call(began));

            let began = Instant::now();
            for _ in 0..CALLS {
                let ready = service.ready().await.map_err(|e| e.to_string())?;
                black_box(ready.call(polls_left).await.map_err(|e| e.to_string())?);
            }
            towers = towers.min(ns_a_call(began));
        }
        let (ours, towers) = (ours - bare, towers - bare);
        let polls = polls_left + 1;
        println!("answered at poll {polls}: hedgerow {ours:.0} ns, tower::hedge {towers:.0} ns");
        worse |= ours >= towers;
    }
    assert!(
        !worse,
        "a call that is not hedged must cost less than with tower::hedge"
    );
    Ok(())
}
