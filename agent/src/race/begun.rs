//! A call that has begun and was polled once at most.
//!
//! Most calls of a busy service end here or would, had they not to wait: so there is no race yet, and
//! what answers at once never pays for making one.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hedgerow_protocol::latency::bucket_of;
use tokio::time::Instant;

use super::copies::{Copies, Tried};
use super::{Due, Race};
use crate::attempt::AttemptGuard;
use crate::eligibility::Verdict;
use crate::route::RouteState;
use crate::telemetry::Told;
use crate::ticket::Ticket;

/// See the [module](self). Dropped, the call was given up.
pub(super) struct Begun<'a, C> {
    pub(super) route: &'a Arc<RouteState>,
    pub(super) ticket: Ticket<'a>,
    pub(super) already_hedge: bool,
    pub(super) deadline: Instant,
    pub(super) classify: C,
    pub(super) primary: AttemptGuard<&'a RouteState>,
}

/// What the first poll found.
pub(super) enum Polled<'a, T, E, C> {
    /// The usual call's answer, all in the books.
    Answered(Result<T, E>),
    /// Anything else, with the primary's end where it has ended.
    Other(Begun<'a, C>, Option<(Result<T, E>, Verdict)>),
}

impl<'a, C> Begun<'a, C> {
    /// Ends the usual call: treated, answered, not crossed.
    #[inline]
    pub(super) fn polled<T, E>(mut self, first: Poll<Result<T, E>>) -> Polled<'a, T, E, C>
    where
        C: Fn(&Result<T, E>) -> Verdict,
    {
        let Poll::Ready(result) = first else {
            return Polled::Other(self, None);
        };
        let verdict = (self.classify)(&result);
        if verdict.answers() && self.ticket.treated() {
            let took = Instant::now().saturating_duration_since(self.ticket.began());
            let threshold = self.route.gate.threshold();
            if threshold.is_none_or(|threshold| took <= threshold) {
                end_plainly(&mut self.ticket, self.primary, took);
                return Polled::Answered(result);
            }
        }
        Polled::Other(self, Some((result, verdict)))
    }

    pub(super) fn race<T, E, Fut>(self) -> Race<'a, T, E, Fut, C> {
        Race {
            route: self.route,
            ticket: self.ticket,
            already_hedge: self.already_hedge,
            deadline: self.deadline,
            due: Due::Deadline,
            classify: self.classify,
            primary: Some(self.primary),
            hedges: Copies::default(),
            tried: Tried::default(),
            closed: false,
            took: Duration::ZERO,
            failed: None,
            told: Told::default(),
        }
    }
}

/// Puts the end of a treated call that its primary answered in the books.
#[inline]
pub(super) fn end_plainly(
    ticket: &mut Ticket<'_>,
    primary: AttemptGuard<&RouteState>,
    took: Duration,
) {
    // The primary began with its call: one age, one bucket, for both.
    let bucket = bucket_of(took);
    primary.answered_plainly(bucket);
    ticket.finished_plainly(bucket);
}
