//! The real agent and the real controller.

use std::time::Duration;

use hedgerow_agent::{Agent, Replicas};
use hedgerow_control_plane::app::App;
use hedgerow_core::view::{AgentState, Sync};
use hedgerow_protocol::ids::Revision;
use hedgerow_protocol::report::LinkState;

use crate::running::{Running, SHOP_TOKEN, hedging, route, settings};

async fn agent(running: &Running) -> (Agent, hedgerow_agent::Route) {
    let agent = Agent::builder()
        .service("shop")
        .controller(running.grpc())
        .token(SHOP_TOKEN.into())
        .connect()
        .await
        .unwrap();
    let replicas = Replicas::new([("a", None::<&str>), ("b", None)]).unwrap();
    let route = agent
        .route("catalog", "get")
        .replicas(replicas)
        .build()
        .unwrap();
    (agent, route)
}

async fn holds(running: &Running, agent: &Agent, revision: Revision) {
    running
        .until("the agent holds the revision", |it| {
            let view = it
                .agent(agent.instance())
                .filter(|it| it.state == AgentState::Live)?;
            let held = view.routes.iter().find(|it| it.route == route())?;
            (held.held.revision == revision && held.sync == Sync::Applied).then_some(())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_reaches_a_real_agent_and_is_confirmed() {
    let running = Running::start().await;
    let (agent, _route) = agent(&running).await;
    running.until("it reports", |it| it.route(&route())).await;
    let revision = running.set_policy(hedging(0.08)).await;
    holds(&running, &agent, revision).await;
    assert_eq!(agent.link_state(), Some(LinkState::Live));
    agent.shutdown().await;
    running
        .until("it has left", |it| {
            it.agent(agent.instance())
                .filter(|it| it.state == AgentState::Left)
        })
        .await;
    running.app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b59_c17_p01_an_agent_comes_back_after_every_end_and_holds_the_newest() {
    let mut running = Running::start().await;
    let (agent, _route) = agent(&running).await;
    running.until("it reports", |it| it.route(&route())).await;
    let address = running.app.grpc_address();
    for flap in 1..=3_u64 {
        let revision = running.set_policy(hedging(0.01 * flap as f64)).await;
        holds(&running, &agent, revision).await;
        let Running { app, folder } = running;
        app.stop().await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let mut settings = settings(folder.path(), "");
        settings.grpc.address = address;
        running = Running {
            app: App::start(settings).await.unwrap(),
            folder,
        };
        holds(&running, &agent, revision).await;
    }
    agent.shutdown().await;
    running.app.stop().await;
}
