//! What an agent tells the controller.
//!
//! Counters are cumulative for the incarnation, so that their order (won <= hedged <= crossed <=
//! started) can be checked and a gap heals; histograms and replicas are what came since the last
//! acknowledged report. An agent has one report under way at most and sends it again, with its
//! sequence number, until it is acknowledged: so each is counted exactly once.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::directive::{Mode, Stamp};
use crate::ids::{ReplicaName, RouteKey, Sequence, ZoneName};
use crate::latency::sparse::SparseHistogram;
use crate::limits::{REPLICAS_PER_REPORT_MAX, ROUTES_PER_AGENT_MAX};
use crate::units::{Budget, Ratio, Threshold};

/// Most calls of one route that an agent can have begun and not ended: it keeps attempts alive in a
/// word of 24 bits, and memory ends long before. Without such a bound a liar could begin calls for a
/// year and have them all end in the second it likes.
pub const IN_FLIGHT_MAX: u64 = 1 << 24;

/// Why a crossed call was not hedged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The mode does not allow it.
    Mode,
    /// Held out, to compare with.
    Holdout,
    /// Not drawn: the probability is below 1.
    NotDrawn,
    /// It could not finish before the call's deadline.
    Deadline,
    /// No other replica.
    NoReplica,
    /// No free permit.
    NoPermit,
    /// No token.
    Budget,
    /// The call is itself a hedge of a caller further up.
    AlreadyHedge,
    /// It was answered between the threshold and the timer's next tick.
    Answered,
}

impl Refusal {
    /// All of them, in the order of [`Totals::refused`].
    pub const ALL: [Self; 9] = [
        Self::Mode,
        Self::Holdout,
        Self::NotDrawn,
        Self::Deadline,
        Self::NoReplica,
        Self::NoPermit,
        Self::Budget,
        Self::AlreadyHedge,
        Self::Answered,
    ];

    /// Its name on the wire, in metrics and on pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mode => "mode",
            Self::Holdout => "holdout",
            Self::NotDrawn => "not_drawn",
            Self::Deadline => "deadline",
            Self::NoReplica => "no_replica",
            Self::NoPermit => "no_permit",
            Self::Budget => "budget",
            Self::AlreadyHedge => "already_hedge",
            Self::Answered => "answered",
        }
    }
}

macro_rules! totals {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// Counters of one route, cumulative for the agent's incarnation.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct Totals {
            $($(#[$doc])* pub $field: u64,)*
            /// Crossed calls not hedged, by [`Refusal`] in the order of [`Refusal::ALL`].
            pub refused: [u64; Refusal::ALL.len()],
        }

        impl Totals {
            /// Each counter's name and value; those by [`Refusal`] apart.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($field), self.$field)),*].into_iter()
            }

            /// What came since `earlier`. None where a counter went back.
            pub fn since(&self, earlier: &Self) -> Option<Self> {
                let mut refused = [0; Refusal::ALL.len()];
                for (i, out) in refused.iter_mut().enumerate() {
                    *out = self.refused[i].checked_sub(earlier.refused[i])?;
                }
                Some(Self {
                    $($field: self.$field.checked_sub(earlier.$field)?,)*
                    refused,
                })
            }

            /// Every counter, the refusals at the end.
            pub fn counters_mut(&mut self) -> impl Iterator<Item = &mut u64> {
                [$(&mut self.$field,)*].into_iter().chain(&mut self.refused)
            }

            /// Adds `other`, field by field.
            pub fn add(&mut self, other: &Self) {
                $(self.$field = self.$field.saturating_add(other.$field);)*
                for (sum, n) in self.refused.iter_mut().zip(other.refused) {
                    *sum = sum.saturating_add(n);
                }
            }

            /// Takes `other`, added before, away again.
            pub fn subtract(&mut self, other: &Self) {
                $(self.$field = self.$field.saturating_sub(other.$field);)*
                for (sum, n) in self.refused.iter_mut().zip(other.refused) {
                    *sum = sum.saturating_sub(n);
                }
            }
        }
    };
}

totals! {
    /// Calls started that may be hedged: marked idempotent by the caller.
    started,
    /// Calls started that may not: never hedged, counted so that nobody wonders.
    not_eligible,
    /// Eligible calls that ended, whatever way: what the budget is earned by.
    finished,
    /// Eligible calls that ended with an error.
    failed,
    /// Eligible calls their caller gave up. In neither side of an error rate.
    abandoned,
    /// Eligible calls still unanswered at the threshold, hedged or not.
    crossed,
    /// First hedges sent: calls hedged because they were slow.
    hedged,
    /// Hedges sent because the call was unanswered for another threshold.
    hedged_again,
    /// Hedges sent because every attempt before had failed.
    hedged_on_error,
    /// Hedges, of those two kinds, that answered first.
    won,
    /// Calls answered by a hedge that was sent on error.
    won_on_error,
    /// Second hedges, and hedges on error, that were not admitted.
    further_refused,
    /// Primaries that ended by themselves: answered or failed. Cancelled ones are not in it.
    primary_finished,
    /// Primaries that failed.
    primary_errors,
    /// Hedges of slow calls that ended by themselves. Those sent on error are in neither this nor
    /// [`hedge_errors`](Self::hedge_errors), nor in any histogram of attempts: they are no sample of
    /// what a hedge of a slow call does.
    hedge_finished,
    /// Of these, those that failed.
    hedge_errors,
    /// Attempts answered by 429, RESOURCE_EXHAUSTED or a push-back header.
    push_back,
    /// Calls whose arm is the holdout, ended (not abandoned).
    holdout_finished,
    /// Of these, those that failed.
    holdout_failed,
    /// Calls whose arm is treated, ended (not abandoned).
    treated_finished,
    /// Of these, those that failed.
    treated_failed,
    /// Treated calls that failed although their primary succeeded. Always 0; counted to show it.
    failed_despite_primary,
    /// Replica picks that a directive's probation turned away.
    probation_skipped,
    /// Eligible calls unanswered at first whose deadline came no later than the threshold: they
    /// could not cross. Where these are nearly all, the policy has no effect.
    threshold_past_deadline,
}

