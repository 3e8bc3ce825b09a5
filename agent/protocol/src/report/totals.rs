//! The counters of a route, why crossed calls were not hedged, and the order between counters that
//! no honest agent can break.

use serde::{Deserialize, Serialize};

use super::ReportError;

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
    /// Another share of the agents may hedge now: see [`Arming`](crate::arming::Arming).
    Unarmed,
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
    pub const ALL: [Self; 10] = [
        Self::Mode,
        Self::Holdout,
        Self::Unarmed,
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
            Self::Unarmed => "unarmed",
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
        let calls = self.of_calls().into_iter();
        let ordered = calls.chain(self.of_attempts()).chain(self.of_hedges());
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

    /// The same, of primaries and of attempts of any kind.
    fn of_attempts(&self) -> [Ordered; 4] {
        [
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

    /// The same, of hedges.
    fn of_hedges(&self) -> [Ordered; 6] {
        let slow = (
            "hedged + hedged_again",
            sum([self.hedged, self.hedged_again]),
        );
        // A call has two hedges at most: each may be sent on error, and each may be refused.
        let twice = ("twice started", sum([self.started, self.started]));
        [
            ("won", self.won, slow.0, slow.1),
            (
                "hedge_errors",
                self.hedge_errors,
                "hedge_finished",
                self.hedge_finished,
            ),
            ("hedge_finished", self.hedge_finished, slow.0, slow.1),
            (
                "won_on_error",
                self.won_on_error,
                "hedged_on_error",
                self.hedged_on_error,
            ),
            ("hedged_on_error", self.hedged_on_error, twice.0, twice.1),
            ("further_refused", self.further_refused, twice.0, twice.1),
        ]
    }
}

/// A counter, its value, and another with its value that it is never above.
type Ordered = (&'static str, u64, &'static str, u64);

fn sum<const N: usize>(counters: [u64; N]) -> u64 {
    counters.into_iter().fold(0, u64::saturating_add)
}
