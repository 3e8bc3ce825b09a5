//! The policy in force, as a snapshot shows it.

use std::time::Duration;

use hedgerow_protocol::policy::Intent;
use hedgerow_protocol::units::{AttemptLimit, Budget, Quantile, Ratio, Threshold};
use serde::{Serialize, Serializer};

use super::{RouteMode, Source, default_error_limit, default_percentile};

/// Whose word a route goes by: see [`PolicyInForce`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PolicySource {
    /// Nobody's: the route is observed. No controller has named it yet, or the agent has none, the
    /// policy file does not name its dependency, and it was built without
    /// [`hedge_standalone`](crate::RouteBuilder::hedge_standalone).
    None,
    /// [`hedge_standalone`](crate::RouteBuilder::hedge_standalone).
    Code,
    /// The [policy file](crate::AgentBuilder::policy_file).
    File,
    /// The controller's last directive.
    Controller,
}

impl PolicySource {
    /// `none`, `code`, `file` or `controller`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Code => "code",
            Self::File => "file",
            Self::Controller => "controller",
        }
    }
}

/// The policy a route goes by, and whose it is: see
/// [`RouteSnapshot::policy`](crate::RouteSnapshot::policy). What is done by it at this moment is in
/// [`RouteSnapshot::effective`](crate::RouteSnapshot::effective).
///
/// Serialised, thresholds are in milliseconds (`threshold_min_ms`, `threshold_max_ms`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PolicyInForce {
    /// Whose it is.
    pub source: PolicySource,
    /// What hedging may do. None where a controller decides: it says the mode, not what for.
    pub intent: Option<Intent>,
    /// The quantile of latency at which a call may be hedged.
    pub percentile: Quantile,
    /// Hedges as a share of eligible finished calls; from a controller, as it was pushed last.
    pub budget: Budget,
    /// Share of eligible calls that is never hedged.
    pub holdout: Ratio,
    /// Share of failing primaries above which the agent switches hedging off.
    pub error_limit: Ratio,
    /// Never hedge earlier.
    #[serde(rename = "threshold_min_ms", serialize_with = "ms")]
    pub threshold_min: Option<Duration>,
    /// Never wait longer.
    #[serde(rename = "threshold_max_ms", serialize_with = "ms")]
    pub threshold_max: Option<Duration>,
    /// Whether named replicas are put on probation. None where a controller decides, which names
    /// them one by one.
    pub probation: Option<bool>,
    /// Copies of a call at most, the primary among them.
    pub attempts: AttemptLimit,
    /// Whether a retryable failure sends a hedge at once.
    pub hedge_on_error: bool,
}

#[expect(clippy::ref_option, reason = "serde hands over a reference")]
fn ms<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration
        .map(|duration| duration.as_secs_f64() * 1e3)
        .serialize(serializer)
}

impl RouteMode {
    /// What the route goes by, for people.
    pub(crate) fn policy(&self) -> PolicyInForce {
        match &self.source {
            Source::Nobody => PolicyInForce {
                source: PolicySource::None,
                intent: Some(Intent::Observe),
                percentile: default_percentile(),
                budget: Budget::ZERO,
                holdout: Ratio::ZERO,
                error_limit: default_error_limit(),
                threshold_min: None,
                threshold_max: None,
                probation: Some(false),
                attempts: AttemptLimit::default(),
                hedge_on_error: false,
            },
            Source::Directive(directive) => {
                let standing = &directive.standing;
                PolicyInForce {
                    source: PolicySource::Controller,
                    intent: None,
                    percentile: standing.percentile,
                    budget: directive.live.budget,
                    holdout: standing.holdout,
                    error_limit: standing.error_limit,
                    threshold_min: standing.threshold_min.map(Threshold::get),
                    threshold_max: standing.threshold_max.map(Threshold::get),
                    probation: None,
                    attempts: standing.attempts,
                    hedge_on_error: standing.hedge_on_error,
                }
            }
            Source::Own(policy) => PolicyInForce {
                source: if self.by_file {
                    PolicySource::File
                } else {
                    PolicySource::Code
                },
                intent: Some(policy.intent()),
                percentile: policy.percentile(),
                budget: policy.budget(),
                holdout: policy.holdout(),
                error_limit: policy.error_limit(),
                threshold_min: policy.threshold_min(),
                threshold_max: policy.threshold_max(),
                probation: Some(policy.probation()),
                attempts: policy.attempts(),
                hedge_on_error: policy.hedge_on_error(),
            },
        }
    }
}
