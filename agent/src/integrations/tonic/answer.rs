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
    code: Code,
}

impl Failure {
    fn of(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let error = error.into();
        let timed_out = has_timed_out(&*error);
        let status = Status::from_error(error);
        let code = if timed_out {
            Code::DeadlineExceeded
        } else {
            status.code()
        };
        Self { status, code }
    }

    pub(super) fn verdict(&self, verdicts: &GrpcVerdicts) -> Verdict {
        let push_back = self.status.metadata().contains_key(PUSH_BACK_HEADER);
        verdicts.of(self.code, push_back)
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
        answer(response, &attempt, covers_body).await
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
    let code = match result {
        Ok(answer) => answer.ended.map(|ended| ended.code),
        Err(failure) => Some(failure.code),
    };
    matches!(code, Some(Code::Cancelled | Code::DeadlineExceeded))
}

/// Reads a response up to its first message, or its end.
async fn answer(
    response: Response<Body>,
    attempt: &Attempt,
    covers_body: bool,
) -> Result<Answer, Failure> {
    let (head, mut body) = response.into_parts();
    let mut first = VecDeque::new();
    let ended = if head.headers.contains_key(GRPC_STATUS) {
        Some(ended(&head.headers, head.status))
    } else {
        match first_frame(&mut body).await? {
            Some(frame) => {
                let ended = frame.trailers_ref().map(|it| ended(it, head.status));
                first.push_back(Ok(frame));
                ended
            }
            None => Some(ended(&HeaderMap::new(), head.status)),
        }
    };
    let until = covers_body.then(|| attempt.deadline());
    let body = HeldBody::new(Replayed::new(first, body), attempt.hold(), until);
    let response = Response::from_parts(head, body);
    Ok(Answer { response, ended })
}

const GRPC_STATUS: &str = "grpc-status";

async fn first_frame(body: &mut Body) -> Result<Option<Frame<Bytes>>, Failure> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(Failure::of)?;
        let nothing = frame.data_ref().is_some_and(Bytes::is_empty);
        if !nothing {
            return Ok(Some(frame));
        }
    }
    Ok(None)
}

/// The status in trailers, or in headers that are trailers; without one, what the HTTP status says.
fn ended(trailers: &HeaderMap, http: StatusCode) -> Ended {
    let code = trailers
        .get(GRPC_STATUS)
        .map_or_else(|| not_grpc(http), |value| Code::from_bytes(value.as_ref()));
    Ended {
        code,
        push_back: trailers.contains_key(PUSH_BACK_HEADER),
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
