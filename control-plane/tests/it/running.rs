//! A whole controller in this process, on free ports and a store in a temporary folder.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hedgerow_control_plane::app::App;
use hedgerow_control_plane::config::{ServeArgs, Settings};
use hedgerow_core::effect::Done;
use hedgerow_core::event::{Actor, KillScope, Order, Via};
use hedgerow_core::view::{AgentView, FleetSnapshot, RouteView};
use hedgerow_protocol::ids::{DependencyName, InstanceId, Revision, RouteKey};
use hedgerow_protocol::policy::{Intent, Policy, PolicyDraft};
use tempfile::TempDir;

/// The token of the service `shop`.
pub(crate) const SHOP_TOKEN: &str = "shop-token-0123456789abcdef";
/// The token of the service `search`.
pub(crate) const SEARCH_TOKEN: &str = "search-token-0123456789abcde";
/// Longest wait for anything that should happen soon: the machine may be busy.
pub(crate) const SOON: Duration = Duration::from_secs(20);

const FILE: &str = r#"
http = "127.0.0.1:0"
grpc = "127.0.0.1:0"
store = "hedgerow.db"

[[agent_token]]
service = "shop"
token = "shop-token-0123456789abcdef"

[[agent_token]]
service = "search"
token = "search-token-0123456789abcde"
"#;

pub(crate) struct Running {
    pub(crate) app: App,
    pub(crate) folder: Arc<TempDir>,
}

/// Settings on a store in `folder`, with `more` in the file.
pub(crate) fn settings(folder: &Path, more: &str) -> Settings {
    let config = folder.join("hedgerow.toml");
    std::fs::write(&config, format!("{FILE}\n{more}")).unwrap();
    Settings::resolve(ServeArgs {
        config: Some(config),
        ..ServeArgs::default()
    })
    .unwrap()
}

impl Running {
    pub(crate) async fn start() -> Self {
        Self::start_with("", |_| {}).await
    }

    pub(crate) async fn start_with(more: &str, change: impl FnOnce(&mut Settings)) -> Self {
        let folder = Arc::new(TempDir::new().unwrap());
        let mut settings = settings(folder.path(), more);
        change(&mut settings);
        Self {
            app: App::start(settings).await.unwrap(),
            folder,
        }
    }

    /// Another controller on the same store, after this one has left.
    pub(crate) async fn restarted(self) -> Self {
        let Self { app, folder } = self;
        app.stop().await;
        Self {
            app: App::start(settings(folder.path(), "")).await.unwrap(),
            folder,
        }
    }

    pub(crate) fn grpc(&self) -> String {
        format!("http://{}", self.app.grpc_address())
    }

    pub(crate) fn snapshot(&self) -> Arc<FleetSnapshot> {
        self.app.engine().snapshot()
    }

    pub(crate) fn agent(&self, instance: InstanceId) -> Option<AgentView> {
        self.snapshot()
            .agents
            .iter()
            .rev()
            .find(|it| it.instance == instance)
            .cloned()
    }

    pub(crate) fn route(&self, route: &RouteKey) -> Option<Arc<RouteView>> {
        self.snapshot().routes.get(route).cloned()
    }

    pub(crate) async fn order(&self, order: Order) -> Done {
        let actor = Actor {
            name: "ada".into(),
            via: Via::Api,
        };
        self.app
            .engine()
            .order(actor, "a test".into(), order)
            .await
            .unwrap()
    }

    /// Puts a policy in force; returns its revision.
    pub(crate) async fn set_policy(&self, policy: Policy) -> Revision {
        let order = Order::SetPolicy {
            policy: Box::new(policy),
            expected: None,
            rollout: None,
        };
        match self.order(order).await {
            Done::Policy { revision, .. } => revision,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn kill_everything(&self, engaged: bool) {
        self.order(Order::Kill {
            scope: KillScope::Everything,
            engaged,
        })
        .await;
    }

    /// Waits until something holds.
    pub(crate) async fn until<T>(
        &self,
        what: &str,
        mut check: impl FnMut(&Self) -> Option<T>,
    ) -> T {
        let asked = tokio::time::Instant::now();
        loop {
            if let Some(value) = check(self) {
                return value;
            }
            assert!(asked.elapsed() < SOON, "in vain: {what}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

pub(crate) fn route() -> RouteKey {
    RouteKey::new("catalog", "get").unwrap()
}

/// A policy for `catalog` that differs by its budget.
pub(crate) fn hedging(budget: f64) -> Policy {
    let draft = PolicyDraft {
        intent: Intent::Hedge,
        budget,
        ..Policy::observing(DependencyName::new("catalog").unwrap().into()).into()
    };
    Policy::try_from(draft).unwrap()
}
