//! Puts the process together, and owns the order of starting and of leaving.
//!
//! Starting: whatever can be wrong with files, addresses and the store is found before the first
//! agent is answered. Leaving, within [`LEAVES_WITHIN`]: agents are told when to come back and pages'
//! streams end; then what is under way is answered; then notices rest; then the core's last writes
//! are made durable; then the store is closed.

mod error;
mod http;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use hedgerow_core::event::{Actor, Order, Settings as CoreSettings, Via};
use hedgerow_protocol::policy::Policy;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::agents::{Identities, Server, ServerError};
use crate::alerts;
use crate::auth::{Auth, SingleSignOn};
use crate::clock::Clock;
use crate::config::Settings;
use crate::engine::{Engine, Parts};
use crate::listen::{Bound, HttpLimits, PemPair, serve_http};
use crate::store::{Claim, Store};
use crate::telemetry::Metrics;

pub use error::AppError;

/// How long leaving takes at most (P20): the steps below, and a second for the last traces.
pub const LEAVES_WITHIN: Duration = Duration::from_secs(10);
/// For agents and pages.
const DRAIN_WITHIN: Duration = Duration::from_secs(4);
/// For notices under way.
const NOTICES_WITHIN: Duration = Duration::from_secs(2);
/// For the core's last writes.
const WRITES_WITHIN: Duration = Duration::from_secs(2);
/// For closing the store.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);
/// How often old history is let go of.
const PRUNE_EVERY: Duration = Duration::from_mins(1);

/// A running controller.
#[derive(Debug)]
pub struct App {
    http: SocketAddr,
    grpc: SocketAddr,
    login: Option<FirstLogin>,
    engine: Engine,
    store: Store,
    leaving: CancellationToken,
    stop: CancellationToken,
    serving: Vec<JoinHandle<Result<(), ServerError>>>,
    resting: Vec<JoinHandle<()>>,
    core: JoinHandle<()>,
    /// Whether the engine has ended already: its handle must not be waited for again.
    core_ended: bool,
    _claim: Claim,
}

/// The way in for the administrator that was made on the first start.
#[derive(Debug)]
pub struct FirstLogin {
    /// Their name.
    pub name: String,
    /// A link that works once.
    pub link: SecretString,
}

impl App {
    /// Starts everything.
    pub async fn start(settings: Settings) -> Result<Self, AppError> {
        let http_tls = settings.http.tls.as_ref().map(PemPair::read).transpose()?;
        let grpc_tls = settings.grpc.tls.as_ref().map(PemPair::read).transpose()?;
        let receivers = receivers(&settings)?;
        let claim = Claim::take(&settings.store)?;
        let store = Store::open(&settings.store).await?;
        let http = Bound::new(settings.http.address, "dashboard and API").await?;
        let grpc = Bound::new(settings.grpc.address, "agents").await?;
        let (http_at, grpc_at) = (http.address(), grpc.address());

        let (leaving, stop) = <(CancellationToken, CancellationToken)>::default();
        let (metrics, wake) = (Metrics::new(), Arc::new(Notify::new()));
        let (engine, core) = Engine::start(Parts {
            settings: core_settings(&settings),
            store: store.clone(),
            receivers: receivers.iter().map(|it| it.name().to_owned()).collect(),
            wake: Arc::clone(&wake),
            metrics: metrics.clone(),
            clock: Clock::start(),
            leaving: leaving.clone(),
            stop: stop.clone(),
        })
        .await?;
        metrics.add_fleet(engine.clone());
        expect(&metrics, &receivers);
        seed(&engine, &store, &settings.policies).await?;

        let auth = auth(&settings, &store, http_at)?;
        let identities = Identities::new(settings.agent_tokens.clone(), store.clone());
        let login = first_login(&auth, &settings, http_at).await?;
        let delivering = delivering(&settings, http_at, &metrics);
        let directory = alerts::Receivers::new(&receivers, delivering.clone());
        let mut resting = rest(
            delivering,
            &store,
            receivers,
            wake,
            engine.clock(),
            &leaving,
        );
        resting.push(keep_fresh(&identities, &auth, &leaving));
        let at = http::At::new(http_at, grpc_at);
        let router = http::router(&settings, at, &engine, &store, auth, directory, &metrics);
        let limits = HttpLimits::default();
        let pages = serve_http(http, http_tls, router, limits, leaving.clone());
        let agents = Server {
            identities,
            engine: engine.clone(),
            limits: settings.agents,
            metrics,
            stop: leaving.clone(),
        };
        let serving = vec![
            tokio::spawn(pages.map(Ok)),
            tokio::spawn(agents.serve(grpc, grpc_tls)),
        ];
        announce(&claim, &settings, (http_at, grpc_at), &engine);
        Ok(Self {
            http: http_at,
            grpc: grpc_at,
            login,
            engine,
            store,
            leaving,
            stop,
            serving,
            resting,
            core,
            core_ended: false,
            _claim: claim,
        })
    }

