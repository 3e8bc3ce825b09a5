//! The whole policy of one call: the primary, the timer, perhaps a hedge or two, the winner, the
//! losers.
//!
//! ```text
//! primary answers ───────────────────────────────────────────────► its answer
//!    │ still unanswered at the threshold: crossed; admitted? then hedge
//!    │ another threshold later, where the policy allows three copies: hedge again
//!    ├─ primary answers first ────► its answer; the hedges are dropped
//!    ├─ a hedge answers first ────► its answer; the others are dropped
//!    ├─ a hedge fails ────────────► the others go on
//!    ├─ primary fails, fatal ─────► its error, at once
//!    ├─ primary fails otherwise ──► a hedge in flight goes on; if all fail, the primary's error
//!    │     none in flight: the primary's error; or, where the policy says so, one more copy now
//!    └─ deadline ─────────────────► the primary's error if it has one, else DeadlineExceeded
//! ```
//! Hedges are for slowness. A failure sends one only where the policy says so (hedge on error), and
//! then it is no second mechanism beside the first: the same admission, the same budget, the same
//! deadline, and the same most copies of a call. That is how retries and hedges compose.
//!
//! The primary is pinned in the call's own future: a call that is not hedged allocates nothing, and
//! arms its timer only if the primary did not answer at once. But a pinned future cannot be moved
//! out to be watched to its end, and one hedged call in ten lets its losers finish. So which calls
//! those are is drawn at the start, and the primaries of these few, while hedging is on, are boxed:
//! one allocation in ten calls, where knowing it later would need one in each. A loser's fate is
//! thereby also independent of how the race went, which the survival curve relies on.

mod copies;

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use hedgerow_protocol::latency::bucket_of;
use hedgerow_protocol::report::Refusal;
use tokio::time::{Instant, Sleep, sleep_until};

use self::copies::{Copies, Copy, Sent, Tried};
use crate::admission::{Question, admit};
use crate::attempt::{Attempt, AttemptGuard, AttemptKind, Beginning, Ending, begin};
use crate::eligibility::{Call, Verdict};
use crate::error::CallError;
use crate::route::RouteState;
use crate::stats::recorder::Counter;
use crate::telemetry::Told;
use crate::ticket::Ticket;
use crate::watch::watch;

/// Runs one call to its end.
pub(crate) async fn run<T, E, F, Fut, C>(
    route: &Arc<RouteState>,
    call: Call,
    classify: C,
    mut make: F,
) -> Result<T, CallError<E>>
where
    T: 'static,
    E: 'static,
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    C: Fn(&Result<T, E>) -> Verdict + Clone + Send + 'static,
{
    let now = Instant::now();
    let deadline = now
        + call
            .deadline
            .unwrap_or(route.limits.deadline)
            .min(DEADLINE_MAX);
    let ticket = Ticket::begin(route, &call, now);
    let replica = match &call.pinned {
        Some(name) => route.pool.pinned(name),
        None => route.pick_primary(ticket.eligible()),
    };
    let (guard, attempt) = begin(
        route,
        Beginning {
            replica,
            permit: None,
            now,
            deadline,
            recorded: ticket.eligible(),
            already_hedge: call.already_hedge,
        },
    );
    let watched = ticket.watched();
    let future = make(attempt);
    let mut race = Race {
        route,
        ticket,
        already_hedge: call.already_hedge,
        deadline,
        due: Due::Deadline,
        classify,
        primary: Some(guard),
        hedges: Copies::default(),
        tried: Tried::default(),
        closed: false,
        took: Duration::ZERO,
        failed: None,
        told: Told::default(),
    };
    if watched {
        let mut future = Box::pin(future);
        let outcome = race.run(future.as_mut(), &mut make).await;
        if let Outcome::PrimaryWon(_) | Outcome::HedgeWon(_) = &outcome {
            race.watch_losers(future);
        }
        race.close(outcome)
    } else {
        let outcome = race.run(pin!(future), &mut make).await;
        race.close(outcome)
    }
}

/// Longer deadlines are taken as this: `Instant` must be able to hold it.
const DEADLINE_MAX: Duration = Duration::from_hours(24);

struct Race<'a, T, E, Fut, C> {
    route: &'a Arc<RouteState>,
    ticket: Ticket<'a>,
    already_hedge: bool,
    deadline: Instant,
    due: Due,
    classify: C,
    /// Some while the primary is unanswered.
    primary: Option<AttemptGuard<&'a RouteState>>,
    /// Those in flight.
    hedges: Copies<'a, Fut>,
    /// Replicas that failed this call.
    tried: Tried,
    /// An answer said that further copies would do harm, or no good.
    closed: bool,
    /// The call's age when the last attempt ended.
    took: Duration,
    /// The primary's failure, while a hedge may still make it good.
    failed: Option<Result<T, E>>,
    /// What the caller's span is to be told, however this ends.
    told: Told,
}

/// What the timer waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    /// The call crosses.
    Crossing(Instant),
    /// A threshold has gone by since the last copy was sent.
    Again(Instant),
    Deadline,
}

enum Outcome<T, E> {
    PrimaryWon(Result<T, E>),
    HedgeWon(Result<T, E>),
    /// The primary's result, an error or push-back.
    Failed(Result<T, E>),
    /// The attempt says that its own side gave up.
    Dropped(Result<T, E>),
    DeadlineExceeded,
}

enum Event<'a, T, E> {
    Primary(Result<T, E>),
    Hedge(Result<T, E>, AttemptGuard<&'a RouteState>, Sent),
    Timer,
}

