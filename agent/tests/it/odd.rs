//! What a careless service or a hostile environment does to an agent: kinds of cases that are in
//! no list.

mod listeners;
mod runtimes;
mod settings;
mod storms;

use std::time::Duration;

use hedgerow_agent::{Agent, Policy, PolicyDraft, Replicas, Route};

use crate::catalog::hedging_policy;

const MS: Duration = Duration::from_millis(1);

/// An agent whose route of three replicas hedges by itself, with a changed policy.
async fn route(change: impl FnOnce(&mut PolicyDraft)) -> (Agent, Route, Replicas) {
    let agent = Agent::builder().service("shop").connect().await.unwrap();
    let replicas = Replicas::new([("a:1", None), ("b:1", None), ("c:1", None)]).unwrap();
    let mut draft = PolicyDraft::from(hedging_policy());
    change(&mut draft);
    let route = agent
        .route("catalog", "get")
        .replicas(replicas.clone())
        .hedge_standalone(Policy::try_from(draft).unwrap())
        .build()
        .unwrap();
    (agent, route, replicas)
}
