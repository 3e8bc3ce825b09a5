//! A route: one operation of one dependency, as a service calls it.

mod builder;
pub(crate) mod early;
pub(crate) mod estimate;
mod judging;
mod keeping;
mod news;
mod no_effect;
mod shown;
mod state;
mod turns;

use std::future::Future;
use std::sync::Arc;

use hedgerow_protocol::ids::{ReplicaName, RouteKey};
use hedgerow_protocol::latency::Histogram;
use hedgerow_protocol::report::{Effective, LinkState, Totals};
use serde::Serialize;

pub use self::builder::RouteBuilder;
pub use self::no_effect::NoEffect;
pub use self::shown::FurtherRefused;
pub(crate) use self::shown::{NO_CONTROLLER, link};
pub(crate) use self::state::{Limits, RouteState, Tasks};
#[cfg(feature = "sim")]
pub(crate) use self::turns::{Turn, Turns};
use crate::agent::Keeper;
use crate::attempt::Attempt;
use crate::classes::{CostClasses, cost_classes};
use crate::eligibility::{Call, Verdict};
use crate::error::CallError;
use crate::mode::PolicyInForce;
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
    /// allowed, once more for the hedge; a third time at most, where the policy allows it. The first
    /// good answer is the call's; the other attempts are dropped. An error counts as a failure that another attempt could mend; where that is not so,
    /// use [`call_with`](Self::call_with).
    ///
    /// Dropping the returned future gives the call up. The attempts' futures are `'static`, because
    /// one hedged call in ten lets its loser finish in a task of its own.
    ///
    /// ```
    /// use hedgerow_agent::{Agent, Attempt, Call, Replicas};
    ///
    /// # async fn get(replica: &str, item: u32) -> std::io::Result<String> {
    /// #     Ok(format!("{item}@{replica}"))
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let agent = Agent::builder().service("checkout").connect().await?;
    /// let replicas = Replicas::new([("10.0.0.1:80", None), ("10.0.0.2:80", None)])?;
    /// let catalog = agent.route("catalog", "get").replicas(replicas).build()?;
    ///
    /// let item = 7;
    /// let attempts = move |attempt: Attempt| async move {
    ///     get(attempt.replica().as_str(), item).await
    /// };
    /// let answer = catalog.call(Call::idempotent(), attempts).await?;
    /// assert!(answer.starts_with("7@10.0.0."));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`CallError::Failed`] with the primary's own error, also where a hedge failed in another way;
    /// [`CallError::DeadlineExceeded`] where nobody answered in time and the primary did not fail.
    ///
    /// # Panics
    /// Not by itself. Timers are tokio's, which panic outside of a runtime with time enabled; and a
    /// panic of `attempt`, or of the future it makes, is the caller's as if it had called it.
    pub fn call<T, E, F, Fut>(
        &self,
        call: Call,
        attempt: F,
    ) -> impl Future<Output = Result<T, CallError<E>>>
    where
        T: 'static,
        E: 'static,
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        race::run(&self.state, call, Verdict::of_result::<T, E>, attempt)
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
    ///
    /// # Panics
    /// As [`call`](Self::call).
    pub fn call_with<T, E, F, Fut, C>(
        &self,
        call: Call,
        classify: C,
        attempt: F,
    ) -> impl Future<Output = Result<T, CallError<E>>>
    where
        T: 'static,
        E: 'static,
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        C: Fn(&Result<T, E>) -> Verdict + Clone + Send + 'static,
    {
        race::run(&self.state, call, classify, attempt)
    }

    /// Its names: dependency and operation. Beyond an agent's 64th route they are `__other__`, under
    /// which all of those are counted.
    pub fn key(&self) -> &RouteKey {
        &self.state.key
    }

    /// What it does and has counted, for a debug page; a handler can return it as it is.
    /// [`Agent::snapshot`](crate::Agent::snapshot) has all routes. Taking one costs calls nothing.
    ///
    /// ```
    /// use axum::{Json, Router, routing::get};
    /// use hedgerow_agent::{Agent, Route, RouteSnapshot};
    ///
    /// fn debug_page(catalog: Route) -> Router {
    ///     let page = move || async move { Json::<RouteSnapshot>(catalog.snapshot()) };
    ///     Router::new().route("/debug/hedging", get(page))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let agent = Agent::builder().service("checkout").connect().await?;
    /// let catalog = agent.route("catalog", "get").build()?;
    /// let shown = serde_json::to_value(catalog.snapshot())?;
    /// assert_eq!(shown["dependency"], "catalog");
    /// assert_eq!(shown["effective"]["mode"], "observing");
    /// assert!(shown["effective"]["threshold_ms"].is_null()); // none yet, which is not zero
    /// # let _ = debug_page(catalog);
    /// # Ok(())
    /// # }
    /// ```
    pub fn snapshot(&self) -> RouteSnapshot {
        RouteSnapshot::of(&self.state, self.agent.shared.link_state())
    }
}

