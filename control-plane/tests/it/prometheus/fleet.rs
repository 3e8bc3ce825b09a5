//! A controller, a service that links the real agent, and one whose agent has a policy file in its
//! place, with enough trouble that every metric has something to say.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::routing::get;
use axum::{Extension, Router};
use hedgerow_agent::{Agent, Attempt, Call, Replicas, Route};
use hedgerow_protocol::policy::{Intent, Policy, PolicyDraft};
use prometheus::{Registry, TextEncoder};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::raw_agent::{connect, open};
use crate::running::{Running, SHOP_TOKEN};

/// Longest wait for what takes the controller some windows to see: several times what it takes.
const SEEN_WITHIN: Duration = Duration::from_mins(2);
/// Calls a second.
const RATE: f64 = 400.0;
/// The replica that is slow.
const SLOW: &str = "catalog-4";

pub(super) struct Fleet {
    running: Running,
    agent: Agent,
    service: SocketAddr,
    alone: Alone,
    tasks: Vec<JoinHandle<()>>,
    client: reqwest::Client,
}

impl Fleet {
    pub(super) async fn start() -> Self {
        let running = Running::start_with(&receiver().await, |_| {}).await;
        running.set_policy(policy()).await;
        // Somebody whom the controller does not know.
        let (_messages, stream) = tokio::sync::mpsc::channel(1);
        let refused = open(connect(&running.grpc()).await, Some("Bearer no"), stream).await;
        assert!(refused.is_err());
        let registry = Registry::new();
        let agent = Agent::builder()
            .service("shop")
            .controller(running.grpc())
            .token(SHOP_TOKEN.into())
            .registry(registry.clone())
            .connect()
            .await
            .unwrap();
        let names: Vec<_> = (1..=5).map(|i| format!("catalog-{i}")).collect();
        let replicas = Replicas::new(names.iter().map(|it| (it.as_str(), None::<&str>))).unwrap();
        let route = agent.route("catalog", "get").replicas(replicas);
        let calling = tokio::spawn(call(route.build().unwrap()));
        let (service, serving) = serve(registry).await;
        let alone = Alone::start(&running).await;
        Self {
            running,
            agent,
            service,
            alone,
            tasks: vec![serving, calling],
            client: reqwest::Client::builder().no_proxy().build().unwrap(),
        }
    }

    /// Job and address of what is to be scraped.
    pub(super) fn targets(&self) -> [(&'static str, String); 3] {
        let controller = self.running.app.http_address();
        [
            ("hedgerow", controller.to_string()),
            ("shop", self.service.to_string()),
            ("alone", self.alone.service.to_string()),
        ]
    }

    /// What they show now.
    pub(super) async fn scrape(&self) -> String {
        let mut text = String::new();
        for (_, address) in self.targets() {
            let url = format!("http://{address}/metrics");
            let answer = self.client.get(url).send().await.unwrap();
            text.push_str(&answer.text().await.unwrap());
        }
        text
    }

    /// Waits until hedges have won, callers were held out, the slow replica is named and somebody is
    /// to be told, and an agent knows that a policy has no effect.
    pub(super) async fn until_everything_has_happened(&self) {
        let signs = [
            "hedgerow_controller_win_rate{dependency=\"catalog\"",
            "hedgerow_controller_win_rate_expected{dependency=\"catalog\"",
            "of=\"holdout\",operation=\"get\",quantile=\"0.99\"",
            "replica=\"catalog-4\"",
            "hedgerow_controller_alerts_firing{rule=\"ReplicaSlow\"}",
            "because=\"",
        ];
        let asked = Instant::now();
        loop {
            let text = self.scrape().await;
            let missing: Vec<_> = signs.iter().filter(|it| !text.contains(**it)).collect();
            if missing.is_empty() {
                return;
            }
            assert!(
                asked.elapsed() < SEEN_WITHIN,
                "in vain: {missing:?} in\n{text}"
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    pub(super) async fn stop(self) {
        for task in &self.tasks {
            task.abort();
        }
        self.alone.serving.abort();
        self.alone.agent.shutdown().await;
        self.agent.shutdown().await;
        self.running.app.stop().await;
    }
}

/// A receiver that answers nothing but "not now": every attempt fails.
async fn receiver() -> String {
    let away = Router::new().fallback(|| async { http::StatusCode::SERVICE_UNAVAILABLE });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, away).await });
    format!(
        r#"
[[receiver]]
name = "on-call"
kind = "webhook"
url = "http://{address}/"
secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
allow_private = true
"#
    )
}

/// A service without a controller, whose policy can do nothing: its one route has no replicas.
struct Alone {
    agent: Agent,
    _route: Route,
    service: SocketAddr,
    serving: JoinHandle<()>,
}

impl Alone {
    async fn start(running: &Running) -> Self {
        let file = running.folder.path().join("policies.toml");
        std::fs::write(
            &file,
            "[[policy]]\ndependency = \"lonely\"\nintent = \"hedge\"",
        )
        .unwrap();
        let registry = Registry::new();
        let agent = Agent::builder()
            .service("alone")
            .policy_file(&file)
            .registry(registry.clone());
        let agent = agent.connect().await.unwrap();
        let route = agent.route("lonely", "get").build().unwrap();
        let (service, serving) = serve(registry).await;
        Self {
            agent,
            _route: route,
            service,
            serving,
        }
    }
}

fn policy() -> Policy {
    let draft = PolicyDraft {
        intent: Intent::Hedge,
        holdout: 0.1,
        probation: false,
        ..Policy::observing("catalog".parse().unwrap()).into()
    };
    Policy::try_from(draft).unwrap()
}

/// A service's own metrics, the agent's among them.
async fn serve(registry: Registry) -> (SocketAddr, JoinHandle<()>) {
    let shown = |Extension(registry): Extension<Registry>| async move {
        TextEncoder::new()
            .encode_to_string(&registry.gather())
            .unwrap()
    };
    let app = Router::new()
        .route("/metrics", get(shown))
        .layer(Extension(registry));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let _ = axum::serve(listener, app).await;
    });
    (address, serving)
}

/// Calls at an even pace. One attempt in fifty stalls, and one in five at the slow replica: each by
/// its number, so that every run sees the same.
async fn call(route: Route) {
    let attempts = std::sync::Arc::new(AtomicU64::new(0));
    let mut pace = tokio::time::interval(Duration::from_secs_f64(1.0 / RATE));
    loop {
        pace.tick().await;
        let (route, attempts) = (route.clone(), std::sync::Arc::clone(&attempts));
        tokio::spawn(async move {
            let attempt = |attempt: Attempt| {
                let number = attempts.fetch_add(1, Ordering::Relaxed);
                let slow = attempt.replica().as_str() == SLOW;
                // A stride that no round over the replicas keeps step with.
                let stalls = (number * 7919) % 100 < if slow { 20 } else { 2 };
                let takes = Duration::from_millis(if stalls { 150 } else { 4 + number % 5 });
                async move {
                    tokio::time::sleep(takes).await;
                    Ok::<_, ()>(())
                }
            };
            let _ = route.call(Call::idempotent(), attempt).await;
        });
    }
}
