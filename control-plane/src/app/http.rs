//! Everything that is served by HTTP, merged.

use std::net::SocketAddr;

use axum::Router;
use hedgerow_dashboard as dashboard;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::trace::TraceLayer;

use crate::alerts::Receivers;
use crate::api::{self, ApiState};
use crate::auth::Auth;
use crate::config::Settings;
use crate::engine::Engine;
use crate::store::Store;
use crate::telemetry::{self, Health, Metrics};
use crate::ui::Ui;

/// Where this controller listens.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub(super) http: SocketAddr,
    pub(super) grpc: SocketAddr,
}

impl At {
    /// Pages and API; agents.
    pub(super) fn new(http: SocketAddr, grpc: SocketAddr) -> Self {
        Self { http, grpc }
    }
}

/// Pages, API, metrics and health.
pub(super) fn router(
    settings: &Settings,
    at: At,
    engine: &Engine,
    store: &Store,
    auth: Auth,
    receivers: Receivers,
    metrics: &Metrics,
) -> Router {
    let health = Health::new(
        engine.clone(),
        store.clone(),
        metrics.clone(),
        settings.telemetry.metrics_public,
    );
    let api = ApiState {
        engine: engine.clone(),
        store: store.clone(),
        auth: auth.clone(),
        receivers: receivers.clone(),
        metrics: metrics.clone(),
    };
    let pages = dashboard::Settings {
        secure_cookies: is_https(settings),
        hosts: hosts(settings, at.http),
        agents: Some(dashboard::AgentsAt {
            port: at.grpc.port(),
            tls: settings.grpc.tls.is_some(),
        }),
    };
    let ui =
        Ui::new(engine.clone(), store.clone(), auth, metrics.clone()).with_receivers(receivers);
    // Inside, a panic costs one request its answer and nothing else.
    dashboard::router(ui, pages)
        .merge(api::router(api))
        .merge(telemetry::router(health))
        .layer(CatchPanicLayer::new())
        .layer(TraceLayer::new_for_http().make_span_with(|request: &http::Request<_>| {
            // The path alone: a query may hold a login link's token.
            tracing::debug_span!("http", method = %request.method(), path = request.uri().path())
        }))
}

fn is_https(settings: &Settings) -> bool {
    let by_proxy = settings
        .public_url
        .as_ref()
        .is_some_and(|url| url.scheme() == "https");
    settings.http.tls.is_some() || by_proxy
}

/// Where people were told an address, the pages answer to that and to loopback only; otherwise
/// nobody knows under which names they are asked for.
fn hosts(settings: &Settings, address: SocketAddr) -> Vec<String> {
    let Some(url) = &settings.public_url else {
        return Vec::new();
    };
    let host = url.host_str().unwrap_or_default();
    let public = url
        .port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let port = address.port();
    let loopback = ["127.0.0.1", "localhost", "[::1]"].map(|it| format!("{it}:{port}"));
    [vec![public], loopback.to_vec()].concat()
}
