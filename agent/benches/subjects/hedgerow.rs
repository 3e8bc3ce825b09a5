//! This agent without a controller, everything but the percentile and the deadline at its default.

use hedgerow_agent::{
    Agent, Attempt, Call, CallError, Intent, Policy, PolicyDraft, Replicas, Route,
};
use tower::BoxError;

use super::{Outcome, Settings};
use crate::world::Backend;

/// A replica's name is its number after this.
const NAMES: [&str; crate::world::REPLICAS] = ["replica-0", "replica-1", "replica-2"];

/// See the [module](self).
#[derive(Clone)]
pub(crate) struct Hedgerow<B> {
    route: Route,
    backend: B,
}

/// Its own figures at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) threshold_ms: f64,
    pub(crate) budget: f64,
    /// Most tokens it keeps.
    pub(crate) cap: f64,
    /// Calls that crossed and found no token, since it began.
    pub(crate) refused_budget: u64,
}

impl<B: Backend> Hedgerow<B> {
    pub(crate) async fn new(backend: B, settings: &Settings) -> Result<Self, BoxError> {
        let agent = Agent::builder().service("bench").connect().await?;
        let defaults = Policy::observing("catalog".parse()?);
        let policy = Policy::try_from(PolicyDraft {
            intent: Intent::Hedge,
            percentile: settings.percentile,
            ..defaults.into()
        })?;
        let route = agent
            .route("catalog", "get")
            .replicas(Replicas::new(NAMES.map(|name| (name, None)))?)
            .deadline(settings.deadline)
            .hedge_standalone(policy)
            .build()?;
        Ok(Self { route, backend })
    }

    pub(crate) async fn call(self, call: u64) -> Outcome {
        let Self { route, backend } = self;
        let attempt = move |attempt: Attempt| {
            let name = attempt.replica().as_str();
            let replica = NAMES.iter().position(|known| *known == name);
            let asked = backend.ask(replica.unwrap_or(0), call);
            async move {
                let answer = asked.await;
                drop(attempt);
                answer
            }
        };
        match route.call(Call::idempotent(), attempt).await {
            Ok(()) => Outcome::Answered,
            Err(CallError::DeadlineExceeded) => Outcome::OutOfTime,
            Err(_) => Outcome::Failed,
        }
    }

    pub(crate) fn sample(&self) -> Sample {
        use hedgerow_agent::protocol::report::Refusal;
        let snapshot = self.route.snapshot();
        let effective = &snapshot.effective;
        let threshold = effective.threshold;
        Sample {
            threshold_ms: threshold.map_or(f64::NAN, |d| d.get().as_secs_f64() * 1e3),
            budget: effective.budget.get(),
            cap: effective.cap,
            refused_budget: snapshot.totals.refused_for(Refusal::Budget),
        }
    }
}