impl<'a, T, E, Fut, C> Race<'a, T, E, Fut, C>
where
    Fut: Future<Output = Result<T, E>>,
    C: Fn(&Result<T, E>) -> Verdict,
{
    async fn run<F>(&mut self, mut primary: Pin<&mut Fut>, make: &mut F) -> Outcome<T, E>
    where
        F: FnMut(Attempt) -> Fut,
    {
        // Once without a timer: what answers at once needs none.
        let first = poll_fn(|cx| Poll::Ready(primary.as_mut().poll(cx))).await;
        if let Poll::Ready(result) = first {
            if let Some(outcome) = self.primary_ended(result, make) {
                return outcome;
            }
        } else {
            self.due = self.crossing();
        }
        let mut timer = pin!(sleep_until(self.due_at()));
        let mut just_polled = true;
        loop {
            let event = self.next(primary.as_mut(), timer.as_mut(), &mut just_polled);
            let outcome = match event.await {
                Event::Primary(result) => self.primary_ended(result, make),
                Event::Hedge(result, guard, sent) => self.hedge_ended(result, guard, sent, make),
                Event::Timer => self.timer_fired(make),
            };
            if let Some(outcome) = outcome {
                return outcome;
            }
            if timer.deadline() != self.due_at() {
                timer.as_mut().reset(self.due_at());
            }
        }
    }

    fn due_at(&self) -> Instant {
        match self.due {
            Due::Crossing(at) | Due::Again(at) => at,
            Due::Deadline => self.deadline,
        }
    }

    /// When an eligible call crosses; not where it has no threshold, or its deadline comes first:
    /// that is counted, for a policy that finds only such calls does nothing, and nobody would know.
    fn crossing(&self) -> Due {
        if !self.ticket.eligible() {
            return Due::Deadline;
        }
        let Some(threshold) = self.route.gate.threshold() else {
            self.route.miss_threshold();
            return Due::Deadline;
        };
        let at = self.ticket.began() + threshold;
        if at >= self.deadline {
            self.route.recorder.count(Counter::ThresholdPastDeadline);
            return Due::Deadline;
        }
        Due::Crossing(at)
    }

    /// The primary is looked at first, the timer last: an answer that is there when the timer fires
    /// is an answer (B21). `just_polled`: within this very turn, so that only the rest is new.
    async fn next(
        &mut self,
        mut primary: Pin<&mut Fut>,
        mut timer: Pin<&mut Sleep>,
        just_polled: &mut bool,
    ) -> Event<'a, T, E> {
        poll_fn(|cx| {
            if !std::mem::take(just_polled)
                && self.primary.is_some()
                && let Poll::Ready(result) = primary.as_mut().poll(cx)
            {
                return Poll::Ready(Event::Primary(result));
            }
            if let Poll::Ready((result, guard, sent)) = self.hedges.poll(cx) {
                return Poll::Ready(Event::Hedge(result, guard, sent));
            }
            timer.as_mut().poll(cx).map(|()| Event::Timer)
        })
        .await
    }

    fn timer_fired<F>(&mut self, make: &mut F) -> Option<Outcome<T, E>>
    where
        F: FnMut(Attempt) -> Fut,
    {
        match std::mem::replace(&mut self.due, Due::Deadline) {
            Due::Crossing(_) => self.crossed(make),
            Due::Again(_) => {
                let _ = self.further(Sent::Again, make);
            }
            Due::Deadline => return Some(self.out_of_time()),
        }
        None
    }

    /// The timer found the call unanswered for the first time.
    fn crossed<F>(&mut self, make: &mut F)
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
    fn further<F>(&mut self, sent: Sent, make: &mut F) -> bool
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
        let refused = self.hedge(sent, make).is_err();
        if refused {
            self.route.recorder.count(Counter::FurtherRefused);
        }
        !refused
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

    fn primary_ended<F>(&mut self, result: Result<T, E>, make: &mut F) -> Option<Outcome<T, E>>
    where
        F: FnMut(Attempt) -> Fut,
    {
        let guard = self.primary.take()?;
        let now = Instant::now();
        self.took = now.saturating_duration_since(self.ticket.began());
        let verdict = (self.classify)(&result);
        match verdict {
            Verdict::Good | Verdict::NegativeAnswer => {
                if self.ticket.primary_answered(guard.replica(), self.took)
                    && let Some(replica) = guard.replica()
                {
                    self.told.crossed(self.route, replica);
                }
                if self.ticket.treated() {
                    // The primary began with its call: one age, one bucket, for both.
                    let bucket = bucket_of(self.took);
                    guard.answered_plainly(bucket);
                    self.ticket.finished_plainly(bucket);
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

    fn hedge_ended<F>(
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

    fn out_of_time(&mut self) -> Outcome<T, E> {
        self.took = Instant::now().saturating_duration_since(self.ticket.began());
        self.failed
            .take()
            .map_or(Outcome::DeadlineExceeded, Outcome::Failed)
    }

    /// Counts the call's end and makes of it what the caller gets. Losers are dropped with `self`.
    fn close(mut self, outcome: Outcome<T, E>) -> Result<T, CallError<E>> {
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

impl<T, E, Fut, C> Race<'_, T, E, Fut, C>
where
    T: 'static,
    E: 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    C: Fn(&Result<T, E>) -> Verdict + Clone + Send + 'static,
{
    /// Lets all that is still unanswered finish.
    fn watch_losers(&mut self, primary: Pin<Box<Fut>>) {
        let losers = self.primary.take().map(|guard| (primary, guard));
        let hedges = self.hedges.take_recorded();
        for (future, guard) in losers.into_iter().chain(hedges) {
            let classify = self.classify.clone();
            watch(self.route, guard, future, classify, self.deadline);
        }
    }
}

#[cfg(test)]
mod tests;
