//! `/metrics`, `/healthz` and `/readyz`. They need no login: the first answers loopback only unless
//! the settings say otherwise, the others say nothing but yes or no.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::response::IntoResponse;
use axum::routing::get;
use http::{StatusCode, header};

use super::Metrics;
use crate::engine::Engine;
use crate::store::Store;

/// After what time without a tick decisions count as stuck: five are missing.
const TICK_AGE_MAX: Duration = Duration::from_secs(5);

/// How long the store's answer to "can you be written" stands. Asking takes the right to write for a
/// moment, and anybody may ask: without this, a flood of questions would delay a kill switch.
const WRITABLE_FOR: Duration = Duration::from_secs(1);

/// What health is judged by.
#[derive(Debug, Clone)]
pub struct Health {
    engine: Engine,
    store: Store,
    metrics: Metrics,
    metrics_public: bool,
    asked: Arc<tokio::sync::Mutex<Option<Asked>>>,
}

/// The store's last answer.
#[derive(Debug)]
struct Asked {
    at: Instant,
    /// What was wrong with it.
    problem: Option<String>,
}

/// The routes.
pub fn router(health: Health) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "alive\n" }))
        .route("/readyz", get(ready))
        .with_state(health)
}

async fn metrics(
    State(health): State<Health>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
) -> axum::response::Response {
    if !health.metrics_public && !peer.ip().to_canonical().is_loopback() {
        let text = "metrics are served to loopback only: expected a request from this machine, or telemetry.metrics_public = true in the controller's settings\n";
        return (StatusCode::FORBIDDEN, text).into_response();
    }
    match health.metrics.text() {
        Ok(text) => ([(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], text).into_response(),
        Err(error) => {
            tracing::error!(error = %error, "metrics could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

async fn ready(State(health): State<Health>) -> axum::response::Response {
    match health.problem().await {
        None => "ready\n".into_response(),
        Some(problem) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("not ready: {problem}\n"),
        )
            .into_response(),
    }
}

impl Health {
    /// Of this controller. `metrics_public`: whether `/metrics` answers others than loopback.
    pub fn new(engine: Engine, store: Store, metrics: Metrics, metrics_public: bool) -> Self {
        Self {
            engine,
            store,
            metrics,
            metrics_public,
            asked: Arc::default(),
        }
    }

    /// Why the controller cannot do its work; None: it can.
    async fn problem(&self) -> Option<String> {
        let snapshot = self.engine.snapshot();
        let age = self.engine.clock().now().since(snapshot.at);
        if age > TICK_AGE_MAX {
            return Some(format!("no decision for {} s", age.as_secs()));
        }
        if let Some(problem) = &snapshot.controller.write_problem {
            return Some(format!("the store does not take writes: {problem}"));
        }
        self.unwritable().await
    }

    /// Why the store cannot be written, as of a second ago at most.
    async fn unwritable(&self) -> Option<String> {
        // Whoever comes meanwhile waits for the same answer.
        let mut asked = self.asked.lock().await;
        if let Some(Asked { at, problem }) = &*asked
            && at.elapsed() < WRITABLE_FOR
        {
            return problem.clone();
        }
        let checked = self.store.check_writable().await;
        let problem = checked.err().map(|error| error.in_full());
        *asked = Some(Asked {
            at: Instant::now(),
            problem: problem.clone(),
        });
        problem
    }
}
