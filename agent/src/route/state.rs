//! What a route keeps: what its calls read and write without a lock, and, behind one that no call
//! ever takes, what is kept between seconds and reports.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hedgerow_protocol::directive::{Directive, Stamp};
use hedgerow_protocol::ids::{InstanceId, ReplicaName, RouteKey};
use hedgerow_protocol::latency::Histogram;
use hedgerow_protocol::policy::Policy;
use hedgerow_protocol::report::{Effective, RouteReport};
use hedgerow_protocol::session::Held;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::early::Missed;
use super::keeping::Keeping;
use super::news::tell;
use super::no_effect::NoEffect;
use crate::budget::TokenBucket;
use crate::gate::Gate;
use crate::mode::{DirectiveRefused, LinkClock, PolicyInForce, RouteMode};
use crate::naming::NamedReplica;
use crate::permit::Permits;
use crate::places::Places;
use crate::pool::{Pool, Replica};
use crate::replicas::Replicas;
use crate::stats::recorder::{Counter, Recorder};

/// What does not change in a route's life.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Default deadline of a call.
    pub(crate) deadline: Duration,
    /// Attempts alive at once; only hedges are refused for it.
    pub(crate) attempts_alive: u64,
    /// Hedges alive at once.
    pub(crate) hedges_alive: u64,
}

/// Where a route's calls may go, and the name for anywhere.
pub(crate) type Destinations = (Option<Replicas>, ReplicaName);

/// The agent's detached tasks, and the word to end them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks {
    pub(crate) tracker: TaskTracker,
    pub(crate) stopping: CancellationToken,
    /// A route's calls are enough for a threshold, and there is none.
    pub(crate) threshold_missed: Arc<Notify>,
}

/// See the [module](self).
pub(crate) struct RouteState {
    pub(crate) key: RouteKey,
    pub(crate) limits: Limits,
    /// Shared, as the recorder and what is kept are, with routes that are counted as one.
    pub(crate) gate: Arc<Gate>,
    pub(crate) missed: Arc<Missed>,
    pub(crate) bucket: TokenBucket,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) permits: Arc<Permits>,
    pub(crate) pool: Pool,
    pub(crate) watched: Places,
    pub(crate) tasks: Tasks,
    /// The agent's first moment.
    birth: Instant,
    keeping: Arc<Mutex<Keeping>>,
}

