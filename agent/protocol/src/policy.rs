//! What an operator wants for a dependency.
//!
//! A [`PolicyDraft`] is what came in, by form, REST or file; a [`Policy`] is what passed every
//! check. Every way in goes through the one `TryFrom`, so each refuses the same things in the same
//! words.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::PoolName;
use crate::units::{AttemptLimit, Budget, Quantile, Ratio, as_millis, millis};

mod scope;

pub use scope::{DependencyPattern, PolicyScope, ScopeError};

/// Range of a policy's percentile: below, hedging costs more than 8 %; above, windows of a minute
/// hold too few slow calls to find it.
pub const PERCENTILE_RANGE: (f64, f64) = (0.92, 0.999);
/// Range of a policy's goal: below, it is no tail; above, a minute of a busy route has fewer calls
/// beyond it than tell anything.
pub const GOAL_RANGE: (f64, f64) = (0.9, 0.9995);
/// Most that may be held out: more would make the tail of the service itself worse for knowing it.
pub const HOLDOUT_MAX: f64 = 0.2;
/// Range of the error share that switches hedging off.
pub const ERROR_LIMIT_RANGE: (f64, f64) = (0.001, 0.5);

/// What hedging is allowed to do on a dependency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intent {
    /// Nothing is hedged, by a person's will.
    Off,
    /// Measure only: where every new dependency starts.
    #[default]
    Observe,
    /// Hedge where it helps.
    Hedge,
}

impl Intent {
    /// Its name in forms, files and the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Observe => "observe",
            Self::Hedge => "hedge",
        }
    }
}

/// A checked policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(into = "PolicyDraft")]
pub struct Policy {
    scope: PolicyScope,
    intent: Intent,
    percentile: Quantile,
    goal: Option<Quantile>,
    budget: Budget,
    pool: Option<PoolName>,
    objective: Option<Duration>,
    holdout: Ratio,
    error_limit: Ratio,
    threshold_min: Option<Duration>,
    threshold_max: Option<Duration>,
    probation: bool,
    attempts: AttemptLimit,
    hedge_on_error: bool,
}

impl Policy {
    /// The policy a dependency has before anybody set one: observing.
    pub fn observing(scope: PolicyScope) -> Self {
        Self {
            scope,
            intent: Intent::Observe,
            percentile: Quantile::new(0.95).expect("0.95 is between 0 and 1"),
            goal: None,
            budget: Budget::new(0.08).expect("0.08 is an allowed budget"),
            pool: None,
            objective: None,
            holdout: Ratio::new(0.01).expect("0.01 is a share"),
            error_limit: Ratio::new(0.05).expect("0.05 is a share"),
            threshold_min: None,
            threshold_max: None,
            probation: true,
            attempts: AttemptLimit::default(),
            hedge_on_error: false,
        }
    }

    /// What it is for. Each operation it covers has a threshold of its own.
    pub fn scope(&self) -> &PolicyScope {
        &self.scope
    }
    /// The same for something else.
    #[must_use]
    pub fn for_scope(mut self, scope: impl Into<PolicyScope>) -> Self {
        self.scope = scope.into();
        self
    }
    /// What hedging may do.
    pub fn intent(&self) -> Intent {
        self.intent
    }
    /// The quantile of latency at which a call may be hedged; its tail is the target rate.
    pub fn percentile(&self) -> Quantile {
        self.percentile
    }
    /// The percentile of latency that the controller is to bring down as far as the budget allows;
    /// None: it follows [`percentile`](Self::percentile). Agents that have lost their controller
    /// follow the percentile either way.
    pub fn goal(&self) -> Option<Quantile> {
        self.goal
    }
    /// Hedges allowed as a share of eligible finished calls.
    pub fn budget(&self) -> Budget {
        self.budget
    }
    /// The policies it shares its budget with: all that name the same pool; None: it is its own.
    pub fn pool(&self) -> Option<&PoolName> {
        self.pool.as_ref()
    }
    /// What a call should take at most; there wherever there is a pool, whose hedges go where they
    /// keep the most calls within it.
    pub fn objective(&self) -> Option<Duration> {
        self.objective
    }
    /// Share of eligible calls that is never hedged, to know what hedging buys.
    pub fn holdout(&self) -> Ratio {
        self.holdout
    }
    /// Share of failing primaries above which hedging goes off.
    pub fn error_limit(&self) -> Ratio {
        self.error_limit
    }
    /// Never hedge earlier than this.
    pub fn threshold_min(&self) -> Option<Duration> {
        self.threshold_min
    }
    /// Never wait longer than this.
    pub fn threshold_max(&self) -> Option<Duration> {
        self.threshold_max
    }
    /// Whether named replicas get a tenth of their share of primaries where agents pick replicas.
    pub fn probation(&self) -> bool {
        self.probation
    }
    /// Copies of one call at most, the primary among them.
    pub fn attempts(&self) -> AttemptLimit {
        self.attempts
    }
    /// Whether a call whose only attempt failed in a way that another could mend is sent once more
    /// at once, paid from the same budget, within the same deadline and attempts.
    pub fn hedge_on_error(&self) -> bool {
        self.hedge_on_error
    }
    /// Hedges expected as a share of eligible calls: the percentile's tail less the holdout.
    pub fn target_rate(&self) -> f64 {
        self.percentile.tail() * (1.0 - self.holdout.get())
    }
}

