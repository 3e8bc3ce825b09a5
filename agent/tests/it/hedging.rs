//! Hedging over real sockets.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hedgerow_agent::{Agent, Call, CallError, Route};
use hedgerow_protocol::report::Refusal;
use tokio::time::sleep;

use crate::catalog::{ANSWER, Http, HttpError, Replica, client, fetch, hedging_policy, list};

const MS: Duration = Duration::from_millis(1);

/// Two replicas that take 5 ms, and a route that knows its threshold.
async fn warm() -> ([Replica; 2], Route, Http) {
    warm_with([Replica::start().await, Replica::start().await]).await
}

async fn warm_with<const N: usize>(replicas: [Replica; N]) -> ([Replica; N], Route, Http) {
    for replica in &replicas {
        replica.takes(5 * MS);
    }
    let agent = Agent::builder().service("shop").connect().await.unwrap();
    let route = agent
        .route("catalog", "get")
        .replicas(list(&replicas))
        .hedge_standalone(hedging_policy())
        .deadline(Duration::from_secs(20))
        .build()
        .unwrap();
    let http = client();
    let began = Instant::now();
    while route.snapshot().effective.threshold.is_none() {
        for _ in 0..300 {
            get(&route, &http).await.unwrap();
        }
        assert!(began.elapsed() < Duration::from_mins(1), "no threshold");
    }
    (replicas, route, http)
}

async fn get(route: &Route, http: &Http) -> Result<usize, CallError<HttpError>> {
    let http = http.clone();
    route
        .call(Call::idempotent(), move |attempt| {
            fetch(http.clone(), attempt, "GET", "/item")
        })
        .await
}

async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        sleep(10 * MS).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_replica_is_hedged_around_and_the_loser_is_cancelled_on_the_wire() {
    let (replicas, route, http) = warm().await;
    let before = route.snapshot().totals;
    let slow = &replicas[0];
    let cancelled_before = slow.seen.cancelled.load(Ordering::Relaxed);
    slow.takes(Duration::from_secs(5));
    let mut hedged_around = 0;
    for _ in 0..12 {
        let began = Instant::now();
        assert_eq!(
            get(&route, &http).await,
            Ok(ANSWER),
            "every byte, from one replica"
        );
        if began.elapsed() < Duration::from_secs(4) {
            hedged_around += 1;
        }
    }
    let totals = route.snapshot().totals.since(&before).unwrap();
    assert!(totals.won > 0, "{totals:?}");
    assert_eq!(totals.failed, 0);
    assert!(
        hedged_around >= totals.won,
        "a call that a hedge won did not wait for its primary"
    );
    assert!(
        replicas[1].seen.hedges.load(Ordering::Relaxed) >= totals.won,
        "the mark is seen"
    );
    if route.snapshot().effective.watched_losers < totals.won as u32 {
        eventually("the loser's connection closes", || {
            slow.seen.cancelled.load(Ordering::Relaxed) > cancelled_before
        })
        .await;
    }
    eventually("nothing is left but watched losers", || {
        let seen = route.snapshot();
        seen.attempts_in_flight == u64::from(seen.effective.watched_losers)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b18_a_post_without_the_mark_is_never_hedged() {
    let (replicas, route, http) = warm().await;
    let before = route.snapshot().totals;
    let requests = || replicas.iter().map(Replica::requests).sum::<u64>();
    let requests_before = requests();
    for replica in &replicas {
        replica.takes(300 * MS);
    }
    for _ in 0..5 {
        let http = http.clone();
        let attempts = move |attempt| fetch(http.clone(), attempt, "POST", "/order");
        assert_eq!(
            route.call(Call::not_idempotent(), attempts).await,
            Ok(ANSWER)
        );
    }
    let totals = route.snapshot().totals.since(&before).unwrap();
    assert_eq!(
        (totals.not_eligible, totals.hedged, totals.crossed),
        (5, 0, 0)
    );
    assert_eq!(requests() - requests_before, 5, "one request a call");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b23_a_route_with_one_replica_is_never_hedged_and_says_why() {
    let ([replica], route, http) = warm_with([Replica::start().await]).await;
    let before = route.snapshot().totals;
    let requests_before = replica.requests();
    replica.takes(300 * MS);
    for _ in 0..5 {
        assert_eq!(get(&route, &http).await, Ok(ANSWER));
    }
    let totals = route.snapshot().totals.since(&before).unwrap();
    assert_eq!((totals.crossed, totals.hedged), (5, 0));
    assert_eq!(totals.refused_for(Refusal::NoReplica), 5);
    assert_eq!(
        replica.requests() - requests_before,
        5,
        "one request a call"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b01_a_failing_primary_is_returned_at_once_and_word_for_word() {
    let (replicas, route, http) = warm().await;
    for replica in &replicas {
        replica.answers(503);
    }
    let before = route.snapshot().totals;
    for _ in 0..20 {
        assert_eq!(
            get(&route, &http).await,
            Err(CallError::Failed(HttpError::Status(503)))
        );
    }
    let totals = route.snapshot().totals.since(&before).unwrap();
    assert_eq!((totals.failed, totals.failed_despite_primary), (20, 0));
}