/// Its name and its permits: the rest is for a snapshot.
impl fmt::Debug for RouteState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteState")
            .field("key", &self.key)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl RouteState {
    pub(crate) fn new(
        key: RouteKey,
        limits: Limits,
        (replicas, anywhere): Destinations,
        mode: RouteMode,
        tasks: Tasks,
        (agent, birth): (InstanceId, Instant),
    ) -> Self {
        let permits = Arc::new(Permits::new());
        let state = Self {
            key,
            limits,
            gate: Arc::default(),
            missed: Arc::default(),
            bucket: TokenBucket::default(),
            recorder: Arc::new(Recorder::new()),
            pool: Pool::new(replicas, anywhere, permits.clone()),
            permits,
            watched: Places::new(),
            tasks,
            birth,
            keeping: Arc::new(Mutex::new(Keeping::new(mode, agent))),
        };
        state
            .keeping
            .lock()
            .put_in_force(&state, Duration::ZERO, &LinkClock::default());
        state
    }

    /// A route with limits and replicas of its own whose calls are counted as this one's.
    pub(crate) fn folded(&self, limits: Limits, (replicas, anywhere): Destinations) -> Self {
        let permits = self.permits.clone();
        Self {
            key: self.key.clone(),
            limits,
            gate: self.gate.clone(),
            missed: self.missed.clone(),
            // Nobody directs it: its budget is nothing, for ever.
            bucket: TokenBucket::default(),
            recorder: self.recorder.clone(),
            pool: Pool::new(replicas, anywhere, permits.clone()),
            permits,
            watched: Places::new(),
            tasks: self.tasks.clone(),
            birth: self.birth,
            keeping: self.keeping.clone(),
        }
    }

    /// What stands for the dependency where a route knows no replicas.
    pub(crate) fn anywhere(key: &RouteKey) -> ReplicaName {
        // Both kinds of name allow the same characters and lengths.
        ReplicaName::new(key.dependency.as_str()).expect("a dependency's name is a replica's name")
    }

    #[inline]
    pub(crate) fn since_birth(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.birth)
    }

    /// Attempts alive now, held permits among them.
    pub(crate) fn attempts_alive(&self) -> u64 {
        self.permits.slots.taken()
    }

    /// Where a primary goes that nobody pinned.
    #[inline]
    pub(crate) fn pick_primary(&self, recorded: bool) -> Arc<Replica> {
        let pick = self.pool.primary();
        if pick.skipped && recorded {
            self.recorder.count(Counter::ProbationSkipped);
        }
        pick.replica
    }

    /// An eligible call found no threshold.
    #[cold]
    pub(crate) fn miss_threshold(&self) {
        if self.missed.one_more() {
            self.tasks.threshold_missed.notify_one();
        }
    }

    pub(crate) fn apply(
        &self,
        directive: Directive,
        now: Duration,
        link: &LinkClock,
    ) -> Result<(), DirectiveRefused> {
        let start_credit = directive.start_credit;
        let mut keeping = self.keeping.lock();
        keeping.mode.apply(directive)?;
        keeping.put_in_force(self, now, link);
        keeping.lend(self, start_credit);
        Ok(())
    }

    pub(crate) fn welcomed(&self, lease: Duration) {
        self.keeping.lock().mode.welcomed(lease);
    }

    /// A set was taken. `named`: None where the controller let go of everything.
    pub(crate) fn delivered(&self, named: Option<bool>, now: Duration, link: &LinkClock) {
        let mut keeping = self.keeping.lock();
        if let Some(named) = named {
            keeping.mode.delivered(named, now);
        } else {
            keeping.mode.let_go();
        }
        keeping.put_in_force(self, now, link);
    }

    /// Leases may have been renewed or run out.
    pub(crate) fn renew(&self, now: Duration, link: &LinkClock) {
        self.keeping.lock().put_in_force(self, now, link);
    }

    /// A second is over.
    pub(crate) fn tick(&self, now: Duration, link: &LinkClock) {
        let news = self.keeping.lock().tick(self, now, link);
        for news in &news {
            tell(self, news);
        }
    }

    /// Looks for a first threshold in the second under way. True where nothing is left to look for.
    pub(crate) fn look_early(&self, now: Duration, link: &LinkClock) -> bool {
        self.keeping.lock().look_early(self, now, link)
    }

    pub(crate) fn collect(&self, now: Duration) -> RouteReport {
        self.keeping.lock().collect(self, now)
    }

    pub(crate) fn acknowledged(&self) {
        self.keeping.lock().acknowledged();
    }

    pub(crate) fn effective(&self) -> Effective {
        self.keeping.lock().effective(self)
    }

    /// Replicas named now, and why nothing can be hedged where that is so.
    pub(crate) fn findings(&self) -> (Vec<NamedReplica>, Option<NoEffect>) {
        let keeping = self.keeping.lock();
        (keeping.named(), keeping.no_effect(self))
    }

    /// What it goes by.
    pub(crate) fn policy(&self) -> PolicyInForce {
        self.keeping.lock().mode.policy()
    }

    /// The policy file says this of the dependency now.
    pub(crate) fn set_file_policy(&self, policy: Option<&Policy>, now: Duration) {
        let mut keeping = self.keeping.lock();
        keeping.mode.set_file_policy(policy);
        keeping.put_in_force(self, now, &LinkClock::default());
    }

    /// The agent has shut down: nothing is renewed any more, so nothing is hedged.
    pub(crate) fn close(&self, now: Duration, link: &LinkClock) {
        let mut keeping = self.keeping.lock();
        keeping.mode.close();
        keeping.put_in_force(self, now, link);
    }

    pub(crate) fn stamp(&self) -> Option<Stamp> {
        self.keeping
            .lock()
            .mode
            .directive()
            .map(|directive| directive.stamp)
    }

    pub(crate) fn held(&self) -> Option<Held> {
        let keeping = self.keeping.lock();
        let directive = keeping.mode.directive()?;
        Some(Held {
            route: self.key.clone(),
            stamp: directive.stamp,
            mode: directive.mode,
            tick: directive.live.tick,
            threshold: directive.live.threshold,
            budget: directive.live.budget,
        })
    }

    /// What callers waited since the agent began: treated, held out.
    pub(crate) fn lifetime(&self) -> [Histogram; 2] {
        self.keeping.lock().lifetime(&self.recorder)
    }
}
