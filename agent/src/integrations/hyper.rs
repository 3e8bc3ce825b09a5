//! Any tower service of HTTP requests, hedged: hyper-util's `Client` above all.
//!
//! GET, HEAD and OPTIONS are taken for idempotent, other methods only where the request carries a
//! [`Call`] that says so. A request's URI needs only its path, which begins with `/`: scheme and
//! authority are the replica's. A URI without a path (`items`, which `http` takes for a host) is
//! refused with [`AttemptError::Path`], and not sent. The race ends when a response's head is there; the loser is dropped then, and the
//! winner's body, a [`HeldBody`], keeps its permit until it is read. What a head means is told by
//! [`verdict`](super::verdict).
//!
//! ```
//! use bytes::Bytes;
//! use hedgerow_agent::integrations::hyper::HedgedHttp;
//! use hedgerow_agent::{Agent, Call, Replicas};
//! use http::Request;
//! use http_body_util::{BodyExt, Full};
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use tower::ServiceExt;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let agent = Agent::builder().service("checkout").connect().await?;
//! let replicas = Replicas::new([("10.0.0.1:80", Some("eu-1")), ("10.0.0.2:80", Some("eu-2"))])?;
//! let route = agent.route("catalog", "search").replicas(replicas).build()?;
//!
//! let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
//! let catalog = HedgedHttp::new(client, route);
//!
//! let read = Request::get("/item/7").body(Full::default())?;
//! // Searching by POST changes nothing: it may run twice.
//! let search = Request::post("/search")
//!     .extension(Call::idempotent())
//!     .body(Full::from("shoes"))?;
//! # if false {
//! let item = catalog.clone().oneshot(read).await?.into_body().collect().await?;
//! let found = catalog.oneshot(search).await?;
//! # let _ = (item, found);
//! # }
//! # Ok(())
//! # }
//! ```

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower::{Service, ServiceExt};

use super::address::{AttemptError, at_replica, verdict_of};
use super::body::HeldBody;
use super::mark::{call_of, mark};
use super::verdict::HttpVerdicts;
use crate::attempt::Attempt;
use crate::eligibility::Call;
use crate::error::CallError;
use crate::route::Route;

/// A hedged HTTP client: see the [module](self).
///
/// Each attempt's request carries a [`Hold`](crate::Hold) in its extensions: a service beneath that
/// goes on when its future is dropped (it spawns a task) takes it along, and the permit is kept
/// until that work ends, too.
#[derive(Debug, Clone)]
pub struct HedgedHttp<S> {
    inner: S,
    route: Route,
    verdicts: HttpVerdicts,
    stream_past_deadline: bool,
}

impl<S> HedgedHttp<S> {
    /// `route` has [`Replicas`](crate::Replicas) whose names are addresses: `host:port`,
    /// `http://host:port` or `https://host:port`, with a path of their own where they need one.
    pub fn new(inner: S, route: Route) -> Self {
        Self {
            inner,
            route,
            verdicts: HttpVerdicts::new(),
            stream_past_deadline: false,
        }
    }

    /// What answers mean, where the [table](super::verdict) is not right for this dependency.
    #[must_use]
    pub fn verdicts(mut self, verdicts: HttpVerdicts) -> Self {
        self.verdicts = verdicts;
        self
    }

    /// Whether a body that began in time may be read for as long as it takes. Not so unless set: the
    /// deadline covers the whole answer. A body keeps its attempt's permit until it ends: where many
    /// are long, the route's limits have to allow for them.
    #[must_use]
    pub fn stream_past_deadline(mut self, past: bool) -> Self {
        self.stream_past_deadline = past;
        self
    }
}

impl<S, B, R> Service<Request<B>> for HedgedHttp<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Clone + Send + 'static,
    R: Body<Data = Bytes> + Send + 'static,
{
    type Response = Response<HeldBody<R>>;
    type Error = CallError<AttemptError<S::Error>>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        let failed = |error| CallError::Failed(AttemptError::Failed(error));
        self.inner.poll_ready(cx).map_err(failed)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let own = request.extensions_mut().remove::<Call>();
        let call = call_of(own, request.method(), request.headers());
        // The service that said it is ready makes the first call; its clones have to be asked again.
        let clone = self.inner.clone();
        let mut ready = Some(std::mem::replace(&mut self.inner, clone));
        let again = self.inner.clone();
        let (route, verdicts) = (self.route.clone(), self.verdicts.clone());
        let past_deadline = self.stream_past_deadline;
        Box::pin(async move {
            let attempts = move |attempt: Attempt| {
                let service = match ready.take() {
                    Some(service) => Client::Ready(service),
                    None => Client::ToAsk(again.clone()),
                };
                send(service, request.clone(), attempt, past_deadline)
            };
            let classify = move |result: &Result<Response<HeldBody<R>>, _>| match result {
                Ok(answer) => verdicts.of(answer.status(), answer.headers()),
                Err(error) => verdict_of(error),
            };
            route.call_with(call, classify, attempts).await
        })
    }
}

enum Client<S> {
    Ready(S),
    ToAsk(S),
}

/// Carries one attempt out, up to its answer's head.
async fn send<S, B, R>(
    client: Client<S>,
    mut request: Request<B>,
    attempt: Attempt,
    past_deadline: bool,
) -> Result<Response<HeldBody<R>>, AttemptError<S::Error>>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Body,
{
    *request.uri_mut() = at_replica(request.uri(), attempt.replica())?;
    mark(request.headers_mut(), &attempt);
    request.extensions_mut().insert(attempt.hold());
    let answer = match client {
        Client::Ready(mut service) => service.call(request).await,
        Client::ToAsk(service) => service.oneshot(request).await,
    };
    let until = (!past_deadline).then(|| attempt.deadline());
    let held = |body| HeldBody::new(body, attempt.hold(), until);
    Ok(answer.map_err(AttemptError::Failed)?.map(held))
}
