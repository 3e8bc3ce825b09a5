//! Routes for tests under tokio's paused clock: attempts that sleep, in no time at all.

use std::time::Duration;

use hedgerow_agent::{Agent, Attempt, AttemptKind, Call, CallError, Policy, Replicas, Route};
use tokio::time::sleep;

use crate::catalog::hedging_policy;

pub(crate) const MS: Duration = Duration::from_millis(1);

/// What an attempt does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Does {
    Answers(Duration),
    Fails,
    Never,
}

/// A call whose attempts do this.
pub(crate) async fn call(
    route: &Route,
    call: Call,
    primary: Does,
    hedge: Does,
) -> Result<AttemptKind, CallError<&'static str>> {
    let attempts = move |attempt: Attempt| async move {
        let kind = attempt.kind();
        let does = match kind {
            AttemptKind::Primary => primary,
            AttemptKind::Hedge => hedge,
        };
        match does {
            Does::Answers(after) => sleep(after).await,
            Does::Fails => return Err("no"),
            Does::Never => std::future::pending().await,
        }
        Ok(kind)
    };
    route.call(call, attempts).await
}

/// A route of two replicas that hedges by itself and knows its threshold: from 10 to 20 ms.
pub(crate) async fn warm(agent: &Agent) -> Route {
    warm_by(agent, hedging_policy()).await
}

/// The same by another policy.
pub(crate) async fn warm_by(agent: &Agent, policy: Policy) -> Route {
    let replicas = Replicas::new([("a:1", None), ("b:1", None)]).unwrap();
    let route = agent
        .route("catalog", "get")
        .replicas(replicas)
        .hedge_standalone(policy)
        .deadline(Duration::from_secs(20))
        .build()
        .unwrap();
    for nth in 0..600 {
        let answers = Does::Answers(10 * MS + nth % 20 * MS / 2);
        call(&route, Call::idempotent(), answers, answers)
            .await
            .unwrap();
    }
    let threshold = route.snapshot().effective.threshold;
    assert!(threshold.is_some(), "a threshold after 600 calls");
    route
}
