//! Who is compared, each put together as its documentation says.
//!
//! Replicas of all but Hedgerow are picked by tower's own balancer, the less loaded of two by
//! requests outstanding, seeded; a hedge of theirs goes through it once more. Hedgerow picks by
//! itself: that is part of it.

mod balanced;
mod hedgerow;

use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::timeout;
use tower::hedge::Hedge;
use tower::util::MapErr;
use tower::{BoxError, Layer, ServiceExt};
use tower_resilience_hedge::HedgeLayer;

use self::balanced::{Buffered, balanced, buffered};
pub(crate) use self::hedgerow::{Hedgerow, Sample};
use crate::world::{Backend, Failure};

/// The contract's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Bare,
    Hedgerow,
    Tower,
    TowerResilience,
}

impl Subject {
    pub(crate) const ALL: [Self; 4] = [
        Self::Bare,
        Self::Hedgerow,
        Self::Tower,
        Self::TowerResilience,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Hedgerow => "hedgerow",
            Self::Tower => "tower",
            Self::TowerResilience => "tower-resilience",
        }
    }
}

/// What the subjects are told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// For tower's and Hedgerow's alike.
    pub(crate) percentile: f64,
    /// How long tower's histogram is written before it is read.
    pub(crate) tower_period: Duration,
    /// How many latencies tower wants before it hedges.
    pub(crate) tower_data_points: u64,
    /// tower-resilience measures nothing: a person has to. It is given what a person would find
    /// who measures well: the p95 of usual answers without hedging.
    pub(crate) resilience_delay: Duration,
    /// Of a call, for all.
    pub(crate) deadline: Duration,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Answered,
    Failed,
    OutOfTime,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Reads;

impl tower::hedge::Policy<u64> for Reads {
    fn clone_request(&self, call: &u64) -> Option<u64> {
        Some(*call)
    }
    fn can_retry(&self, _: &u64) -> bool {
        true
    }
}

type Resilient = tower_resilience_hedge::Hedge<MapErr<Buffered, fn(BoxError) -> Failure>>;

/// A subject, ready to be called from many tasks.
pub(crate) enum Client<B> {
    /// Bare, or `tower::hedge`.
    Tower(Buffered, Duration),
    Hedgerow(Hedgerow<B>),
    TowerResilience(Resilient, Duration),
}

impl<B: Backend> Client<B> {
    pub(crate) async fn new(
        subject: Subject,
        backend: B,
        settings: &Settings,
    ) -> Result<Self, BoxError> {
        let deadline = settings.deadline;
        Ok(match subject {
            Subject::Bare => Self::Tower(balanced(&backend), deadline),
            Subject::Hedgerow => Self::Hedgerow(Hedgerow::new(backend, settings).await?),
            Subject::Tower => {
                let hedge = Hedge::new(
                    balanced(&backend),
                    Reads,
                    settings.tower_data_points,
                    settings.percentile as f32,
                    settings.tower_period,
                );
                // It cannot be cloned itself.
                Self::Tower(buffered(hedge), deadline)
            }
            Subject::TowerResilience => {
                let layer = HedgeLayer::builder()
                    .delay(settings.resilience_delay)
                    .max_hedged_attempts(2)
                    .build();
                let inner = balanced(&backend).map_err(failure as fn(BoxError) -> Failure);
                Self::TowerResilience(layer.layer(inner), deadline)
            }
        })
    }

    /// Makes a call. The future owns all it needs, to be spawned.
    pub(crate) fn call(&self, call: u64) -> BoxFuture<'static, Outcome> {
        match self {
            Self::Tower(service, deadline) => {
                Box::pin(within(*deadline, service.clone().oneshot(call)))
            }
            Self::Hedgerow(hedgerow) => Box::pin(hedgerow.clone().call(call)),
            Self::TowerResilience(service, deadline) => {
                Box::pin(within(*deadline, service.clone().oneshot(call)))
            }
        }
    }

    /// What a person would read off it now. Only Hedgerow says.
    pub(crate) fn sample(&self) -> Option<Sample> {
        match self {
            Self::Hedgerow(hedgerow) => Some(hedgerow.sample()),
            _ => None,
        }
    }
}

async fn within<E>(deadline: Duration, call: impl Future<Output = Result<(), E>>) -> Outcome {
    match timeout(deadline, call).await {
        Ok(Ok(())) => Outcome::Answered,
        Ok(Err(_)) => Outcome::Failed,
        Err(_) => Outcome::OutOfTime,
    }
}

/// tower boxes what went wrong; tower-resilience wants it cloned.
#[expect(clippy::needless_pass_by_value, reason = "what `map_err` calls")]
fn failure(error: BoxError) -> Failure {
    let known = error.downcast_ref::<Failure>();
    known.copied().unwrap_or(Failure::Transport)
}
