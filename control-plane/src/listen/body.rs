//! A request's body that has to arrive in time.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::BoxError;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::Sleep;

/// The body took too long. Its reader finds it among the causes of its own error.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the body did not arrive within {} s", .within.as_secs_f64())]
pub(crate) struct BodyLate {
    pub(crate) within: Duration,
}

/// A body that fails where the whole of it is not there some time after somebody began to wait for
/// it. In all, not from piece to piece: a byte now and then would otherwise hold a place for ever.
#[derive(Debug)]
pub(super) struct TimelyBody {
    body: Incoming,
    within: Duration,
    /// From when the reader first had to wait.
    due: Option<Pin<Box<Sleep>>>,
}

impl TimelyBody {
    pub(super) fn new(body: Incoming, within: Duration) -> Self {
        Self {
            body,
            within,
            due: None,
        }
    }
}

impl Body for TimelyBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let within = self.within;
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(BoxError::from)));
        }
        let due = self
            .due
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(within)));
        ready!(due.as_mut().poll(cx));
        Poll::Ready(Some(Err(BodyLate { within }.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