    /// Where dashboard and API listen.
    pub fn http_address(&self) -> SocketAddr {
        self.http
    }

    /// Where agents are served.
    pub fn grpc_address(&self) -> SocketAddr {
        self.grpc
    }

    /// The core.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The first administrator's way in, where this start made one. Given once.
    pub fn take_first_login(&mut self) -> Option<FirstLogin> {
        self.login.take()
    }

    /// Waits until a part ends that should not.
    pub async fn broken(&mut self) -> AppError {
        let (what, ended) = tokio::select! {
            ended = first_ended(&mut self.serving) => match ended {
                Ok(Err(error)) => return error.into(),
                Ok(Ok(())) => ("a listener", Ok(())),
                Err(error) => ("a listener", Err(error)),
            },
            ended = first_ended(&mut self.resting) => ("notices, pruning or credentials", ended),
            ended = &mut self.core => {
                self.core_ended = true;
                ("the engine", ended)
            }
        };
        let how = ended
            .err()
            .map_or_else(|| "by itself".into(), |it| it.to_string());
        AppError::Ended {
            problem: format!("{what} ended: {how}"),
        }
    }

    /// Leaves in order.
    pub async fn stop(self) {
        self.leaving.cancel();
        ended_within(DRAIN_WITHIN, "agents and pages", self.serving).await;
        ended_within(NOTICES_WITHIN, "notices", self.resting).await;
        self.stop.cancel();
        if !self.core_ended {
            ended_within(WRITES_WITHIN, "the last writes", vec![self.core]).await;
        }
        if tokio::time::timeout(CLOSE_WITHIN, self.store.close())
            .await
            .is_err()
        {
            tracing::warn!("the store could not be closed in time; it is crash-safe");
        }
        tracing::info!("left");
    }
}

/// Waits for the first of some tasks, and takes it out: nobody may wait for it again.
async fn first_ended<T>(tasks: &mut Vec<JoinHandle<T>>) -> Result<T, tokio::task::JoinError> {
    if tasks.is_empty() {
        std::future::pending::<()>().await;
    }
    let (ended, which, _) = futures::future::select_all(tasks.iter_mut()).await;
    drop(tasks.swap_remove(which));
    ended
}

/// Waits for tasks, each already told to end; those that do not are ended.
async fn ended_within<T>(limit: Duration, what: &str, tasks: Vec<JoinHandle<T>>) {
    let handles: Vec<_> = tasks.iter().map(JoinHandle::abort_handle).collect();
    if tokio::time::timeout(limit, futures::future::join_all(tasks))
        .await
        .is_err()
    {
        tracing::warn!(
            what,
            limit_s = limit.as_secs(),
            "did not end in time and was cut off"
        );
        handles.iter().for_each(tokio::task::AbortHandle::abort);
    }
}

fn core_settings(settings: &Settings) -> CoreSettings {
    CoreSettings {
        controller: settings.name.clone(),
        ..CoreSettings::default()
    }
}

fn receivers(settings: &Settings) -> Result<Vec<alerts::Receiver>, AppError> {
    settings
        .receivers
        .iter()
        .map(|configured| {
            alerts::Receiver::try_from(configured).map_err(|problem| AppError::Receiver {
                name: configured.name.clone(),
                field: problem.field(),
                problem,
            })
        })
        .collect()
}

/// What is counted for each receiver is there from the start, at 0.
fn expect(metrics: &Metrics, receivers: &[alerts::Receiver]) {
    for receiver in receivers {
        metrics.expect_receiver(receiver.name());
    }
}

/// Policies of the settings, for what never had one: what people decided later stays.
async fn seed(engine: &Engine, store: &Store, policies: &[Policy]) -> Result<(), AppError> {
    for policy in policies {
        // Also one that was taken away was decided by people.
        if store.had_policy(policy.scope()).await? {
            continue;
        }
        let actor = Actor {
            name: "settings".into(),
            via: Via::Seed,
        };
        let order = Order::SetPolicy {
            policy: Box::new(policy.clone()),
            expected: None,
            rollout: None,
        };
        engine
            .order(
                actor,
                "[[policy]] in the settings, on the first start".into(),
                order,
            )
            .await?;
    }
    Ok(())
}

