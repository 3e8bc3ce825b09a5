//! A controller that stands: real store, real core, pages and API on a real socket; no agents.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hedgerow_control_plane::alerts::Receivers;
use hedgerow_control_plane::api::{self, ApiState};
use hedgerow_control_plane::auth::{self, Auth};
use hedgerow_control_plane::clock::Clock;
use hedgerow_control_plane::engine::{Engine, Parts};
use hedgerow_control_plane::store::Store;
use hedgerow_control_plane::telemetry::Metrics;
use hedgerow_control_plane::ui::Ui;
use hedgerow_dashboard::backend::Role;
use reqwest::{Method, RequestBuilder};
use secrecy::ExposeSecret as _;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) struct Standing {
    pub(crate) folder: TempDir,
    pub(crate) store: Store,
    pub(crate) engine: Engine,
    pub(crate) auth: Auth,
    pub(crate) ui: Ui,
    pub(crate) address: SocketAddr,
    client: reqwest::Client,
    stop: CancellationToken,
    running: JoinHandle<()>,
}

impl Standing {
    pub(crate) async fn start() -> Self {
        Self::start_in(TempDir::new().unwrap()).await
    }

    /// On a store that may have been used before.
    pub(crate) async fn start_in(folder: TempDir) -> Self {
        Self::start_with(folder, Receivers::default()).await
    }

    /// With these receivers of alerts.
    pub(crate) async fn start_with(folder: TempDir, receivers: Receivers) -> Self {
        let store = Store::open(&folder.path().join("hedgerow.db"))
            .await
            .unwrap();
        let stop = CancellationToken::new();
        let parts = Parts {
            settings: hedgerow_core::event::Settings::default(),
            store: store.clone(),
            receivers: vec!["pager".into()],
            wake: Arc::new(Notify::new()),
            metrics: Metrics::new(),
            clock: Clock::start(),
            leaving: stop.clone(),
            stop: stop.clone(),
        };
        let (engine, running) = Engine::start(parts).await.unwrap();
        let auth = Auth::new(store.clone());
        let ui = Ui::new(engine.clone(), store.clone(), auth.clone(), Metrics::new())
            .with_receivers(receivers.clone());
        let state = ApiState {
            engine: engine.clone(),
            store: store.clone(),
            auth: auth.clone(),
            receivers: receivers.clone(),
            metrics: Metrics::new(),
        };
        let app = hedgerow_dashboard::router(ui.clone(), hedgerow_dashboard::Settings::default())
            .merge(api::router(state));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let ended = stop.clone().cancelled_owned();
        tokio::spawn(async move {
            axum::serve(
                listener,
                app.into_make_service_with_connect_info::<SocketAddr>(),
            )
            .with_graceful_shutdown(ended)
            .await
            .unwrap();
        });
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        Self {
            folder,
            store,
            engine,
            auth,
            ui,
            address,
            client,
            stop,
            running,
        }
    }

    /// Ends it; gives back the folder with its store.
    pub(crate) async fn stop(self) -> TempDir {
        self.stop.cancel();
        self.running.await.unwrap();
        self.store.close().await;
        self.folder
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
        self.client
            .request(method, format!("http://{}{path}", self.address))
    }

    /// A new API token of this role.
    pub(crate) async fn token(&self, name: &str, role: Role) -> String {
        let token = auth::new_api_token(&self.store, name, role, None)
            .await
            .unwrap();
        token.expose_secret().to_owned()
    }

    /// A new operator's session cookie.
    pub(crate) async fn session(&self, name: &str, role: Role) -> String {
        auth::add_operator(&self.store, name, role, None)
            .await
            .unwrap();
        let link = auth::new_login_link(&self.store, name, Duration::from_mins(1))
            .await
            .unwrap();
        self.auth.sign_in_by_link(&link, None).await.unwrap().cookie
    }

    /// Rows of a table, by a count of the test's own.
    pub(crate) async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql)
            .fetch_one(self.store.pool())
            .await
            .unwrap()
    }
}

/// Waits until `holds`, 20 s at most: far more than anything here takes, also on a busy machine.
pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..2000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not within 20 s: {what}");
}