impl Totals {
    /// All hedges sent, for whatever reason: the extra load.
    pub fn hedges(&self) -> u64 {
        sum([self.hedged, self.hedged_again, self.hedged_on_error])
    }

    /// All hedges that answered first, for whatever reason they were sent.
    pub fn hedges_won(&self) -> u64 {
        sum([self.won, self.won_on_error])
    }

    /// Counts a refusal.
    pub fn refuse(&mut self, reason: Refusal) {
        self.refused[reason as usize] += 1;
    }

    /// Refusals for one reason.
    pub fn refused_for(&self, reason: Refusal) -> u64 {
        self.refused[reason as usize]
    }

    /// Refuses what no honest agent can report. Exact, without any slack: an agent counts the
    /// larger of two ordered counters first and reads it last.
    pub fn check(&self) -> Result<(), ReportError> {
        let ordered = self.of_calls().into_iter().chain(self.of_attempts());
        for (small, small_value, large, large_value) in ordered {
            if small_value > large_value {
                return Err(ReportError::Order {
                    small,
                    small_value,
                    large,
                    large_value,
                });
            }
        }
        let unended = self.started - self.finished;
        if unended > IN_FLIGHT_MAX {
            return Err(ReportError::InFlight(unended));
        }
        Ok(())
    }

    /// What is never more than what, of calls.
    fn of_calls(&self) -> [Ordered; 12] {
        let refused = sum(self.refused);
        let (ended, failed) = (
            sum([self.treated_finished, self.holdout_finished, self.abandoned]),
            sum([self.treated_failed, self.holdout_failed]),
        );
        let started = |small, value| (small, value, "started", self.started);
        [
            ("hedged", self.hedged, "crossed", self.crossed),
            // A call that crossed is hedged or refused, once.
            (
                "hedged + refused",
                sum([self.hedged, refused]),
                "crossed",
                self.crossed,
            ),
            (
                "hedged_again",
                self.hedged_again,
                "hedged + hedged_on_error",
                sum([self.hedged, self.hedged_on_error]),
            ),
            started("crossed", self.crossed),
            started("finished", self.finished),
            started("threshold_past_deadline", self.threshold_past_deadline),
            started("probation_skipped", self.probation_skipped),
            ("failed", self.failed, "finished", self.finished),
            (
                "treated_finished + holdout_finished + abandoned",
                ended,
                "finished",
                self.finished,
            ),
            (
                "treated_failed + holdout_failed",
                failed,
                "failed",
                self.failed,
            ),
            (
                "failed_despite_primary",
                self.failed_despite_primary,
                "failed",
                self.failed,
            ),
            (
                "holdout_failed",
                self.holdout_failed,
                "holdout_finished",
                self.holdout_finished,
            ),
        ]
    }

    /// The same, of attempts.
    fn of_attempts(&self) -> [Ordered; 10] {
        [
            (
                "won",
                self.won,
                "hedged + hedged_again",
                sum([self.hedged, self.hedged_again]),
            ),
            (
                "treated_failed",
                self.treated_failed,
                "treated_finished",
                self.treated_finished,
            ),
            (
                "primary_finished",
                self.primary_finished,
                "started",
                self.started,
            ),
            (
                "primary_errors",
                self.primary_errors,
                "primary_finished",
                self.primary_finished,
            ),
            (
                "hedge_errors",
                self.hedge_errors,
                "hedge_finished",
                self.hedge_finished,
            ),
            (
                "hedge_finished",
                self.hedge_finished,
                "hedged + hedged_again",
                sum([self.hedged, self.hedged_again]),
            ),
            (
                "won_on_error",
                self.won_on_error,
                "hedged_on_error",
                self.hedged_on_error,
            ),
            // A call has two hedges at most, and each may be sent on error.
            (
                "hedged_on_error",
                self.hedged_on_error,
                "twice started",
                sum([self.started, self.started]),
            ),
            // And each may be refused.
            (
                "further_refused",
                self.further_refused,
                "twice started",
                sum([self.started, self.started]),
            ),
            // Each attempt of a call may be pushed back. An agent counts that before the attempt's
            // end, so the ends are no measure.
            (
                "push_back",
                self.push_back,
                "started + crossed + hedged_again + hedged_on_error",
                sum([
                    self.started,
                    self.crossed,
                    self.hedged_again,
                    self.hedged_on_error,
                ]),
            ),
        ]
    }
}

/// A counter, its value, and another with its value that it is never above.
type Ordered = (&'static str, u64, &'static str, u64);

fn sum<const N: usize>(counters: [u64; N]) -> u64 {
    counters.into_iter().fold(0, u64::saturating_add)
}

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
