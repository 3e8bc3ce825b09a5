//! Callers that choose their replica, over real sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hedgerow_agent::{Agent, Call, Intent, Policy, PolicyDraft, ReplicaName, Route};
use hedgerow_protocol::directive::Mode;
use hedgerow_protocol::units::Threshold;
use tokio::task::JoinSet;
use tokio::time::interval;

use crate::catalog::{Http, Replica, client, fetch, list};

const MS: Duration = Duration::from_millis(1);
const RATE: u32 = 120;
const BUDGET: f64 = 0.08;

fn policy() -> Policy {
    let observing = Policy::observing("catalog".parse().unwrap());
    let draft = PolicyDraft {
        intent: Intent::Hedge,
        budget: BUDGET,
        holdout: 0.0,
        ..observing.into()
    };
    Policy::try_from(draft).unwrap()
}

/// An open load on the replicas in turn; the share of calls that succeeded, and the threshold at the
/// end of each second.
async fn offer(
    route: &Route,
    http: &Http,
    pins: &[ReplicaName],
    seconds: u32,
) -> (f64, Vec<Duration>) {
    let mut calls = JoinSet::new();
    let mut ticks = interval(Duration::from_secs(1) / RATE);
    let succeeded = Arc::new(AtomicU32::new(0));
    let mut thresholds = vec![];
    for (nth, pin) in (0..RATE * seconds).zip(pins.iter().cycle()) {
        ticks.tick().await;
        let (on, http, succeeded) = (route.clone(), http.clone(), succeeded.clone());
        let call = Call::idempotent().pinned(pin.clone());
        calls.spawn(async move {
            let attempts = move |attempt| fetch(http.clone(), attempt, "GET", "/stock");
            if on.call(call, attempts).await.is_ok() {
                succeeded.fetch_add(1, Ordering::Relaxed);
            }
        });
        if nth % RATE == RATE - 1 {
            let effective = route.snapshot().effective;
            thresholds.extend(effective.threshold.map(Threshold::get));
        }
    }
    while calls.join_next().await.is_some() {}
    let succeeded = f64::from(succeeded.load(Ordering::Relaxed));
    (succeeded / f64::from(RATE * seconds), thresholds)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c09_a_third_pinned_to_a_replica_that_never_answers() {
    let replicas = [
        Replica::start().await,
        Replica::start().await,
        Replica::start().await,
    ];
    for replica in &replicas {
        replica.takes(20 * MS);
    }
    let agent = Agent::builder().service("shop").connect().await.unwrap();
    let route = agent
        .route("catalog", "stock")
        .replicas(list(&replicas))
        .hedge_standalone(policy())
        .deadline(Duration::from_secs(1))
        .build()
        .unwrap();
    let pins: Vec<_> = replicas
        .iter()
        .map(|replica| ReplicaName::new(&replica.address.to_string()).unwrap())
        .collect();
    let http = client();
    let (share, thresholds) = offer(&route, &http, &pins, 6).await;
    assert!(share > 0.99, "{share}");
    let healthy = *thresholds.last().expect("a threshold after 700 calls");

    replicas[2].takes(Duration::from_hours(1));
    let (share, thresholds) = offer(&route, &http, &pins, 14).await;
    let totals = route.snapshot().totals;
    let least = 2.0 / 3.0 + BUDGET - 0.02;
    assert!(share >= least, "{share} of the calls, {totals:?}");
    let most = thresholds.iter().max().unwrap();
    assert!(
        *most <= 2 * healthy,
        "{healthy:?} climbed to {most:?}: {thresholds:?}"
    );
    assert_eq!(route.snapshot().effective.mode, Mode::On);
    assert_eq!(totals.failed_despite_primary, 0);
}