/// A policy as it came in, unchecked. What is absent keeps the default of [`Policy::observing`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyDraft {
    /// The dependency's name; with a `*` in it a pattern, for all dependencies that have no policy of
    /// their own and fit.
    pub dependency: String,
    /// One of its operations; absent: all that have no policy of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// `off`, `observe` or `hedge`.
    #[serde(default)]
    pub intent: Intent,
    /// 0.92 to 0.999.
    #[serde(default = "defaults::percentile")]
    pub percentile: f64,
    /// 0.9 to 0.9995; absent: the percentile is followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<f64>,
    /// Above 0, at most 0.25.
    #[serde(default = "defaults::budget")]
    pub budget: f64,
    /// A name as dependencies have it; absent: the budget is lent to nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Milliseconds; needed where there is a pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective_ms: Option<f64>,
    /// 0 to 0.2.
    #[serde(default = "defaults::holdout")]
    pub holdout: f64,
    /// 0.001 to 0.5.
    #[serde(default = "defaults::error_limit")]
    pub error_limit: f64,
    /// Milliseconds; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold_min_ms: Option<f64>,
    /// Milliseconds; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold_max_ms: Option<f64>,
    /// Whether named replicas are put on probation.
    #[serde(default = "defaults::probation")]
    pub probation: bool,
    /// 2 or 3 copies of a call at most, the primary among them.
    #[serde(default = "defaults::attempts")]
    pub attempts: u64,
    /// Whether a retryable failure sends the hedge at once.
    #[serde(default)]
    pub hedge_on_error: bool,
}

impl PolicyDraft {
    /// Its fields, by the names they have in files and in the API, in their order.
    pub const FIELDS: [&str; 15] = [
        "dependency",
        "operation",
        "intent",
        "percentile",
        "goal",
        "budget",
        "pool",
        "objective_ms",
        "holdout",
        "error_limit",
        "threshold_min_ms",
        "threshold_max_ms",
        "probation",
        "attempts",
        "hedge_on_error",
    ];
}

mod defaults {
    pub(super) const fn percentile() -> f64 {
        0.95
    }
    pub(super) const fn budget() -> f64 {
        0.08
    }
    pub(super) const fn holdout() -> f64 {
        0.01
    }
    pub(super) const fn error_limit() -> f64 {
        0.05
    }
    pub(super) const fn probation() -> bool {
        true
    }
    pub(super) const fn attempts() -> u64 {
        2
    }
}

/// One field of a draft that cannot stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldError {
    /// The field's name in [`PolicyDraft`].
    pub field: &'static str,
    /// What is wrong and what was expected.
    pub message: String,
}

/// Every field of a draft that cannot stand: all at once, so that a person mends them in one go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyErrors(pub Vec<FieldError>);

impl std::fmt::Display for PolicyErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{}: {}", error.field, error.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for PolicyErrors {}

/// Collects errors by field; yields a placeholder-free value only when there were none.
#[derive(Default)]
struct Checks(Vec<FieldError>);

impl Checks {
    fn take<T>(&mut self, field: &'static str, value: Result<T, impl ToString>) -> Option<T> {
        value
            .map_err(|e| {
                self.0.push(FieldError {
                    field,
                    message: e.to_string(),
                });
            })
            .ok()
    }

    fn within(&mut self, field: &'static str, value: f64, (low, high): (f64, f64)) -> bool {
        let inside = (low..=high).contains(&value);
        if !inside {
            let message =
                format!("{value} is out of range: expected a number from {low} to {high}");
            self.0.push(FieldError { field, message });
        }
        inside
    }
}

/// What of a draft only a controller acts on.
struct Aim {
    goal: Option<Quantile>,
    pool: Option<PoolName>,
    objective: Option<Duration>,
}

