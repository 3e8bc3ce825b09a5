//! A webhook receiver: what an operator would point an alert at.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::routing::post;
use axum::{Json, Router};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::tell;

/// Notices, in the order they came: kind, rule, replica.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notices(Arc<Mutex<Vec<Notice>>>);

/// One notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    /// `alert.firing` or `alert.resolved`.
    pub(crate) kind: String,
    /// The rule.
    pub(crate) rule: String,
    /// The replica it names, or nothing.
    pub(crate) replica: String,
    /// In words.
    pub(crate) summary: String,
}

impl Notices {
    /// Starts the receiver on a free port of loopback.
    pub(crate) async fn receive(
        shutdown: &CancellationToken,
    ) -> std::io::Result<(Self, SocketAddr)> {
        let notices = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let kept = notices.clone();
        let app = Router::new().route(
            "/alerts",
            post(move |Json(body): Json<Value>| async move {
                let notice = Notice::read(&body);
                tell::notice(&notice);
                kept.0.lock().push(notice);
            }),
        );
        let ended = shutdown.clone().cancelled_owned();
        tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, app)
                .with_graceful_shutdown(ended)
                .await
            {
                tracing::error!(%error, "the demo's receiver stopped");
            }
        });
        Ok((notices, address))
    }

    /// All so far.
    pub(crate) fn all(&self) -> Vec<Notice> {
        self.0.lock().clone()
    }

    /// How many of this kind and rule.
    pub(crate) fn count(&self, kind: &str, rule: &str) -> usize {
        self.0
            .lock()
            .iter()
            .filter(|n| n.kind == kind && n.rule == rule)
            .count()
    }
}

impl Notice {
    fn read(body: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let data = &body["data"];
        Self {
            kind: text(&body["type"]),
            rule: text(&data["rule"]),
            replica: text(&data["replica"]),
            summary: text(&data["summary"]),
        }
    }
}
