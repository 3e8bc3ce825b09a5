//! A route as a tower layer, for services whose calls are tower services already.
//!
//! The permit of an attempt is kept until the service's future is done. Where that future's work goes
//! on when it is dropped, or the response is a stream that is read later, [`HedgePolicy::prepare`]
//! can put an [`Attempt::hold`] into the request for the service to keep; for HTTP and gRPC the
//! [`integrations`](crate::integrations) do that.
//!
//! What hedging needs to know of a request is a [`HedgePolicy`]: whether it may run twice, how to
//! make a second one, how to send it to the attempt's replica, and what an answer means.
//!
//! ```
//! use hedgerow_agent::layer::{HedgeLayer, HedgePolicy};
//! use hedgerow_agent::{Agent, Attempt, Call, Replicas};
//! use tower::{Layer, ServiceExt};
//!
//! #[derive(Clone)]
//! struct Reads;
//!
//! impl HedgePolicy<(String, u32), String, std::io::Error> for Reads {
//!     fn call(&self, _: &(String, u32)) -> Call {
//!         Call::idempotent()
//!     }
//!     fn duplicate(&self, request: &(String, u32)) -> Option<(String, u32)> {
//!         Some(request.clone())
//!     }
//!     fn prepare(&self, (_, item): (String, u32), attempt: &Attempt) -> (String, u32) {
//!         (attempt.replica().to_string(), item)
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let agent = Agent::builder().service("checkout").connect().await?;
//! let replicas = Replicas::new([("10.0.0.1:80", None), ("10.0.0.2:80", None)])?;
//! let route = agent.route("catalog", "get").replicas(replicas).build()?;
//!
//! let client = tower::service_fn(|(replica, item): (String, u32)| async move {
//!     Ok::<_, std::io::Error>(format!("item {item} of {replica}"))
//! });
//! let hedged = HedgeLayer::new(route, Reads).layer(client);
//! assert!(hedged.oneshot((String::new(), 7)).await?.starts_with("item 7 of 10.0.0."));
//! # Ok(())
//! # }
//! ```

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tower::{Layer, Service, ServiceExt};

use crate::attempt::Attempt;
use crate::eligibility::{Call, Verdict};
use crate::error::CallError;
use crate::route::Route;

/// What hedging needs to know of a service's requests.
pub trait HedgePolicy<Request, Response, Error>: Clone + Send + Sync + 'static {
    /// Whether it may run twice, its deadline, its pin.
    fn call(&self, request: &Request) -> Call;

    /// Another request like this one. None: it cannot be had (a body that is a stream), and the
    /// call is not hedged. Asked for once before the first one is sent, as that consumes it, and
    /// only for calls that are idempotent; then once for each further attempt that is really made.
    /// What could be duplicated once can be again: where it cannot, the attempt after that is
    /// never sent.
    fn duplicate(&self, request: &Request) -> Option<Request>;

    /// Makes the request go to the attempt's replica, and marks a hedge with
    /// [`Attempt::headers`]. As it is, unless written: for services that need neither.
    fn prepare(&self, request: Request, attempt: &Attempt) -> Request {
        let _ = attempt;
        request
    }

    /// What a result means. An error is a failure that another attempt could mend, unless written.
    fn classify(&self, result: &Result<Response, Error>) -> Verdict {
        Verdict::of_result(result)
    }
}

/// Hedges a service's calls on a route: see the [module](self).
#[derive(Debug, Clone)]
pub struct HedgeLayer<P> {
    route: Route,
    policy: P,
}

impl<P> HedgeLayer<P> {
    /// `policy` is a [`HedgePolicy`] for the requests of the service it is laid on.
    pub fn new(route: Route, policy: P) -> Self {
        Self { route, policy }
    }
}

impl<S, P: Clone> Layer<S> for HedgeLayer<P> {
    type Service = HedgeService<S, P>;

    fn layer(&self, inner: S) -> HedgeService<S, P> {
        HedgeService {
            inner,
            route: self.route.clone(),
            policy: self.policy.clone(),
        }
    }
}

/// The hedged service.
#[derive(Debug, Clone)]
pub struct HedgeService<S, P> {
    inner: S,
    route: Route,
    policy: P,
}

impl<S, P, Request> Service<Request> for HedgeService<S, P>
where
    S: Service<Request> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Response: Send + 'static,
    S::Error: Send + 'static,
    P: HedgePolicy<Request, S::Response, S::Error>,
    Request: Send + 'static,
{
    type Response = S::Response;
    type Error = CallError<S::Error>;
    type Future =
        Pin<Box<dyn Future<Output = Result<S::Response, CallError<S::Error>>> + Send + 'static>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(CallError::Failed)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let call = self.policy.call(&request);
        let pristine = if call.idempotent {
            self.policy.duplicate(&request)
        } else {
            None
        };
        // Without another request the call cannot run twice, whatever it says.
        let call = Call {
            idempotent: call.idempotent && pristine.is_some(),
            ..call
        };
        // The service that said it is ready makes the first call; its clones have to be asked again.
        let clone = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, clone);
        let mut requests = Requests {
            first: Some((ready, request)),
            pristine,
            service: self.inner.clone(),
        };
        let (route, policy) = (self.route.clone(), self.policy.clone());
        Box::pin(async move {
            let preparing = policy.clone();
            let attempts = move |attempt: Attempt| {
                let next = requests.next(&preparing);
                let sent = next.map(|(service, request, ready)| {
                    let request = preparing.prepare(request, &attempt);
                    send(service, request, ready, attempt)
                });
                async move {
                    match sent {
                        Some(sent) => sent.await,
                        None => std::future::pending().await,
                    }
                }
            };
            let classify = move |result: &Result<_, _>| policy.classify(result);
            route.call_with(call, classify, attempts).await
        })
    }
}

/// What a call's attempts are made of.
struct Requests<S, Request> {
    /// The service that is ready, and the request as it came.
    first: Option<(S, Request)>,
    /// Kept as it came, for further attempts.
    pristine: Option<Request>,
    service: S,
}

impl<S: Clone, Request> Requests<S, Request> {
    /// None: the policy said that it can duplicate the request, and then that it cannot.
    fn next<Response, Error>(
        &mut self,
        policy: &impl HedgePolicy<Request, Response, Error>,
    ) -> Option<(S, Request, Ready)> {
        if let Some((service, request)) = self.first.take() {
            return Some((service, request, Ready::Yes));
        }
        let duplicate = self.pristine.as_ref().and_then(|it| policy.duplicate(it));
        // The pristine one itself is as good, once.
        let request = duplicate.or_else(|| self.pristine.take())?;
        Some((self.service.clone(), request, Ready::No))
    }
}

enum Ready {
    Yes,
    No,
}

/// Carries one attempt out, and keeps its permit until then.
async fn send<S, Request>(
    mut service: S,
    request: Request,
    ready: Ready,
    attempt: Attempt,
) -> Result<S::Response, S::Error>
where
    S: Service<Request>,
{
    let _permit = attempt;
    if matches!(ready, Ready::No) {
        service.ready().await?;
    }
    service.call(request).await
}