/// Who somebody is, with single sign-on where it is set up.
fn auth(settings: &Settings, store: &Store, http: SocketAddr) -> Result<Auth, AppError> {
    let auth = Auth::new(store.clone());
    let Some(oidc) = &settings.oidc else {
        return Ok(auth);
    };
    let base = settings.public_base(http);
    let provider = SingleSignOn::new(oidc.clone(), &base).map_err(AppError::SingleSignOn)?;
    Ok(auth.with_single_sign_on(provider))
}

async fn first_login(
    auth: &Auth,
    settings: &Settings,
    http: SocketAddr,
) -> Result<Option<FirstLogin>, AppError> {
    let base = settings.public_base(http);
    Ok(auth.bootstrap().await?.map(|first| FirstLogin {
        name: first.name,
        link: format!("{base}login/link?token={}", first.token.expose_secret()).into(),
    }))
}

fn delivering(settings: &Settings, http: SocketAddr, metrics: &Metrics) -> alerts::Delivering {
    alerts::Delivering {
        dashboard: settings.link_base(http),
        metrics: metrics.clone(),
        ..alerts::Delivering::default()
    }
}

/// What is done beside serving: notices, and letting go of what is old.
fn rest(
    delivering: alerts::Delivering,
    store: &Store,
    receivers: Vec<alerts::Receiver>,
    wake: Arc<Notify>,
    clock: Clock,
    leaving: &CancellationToken,
) -> Vec<JoinHandle<()>> {
    let notices = alerts::deliver(delivering, store.clone(), receivers, wake, leaving.clone());
    vec![
        tokio::spawn(notices),
        tokio::spawn(prune(store.clone(), clock, leaving.clone())),
    ]
}

/// Keeps agents' credentials as the store has them.
fn keep_fresh(identities: &Identities, auth: &Auth, leaving: &CancellationToken) -> JoinHandle<()> {
    let (identities, changed) = (identities.clone(), auth.agent_tokens_changed());
    tokio::spawn(identities.keep_fresh(changed, leaving.clone()))
}

/// Lets go of old history now and then.
async fn prune(store: Store, clock: Clock, leaving: CancellationToken) {
    loop {
        match store.prune(clock.now()).await {
            Ok(0) => {}
            Ok(rows) => tracing::debug!(rows, "old history let go of"),
            Err(error) => tracing::error!(error = %error.in_full(), "history could not be pruned"),
        }
        tokio::select! {
            () = leaving.cancelled() => return,
            () = tokio::time::sleep(PRUNE_EVERY) => {}
        }
    }
}

/// Commands on this machine find the dashboard by the store.
fn tell(claim: &Claim, settings: &Settings, mut http: SocketAddr) {
    if http.ip().is_unspecified() {
        http.set_ip(std::net::IpAddr::from([127, 0, 0, 1]));
    }
    if let Err(error) = claim.tell(&settings.public_base(http)) {
        tracing::warn!(%error, "where the dashboard is was not written beside the store: `hedgerow login-link` needs --dashboard-url");
    }
}

/// It serves: says so in the log, and beside the store.
fn announce(
    claim: &Claim,
    settings: &Settings,
    (http, grpc): (SocketAddr, SocketAddr),
    engine: &Engine,
) {
    tell(claim, settings, http);
    let snapshot = engine.snapshot();
    tracing::info!(
        http = %settings.public_base(http),
        grpc = %grpc,
        grpc.tls = settings.grpc.tls.is_some(),
        store = %settings.store.display(),
        epoch = snapshot.epoch.0,
        policies = snapshot.policies.len(),
        "serving"
    );
    if settings.agent_tokens.is_empty() {
        tracing::info!("agents need a token: `hedgerow agent-token new --service NAME` makes one");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn p20_what_ended_by_itself_is_not_waited_for_again_on_leaving() {
        let mut tasks = vec![
            tokio::spawn(std::future::pending()),
            tokio::spawn(std::future::ready(7)),
        ];
        assert_eq!(first_ended(&mut tasks).await.ok(), Some(7));
        ended_within(Duration::from_millis(10), "the other one", tasks).await;
    }
}
