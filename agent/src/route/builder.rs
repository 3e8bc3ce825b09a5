//! Settings of a route.

use std::sync::Arc;
use std::time::Duration;

use hedgerow_protocol::ids::{NameError, RouteKey};
use hedgerow_protocol::policy::Policy;

use super::{Limits, Route};
use crate::agent::Keeper;
use crate::error::ConfigError;
use crate::mode::RouteMode;
use crate::replicas::Replicas;

/// Range of a route's default deadline.
const DEADLINE_RANGE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_hours(24));
/// Most permits. Beyond this the number is a mistake, not a limit.
const PERMITS_MAX: usize = 1_000_000;

/// Settings of a route: see [`Agent::route`](crate::Agent::route).
#[derive(Debug)]
#[must_use = "settings do nothing until `build`"]
#[non_exhaustive]
pub struct RouteBuilder {
    agent: Arc<Keeper>,
    dependency: String,
    operation: String,
    replicas: Option<Replicas>,
    deadline: Duration,
    max_in_flight: usize,
    max_hedges_in_flight: Option<usize>,
    standalone: Option<Policy>,
}

impl RouteBuilder {
    pub(crate) fn new(agent: Arc<Keeper>, dependency: &str, operation: &str) -> Self {
        Self {
            agent,
            dependency: dependency.to_owned(),
            operation: operation.to_owned(),
            replicas: None,
            deadline: Duration::from_secs(10),
            max_in_flight: 1024,
            max_hedges_in_flight: None,
            standalone: None,
        }
    }

    /// Where attempts can go: 1 to 256. Without it the route does not know where else to send a
    /// hedge, and sends none; nor with a single one.
    pub fn replicas(mut self, replicas: Replicas) -> Self {
        self.replicas = Some(replicas);
        self
    }

    /// How long a call may take in all, where the call says nothing else: 1 ms to a day, 10 s unless
    /// set.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Permits: attempts alive at once, 1 to 1,000,000, 1024 unless set. A call is never refused or
    /// kept waiting for one; a hedge that would be one too many is not sent. Set it to what the
    /// client's pool or the dependency's concurrency limit allows.
    pub fn max_in_flight(mut self, attempts: usize) -> Self {
        self.max_in_flight = attempts;
        self
    }

    /// Hedges alive at once, 1 to 1,000,000; a quarter of [`max_in_flight`](Self::max_in_flight), and
    /// at least one, unless set.
    pub fn max_hedges_in_flight(mut self, hedges: usize) -> Self {
        self.max_hedges_in_flight = Some(hedges);
        self
    }

    /// Hedges by the service's own policy, threshold and budget from the agent's own figures, bad
    /// replicas put on probation by them where the policy allows it. Only for an agent without a
    /// controller. A [`policy_file`](crate::AgentBuilder::policy_file) that names the dependency goes
    /// before it.
    ///
    /// ```
    /// use hedgerow_agent::{Agent, Intent, Policy, PolicyDraft, Replicas};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let policy = Policy::try_from(PolicyDraft {
    ///     intent: Intent::Hedge,
    ///     percentile: 0.95, // hedge what is slower than the p95
    ///     budget: 0.08,     // at most 8 hedges for 100 finished calls
    ///     ..Policy::observing("catalog".parse()?).into()
    /// })?;
    /// let agent = Agent::builder().service("checkout").connect().await?;
    /// let route = agent
    ///     .route("catalog", "get")
    ///     .replicas(Replicas::new([("10.0.0.1:80", None), ("10.0.0.2:80", None)])?)
    ///     .hedge_standalone(policy)
    ///     .build()?;
    /// assert_eq!(route.snapshot().effective.mode.as_str(), "on");
    /// # Ok(())
    /// # }
    /// ```
    pub fn hedge_standalone(mut self, policy: Policy) -> Self {
        self.standalone = Some(policy);
        self
    }

    /// Checks the settings and adds the route to the agent.
    ///
    /// # Errors
    /// [`ConfigError::Name`] for a name that is none, [`ConfigError::Range`] for a deadline or a number
    /// of permits outside its range, [`ConfigError::Conflict`] for a policy of the service's own
    /// beside a controller or for another dependency, [`ConfigError::DuplicateRoute`] where the agent
    /// has a route of this name: clone that one.
    pub fn build(self) -> Result<Route, ConfigError> {
        let key = self.key()?;
        if !(DEADLINE_RANGE.0..=DEADLINE_RANGE.1).contains(&self.deadline) {
            return Err(ConfigError::Range {
                field: "deadline",
                value: format!("{:?}", self.deadline),
                expected: "from 1 ms to 24 h",
            });
        }
        for (field, permits) in [
            ("max_in_flight", Some(self.max_in_flight)),
            ("max_hedges_in_flight", self.max_hedges_in_flight),
        ] {
            if permits.is_some_and(|permits| !(1..=PERMITS_MAX).contains(&permits)) {
                return Err(ConfigError::Range {
                    field,
                    value: permits.unwrap_or_default().to_string(),
                    expected: "from 1 to 1000000",
                });
            }
        }
        let mode = self.mode(&key)?;
        let limits = Limits {
            deadline: self.deadline,
            attempts_alive: self.max_in_flight as u64,
            hedges_alive: self
                .max_hedges_in_flight
                .unwrap_or((self.max_in_flight / 4).max(1)) as u64,
        };
        let shared = &self.agent.shared;
        let state = shared.add(&key, limits, self.replicas, mode)?;
        Ok(Route {
            state,
            agent: self.agent,
        })
    }

    fn key(&self) -> Result<RouteKey, ConfigError> {
        let refused = |error| ConfigError::Name {
            field: "route",
            value: format!("{} {}", self.dependency, self.operation),
            error,
        };
        let key = RouteKey::new(&self.dependency, &self.operation).map_err(refused)?;
        if key.dependency.is_other() {
            return Err(refused(NameError::Reserved));
        }
        Ok(key)
    }

    fn mode(&self, key: &RouteKey) -> Result<RouteMode, ConfigError> {
        let Some(policy) = &self.standalone else {
            return Ok(RouteMode::default());
        };
        let conflict = |conflict| ConfigError::Conflict {
            field: "hedge_standalone",
            conflict,
        };
        if self.agent.shared.has_controller {
            return Err(conflict(
                "the agent has a controller, whose policy it follows: set the policy there",
            ));
        }
        if !policy.scope().covers(key) {
            return Err(conflict(
                "the policy is for another dependency or operation than the route",
            ));
        }
        Ok(RouteMode::own(policy.clone()))
    }
}
