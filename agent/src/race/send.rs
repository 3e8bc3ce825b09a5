//! Sending another copy of a call: because it crossed, again, or because all before it failed.

use std::future::Future;
use std::sync::atomic::Ordering;

use hedgerow_protocol::report::Refusal;
use tokio::time::Instant;

use super::copies::{Copy, Sent};
use super::{Due, Race};
use crate::admission::{Question, admit};
use crate::attempt::{Attempt, AttemptGuard, Beginning, begin};
use crate::eligibility::Verdict;

impl<T, E, Fut, C> Race<'_, T, E, Fut, C>
where
    Fut: Future<Output = Result<T, E>>,
    C: Fn(&Result<T, E>) -> Verdict,
{
    /// The timer found the call unanswered for the first time.
    pub(super) fn crossed<F>(&mut self, make: &mut F)
    where
        F: FnMut(Attempt) -> Fut,
    {
        if let Some(waits_on) = self.primary.as_ref().and_then(AttemptGuard::replica) {
            self.ticket.crossed(waits_on);
            self.told.crossed(self.route, waits_on);
            if let Err(reason) = self.hedge(Sent::Crossed, make) {
                self.route.recorder.refuse(reason);
                self.told.refused(reason);
            }
        }
    }

    /// One more copy than the first hedge of a crossed call, where the policy allows it. False where
    /// none was sent.
    pub(super) fn further<F>(&mut self, sent: Sent, make: &mut F) -> bool
    where
        F: FnMut(Attempt) -> Fut,
    {
        let gate = self.route.gate.read();
        let wanted = match sent {
            Sent::OnError => gate.hedge_on_error() && self.ticket.eligible(),
            Sent::Crossed | Sent::Again => true,
        };
        if self.closed || !wanted || self.copies() >= gate.attempts() {
            return false;
        }
        let sent = self.hedge(sent, make);
        if let Err(reason) = sent {
            self.route.recorder.refuse_further(reason);
            self.told.refused(reason);
        }
        sent.is_ok()
    }

    /// Copies sent so far.
    fn copies(&self) -> u8 {
        u8::from(self.primary.is_some()) + self.hedges.in_flight() + self.tried.count()
    }

    fn hedge<F>(&mut self, sent: Sent, make: &mut F) -> Result<(), Refusal>
    where
        F: FnMut(Attempt) -> Fut,
    {
        let now = Instant::now();
        let waits_on = self.primary.as_ref().and_then(AttemptGuard::replica);
        let avoid = self
            .tried
            .and(waits_on.into_iter().chain(self.hedges.replicas()));
        let question = Question {
            held_out: self.ticket.held_out(),
            already_hedge: self.already_hedge,
            avoid: &avoid,
            now,
            deadline: self.deadline,
        };
        let (replica, permit) = admit(self.route, &question)?;
        self.route.recorder.count(sent.counter());
        replica.hedged.fetch_add(1, Ordering::Release);
        self.told.hedged(&replica);
        let (guard, attempt) = begin(
            self.route,
            Beginning {
                replica,
                permit: permit.hand_over(),
                now,
                deadline: self.deadline,
                // What is sent after a failure is no sample of what a hedge of a slow call does.
                recorded: sent != Sent::OnError,
                already_hedge: self.already_hedge,
            },
        );
        let future = Box::pin(make(attempt));
        self.hedges.add(Copy {
            future,
            guard,
            sent,
        });
        self.due = self.again(now);
        Ok(())
    }

    /// When yet another copy is due after one sent `now`; the policy is asked again then.
    fn again(&self, now: Instant) -> Due {
        let at = self.route.gate.threshold().map(|threshold| now + threshold);
        match at {
            Some(at) if self.copies() < self.route.gate.read().attempts() && at < self.deadline => {
                Due::Again(at)
            }
            _ => Due::Deadline,
        }
    }
}
