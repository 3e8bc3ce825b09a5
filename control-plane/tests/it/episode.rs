//! A whole episode over real sockets: an agent's reports of a slowdown, the decision, the alert, and
//! a receiver that is down over its beginning (P15).

use std::sync::Arc;
use std::time::Duration;

use hedgerow_control_plane::agents::{Identities, Server};
use hedgerow_control_plane::alerts::deliver;
use hedgerow_control_plane::clock::Clock;
use hedgerow_control_plane::config::AgentLimits;
use hedgerow_control_plane::engine::{Engine, Parts};
use hedgerow_control_plane::listen::Bound;
use hedgerow_control_plane::store::{AgentToken, Store};
use hedgerow_control_plane::telemetry::Metrics;
use hedgerow_core::event::{Actor, Order, Settings, Via};
use hedgerow_protocol::directive::Mode;
use hedgerow_protocol::ids::{Sequence, ServiceName};
use hedgerow_protocol::latency::{Histogram, bucket_of};
use hedgerow_protocol::report::{Attempts, Report, Totals};
use hedgerow_protocol::session::{AgentMessage, SentReport};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::alerts::sink::Sink;
use crate::alerts::{brisk, receiver};
use crate::raw_agent::RawAgent;
use crate::running::{SHOP_TOKEN, hedging, route};
use crate::standing::eventually;

/// Ten times the usual pace, for what is counted in ticks.
const TICK: Duration = Duration::from_millis(100);
/// Calls in each report.
const CALLS: u64 = 50;
/// Of these, those that cross and are hedged, where that is allowed.
const HEDGED: u64 = 5;

/// A controller whose parts are put together here, for its pace.
struct Quick {
    engine: Engine,
    store: Store,
    grpc: String,
    wake: Arc<Notify>,
    stop: CancellationToken,
    _folder: TempDir,
}

impl Quick {
    async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let store = Store::open(&folder.path().join("hedgerow.db"))
            .await
            .unwrap();
        let (stop, wake, metrics) = (
            CancellationToken::new(),
            Arc::new(Notify::new()),
            Metrics::new(),
        );
        let parts = Parts {
            settings: Settings {
                tick: TICK,
                ..Settings::default()
            },
            store: store.clone(),
            receivers: vec!["pager".into()],
            wake: Arc::clone(&wake),
            metrics: metrics.clone(),
            clock: Clock::start(),
            leaving: stop.clone(),
            stop: stop.clone(),
        };
        let (engine, _) = Engine::start(parts).await.unwrap();
        let token = AgentToken {
            sha256: Sha256::digest(SHOP_TOKEN).into(),
            service: ServiceName::new("shop").unwrap(),
        };
        let bound = Bound::new("127.0.0.1:0".parse().unwrap(), "agents")
            .await
            .unwrap();
        let grpc = format!("http://{}", bound.address());
        let server = Server {
            engine: engine.clone(),
            identities: Identities::new(vec![token], store.clone()),
            limits: AgentLimits::default(),
            metrics,
            stop: stop.clone(),
        };
        tokio::spawn(server.serve(bound, None));
        let order = Order::SetPolicy {
            policy: Box::new(hedging(0.2)),
            expected: None,
            rollout: None,
        };
        let ada = Actor {
            name: "ada".into(),
            via: Via::Api,
        };
        engine.order(ada, "a test".into(), order).await.unwrap();
        Self {
            engine,
            store,
            grpc,
            wake,
            stop,
            _folder: folder,
        }
    }

    fn mode(&self) -> Mode {
        let view = self.engine.snapshot().routes.get(&route()).cloned();
        view.map_or(Mode::Observing, |view| view.mode)
    }
}

/// A service that answers after so many milliseconds, seen by one agent.
struct Service {
    agent: RawAgent,
    sequence: u64,
    totals: Totals,
}

impl Service {
    /// Reports at the tick's pace until `holds`.
    async fn run(&mut self, what: &str, millis: u64, holds: impl Fn() -> bool) {
        let mut pace = tokio::time::interval(TICK);
        // 60 s: six times what the longest rule takes.
        for _ in 0..600 {
            pace.tick().await;
            self.report(millis).await;
            while self.agent.next_within(Duration::ZERO).await.is_some() {}
            if holds() {
                return;
            }
        }
        panic!("in vain: {what}");
    }

    async fn report(&mut self, millis: u64) {
        self.sequence += 1;
        let it = &mut self.totals;
        it.started += CALLS;
        it.finished += CALLS;
        it.treated_finished += CALLS;
        it.primary_finished += CALLS;
        it.crossed += HEDGED;
        it.hedged += HEDGED;
        it.hedge_finished += HEDGED;
        let answered = |count| {
            let mut all = Histogram::new();
            let bucket = bucket_of(Duration::from_millis(millis));
            all.add_to_bucket(bucket, count).unwrap();
            Attempts {
                done: all.to_sparse(),
                ..Attempts::default()
            }
        };
        let mut of_route = self.agent.route_report(&route(), 0);
        of_route.totals = self.totals;
        of_route.primary = answered(CALLS);
        of_route.hedge = answered(HEDGED);
        let report = Report {
            sequence: Sequence(self.sequence),
            covers: TICK,
            wall_clock_ms: 1_700_000_000_000,
            routes: vec![of_route],
        };
        let held_hash = self.agent.held_hash();
        let message = AgentMessage::Report(SentReport { held_hash, report });
        self.agent.send(message).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p15_a_receiver_that_was_down_when_it_began_gets_one_firing_and_one_resolved() {
    let controller = Quick::start().await;
    // Down: the port is known, and nobody listens.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let delivering = tokio::spawn(deliver(
        brisk(),
        controller.store.clone(),
        vec![receiver("pager", address)],
        Arc::clone(&controller.wake),
        controller.stop.clone(),
    ));
    let mut service = Service {
        agent: RawAgent::attach(&controller.grpc, SHOP_TOKEN).await,
        sequence: 0,
        totals: Totals::default(),
    };
    let base = || {
        let fleet = controller.engine.snapshot();
        let figures = fleet.routes.get(&route()).and_then(|it| it.figures);
        figures.is_some_and(|it| it.median_ratio.is_some())
    };
    service.run("the usual speed is known", 10, base).await;
    service
        .run("everything is slow", 80, || {
            matches!(controller.mode(), Mode::Probing(_))
        })
        .await;
    let attempts = async || {
        let all = controller.store.deliveries(10).await.unwrap();
        all.iter().map(|it| it.attempts).max().unwrap_or(0)
    };
    eventually("the receiver was tried in vain", async || {
        attempts().await >= 3
    })
    .await;

    let pager = Sink::new();
    pager.serve_on(TcpListener::bind(address).await.unwrap());
    service
        .run("all is well again", 10, || controller.mode() == Mode::On)
        .await;
    eventually("nothing waits", async || {
        let all = controller.store.deliveries(10).await.unwrap();
        all.iter().all(|it| it.state == "delivered")
    })
    .await;
    let told: Vec<_> = pager
        .got()
        .iter()
        .map(|got| {
            (
                got.kind().to_owned(),
                got.body["data"]["rule"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    let expected = ["alert.firing", "alert.resolved"];
    assert_eq!(
        told,
        expected.map(|kind| (kind.to_owned(), "SharedSlowdown".to_owned()))
    );
    controller.stop.cancel();
    delivering.await.unwrap();
}
