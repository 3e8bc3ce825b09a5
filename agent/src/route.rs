//! A route: one operation of one dependency, as a service calls it.

mod builder;
mod estimate;
mod judging;
mod keeping;
mod no_effect;
mod state;

use std::future::Future;
use std::sync::Arc;

use hedgerow_protocol::ids::{ReplicaName, RouteKey};
use hedgerow_protocol::latency::Histogram;
use hedgerow_protocol::report::{Effective, LinkState, Totals};

pub use self::builder::RouteBuilder;
pub use self::no_effect::NoEffect;
pub(crate) use self::state::{Limits, RouteState, Tasks};
use crate::agent::Keeper;
use crate::attempt::Attempt;
use crate::eligibility::{Call, Verdict};
use crate::error::CallError;
use crate::naming::NamedReplica;
use crate::race;

/// One operation of one dependency. Cheap to clone; clones are the same route. It keeps its agent
/// alive.
#[derive(Debug, Clone)]
pub struct Route {
    pub(crate) state: Arc<RouteState>,
    pub(crate) agent: Arc<Keeper>,
}

impl Route {
    /// Runs a call: `attempt` is asked for the primary and, where the primary is slow and a hedge is
    /// allowed, once more for the hedge. The first good answer is the call's; the other attempt is
    /// dropped. An error counts as a failure that another attempt could mend; where that is not so,
    /// use [`call_with`](Self::call_with).
    ///
    /// Dropping the returned future gives the call up. The attempts' futures are `'static`, because
    /// one hedged call in ten lets its loser finish in a task of its own. Needs a tokio runtime with
    /// time.
    ///
    /// # Errors
    /// [`CallError::Failed`] with the primary's own error, also where a hedge failed in another way;
    /// [`CallError::DeadlineExceeded`] where nobody answered in time and the primary did not fail.
    pub async fn call<T, E, F, Fut>(&self, call: Call, attempt: F) -> Result<T, CallError<E>>
    where
        T: 'static,
        E: 'static,
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        race::run(&self.state, call, Verdict::of_result::<T, E>, attempt).await
    }

    /// The same, `classify` saying what each result means.
    ///
    /// ```
    /// use hedgerow_agent::{Agent, Attempt, Call, CallError, Verdict};
    ///
    /// # #[derive(Debug, PartialEq)]
    /// enum Failure {
    ///     NotFound,
    ///     Busy,
    ///     Broken,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), hedgerow_agent::ConfigError> {
    /// let agent = Agent::builder().service("checkout").connect().await?;
    /// let route = agent.route("catalog", "get").build()?;
    /// let classify = |result: &Result<u32, Failure>| match result {
    ///     Ok(_) => Verdict::Good,
    ///     Err(Failure::NotFound) => Verdict::NegativeAnswer, // an answer, not an error
    ///     Err(Failure::Busy) => Verdict::PushBack,           // more requests would make it worse
    ///     Err(Failure::Broken) => Verdict::Retryable,        // a hedge under way may still do
    /// };
    /// let attempt = |_: Attempt| async { Err(Failure::NotFound) };
    /// let answer = route.call_with(Call::idempotent(), classify, attempt).await;
    /// assert_eq!(answer, Err(CallError::Failed(Failure::NotFound)));
    /// assert_eq!(route.snapshot().totals.failed, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn call_with<T, E, F, Fut, C>(
        &self,
        call: Call,
        classify: C,
        attempt: F,
    ) -> Result<T, CallError<E>>
    where
        T: 'static,
        E: 'static,
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        C: Fn(&Result<T, E>) -> Verdict + Clone + Send + 'static,
    {
        race::run(&self.state, call, classify, attempt).await
    }

    /// Its names.
    pub fn key(&self) -> &RouteKey {
        &self.state.key
    }

    /// What it does and has counted, for a debug page.
    pub fn snapshot(&self) -> RouteSnapshot {
        let link = self.agent.shared.link_state();
        let [treated, holdout] = self.state.lifetime();
        let (named, no_effect) = self.state.findings();
        RouteSnapshot {
            key: self.state.key.clone(),
            totals: self.state.recorder.totals(),
            effective: self.state.effective(),
            attempts_in_flight: self.state.attempts_alive(),
            link,
            treated,
            holdout,
            named,
            probation: self.state.pool.probation(),
            no_effect,
        }
    }
}

/// A route at one moment: see [`Route::snapshot`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RouteSnapshot {
    /// Its names.
    pub key: RouteKey,
    /// What it has counted since the agent began.
    pub totals: Totals,
    /// What it does now.
    pub effective: Effective,
    /// Attempts alive now.
    pub attempts_in_flight: u64,
    /// How the agent stands towards its controller.
    pub link: LinkState,
    /// What callers of calls that may be hedged have waited since the agent began.
    pub treated: Histogram,
    /// The same for the holdout.
    pub holdout: Histogram,
    /// Replicas that are what is slow or failing by this agent's own figures, and those on
    /// probation for it. Left out of its threshold and its errors.
    pub named: Vec<NamedReplica>,
    /// Replicas that get a tenth of their share of primaries and no hedges: by the controller's
    /// word, or, without one, by the agent's own figures.
    pub probation: Vec<ReplicaName>,
    /// Why hedging is on and can yet do nothing, where that is so.
    pub no_effect: Option<NoEffect>,
}
