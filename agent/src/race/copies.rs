//! The hedges of one call, and the replicas that failed it. No more than two of each at a time, so
//! both are kept in the call's own future.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hedgerow_protocol::limits::ATTEMPTS_MAX;

use crate::attempt::AttemptGuard;
use crate::pool::Replica;
use crate::route::RouteState;
use crate::stats::recorder::Counter;

/// Most hedges of a call.
const HEDGES_MAX: usize = ATTEMPTS_MAX as usize - 1;

/// Why a hedge was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// The call crossed.
    Crossed,
    /// It was unanswered for another threshold.
    Again,
    /// All copies before it failed.
    OnError,
}

impl Sent {
    /// What counts such hedges.
    pub(super) fn counter(self) -> Counter {
        match self {
            Self::Crossed => Counter::Hedged,
            Self::Again => Counter::HedgedAgain,
            Self::OnError => Counter::HedgedOnError,
        }
    }

    /// What counts those that answered first.
    pub(super) fn won(self) -> Counter {
        match self {
            Self::Crossed | Self::Again => Counter::Won,
            Self::OnError => Counter::WonOnError,
        }
    }
}

/// A hedge in flight.
pub(super) struct Copy<'a, Fut> {
    pub(super) future: Pin<Box<Fut>>,
    pub(super) guard: AttemptGuard<&'a RouteState>,
    pub(super) sent: Sent,
}

/// The hedges in flight.
pub(super) struct Copies<'a, Fut>([Option<Copy<'a, Fut>>; HEDGES_MAX]);

impl<Fut> Default for Copies<'_, Fut> {
    fn default() -> Self {
        Self([const { None }; HEDGES_MAX])
    }
}

impl<'a, Fut: Future> Copies<'a, Fut> {
    /// Of more than there is room for, the last one is dropped: a call never asks for so many.
    pub(super) fn add(&mut self, copy: Copy<'a, Fut>) {
        if let Some(free) = self.0.iter_mut().find(|place| place.is_none()) {
            *free = Some(copy);
        }
    }

    pub(super) fn in_flight(&self) -> u8 {
        self.0.iter().flatten().count() as u8
    }

    pub(super) fn replicas(&self) -> impl Iterator<Item = &Arc<Replica>> {
        self.0
            .iter()
            .flatten()
            .filter_map(|copy| copy.guard.replica())
    }

    /// The first one that has ended; its future is gone then.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<(Fut::Output, AttemptGuard<&'a RouteState>, Sent)> {
        for place in &mut self.0 {
            if let Some(copy) = place
                && let Poll::Ready(output) = copy.future.as_mut().poll(cx)
                && let Some(Copy { guard, sent, .. }) = place.take()
            {
                return Poll::Ready((output, guard, sent));
            }
        }
        Poll::Pending
    }

    /// Takes out those whose ends are worth knowing.
    pub(super) fn take_recorded(
        &mut self,
    ) -> impl Iterator<Item = (Pin<Box<Fut>>, AttemptGuard<&'a RouteState>)> {
        self.0
            .iter_mut()
            .filter_map(Option::take)
            .filter(|copy| copy.sent != Sent::OnError)
            .map(|copy| (copy.future, copy.guard))
    }
}

/// Replicas that failed a call: it does not go there again.
#[derive(Debug, Default)]
pub(super) struct Tried([Option<Arc<Replica>>; ATTEMPTS_MAX as usize]);

impl Tried {
    pub(super) fn add(&mut self, replica: Option<&Arc<Replica>>) {
        if let Some(free) = self.0.iter_mut().find(|place| place.is_none()) {
            *free = replica.cloned();
        }
    }

    pub(super) fn count(&self) -> u8 {
        self.0.iter().flatten().count() as u8
    }

    /// These, and those that the call waits on.
    pub(super) fn and<'a>(
        &'a self,
        waits_on: impl Iterator<Item = &'a Arc<Replica>>,
    ) -> [Option<&'a Replica>; ATTEMPTS_MAX as usize] {
        let mut all = self.0.iter().flatten().chain(waits_on);
        std::array::from_fn(|_| all.next().map(Arc::as_ref))
    }
}