/// A route at one moment: see [`Route::snapshot`].
///
/// Serialised, it is an object for people and their scripts: names and counters as they are here,
/// times as numbers of milliseconds whose names end in `_ms`, histograms as their `count` and
/// quantiles (`p50_ms`, `p95_ms`, `p99_ms`, `p999_ms`), refusals by reason. What is not known is
/// null. Beside the counters are `hedges_sent` and `hedges_won`, the sums of their kinds: the hedge
/// rate is `hedges_sent / started`, the win rate `hedges_won / hedges_sent`. One is shown, line by
/// line, in [what to look at](crate::guide::what_to_look_at).
///
/// The types of its fields are in [`snapshot`](crate::snapshot).
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RouteSnapshot {
    /// Its names.
    #[serde(flatten)]
    pub key: RouteKey,
    /// What it has counted since the agent began.
    #[serde(serialize_with = "shown::totals")]
    pub totals: Totals,
    /// What [`Totals::further_refused`] is made of: why hedges beyond a call's first, or on error,
    /// were not sent.
    pub further_refused: FurtherRefused,
    /// The policy it goes by, and whose that is. [`PolicySource::None`] is why a route observes that
    /// was meant to hedge.
    ///
    /// [`PolicySource::None`]: crate::snapshot::PolicySource::None
    pub policy: PolicyInForce,
    /// What it does now.
    #[serde(serialize_with = "shown::effective")]
    pub effective: Effective,
    /// Attempts alive now.
    pub attempts_in_flight: u64,
    /// How the agent stands towards its controller. None, shown as `none`, where it was built
    /// without one.
    #[serde(serialize_with = "shown::link")]
    pub link: Option<LinkState>,
    /// What callers of calls that may be hedged have waited since the agent began.
    #[serde(serialize_with = "shown::latencies")]
    pub treated: Histogram,
    /// The same for the holdout.
    #[serde(serialize_with = "shown::latencies")]
    pub holdout: Histogram,
    /// Replicas that are what is slow or failing by this agent's own figures, and those on
    /// probation for it. Left out of its threshold and its errors.
    ///
    /// A replica that is not on [`probation`](Self::probation) is judged anew each second. One that is
    /// keeps the figures it was last named by, as old as its probation may be: its few calls since
    /// then decide when it comes back, and are named again only once there are enough of them.
    pub named: Vec<NamedReplica>,
    /// Replicas that get a tenth of their share of primaries and no hedges: by the controller's
    /// word, or, without one, by the agent's own figures.
    pub probation: Vec<ReplicaName>,
    /// Why hedging is on and can yet do nothing, where that is so.
    pub no_effect: Option<NoEffect>,
}

impl RouteSnapshot {
    pub(crate) fn of(state: &RouteState, link: Option<LinkState>) -> Self {
        let [treated, holdout] = state.lifetime();
        let (named, no_effect) = state.findings();
        let (totals, further_refused) = state.recorder.totals_and_further();
        Self {
            key: state.key.clone(),
            totals,
            further_refused: FurtherRefused::new(further_refused),
            policy: state.policy(),
            effective: state.effective(),
            attempts_in_flight: state.attempts_alive(),
            link,
            treated,
            holdout,
            named,
            probation: state.pool.probation(),
            no_effect,
        }
    }

    /// Two kinds of calls under the route's one name, cheap ones and expensive ones, where what
    /// callers waited clearly shows two. They share one threshold, which is right for neither: give
    /// each kind an operation name of its own. (A replica that is several times slower than the
    /// others looks alike; that one is in [`named`](Self::named).)
    ///
    /// None where there is one kind, or fewer than 1,000 calls to tell by. Less than a tenth that is
    /// slow is no kind but a tail. Looks at some hundred numbers: for a debug page, not for each call.
    pub fn cost_classes(&self) -> Option<CostClasses> {
        let mut all = self.treated.clone();
        // Full only after nine years at a million a second.
        let _ = all.add(&self.holdout);
        cost_classes(&all)
    }
}
