//! A request that can be sent again, if it is one message.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::Request;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::Full;
use tonic::Status;
use tonic::body::Body;

/// What a call's attempts send.
pub(super) enum Sendable {
    /// It is, or may be, a stream, or must not run twice: there is one attempt.
    Once(Option<Request<Body>>),
    /// One message, held here.
    Again(Request<Bytes>),
}

impl Sendable {
    /// Looks at what the request's body has ready, and never waits for more: a client that streams
    /// may send nothing further until it is answered.
    pub(super) async fn of(request: Request<Body>, bytes_max: usize) -> Self {
        let (head, body) = request.into_parts();
        let mut ready = Ready::new(body);
        poll_fn(|cx| {
            ready.look(cx, bytes_max);
            Poll::Ready(())
        })
        .await;
        match ready.one_message() {
            Ok(message) => Self::Again(Request::from_parts(head, message)),
            Err(body) => Self::Once(Some(Request::from_parts(head, Body::new(body)))),
        }
    }

    /// The next attempt's. None: there is no further one.
    pub(super) fn next(&mut self) -> Option<Request<Body>> {
        match self {
            Self::Once(request) => request.take(),
            Self::Again(request) => {
                Some(request.clone().map(|message| Body::new(Full::new(message))))
            }
        }
    }
}

/// What a body had ready.
struct Ready {
    frames: VecDeque<Result<Frame<Bytes>, Status>>,
    bytes: usize,
    rest: Body,
    ended: bool,
}

impl Ready {
    fn new(body: Body) -> Self {
        Self {
            frames: VecDeque::new(),
            bytes: 0,
            rest: body,
            ended: false,
        }
    }

    fn look(&mut self, cx: &mut Context<'_>, bytes_max: usize) {
        while self.bytes <= bytes_max {
            match Pin::new(&mut self.rest).poll_frame(cx) {
                Poll::Pending => return,
                Poll::Ready(None) => {
                    self.ended = true;
                    // A stream need not bear to be asked again.
                    self.rest = Body::empty();
                    return;
                }
                Poll::Ready(Some(frame)) => {
                    let data = frame.as_ref().ok().and_then(Frame::data_ref);
                    let Some(data) = data else {
                        self.frames.push_back(frame);
                        return;
                    };
                    // An empty frame counts, too: there may be no end of them.
                    self.bytes += data.len().max(1);
                    self.frames.push_back(frame);
                }
            }
        }
    }

    /// The message, where that is all there is.
    fn one_message(self) -> Result<Bytes, Replayed> {
        let frames: Option<Vec<_>> = self
            .frames
            .iter()
            .map(|frame| frame.as_ref().ok().and_then(Frame::data_ref))
            .collect();
        let message = match frames.as_deref() {
            Some([all]) if self.ended => Some((*all).clone()),
            Some(parts) if self.ended => {
                let mut all = BytesMut::with_capacity(self.bytes);
                for part in parts {
                    all.extend_from_slice(part);
                }
                Some(all.freeze())
            }
            _ => None,
        };
        message
            .filter(|message| is_one(message))
            .ok_or_else(|| Replayed::new(self.frames, self.rest))
    }
}

/// Before each message: a byte for compression and four for its length.
fn is_one(bytes: &[u8]) -> bool {
    match bytes {
        [_, a, b, c, d, message @ ..] => {
            u64::from(u32::from_be_bytes([*a, *b, *c, *d])) == message.len() as u64
        }
        _ => false,
    }
}

/// Frames that were looked at, and then the rest of their body.
pub(super) struct Replayed {
    first: VecDeque<Result<Frame<Bytes>, Status>>,
    rest: Body,
}

impl Replayed {
    pub(super) fn new(first: VecDeque<Result<Frame<Bytes>, Status>>, rest: Body) -> Self {
        Self { first, rest }
    }
}

impl http_body::Body for Replayed {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Some(frame) = self.first.pop_front() {
            return Poll::Ready(Some(frame));
        }
        Pin::new(&mut self.rest).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && self.rest.is_end_stream()
    }

    /// Not known, as for any gRPC stream.
    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt, stream};
    use http_body_util::{BodyExt, StreamBody};

    use super::*;

    fn message(text: &str) -> Bytes {
        let mut bytes = vec![0];
        bytes.extend_from_slice(&u32::try_from(text.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(text.as_bytes());
        bytes.into()
    }

    async fn look(frames: Vec<Bytes>, then_waits: bool) -> Sendable {
        // It panics where it is polled after its end, as streams may.
        let frames = stream::unfold(frames.into_iter(), |mut frames| async {
            let frame = Frame::data(frames.next()?);
            Some((Ok::<_, Status>(frame), frames))
        });
        let body = if then_waits {
            Body::new(StreamBody::new(frames.chain(stream::pending())))
        } else {
            Body::new(StreamBody::new(frames))
        };
        Sendable::of(Request::new(body), 64).await
    }

    #[tokio::test]
    async fn one_whole_message_can_be_sent_as_often_as_asked() {
        let whole = message("item 7");
        let parts = vec![whole.slice(..3), whole.slice(3..)];
        for frames in [vec![whole.clone()], parts] {
            let mut sendable = look(frames, false).await;
            for _ in 0..3 {
                let body = sendable.next().unwrap().into_body();
                assert_eq!(body.collect().await.unwrap().to_bytes(), whole);
            }
        }
    }

    #[tokio::test]
    async fn anything_else_is_sent_once_and_whole() {
        let long = message(&"x".repeat(80));
        for frames in [
            vec![],
            vec![message("a"), message("b")],
            vec![message("a").slice(..4)],
            vec![long],
        ] {
            let all = frames.concat();
            let mut sendable = look(frames, false).await;
            assert!(matches!(sendable, Sendable::Once(_)));
            let body = sendable.next().unwrap().into_body();
            assert_eq!(body.collect().await.unwrap().to_bytes(), all);
            assert!(sendable.next().is_none());
        }
    }

    #[tokio::test]
    async fn a_body_that_has_always_more_ready_is_not_read_for_ever() {
        let empty = stream::repeat_with(|| Ok::<_, Status>(Frame::data(Bytes::new())));
        let body = Body::new(StreamBody::new(empty));
        let sendable = Sendable::of(Request::new(body), 64).await;
        assert!(matches!(sendable, Sendable::Once(_)));
    }

    #[tokio::test]
    async fn a_body_that_may_go_on_is_not_waited_for() {
        let sendable = look(vec![message("a")], true).await;
        assert!(matches!(sendable, Sendable::Once(_)));
    }
}