impl Checks {
    fn scope(&mut self, draft: &PolicyDraft) -> Option<PolicyScope> {
        let scope = PolicyScope::new(&draft.dependency, draft.operation.as_deref());
        scope
            .map_err(|error| {
                let (field, message) = match error {
                    ScopeError::Dependency(error) => ("dependency", error.to_string()),
                    ScopeError::Operation(error) => ("operation", error.to_string()),
                    error @ ScopeError::PatternOfOperations(_) => ("operation", error.to_string()),
                };
                self.0.push(FieldError { field, message });
            })
            .ok()
    }

    fn aim(&mut self, draft: &PolicyDraft) -> Aim {
        let goal = draft
            .goal
            .filter(|&goal| self.within("goal", goal, GOAL_RANGE))
            .map(|goal| Quantile::new(goal).expect("the goal's range is inside 0 to 1"));
        let pool = draft.pool.as_ref();
        let pool = pool.and_then(|pool| self.take("pool", PoolName::new(pool.trim())));
        let objective = draft
            .objective_ms
            .and_then(|v| self.take("objective_ms", millis(v)));
        if let Some(pool) = pool.as_ref().filter(|_| draft.objective_ms.is_none()) {
            let message = format!(
                "is needed in a pool ({pool}): expected the milliseconds a call should take at most"
            );
            self.0.push(FieldError {
                field: "objective_ms",
                message,
            });
        }
        Aim {
            goal,
            pool,
            objective,
        }
    }

    fn limits(&mut self, draft: &PolicyDraft) -> (Option<Duration>, Option<Duration>) {
        let min = draft
            .threshold_min_ms
            .and_then(|v| self.take("threshold_min_ms", millis(v)));
        let max = draft
            .threshold_max_ms
            .and_then(|v| self.take("threshold_max_ms", millis(v)));
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            let message = format!(
                "{} is below threshold_min_ms ({}): expected at least that",
                as_millis(max),
                as_millis(min)
            );
            self.0.push(FieldError {
                field: "threshold_max_ms",
                message,
            });
        }
        (min, max)
    }
}

impl TryFrom<PolicyDraft> for Policy {
    type Error = PolicyErrors;

    fn try_from(draft: PolicyDraft) -> Result<Self, PolicyErrors> {
        let mut checks = Checks::default();
        let scope = checks.scope(&draft);
        let percentile = checks
            .within("percentile", draft.percentile, PERCENTILE_RANGE)
            .then(|| Quantile::new(draft.percentile).expect("the policy's range is inside 0 to 1"));
        let budget = checks.take("budget", Budget::new(draft.budget));
        let holdout = checks
            .within("holdout", draft.holdout, (0.0, HOLDOUT_MAX))
            .then(|| Ratio::clamped(draft.holdout));
        let error_limit = checks
            .within("error_limit", draft.error_limit, ERROR_LIMIT_RANGE)
            .then(|| Ratio::clamped(draft.error_limit));
        let attempts = checks.take("attempts", AttemptLimit::new(draft.attempts));
        let Aim {
            goal,
            pool,
            objective,
        } = checks.aim(&draft);
        let (threshold_min, threshold_max) = checks.limits(&draft);
        match (scope, percentile, budget, holdout, error_limit, attempts) {
            (
                Some(scope),
                Some(percentile),
                Some(budget),
                Some(holdout),
                Some(error_limit),
                Some(attempts),
            ) if checks.0.is_empty() => Ok(Self {
                scope,
                intent: draft.intent,
                percentile,
                goal,
                budget,
                pool,
                objective,
                holdout,
                error_limit,
                threshold_min,
                threshold_max,
                probation: draft.probation,
                attempts,
                hedge_on_error: draft.hedge_on_error,
            }),
            _ => Err(PolicyErrors(checks.0)),
        }
    }
}

impl From<Policy> for PolicyDraft {
    fn from(policy: Policy) -> Self {
        Self {
            dependency: policy.scope.dependency_text().to_owned(),
            operation: policy.scope.operation().map(ToString::to_string),
            intent: policy.intent,
            percentile: policy.percentile.get(),
            goal: policy.goal.map(Quantile::get),
            budget: policy.budget.get(),
            pool: policy.pool.map(Into::into),
            objective_ms: policy.objective.map(as_millis),
            holdout: policy.holdout.get(),
            error_limit: policy.error_limit.get(),
            threshold_min_ms: policy.threshold_min.map(as_millis),
            threshold_max_ms: policy.threshold_max.map(as_millis),
            probation: policy.probation,
            attempts: policy.attempts.into(),
            hedge_on_error: policy.hedge_on_error,
        }
    }
}

#[cfg(test)]
mod tests;
