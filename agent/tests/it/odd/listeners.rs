//! Code of the host's that the agent calls, and that calls the agent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hedgerow_agent::{Agent, Attempt, Call, Replicas, Route};
use parking_lot::Mutex;
use tokio::time::sleep;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::{MS, route};

/// Looks at everything whenever something is logged.
#[derive(Clone, Default)]
struct Curious {
    agent: Arc<Mutex<Option<(Agent, Route)>>>,
    events: Arc<AtomicU64>,
}

impl Subscriber for Curious {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("hedgerow")
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {
        let agent = self.agent.lock().clone();
        if let Some((agent, route)) = agent {
            let _ = (agent.snapshot(), route.snapshot());
            let _ = agent.route("other", "get").build();
            self.events.fetch_add(1, Ordering::Relaxed);
        }
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn x46_a_log_that_asks_the_agent_what_it_does_hangs_nobody() {
    let curious = Curious::default();
    let _listening = tracing::subscriber::set_default(curious.clone());
    let (agent, route, _) = route(|_| {}).await;
    *curious.agent.lock() = Some((agent.clone(), route.clone()));
    for nth in 0..6_000 {
        let route = route.clone();
        tokio::spawn(async move {
            let attempts = |attempt: Attempt| async move {
                let slow = nth > 1_000 && attempt.replica().as_str() == "c:1";
                sleep(if slow { 500 * MS } else { (10 + nth % 10) * MS }).await;
                Ok::<_, ()>(())
            };
            route.call(Call::idempotent(), attempts).await.unwrap();
        });
        sleep(2 * MS).await;
    }
    assert_eq!(route.snapshot().probation.len(), 1);
    assert!(curious.events.load(Ordering::Relaxed) > 0, "it was logged");
    let before = curious.events.load(Ordering::Relaxed);
    for nth in 0..70 {
        let _ = agent.route("catalog", &format!("get-{nth}")).build();
    }
    assert!(
        curious.events.load(Ordering::Relaxed) > before,
        "so were too many routes"
    );
}

/// Calls the route, and changes its replicas, when it is dropped.
struct CallsInDrop(Route, Replicas, Arc<AtomicU64>);

impl Drop for CallsInDrop {
    fn drop(&mut self) {
        let answers = self.0.call(Call::idempotent(), async |_| Ok::<_, ()>(()));
        futures::executor::block_on(answers).unwrap();
        let _ = self.0.snapshot();
        self.1
            .replace([("a:1", None), ("b:1", Some("eu-1"))])
            .unwrap();
        self.1
            .replace([("a:1", None), ("b:1", None), ("c:1", None)])
            .unwrap();
        self.2.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn x47_a_call_of_the_same_route_when_an_attempt_is_dropped() {
    let (_agent, route, replicas) = route(|policy| policy.threshold_max_ms = Some(5.0)).await;
    let drops = Arc::new(AtomicU64::new(0));
    for nth in 0..2_000_u32 {
        let (within, list, count) = (route.clone(), replicas.clone(), drops.clone());
        let attempts = move |attempt: Attempt| {
            let odd = CallsInDrop(within.clone(), list.clone(), count.clone());
            async move {
                let _odd = odd;
                let primary = attempt.kind().as_str() == "primary";
                sleep(if primary && nth % 4 == 0 {
                    50 * MS
                } else {
                    2 * MS
                })
                .await;
                Ok::<_, ()>(())
            }
        };
        route.call(Call::idempotent(), attempts).await.unwrap();
    }
    sleep(1000 * MS).await;
    let now = route.snapshot();
    assert!(now.totals.hedged > 0, "{:?}", now.totals);
    assert_eq!(drops.load(Ordering::Relaxed), 2_000 + now.totals.hedged);
    assert_eq!(now.attempts_in_flight, 0);
    assert_eq!(now.totals.started, now.totals.finished);
}

#[tokio::test(start_paused = true)]
async fn x48_a_classifier_that_panics_over_a_watched_loser_leaves_nothing() {
    let (_agent, route, _) = route(|policy| policy.threshold_max_ms = Some(5.0)).await;
    for nth in 0..3_000_u32 {
        let classify = |result: &Result<bool, ()>| {
            assert_ne!(*result, Ok(true), "a loser's answer");
            hedgerow_agent::Verdict::Good
        };
        let attempts = move |attempt: Attempt| async move {
            let primary = attempt.kind().as_str() == "primary";
            let slow = primary && nth % 40 == 0;
            sleep(if slow { 400 * MS } else { 2 * MS }).await;
            Ok(slow)
        };
        let route = route.clone();
        let call = async move {
            route
                .call_with(Call::idempotent(), classify, attempts)
                .await
        };
        // Where no hedge was sent, the panic is its caller's.
        let _ = tokio::spawn(call).await;
    }
    sleep(1000 * MS).await;
    let now = route.snapshot();
    assert!(now.totals.won > 0, "{:?} {:?}", now.totals, now.effective);
    assert_eq!(
        (now.attempts_in_flight, now.effective.watched_losers),
        (0, 0)
    );
}
