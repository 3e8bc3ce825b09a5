//! One call in the books: which arm it is in, and that it ends exactly once.

use hedgerow_protocol::report::Refusal;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

use crate::chance;
use crate::eligibility::Call;
use crate::pool::Replica;
use crate::route::RouteState;
use crate::stats::recorder::{Counter, Series};

/// One hedged call in ten lets its loser finish, in 2^24 parts.
const WATCHED_SHARE: u32 = (1 << 24) / 10;

/// Dropped before its end, the call was given up by its caller.
#[derive(Debug)]
pub(crate) struct Ticket<'a> {
    route: &'a RouteState,
    began: Instant,
    arm: Arm,
    watched: bool,
    crossed: bool,
    primary_answered: bool,
    open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arm {
    NotEligible,
    HeldOut,
    Treated,
}

impl<'a> Ticket<'a> {
    #[expect(
        clippy::inline_always,
        reason = "what it returns is moved on at once: not through memory"
    )]
    #[inline(always)]
    pub(crate) fn begin(route: &'a RouteState, call: &Call, now: Instant) -> Self {
        let gate = route.gate.read();
        let (for_holdout, for_watch) = chance::two();
        let arm = if !call.idempotent {
            Arm::NotEligible
        } else if for_holdout < gate.holdout() {
            Arm::HeldOut
        } else {
            Arm::Treated
        };
        let eligible = arm != Arm::NotEligible;
        route.recorder.count(if eligible {
            Counter::Started
        } else {
            Counter::NotEligible
        });
        let may_hedge = gate.open() && arm == Arm::Treated && !call.already_hedge;
        let watched = may_hedge && for_watch < WATCHED_SHARE;
        Self {
            route,
            began: now,
            arm,
            watched,
            crossed: false,
            primary_answered: false,
            open: eligible,
        }
    }

    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    pub(crate) fn eligible(&self) -> bool {
        self.arm != Arm::NotEligible
    }

    pub(crate) fn held_out(&self) -> bool {
        self.arm == Arm::HeldOut
    }

    /// Whether it is in the arm that may be hedged.
    pub(crate) fn treated(&self) -> bool {
        self.arm == Arm::Treated
    }

    /// Whether its loser is to be let finish, should it have one.
    pub(crate) fn watched(&self) -> bool {
        self.watched
    }

    /// Unanswered at the threshold, whatever comes of it.
    pub(crate) fn crossed(&mut self, waits_on: &Replica) {
        if !self.crossed {
            self.crossed = true;
            self.route.recorder.count(Counter::Crossed);
            waits_on.crossed.fetch_add(1, Ordering::Release);
        }
    }

    /// The primary answered. Timers tick in milliseconds, thresholds may be shorter: a call that
    /// was answered after the threshold but before its timer fired has crossed all the same. True for
    /// one that has crossed.
    #[inline]
    pub(crate) fn primary_answered(
        &mut self,
        replica: Option<&Arc<Replica>>,
        took: Duration,
    ) -> bool {
        self.primary_answered = true;
        if let (true, false, Some(replica)) = (self.open, self.crossed, replica)
            && let Some(threshold) = self.route.gate.threshold()
            && took > threshold
        {
            self.crossed(replica);
            self.route.recorder.refuse(Refusal::Answered);
        }
        self.crossed
    }

    pub(crate) fn push_back(&self) {
        if self.eligible() {
            self.route.recorder.count(Counter::PushBack);
        }
    }

    /// A treated call was answered by its primary: one sample for both.
    #[inline]
    pub(crate) fn finished_plainly(&mut self, bucket: usize) {
        if std::mem::take(&mut self.open) {
            self.route.recorder.record_in(Series::Plain, bucket);
            self.route.bucket.earn();
        }
    }

    /// The call ended with an answer or an error, unless it is in the books already.
    #[inline]
    pub(crate) fn finished(&mut self, failed: bool, took: Duration) {
        if std::mem::take(&mut self.open) {
            self.finish(failed, took);
        }
    }

    fn finish(&self, failed: bool, took: Duration) {
        let recorder = &self.route.recorder;
        let (finished_in_arm, failed_in_arm, series) = if self.held_out() {
            (
                Counter::HoldoutFinished,
                Counter::HoldoutFailed,
                Series::Holdout,
            )
        } else {
            (
                Counter::TreatedFinished,
                Counter::TreatedFailed,
                Series::Treated,
            )
        };
        recorder.count(finished_in_arm);
        if failed {
            recorder.count(failed_in_arm);
            if self.primary_answered {
                recorder.count(Counter::FailedDespitePrimary);
            }
        }
        recorder.record(series, took);
        self.route.bucket.earn();
    }

    /// The call was given up.
    #[inline]
    pub(crate) fn abandoned(&mut self) {
        if std::mem::take(&mut self.open) {
            self.give_up();
        }
    }

    #[cold]
    fn give_up(&self) {
        self.route.recorder.count(Counter::Abandoned);
        self.route.bucket.earn();
    }
}

impl Drop for Ticket<'_> {
    #[inline]
    fn drop(&mut self) {
        self.abandoned();
    }
}
