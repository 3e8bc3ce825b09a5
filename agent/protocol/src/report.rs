//! What an agent tells the controller.
//!
//! Counters are cumulative for the incarnation, so that their order (won <= hedged <= crossed <=
//! started) can be checked and a gap heals; histograms and replicas are what came since the last
//! acknowledged report. An agent has one report under way at most and sends it again, with its
//! sequence number, until it is acknowledged: so each is counted exactly once.

mod totals;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::totals::{IN_FLIGHT_MAX, Refusal, Totals};
use crate::directive::{Mode, Stamp};
use crate::ids::{ReplicaName, RouteKey, Sequence, ZoneName};
use crate::latency::sparse::SparseHistogram;
use crate::limits::{REPLICAS_PER_REPORT_MAX, ROUTES_PER_AGENT_MAX};
use crate::units::{Budget, Ratio, Threshold};

/// Attempts of one role since the last acknowledged report, each on its own clock.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attempts {
    /// Answered, also by the application's own negative answer.
    pub done: SparseHistogram,
    /// Cancelled, out of time, or failed: known only to be longer.
    pub censored: SparseHistogram,
}

/// One replica's primaries since the last acknowledged report.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplicaReport {
    /// Its name.
    pub replica: ReplicaName,
    /// Its failure domain, where known.
    pub zone: Option<ZoneName>,
    /// Primaries started on it by eligible calls.
    pub started: u64,
    /// Of the eligible calls whose primary it got, those that crossed the threshold.
    pub crossed: u64,
    /// Primaries that ended by themselves.
    pub finished: u64,
    /// Of these, those that failed.
    pub errors: u64,
    /// Hedges sent to it.
    pub hedged: u64,
    /// Of these, those that answered first.
    pub won: u64,
    /// Its primaries' latencies.
    pub primary: Attempts,
}

/// How an agent stands towards its controller: a second value beside the mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    /// Heard within two heartbeats.
    Live,
    /// No word for two heartbeats; the lease still holds.
    Stale,
    /// The lease is over, or there never was one: the agent's own figures.
    #[default]
    Fallback,
}

impl LinkState {
    /// `live`, `stale` or `fallback`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Stale => "stale",
            Self::Fallback => "fallback",
        }
    }
}

/// What an agent really does on a route at the moment of the report.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Effective {
    /// The directive in force.
    pub stamp: Stamp,
    /// The stricter of what the controller said and what the agent decided for itself.
    pub mode: Mode,
    /// Whether the agent itself switched off (errors, push-back), on top of the directive.
    pub own_off: bool,
    /// The threshold in use.
    pub threshold: Option<Threshold>,
    /// The share of crossed calls hedged.
    pub probability: Ratio,
    /// The budget in use.
    pub budget: Budget,
    /// Most tokens kept, in hedges.
    pub cap: f64,
    /// Tokens left, in hedges.
    pub tokens: f64,
    /// Replicas the agent can pick from; 0: the caller pins them.
    pub replicas: u32,
    /// Losers being watched to their end.
    pub watched_losers: u32,
}

/// One route since the last acknowledged report.
#[derive(Debug, Clone, PartialEq)]
pub struct RouteReport {
    /// The route.
    pub route: RouteKey,
    /// Its counters, cumulative.
    pub totals: Totals,
    /// Primaries of eligible calls.
    pub primary: Attempts,
    /// Hedges.
    pub hedge: Attempts,
    /// What callers waited, for calls that may be hedged.
    pub treated: SparseHistogram,
    /// What callers waited, for the holdout.
    pub holdout: SparseHistogram,
    /// A gauge: ages of unanswered primaries beyond the threshold.
    pub in_flight: SparseHistogram,
    /// The busiest replicas.
    pub replicas: Vec<ReplicaReport>,
    /// What the agent does.
    pub effective: Effective,
    /// Seconds covered by the report with more hedges than budget x finished calls + cap, by the
    /// agent's own count: 0 unless the budget failed.
    pub over_budget_seconds: u64,
}

/// A report.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Counted from 1 in each incarnation.
    pub sequence: Sequence,
    /// The time it really covers.
    pub covers: Duration,
    /// The agent's wall clock, milliseconds since 1970: shown as skew, never used.
    pub wall_clock_ms: u64,
    /// Its routes: at most [`ROUTES_PER_AGENT_MAX`], and beside them [`RouteKey::other`].
    pub routes: Vec<RouteReport>,
}

impl Report {
    /// Refuses what the field types alone cannot.
    pub fn check(&self) -> Result<(), ReportError> {
        if self.sequence.0 == 0 {
            return Err(ReportError::Sequence);
        }
        // What is counted together comes on top of the routes that have a name.
        let named = self.routes.iter().filter(|it| !it.route.is_other()).count();
        if named > ROUTES_PER_AGENT_MAX {
            return Err(ReportError::TooManyRoutes(named));
        }
        let mut seen = std::collections::BTreeSet::new();
        for route in &self.routes {
            if !seen.insert(&route.route) {
                return Err(ReportError::Duplicate(route.route.clone()));
            }
            route.totals.check()?;
            if route.replicas.len() > REPLICAS_PER_REPORT_MAX {
                return Err(ReportError::TooManyReplicas(route.replicas.len()));
            }
            for replica in &route.replicas {
                replica.check()?;
            }
        }
        Ok(())
    }
}

impl ReplicaReport {
    fn check(&self) -> Result<(), ReportError> {
        // A call may cross, or end, in a later interval than it started in: only what ends
        // together is ordered in one interval's figures.
        if self.errors > self.finished {
            return Err(ReportError::Order {
                small: "replica errors",
                small_value: self.errors,
                large: "replica finished",
                large_value: self.finished,
            });
        }
        Ok(())
    }
}

/// Why a report is refused whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// Sequence numbers start at 1.
    #[error("sequence: 0 is not a sequence number; expected 1 or more")]
    Sequence,
    /// Counters in an order no honest agent can have.
    #[error("totals: {small} ({small_value}) is above {large} ({large_value})")]
    Order {
        /// What must not be larger.
        small: &'static str,
        /// Its value.
        small_value: u64,
        /// What must not be smaller.
        large: &'static str,
        /// Its value.
        large_value: u64,
    },
    /// More calls unended than an agent can have.
    #[error("totals: {0} calls started and not finished; expected at most {IN_FLIGHT_MAX}")]
    InFlight(u64),
    /// More routes than an agent may report.
    #[error("routes: {0}; at most {ROUTES_PER_AGENT_MAX} are allowed")]
    TooManyRoutes(usize),
    /// The same route twice.
    #[error("routes: {0} is there twice; expected each route once")]
    Duplicate(RouteKey),
    /// More replicas than a report may hold.
    #[error("replicas: {0}; at most {REPLICAS_PER_REPORT_MAX} are allowed")]
    TooManyReplicas(usize),
    /// A cumulative counter went back within an incarnation.
    #[error("totals: a counter went back within an incarnation")]
    WentBack,
}

#[cfg(test)]
mod tests;
