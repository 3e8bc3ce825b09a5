//! An answer's body that keeps its attempt's permit until it is read.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::attempt::Hold;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of the attempt that won: the bytes of that attempt, and of no other.
///
/// It keeps the attempt's permit until it ended, failed or was dropped. At the call's deadline a
/// body that has not ended fails, and what it came from is dropped: on HTTP/2 its stream is reset,
/// on HTTP/1 its connection closed.
#[derive(Debug)]
pub struct HeldBody<B> {
    /// None once it ended: the permit is given back then, not when the caller drops the body.
    open: Option<Open<B>>,
}

#[derive(Debug)]
struct Open<B> {
    body: B,
    /// None: it may be read for as long as it takes.
    deadline: Option<Pin<Box<Sleep>>>,
    _permit: Hold,
}

/// Why the body of an answer broke off.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// The call's deadline came before the body's end. Its source is an [`io::Error`] of the kind
    /// `TimedOut`, so that clients which look for one find it.
    #[error("the answer was not complete before the deadline")]
    DeadlineExceeded(#[source] io::Error),
    /// The body's own error.
    #[error("the answer broke off")]
    Failed(#[source] BoxError),
}

impl<B: Body> HeldBody<B> {
    /// `until`: the call's deadline, where it covers the body.
    pub(crate) fn new(body: B, permit: Hold, until: Option<Instant>) -> Self {
        if body.is_end_stream() {
            return Self { open: None };
        }
        let open = Open {
            body,
            deadline: until.map(|until| Box::pin(sleep_until(until))),
            _permit: permit,
        };
        Self { open: Some(open) }
    }
}

impl<B> Body for HeldBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Some(open) = &mut self.open else {
            return Poll::Ready(None);
        };
        // First, so that a body without end that is never slow ends, too.
        let out_of_time = open
            .deadline
            .as_mut()
            .is_some_and(|deadline| deadline.as_mut().poll(cx).is_ready());
        if out_of_time {
            self.open = None;
            let timed_out = io::Error::from(io::ErrorKind::TimedOut);
            return Poll::Ready(Some(Err(BodyError::DeadlineExceeded(timed_out))));
        }
        let frame = ready!(Pin::new(&mut open.body).poll_frame(cx));
        if !matches!(&frame, Some(Ok(_))) || open.body.is_end_stream() {
            self.open = None;
        }
        let failed = |error: B::Error| BodyError::Failed(error.into());
        Poll::Ready(frame.map(|frame| frame.map_err(failed)))
    }

    fn is_end_stream(&self) -> bool {
        self.open
            .as_ref()
            .is_none_or(|open| open.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.open
            .as_ref()
            .map_or(SizeHint::with_exact(0), |open| open.body.size_hint())
    }
}
