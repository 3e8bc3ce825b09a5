//! The whole policy of one call: the primary, the timer, perhaps one hedge, the winner, the loser.
//!
//! ```text
//! primary answers ──────────────────────────────────────────────► its answer
//!    │ still unanswered at the threshold: crossed; admitted? then hedge
//!    ├─ primary answers first ───► its answer; the hedge is dropped
//!    ├─ hedge answers first ─────► its answer; the primary is dropped
//!    ├─ hedge fails ─────────────► the primary goes on alone
//!    ├─ primary fails, fatal ────► its error, at once
//!    ├─ primary fails otherwise ─► the hedge goes on alone; if it fails too, the primary's error
//!    └─ deadline ────────────────► the primary's error if it has one, else DeadlineExceeded
//! ```
//! A failure is never a reason to send a hedge: hedges are for slowness, retries for failures.
//!
//! The primary is pinned in the call's own future: a call that is not hedged allocates nothing, and
//! arms its timer only if the primary did not answer at once. But a pinned future cannot be moved
//! out to be watched to its end, and one hedged call in ten lets its loser finish. So which calls
//! those are is drawn at the start, and the primaries of these few, while hedging is on, are boxed:
//! one allocation in ten calls, where knowing it later would need one in each. A loser's fate is
//! thereby also independent of how the race went, which the survival curve relies on.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use hedgerow_protocol::latency::bucket_of;
use hedgerow_protocol::report::Refusal;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::admission::{Question, admit};
use crate::attempt::{Attempt, AttemptGuard, AttemptKind, Beginning, Ending, begin};
use crate::eligibility::{Call, Verdict};
use crate::error::CallError;
use crate::pool::Replica;
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
        classify,
        primary: Some(guard),
        hedge: None,
        took: Duration::ZERO,
        failed: None,
        told: Told::default(),
    };
    if watched {
        let mut future = Box::pin(future);
        let outcome = race.run(future.as_mut(), &mut make).await;
        let classify = race.classify.clone();
        if let (Outcome::HedgeWon(_), Some(guard)) = (&outcome, race.primary.take()) {
            watch(route, guard, future, classify, deadline);
        } else if let (Outcome::PrimaryWon(_), Some((future, guard))) =
            (&outcome, race.hedge.take())
        {
            watch(route, guard, future, classify, deadline);
        }
        race.close(outcome)
    } else {
        let outcome = race.run(pin!(future), &mut make).await;
        race.close(outcome)
    }
}

/// Longer deadlines are taken as this: `Instant` must be able to hold it.
const DEADLINE_MAX: Duration = Duration::from_hours(24);

type Hedge<'a, Fut> = (Pin<Box<Fut>>, AttemptGuard<&'a RouteState>);

struct Race<'a, T, E, Fut, C> {
    route: &'a Arc<RouteState>,
    ticket: Ticket<'a>,
    already_hedge: bool,
    deadline: Instant,
    classify: C,
    /// Some while the primary is unanswered.
    primary: Option<AttemptGuard<&'a RouteState>>,
    /// Some while the hedge is unanswered.
    hedge: Option<Hedge<'a, Fut>>,
    /// The call's age when the last attempt ended.
    took: Duration,
    /// The primary's failure, while the hedge may still make it good.
    failed: Option<Result<T, E>>,
    /// What the caller's span is to be told, however this ends.
    told: Told,
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

enum Event<T, E> {
    Primary(Result<T, E>),
    Hedge(Result<T, E>),
    Timer,
}

