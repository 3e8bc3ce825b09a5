//! Whether a crossed call is hedged, and the first reason why not.
//!
//! The cheap questions come first, and what has to be given back (the permit) or cannot be given
//! back (the token) last: so a refusal costs nobody a token.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hedgerow_protocol::report::Refusal;
use tokio::time::Instant;

use crate::attempt::ATTEMPT_HOLDERS;
use crate::chance;
use crate::permit::{Permits, Slot};
use crate::pool::Replica;
use crate::route::RouteState;

/// What is asked of.
pub(crate) struct Question<'a> {
    pub(crate) held_out: bool,
    pub(crate) already_hedge: bool,
    /// Replicas it waits on, or that failed it.
    pub(crate) avoid: &'a [Option<&'a Replica>],
    pub(crate) now: Instant,
    pub(crate) deadline: Instant,
}

/// A permit for one hedge; given back when dropped, unless an attempt took it over.
#[derive(Debug)]
pub(crate) struct HedgePermit<'a> {
    permits: &'a Permits,
    slot: Option<Slot>,
}

impl<'a> HedgePermit<'a> {
    /// Takes its place first and counts then: two that come at once may both be refused, but never
    /// both let in for one place.
    fn take(route: &'a RouteState, now: Instant) -> Option<Self> {
        let permits = &*route.permits;
        let slot = permits
            .slots
            .take(route.since_birth(now), ATTEMPT_HOLDERS, false);
        let hedges = permits.hedges.fetch_add(1, Ordering::SeqCst) + 1;
        let permit = Self {
            permits,
            slot: Some(slot),
        };
        let fits = hedges <= route.limits.hedges_alive
            && permits.slots.taken() <= route.limits.attempts_alive;
        fits.then_some(permit)
    }

    /// The attempt has it now, and gives it back at its end.
    pub(crate) fn hand_over(mut self) -> Option<Slot> {
        self.slot.take()
    }
}

impl Drop for HedgePermit<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            for _ in 0..ATTEMPT_HOLDERS {
                self.permits.slots.release(slot, false);
            }
            self.permits.hedges.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// The replica and the permit for a hedge, its token paid; or the reason why there is none.
pub(crate) fn admit<'a>(
    route: &'a RouteState,
    question: &Question<'_>,
) -> Result<(Arc<Replica>, HedgePermit<'a>), Refusal> {
    // Read now, not at the call's start: an off that came since holds for this call, too.
    let gate = route.gate.read();
    if !gate.open() {
        return Err(Refusal::Mode);
    }
    if question.already_hedge {
        return Err(Refusal::AlreadyHedge);
    }
    if question.held_out {
        return Err(Refusal::Holdout);
    }
    if !gate.armed() {
        return Err(Refusal::Unarmed);
    }
    if !chance::one_in(gate.probability()) {
        return Err(Refusal::NotDrawn);
    }
    if question.now + route.gate.typical() >= question.deadline {
        return Err(Refusal::Deadline);
    }
    let replica = route
        .pool
        .hedge(question.avoid, route.bucket.earned())
        .ok_or(Refusal::NoReplica)?;
    let permit = HedgePermit::take(route, question.now).ok_or(Refusal::NoPermit)?;
    if !route.bucket.take() {
        return Err(Refusal::Budget);
    }
    Ok((replica, permit))
}
