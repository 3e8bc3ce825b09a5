//! The agent: what a service builds once and takes its routes from.

mod shared;
mod snapshot;

use std::sync::Arc;
use std::time::Duration;

use hedgerow_protocol::ids::InstanceId;
use hedgerow_protocol::report::LinkState;
use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

pub use crate::config::AgentBuilder;
use crate::config::Settings;
use crate::error::ConfigError;
use crate::host::Host;
use crate::link::{self, Dialer, LinkHandle};
use crate::route::RouteBuilder;
use crate::route::early::look_early;
use crate::standalone;
use crate::telemetry::{self, Registered};

pub(crate) use self::shared::Shared;
pub use self::snapshot::AgentSnapshot;

/// How long a shutdown waits for losers that are still being watched; they are told to stop, so
/// only one that blocks its thread takes longer.
const SHUTDOWN_MAX: Duration = Duration::from_secs(5);
/// How often an agent without a controller looks after itself.
const TICK: Duration = Duration::from_secs(1);

/// The agent of one service. Cheap to clone; clones are the same agent. It works until the last
/// clone and the last [`Route`](crate::Route) are gone, or until [`shutdown`](Self::shutdown).
#[derive(Debug, Clone)]
pub struct Agent {
    pub(crate) keeper: Arc<Keeper>,
}

/// Lives as long as anybody uses the agent; its end ends the agent's tasks.
pub(crate) struct Keeper {
    pub(crate) shared: Arc<Shared>,
    link: Mutex<Option<Arc<LinkHandle>>>,
    _metrics: Option<Registered>,
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper")
            .field("instance", &self.shared.instance)
            .finish_non_exhaustive()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // The link's handle says goodbye when it is dropped.
        self.shared.tasks.stopping.cancel();
    }
}

impl Agent {
    /// Settings of an agent, to be completed by
    /// [`connect`](AgentBuilder::connect).
    pub fn builder() -> AgentBuilder {
        AgentBuilder::default()
    }

    /// Checks the settings, registers the metrics and starts the link. A controller that is away is
    /// no error, and never waited for.
    pub(crate) fn start(settings: Settings) -> Result<Self, ConfigError> {
        let shared = Arc::new(Shared::new(
            settings.zone,
            settings.build,
            settings.link.is_some(),
            settings
                .policy_file
                .as_ref()
                .map(|opened| opened.file.clone()),
        ));
        // Before anything is registered: a host that mends its settings can use its registry again.
        let dialer = settings.link.as_ref().map(Dialer::new).transpose()?;
        let metrics = settings
            .registry
            .as_ref()
            .map(|registry| telemetry::register(registry, &shared))
            .transpose()?;
        #[cfg(feature = "opentelemetry")]
        if let Some(meter) = &settings.meter {
            telemetry::observe(meter, &shared);
        }
        tokio::spawn(end_with_runtime(Unattended(shared.clone())));
        tokio::spawn(look_early(shared.clone()));
        let link = if let Some(dialer) = dialer {
            let host: Arc<dyn Host> = shared.clone();
            Some(Arc::new(link::spawn(host, dialer)))
        } else {
            tokio::spawn(look_after(shared.clone()));
            if let Some(opened) = settings.policy_file {
                tokio::spawn(standalone::watch(shared.clone(), opened));
            }
            None
        };
        tracing::info!(
            service = settings.service.as_ref().map(tracing::field::display),
            agent.instance = %shared.instance,
            controller = settings.controller.as_deref().unwrap_or("none"),
            "hedging agent started"
        );
        Ok(Self {
            keeper: Arc::new(Keeper {
                shared,
                link: Mutex::new(link),
                _metrics: metrics,
            }),
        })
    }

    /// Begins a route for one operation of a dependency; both names are 1 to 128 ASCII letters, digits
    /// and `. _ - / : @`, checked by [`build`](RouteBuilder::build).
    ///
    /// The first 64 routes are reported and directed one by one. Further ones work, but observe
    /// only, and are counted together under the dependency `__other__`, a name kept for that: a name
    /// made of data (a user, a path) is a mistake to be found, not a reason to fail calls.
    pub fn route(&self, dependency: &str, operation: &str) -> RouteBuilder {
        RouteBuilder::new(self.keeper.clone(), dependency, operation)
    }

    /// Which agent this is, on the controller's pages and in OpenTelemetry metrics: another one for
    /// each agent built.
    pub fn instance(&self) -> InstanceId {
        self.keeper.shared.instance
    }

    /// How it stands towards its controller. None where it was built without one.
    pub fn link_state(&self) -> Option<LinkState> {
        self.keeper.shared.link_state()
    }

    /// The agent and all its routes at this moment, for a debug page. Routes beyond the first 64 are
    /// only counted.
    pub fn snapshot(&self) -> AgentSnapshot {
        AgentSnapshot::of(&self.keeper.shared)
    }

    /// Says goodbye to the controller, with a last report, and ends the losers being watched. Waits 2 s
    /// at most for the controller and 5 s for losers, and far less where both are well. Twice does no
    /// harm.
    ///
    /// Calls go on, and are counted, but nothing is hedged any more, from the moment this is called:
    /// thresholds, leases and the agent's own switch-off are renewed by nobody from then on, and
    /// hedging by figures that only get older is worse than none. Hedges under way go on, nobody
    /// stays on probation, and what was off stays off. For a new start build a new agent.
    ///
    /// Not needed for the service's own sake: an agent that is dropped ends by itself. It spares
    /// operators an agent that looks lost.
    pub async fn shutdown(&self) {
        let tasks = &self.keeper.shared.tasks;
        tasks.stopping.cancel();
        self.keeper.shared.close(Instant::now());
        tasks.tracker.close();
        let link = self.keeper.link.lock().clone();
        if let Some(link) = link {
            link.shutdown().await;
        }
        // What is left then ends with its deadline.
        let _ = timeout(SHUTDOWN_MAX, tasks.tracker.wait()).await;
    }
}

/// Dropped, nobody looks after the agent any more: what nobody renews is not hedged by.
struct Unattended(Arc<Shared>);

impl Drop for Unattended {
    fn drop(&mut self) {
        self.0.close(Instant::now());
    }
}

/// The runtime that the agent was built on may end before it: its tasks are dropped then, this one
/// among them, and calls may go on elsewhere.
async fn end_with_runtime(unattended: Unattended) {
    unattended.0.tasks.stopping.cancelled().await;
}

/// An agent without a controller has nobody else to call its tick.
async fn look_after(shared: Arc<Shared>) {
    let stopping = shared.tasks.stopping.clone();
    let mut seconds = interval(TICK);
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stopping.cancelled() => return,
            _ = seconds.tick() => shared.tick(Instant::now()),
        }
    }
}
