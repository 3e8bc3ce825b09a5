//! Five replica servers over loopback, and what can be wrong with them.
//!
//! Latency is lognormal (median 12 ms, p95 25 ms), which is what a service that is not in trouble
//! looks like. A fault changes what the servers do, never what a client knows.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Replicas in the demo: enough that a healthy majority is one.
pub(crate) const REPLICAS: usize = 5;
/// The one that becomes slow.
pub(crate) const SLOW_REPLICA: usize = 3;

const MEDIAN_MS: f64 = 12.0;
const SIGMA: f64 = 0.45;
const STALL: Duration = Duration::from_millis(300);
const STALL_SHARE: f64 = 0.02;
const SLOW_SHARE: f64 = 0.2;
const ALL_SLOW_FACTOR: f64 = 5.0;
const FAILING_SHARE: f64 = 0.6;

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Fault {
    /// 2 % of calls stall for 300 ms, each replica for itself: what hedging is for.
    None = 0,
    /// One replica also stalls on a fifth of its calls.
    OneSlow = 1,
    /// Every call takes five times longer, on every replica.
    AllSlow = 2,
    /// 60 % of attempts answer 500, at normal speed, on every replica.
    Failing = 3,
}

impl Fault {
    fn from_code(code: u8) -> Self {
        match code {
            1 => Self::OneSlow,
            2 => Self::AllSlow,
            3 => Self::Failing,
            _ => Self::None,
        }
    }
}

/// The replicas.
#[derive(Debug)]
pub(crate) struct World {
    fault: Arc<AtomicU8>,
    served: Arc<AtomicU64>,
    /// Name and address of each replica.
    pub(crate) replicas: Vec<(String, SocketAddr)>,
}

#[derive(Clone)]
struct Replica {
    index: usize,
    fault: Arc<AtomicU8>,
    served: Arc<AtomicU64>,
    random: Arc<parking_lot::Mutex<SmallRng>>,
}

impl World {
    /// Starts the servers on free ports of loopback.
    pub(crate) async fn start(seed: u64, shutdown: &CancellationToken) -> std::io::Result<Self> {
        let fault = Arc::new(AtomicU8::new(Fault::None as u8));
        let served = Arc::new(AtomicU64::new(0));
        let mut replicas = Vec::with_capacity(REPLICAS);
        for index in 0..REPLICAS {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            replicas.push((format!("catalog-{}", index + 1), listener.local_addr()?));
            let replica = Replica {
                index,
                fault: Arc::clone(&fault),
                served: Arc::clone(&served),
                random: Arc::new(parking_lot::Mutex::new(SmallRng::seed_from_u64(
                    seed.wrapping_add(index as u64),
                ))),
            };
            let app = Router::new().route("/item", get(serve)).with_state(replica);
            let ended = shutdown.clone().cancelled_owned();
            tokio::spawn(async move {
                if let Err(error) = axum::serve(listener, app)
                    .with_graceful_shutdown(ended)
                    .await
                {
                    tracing::error!(%error, "a replica of the demo stopped");
                }
            });
        }
        Ok(Self {
            fault,
            served,
            replicas,
        })
    }

    /// Changes what is wrong, from the next request on.
    pub(crate) fn set(&self, fault: Fault) {
        self.fault.store(fault as u8, Ordering::Relaxed);
    }

    /// Requests that reached a replica: the load, as the servers see it.
    pub(crate) fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }

    /// The name of the replica that becomes slow.
    pub(crate) fn slow_replica(&self) -> &str {
        &self.replicas[SLOW_REPLICA].0
    }
}

async fn serve(State(replica): State<Replica>) -> (StatusCode, &'static str) {
    replica.served.fetch_add(1, Ordering::Relaxed);
    let fault = Fault::from_code(replica.fault.load(Ordering::Relaxed));
    let (latency, fails) = replica.draw(fault);
    tokio::time::sleep(latency).await;
    if fails {
        (StatusCode::INTERNAL_SERVER_ERROR, "the catalog is failing")
    } else {
        (StatusCode::OK, "one item")
    }
}

impl Replica {
    fn draw(&self, fault: Fault) -> (Duration, bool) {
        let mut random = self.random.lock();
        let mut latency =
            Duration::from_secs_f64(MEDIAN_MS / 1e3 * (SIGMA * normal(&mut random)).exp());
        if random.random_bool(STALL_SHARE) {
            latency += STALL;
        }
        if fault == Fault::OneSlow && self.index == SLOW_REPLICA && random.random_bool(SLOW_SHARE) {
            latency += STALL;
        }
        if fault == Fault::AllSlow {
            latency = latency.mul_f64(ALL_SLOW_FACTOR);
        }
        (
            latency,
            fault == Fault::Failing && random.random_bool(FAILING_SHARE),
        )
    }
}

/// A standard normal variate, by Box and Muller.
fn normal(random: &mut SmallRng) -> f64 {
    let u: f64 = 1.0 - random.random::<f64>();
    let v: f64 = random.random();
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}
