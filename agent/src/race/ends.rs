//! What the end of an attempt, or of the call's time, means for the call.

use std::future::Future;
use std::sync::atomic::Ordering;

use tokio::time::Instant;

use super::begun::end_plainly;
use super::copies::Sent;
use super::{Due, Outcome, Race};
use crate::attempt::{Attempt, AttemptGuard, AttemptKind, Ending};
use crate::eligibility::Verdict;
use crate::error::CallError;
use crate::route::RouteState;

impl<T, E, Fut, C> Race<'_, T, E, Fut, C>
where
    Fut: Future<Output = Result<T, E>>,
    C: Fn(&Result<T, E>) -> Verdict,
{
    pub(super) fn primary_ended<F>(
        &mut self,
        result: Result<T, E>,
        verdict: Verdict,
        make: &mut F,
    ) -> Option<Outcome<T, E>>
    where
        F: FnMut(Attempt) -> Fut,
    {
        let guard = self.primary.take()?;
        let now = Instant::now();
        self.took = now.saturating_duration_since(self.ticket.began());
        match verdict {
            Verdict::Good | Verdict::NegativeAnswer => {
                if self.ticket.primary_answered(guard.replica(), self.took)
                    && let Some(replica) = guard.replica()
                {
                    self.told.crossed(self.route, replica);
                }
                if self.ticket.treated() {
                    end_plainly(&mut self.ticket, guard, self.took);
                } else {
                    guard.ended(Ending::Answered, now);
                }
                self.told.won(AttemptKind::Primary);
                return Some(Outcome::PrimaryWon(result));
            }
            // The guard, dropped, records it as stopped: nobody failed.
            Verdict::Dropped => return Some(Outcome::Dropped(result)),
            Verdict::PushBack => self.ticket.push_back(),
            Verdict::Fatal | Verdict::Retryable => {}
        }
        self.tried.add(guard.replica());
        self.told.failed(self.route, guard.replica());
        guard.ended(Ending::Failed, now);
        if verdict == Verdict::Fatal {
            return Some(Outcome::Failed(result));
        }
        self.closed |= verdict == Verdict::PushBack;
        self.failed = Some(result);
        if self.hedges.in_flight() == 0 {
            // It can no longer cross.
            self.due = Due::Deadline;
        }
        self.go_on(make)
    }

    pub(super) fn hedge_ended<F>(
        &mut self,
        result: Result<T, E>,
        guard: AttemptGuard<&RouteState>,
        sent: Sent,
        make: &mut F,
    ) -> Option<Outcome<T, E>>
    where
        F: FnMut(Attempt) -> Fut,
    {
        let now = Instant::now();
        self.took = now.saturating_duration_since(self.ticket.began());
        let verdict = (self.classify)(&result);
        if verdict.answers() {
            self.route.recorder.count(sent.won());
            if let Some(replica) = guard.replica() {
                replica.won.fetch_add(1, Ordering::Release);
            }
            guard.ended(Ending::Answered, now);
            self.told.won(AttemptKind::Hedge);
            return Some(Outcome::HedgeWon(result));
        }
        self.tried.add(guard.replica());
        // What a hedge says of the call is no verdict on the primary, but on sending it once more.
        self.closed |= matches!(verdict, Verdict::PushBack | Verdict::Fatal);
        if verdict == Verdict::PushBack {
            self.ticket.push_back();
        }
        if verdict == Verdict::Dropped {
            drop(guard);
        } else {
            guard.ended(Ending::Failed, now);
        }
        self.go_on(make)
    }

    /// After a failure: wait for what is in flight; where nothing is, one more copy or the end.
    fn go_on<F>(&mut self, make: &mut F) -> Option<Outcome<T, E>>
    where
        F: FnMut(Attempt) -> Fut,
    {
        let waits = self.primary.is_some() || self.hedges.in_flight() > 0;
        if waits || self.further(Sent::OnError, make) {
            return None;
        }
        // All failed: the caller sees the primary's failure, word for word.
        self.failed.take().map(Outcome::Failed)
    }

    pub(super) fn out_of_time(&mut self) -> Outcome<T, E> {
        self.took = Instant::now().saturating_duration_since(self.ticket.began());
        self.failed
            .take()
            .map_or(Outcome::DeadlineExceeded, Outcome::Failed)
    }

    /// Counts the call's end and makes of it what the caller gets. Losers are dropped with `self`.
    pub(super) fn close(mut self, outcome: Outcome<T, E>) -> Result<T, CallError<E>> {
        let took = self.took;
        match outcome {
            Outcome::PrimaryWon(result) | Outcome::HedgeWon(result) => {
                self.ticket.finished(false, took);
                result.map_err(CallError::Failed)
            }
            Outcome::Failed(result) => {
                self.ticket.finished(true, took);
                result.map_err(CallError::Failed)
            }
            Outcome::Dropped(result) => {
                self.ticket.abandoned();
                result.map_err(CallError::Failed)
            }
            Outcome::DeadlineExceeded => {
                let waits_on = self.primary.as_ref().and_then(AttemptGuard::replica);
                self.told.failed(self.route, waits_on);
                self.ticket.finished(true, took);
                Err(CallError::DeadlineExceeded)
            }
        }
    }
}
