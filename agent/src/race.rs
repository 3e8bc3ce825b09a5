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

mod begun;
mod copies;
mod ends;
mod send;

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use self::begun::{Begun, Polled};
use self::copies::{Copies, Sent, Tried};
use crate::attempt::{Attempt, AttemptGuard, Beginning, begin};
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
    let begun = Begun {
        route,
        ticket,
        already_hedge: call.already_hedge,
        deadline,
        classify,
        primary: guard,
    };
    if begun.ticket.watched() {
        let mut future = Box::pin(make(attempt));
        let first = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
        let (mut race, first) = match begun.polled(first) {
            Polled::Answered(answer) => return answer.map_err(CallError::Failed),
            Polled::Other(begun, first) => (begun.race(), first),
        };
        let outcome = race.run(first, future.as_mut(), &mut make).await;
        if let Outcome::PrimaryWon(_) | Outcome::HedgeWon(_) = &outcome {
            race.watch_losers(future);
        }
        race.close(outcome)
    } else {
        let mut future = pin!(make(attempt));
        let first = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
        let (mut race, first) = match begun.polled(first) {
            Polled::Answered(answer) => return answer.map_err(CallError::Failed),
            Polled::Other(begun, first) => (begun.race(), first),
        };
        let outcome = race.run(first, future, &mut make).await;
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
    /// `first`: how the primary ended, where it did when it was first polled.
    async fn run<F>(
        &mut self,
        first: Option<(Result<T, E>, Verdict)>,
        mut primary: Pin<&mut Fut>,
        make: &mut F,
    ) -> Outcome<T, E>
    where
        F: FnMut(Attempt) -> Fut,
    {
        if let Some((result, verdict)) = first {
            if let Some(outcome) = self.primary_ended(result, verdict, make) {
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
                Event::Primary(result) => {
                    let verdict = (self.classify)(&result);
                    self.primary_ended(result, verdict, make)
                }
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
