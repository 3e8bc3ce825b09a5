//! The tonic channel, against real gRPC servers.

mod eligible;
mod generated;
mod outcome;
mod shop;
mod streams;
#[path = "../../examples/tonic_client.rs"]
#[allow(dead_code, reason = "its main is for running it by itself")]
mod tonic_client;

use std::time::Duration;

use hedgerow_agent::integrations::tonic::{HedgedChannel, HedgedChannelBuilder};
use hedgerow_agent::{Policy, Route};

use self::shop::{CatalogClient, Replica, list};
use crate::warm;

/// Long enough for every answer that is meant to come.
const DEADLINE: Duration = Duration::from_secs(10);

/// Three replicas, a route over them that hedges, and a client of theirs.
struct Rig {
    replicas: [Replica; 3],
    route: Route,
    client: CatalogClient<HedgedChannel>,
}

impl Rig {
    async fn reads(deadline: Duration) -> Self {
        let reads = ["/shop.v1.Catalog/Get", "/shop.v1.Catalog/List"];
        Self::with(deadline, |channel| channel.idempotent(reads)).await
    }

    async fn with(
        deadline: Duration,
        set: impl FnOnce(HedgedChannelBuilder) -> HedgedChannelBuilder,
    ) -> Self {
        Self::by(warm::policy(), deadline, set).await
    }

    async fn by(
        policy: Policy,
        deadline: Duration,
        set: impl FnOnce(HedgedChannelBuilder) -> HedgedChannelBuilder,
    ) -> Self {
        let replicas = [
            Replica::start().await,
            Replica::start().await,
            Replica::start().await,
        ];
        let list = list(&replicas);
        let route = warm::route_with(&list, deadline, policy).await;
        let channel = set(HedgedChannel::builder(route.clone(), list))
            .build()
            .unwrap();
        Self {
            replicas,
            route,
            client: CatalogClient::new(channel),
        }
    }

    /// Requests that came in, at all of them.
    fn requests(&self) -> usize {
        self.replicas.iter().map(|it| it.seen().len()).sum()
    }

    fn hedges(&self) -> usize {
        let seen = self.replicas.iter().flat_map(Replica::seen);
        seen.filter(|seen| seen.hedge).count()
    }

    fn resets(&self) -> u64 {
        self.replicas.iter().map(Replica::resets).sum()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_runs_against_real_servers() {
    let replicas = [Replica::start().await, Replica::start().await];
    let names: Vec<_> = replicas.iter().map(|it| it.address.to_string()).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let lines = tonic_client::run(&names, 20).await.unwrap();
    assert!(
        lines.contains(&"20 read, 20 listed".to_owned()),
        "{lines:?}"
    );
    assert!(lines.iter().any(|line| line.starts_with("21 calls")));
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("retryThrottling.tokenRatio: taken differently")),
        "{lines:?}"
    );
    let requests: usize = replicas.iter().map(|it| it.seen().len()).sum();
    assert!(requests >= 21);
}