impl<T, E, Fut, C> Race<'_, T, E, Fut, C>
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
        if let Poll::Ready(result) = first
            && let Some(outcome) = self.primary_ended(result)
        {
            return outcome;
        }
        let mut crosses = self.crosses_at();
        let mut timer = pin!(sleep_until(crosses.unwrap_or(self.deadline)));
        let mut just_polled = true;
        loop {
            let event = self.next(primary.as_mut(), timer.as_mut(), &mut just_polled);
            let outcome = match event.await {
                Event::Primary(result) => self.primary_ended(result),
                Event::Hedge(result) => self.hedge_ended(result),
                Event::Timer if crosses.is_some() => {
                    crosses = None;
                    self.crossed(make);
                    timer.as_mut().reset(self.deadline);
                    None
                }
                Event::Timer => Some(self.out_of_time()),
            };
            if let Some(outcome) = outcome {
                return outcome;
            }
        }
    }

    /// When an eligible call crosses; none where it has no threshold, or its deadline comes first:
    /// that is counted, for a policy that finds only such calls does nothing, and nobody would know.
    fn crosses_at(&self) -> Option<Instant> {
        let threshold = self
            .route
            .gate
            .threshold()
            .filter(|_| self.ticket.eligible())?;
        let at = self.ticket.began() + threshold;
        if at >= self.deadline {
            self.route.recorder.count(Counter::ThresholdPastDeadline);
            return None;
        }
        Some(at)
    }

    /// The primary is looked at first, the timer last: an answer that is there when the timer fires
    /// is an answer (B21). `just_polled`: within this very turn, so that only the timer is new.
    async fn next(
        &mut self,
        mut primary: Pin<&mut Fut>,
        mut timer: Pin<&mut Sleep>,
        just_polled: &mut bool,
    ) -> Event<T, E> {
        poll_fn(|cx| {
            if !std::mem::take(just_polled)
                && self.primary.is_some()
                && let Poll::Ready(result) = primary.as_mut().poll(cx)
            {
                return Poll::Ready(Event::Primary(result));
            }
            if let Some((hedge, _)) = &mut self.hedge
                && let Poll::Ready(result) = hedge.as_mut().poll(cx)
            {
                return Poll::Ready(Event::Hedge(result));
            }
            timer.as_mut().poll(cx).map(|()| Event::Timer)
        })
        .await
    }

    /// The timer found the call unanswered.
    fn crossed<F>(&mut self, make: &mut F)
    where
        F: FnMut(Attempt) -> Fut,
    {
        let Some(waits_on) = self
            .primary
            .as_ref()
            .and_then(AttemptGuard::replica)
            .cloned()
        else {
            return;
        };
        self.ticket.crossed(&waits_on);
        self.told.crossed(self.route, &waits_on);
        if let Err(reason) = self.hedge(&waits_on, make) {
            self.route.recorder.refuse(reason);
            self.told.refused(reason);
        }
    }

    fn hedge<F>(&mut self, waits_on: &Replica, make: &mut F) -> Result<(), Refusal>
    where
        F: FnMut(Attempt) -> Fut,
    {
        let now = Instant::now();
        let question = Question {
            held_out: self.ticket.held_out(),
            already_hedge: self.already_hedge,
            waits_on,
            now,
            deadline: self.deadline,
        };
        let (replica, permit) = admit(self.route, &question)?;
        self.route.recorder.count(Counter::Hedged);
        replica.hedged.fetch_add(1, Ordering::Release);
        self.told.hedged(&replica);
        let (deadline, already_hedge) = (self.deadline, self.already_hedge);
        let (guard, attempt) = begin(
            self.route,
            Beginning {
                replica,
                permit: permit.hand_over(),
                now,
                deadline,
                recorded: true,
                already_hedge,
            },
        );
        self.hedge = Some((Box::pin(make(attempt)), guard));
        Ok(())
    }

    fn primary_ended(&mut self, result: Result<T, E>) -> Option<Outcome<T, E>> {
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
        self.told.failed(self.route, guard.replica());
        guard.ended(Ending::Failed, now);
        if self.hedge.is_some() && verdict != Verdict::Fatal {
            self.failed = Some(result);
            return None;
        }
        Some(Outcome::Failed(result))
    }

    fn hedge_ended(&mut self, result: Result<T, E>) -> Option<Outcome<T, E>> {
        let (future, guard) = self.hedge.take()?;
        drop(future);
        let now = Instant::now();
        self.took = now.saturating_duration_since(self.ticket.began());
        let verdict = (self.classify)(&result);
        if verdict.answers() {
            self.route.recorder.count(Counter::Won);
            if let Some(replica) = guard.replica() {
                replica.won.fetch_add(1, Ordering::Release);
            }
            guard.ended(Ending::Answered, now);
            self.told.won(AttemptKind::Hedge);
            return Some(Outcome::HedgeWon(result));
        }
        match verdict {
            Verdict::Dropped => drop(guard),
            Verdict::PushBack => {
                self.ticket.push_back();
                guard.ended(Ending::Failed, now);
            }
            _ => guard.ended(Ending::Failed, now),
        }
        // Both failed: the caller sees the primary's failure, word for word.
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

#[cfg(test)]
mod tests;
