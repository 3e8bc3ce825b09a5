//! One attempt, up to the point where it wins or loses: its first message, or its status.

use std::collections::VecDeque;
use std::error::Error;
use std::future::pending;

use bytes::Bytes;
use http::header::HeaderMap;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt;
use tokio::time::Instant;
use tonic::body::Body;
use tonic::transport::Channel;
use tonic::{Code, Status, TimeoutExpired};
use tower::ServiceExt;

use super::request::Replayed;
use super::timeout;
use super::verdicts::{GrpcVerdicts, PUSH_BACK_HEADER};
use crate::attempt::Attempt;
use crate::eligibility::Verdict;
use crate::integrations::body::{BodyError, HeldBody};
use crate::integrations::mark::mark;

/// A response that began with a message, or ended without one.
pub(super) struct Answer {
    response: Response<HeldBody<Replayed>>,
    ended: Option<Ended>,
}

/// A status, as hedging sees it.
#[derive(Debug, Clone, Copy)]
struct Ended {
    code: Code,
    push_back: bool,
}

impl Ended {
    /// By the status in trailers, or in headers that are trailers; without one, by what the HTTP
    /// status says.
    fn by(trailers: &HeaderMap, http: StatusCode) -> Self {
        let code = trailers
            .get(GRPC_STATUS)
            .map_or_else(|| not_grpc(http), |value| Code::from_bytes(value.as_ref()));
        Self {
            code,
            push_back: trailers.contains_key(PUSH_BACK_HEADER),
        }
    }

    fn of(status: &Status) -> Self {
        Self {
            code: status.code(),
            push_back: status.metadata().contains_key(PUSH_BACK_HEADER),
        }
    }
}

impl Answer {
    pub(super) fn verdict(&self, verdicts: &GrpcVerdicts) -> Verdict {
        self.ended.map_or(Verdict::Good, |ended| {
            verdicts.of(ended.code, ended.push_back)
        })
    }

    /// What the caller gets: every frame of it, the one that was looked at among them.
    pub(super) fn into_response(self) -> Response<Body> {
        self.response
            .map(|body| Body::new(body.map_err(status_of_body)))
    }
}

/// No response: what tonic's channel failed with.
#[derive(Debug)]
pub(super) struct Failure {
    status: Status,
    /// What it counts as.
    ended: Ended,
}

impl Failure {
    fn of(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let error = error.into();
        let timed_out = has_timed_out(&*error);
        let status = Status::from_error(error);
        let mut ended = Ended::of(&status);
        if timed_out {
            // To tonic it is CANCELLED.
            ended.code = Code::DeadlineExceeded;
        }
        Self { status, ended }
    }

    pub(super) fn verdict(&self, verdicts: &GrpcVerdicts) -> Verdict {
        verdicts.of(self.ended.code, self.ended.push_back)
    }

    pub(super) fn into_status(self) -> Status {
        self.status
    }
}

/// Whether a timer of the channel's own is what an error comes from.
fn has_timed_out(error: &(dyn Error + 'static)) -> bool {
    error.is::<TimeoutExpired>() || error.source().is_some_and(has_timed_out)
}

pub(super) fn deadline_exceeded() -> Status {
    Status::deadline_exceeded("no answer before the deadline")
}

fn status_of_body(error: BodyError) -> Status {
    match error {
        BodyError::DeadlineExceeded(_) => {
            Status::deadline_exceeded("the answer was not complete before the deadline")
        }
        BodyError::Failed(error) => Status::from_error(error),
    }
}

/// Carries one attempt out. `covers_body`: the deadline holds for the whole response.
pub(super) async fn send(
    channel: Result<Channel, Status>,
    request: Option<Request<Body>>,
    attempt: Attempt,
    covers_body: bool,
) -> Result<Answer, Failure> {
    let result = async {
        let Some(mut request) = request else {
            return Err(Failure::of(Status::internal("a request sent once already")));
        };
        mark(request.headers_mut(), &attempt);
        if covers_body {
            timeout::set(request.headers_mut(), attempt.deadline());
        } else {
            timeout::clear(request.headers_mut());
        }
        let channel = channel.map_err(Failure::of)?;
        let response = channel.oneshot(request).await.map_err(Failure::of)?;
        Ok(answer(response, &attempt, covers_body).await)
    }
    .await;
    if attempt.deadline() <= Instant::now() && gave_up(&result) {
        // The channel's own timer, or the server's, found out that the call's time is up. It is the
        // race that says so, for all attempts alike: a moment from now.
        drop(result);
        return pending().await;
    }
    result
}

fn gave_up(result: &Result<Answer, Failure>) -> bool {
    let ended = match result {
        Ok(answer) => answer.ended,
        Err(failure) => Some(failure.ended),
    };
    ended.is_some_and(|it| matches!(it.code, Code::Cancelled | Code::DeadlineExceeded))
}

/// Reads a response up to its first message, or its end.
async fn answer(response: Response<Body>, attempt: &Attempt, covers_body: bool) -> Answer {
    let (head, mut body) = response.into_parts();
    let mut first = VecDeque::new();
    let ended = if head.headers.contains_key(GRPC_STATUS) {
        Some(Ended::by(&head.headers, head.status))
    } else {
        let frame = first_frame(&mut body).await;
        let ended = match &frame {
            Some(Ok(frame)) => frame
                .trailers_ref()
                .map(|trailers| Ended::by(trailers, head.status)),
            // It broke off. The caller reads so where it would have read it without a hedge.
            Some(Err(status)) => Some(Ended::of(status)),
            None => {
                body = Body::empty();
                Some(Ended::by(&HeaderMap::new(), head.status))
            }
        };
        first.extend(frame);
        ended
    };
    let until = covers_body.then(|| attempt.deadline());
    let body = HeldBody::new(Replayed::new(first, body), attempt.hold(), until);
    let response = Response::from_parts(head, body);
    Answer { response, ended }
}

const GRPC_STATUS: &str = "grpc-status";

/// The first frame that says something.
async fn first_frame(body: &mut Body) -> Option<Result<Frame<Bytes>, Status>> {
    loop {
        let frame = body.frame().await?;
        let data = frame.as_ref().ok().and_then(Frame::data_ref);
        if !data.is_some_and(Bytes::is_empty) {
            return Some(frame);
        }
    }
}

/// Answers of proxies and of servers that speak no gRPC.
fn not_grpc(status: StatusCode) -> Code {
    match status {
        StatusCode::BAD_REQUEST => Code::Internal,
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        StatusCode::NOT_FOUND => Code::Unimplemented,
        StatusCode::TOO_MANY_REQUESTS => Code::ResourceExhausted,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
            Code::Unavailable
        }
        _ => Code::Unknown,
    }
}
