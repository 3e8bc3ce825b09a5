//! A route that hedges, its threshold known, for tests of what is built on it.

use std::time::{Duration, Instant};

use hedgerow_agent::{Agent, Attempt, Call, Policy, PolicyDraft, Replicas, Route};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::catalog::hedging_policy;

const MS: Duration = Duration::from_millis(1);
/// The threshold: far above what a fast answer takes here, however busy the machine.
pub(crate) const THRESHOLD: Duration = Duration::from_millis(150);

/// The policy of these tests: hedges at [`THRESHOLD`].
pub(crate) fn policy() -> Policy {
    let draft = PolicyDraft {
        threshold_min_ms: Some(THRESHOLD.as_secs_f64() * 1e3),
        threshold_max_ms: Some(THRESHOLD.as_secs_f64() * 1e3),
        // The errors of these tests are meant.
        error_limit: 0.5,
        ..hedging_policy().into()
    };
    Policy::try_from(draft).unwrap()
}

pub(crate) async fn route(replicas: &Replicas, deadline: Duration) -> Route {
    route_with(replicas, deadline, policy()).await
}

pub(crate) async fn route_with(replicas: &Replicas, deadline: Duration, policy: Policy) -> Route {
    let agent = Agent::builder().service("shop").connect().await.unwrap();
    let route = agent
        .route("catalog", "get")
        .replicas(replicas.clone())
        .hedge_standalone(policy)
        .deadline(deadline)
        .build()
        .unwrap();
    let began = Instant::now();
    while route.snapshot().effective.threshold.is_none() {
        assert!(began.elapsed() < Duration::from_mins(1), "no threshold");
        answered(&route, 300).await;
    }
    route
}

/// Calls that were answered, so that there are tokens for hedges.
pub(crate) async fn answered(route: &Route, calls: usize) {
    let mut running = JoinSet::new();
    for _ in 0..calls {
        let route = route.clone();
        running.spawn(async move {
            let attempts = |_: Attempt| async {
                sleep(5 * MS).await;
                Ok::<_, ()>(())
            };
            route.call(Call::idempotent(), attempts).await.unwrap();
        });
    }
    running.join_all().await;
}

/// Waits until it is so.
pub(crate) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        sleep(10 * MS).await;
    }
}

/// Nothing of the route's calls is left: no attempt, no permit.
pub(crate) async fn all_freed(route: &Route) {
    eventually("every attempt's permit is given back", || {
        route.snapshot().attempts_in_flight == 0
    })
    .await;
}
