//! A tonic channel over several endpoints, hedged: generated clients work on it unchanged.
//!
//! ```
//! use hedgerow_agent::integrations::tonic::HedgedChannel;
//! use hedgerow_agent::{Agent, Replicas};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let agent = Agent::builder().service("checkout").connect().await?;
//! let replicas = Replicas::new([("10.0.0.1:80", Some("eu-1")), ("10.0.0.2:80", Some("eu-2"))])?;
//! let route = agent.route("catalog", "get").replicas(replicas.clone()).build()?;
//!
//! let channel = HedgedChannel::builder(route, replicas)
//!     .idempotent(["/shop.Catalog/Get", "/shop.Catalog/List"])
//!     .build()?;
//! // let client = CatalogClient::new(channel);
//! # let _ = channel;
//! # Ok(())
//! # }
//! ```
//!
//! **What is hedged**: calls of methods named idempotent ([`HedgedChannelBuilder::idempotent`],
//! [`all_idempotent`](HedgedChannelBuilder::all_idempotent), or a service config's
//! `hedgingPolicy`), unary and server-streaming, whose request is one message of at most
//! [`request_bytes_max`](HedgedChannelBuilder::request_bytes_max). Everything else is sent once, its
//! request as the stream it is, and counted as not eligible. That the request is one message is
//! seen without waiting for it: generated clients have it ready.
//!
//! **When the race ends**: with the first message, or with the trailers where there is none.
//! Servers send headers before they know anything, so headers win nothing: a replica that sent them
//! and then stalls is hedged around like any other. The loser is dropped, which resets its stream;
//! what the caller reads is one replica's response from its headers to its trailers. It keeps its
//! permit until it is read.
//!
//! **Deadline**: a request's `grpc-timeout` or its method's `timeout` in the service config, whichever
//! is shorter, or else the route's. Each attempt is sent what is left of it. A call that it ends fails
//! with DEADLINE_EXCEEDED, also in the middle of a stream.
//!
//! **Errors**: where every attempt failed the caller gets the primary's own status, with its message,
//! details and metadata. A server's `grpc-retry-pushback-ms` is push-back whatever its value: nothing
//! further is sent for the call. What a status means for hedging is told by [`GrpcVerdicts`].
//!
//! **The mark** `hedgerow-attempt: hedge` is metadata. [`pass_on`] hands it from a request that came
//! in to the requests made for it, so that they are not hedged again.

mod answer;
mod builder;
mod channels;
mod mark;
mod request;
mod timeout;
mod verdicts;

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tonic::Status;
use tonic::body::Body;
use tower::Service;

use self::answer::{Answer, Failure};
pub use self::builder::{ChannelError, HedgedChannelBuilder};
use self::channels::Channels;
pub use self::mark::{is_hedge, pass_on};
use self::request::Sendable;
pub use self::verdicts::{GrpcVerdicts, PUSH_BACK_HEADER};
use crate::attempt::Attempt;
use crate::eligibility::Call;
use crate::error::CallError;
#[cfg(feature = "service-config")]
use crate::integrations::service_config::ServiceConfig;
use crate::replicas::Replicas;
use crate::route::Route;

/// A channel for generated clients: see the [module](self). Cheap to clone; clones share their
/// connections.
#[derive(Debug, Clone)]
pub struct HedgedChannel {
    settings: Arc<Settings>,
}

#[derive(Debug)]
struct Settings {
    route: Route,
    /// Methods with a route of their own.
    routes: HashMap<String, Route>,
    all_idempotent: bool,
    idempotent: HashSet<String>,
    #[cfg(feature = "service-config")]
    service_config: Option<ServiceConfig>,
    verdicts: GrpcVerdicts,
    request_bytes_max: usize,
    stream_past_deadline: bool,
    channels: Channels,
}

/// What the settings say of one method.
#[derive(Debug, Clone, Copy)]
struct Rule {
    idempotent: bool,
    timeout: Option<std::time::Duration>,
    verdicts: GrpcVerdicts,
}

impl Settings {
    fn rule(&self, method: &str) -> Rule {
        let rule = Rule {
            idempotent: self.all_idempotent || self.idempotent.contains(method),
            timeout: None,
            verdicts: self.verdicts,
        };
        self.configured(method, rule)
    }

    #[cfg(feature = "service-config")]
    fn configured(&self, method: &str, rule: Rule) -> Rule {
        let config = self.service_config.as_ref();
        let Some(configured) = config.and_then(|config| config.method(method)) else {
            return rule;
        };
        Rule {
            idempotent: rule.idempotent || configured.hedging().is_some(),
            timeout: configured.timeout(),
            verdicts: configured
                .hedging()
                .map_or(rule.verdicts, |hedging| hedging.verdicts(rule.verdicts)),
        }
    }

    #[cfg(not(feature = "service-config"))]
    fn configured(&self, _: &str, rule: Rule) -> Rule {
        rule
    }
}

impl HedgedChannel {
    /// Settings of a channel on `route`, for the methods that are given none of their own.
    /// `replicas` are the route's, the same list or a clone of it: their names are addresses, `host:port` or `http://host:port`, or
    /// `https://host:port` with TLS set by [`HedgedChannelBuilder::endpoint`]. Each is connected when
    /// it is first used; the list is followed as it changes.
    pub fn builder(route: Route, replicas: Replicas) -> HedgedChannelBuilder {
        HedgedChannelBuilder::new(route, replicas)
    }
}

impl Service<Request<Body>> for HedgedChannel {
    type Response = Response<Body>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Status>> + Send>>;

    /// Always: each attempt waits for its own connection.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(run(self.settings.clone(), request))
    }
}

async fn run(settings: Arc<Settings>, request: Request<Body>) -> Result<Response<Body>, Status> {
    let method = request.uri().path();
    let rule = settings.rule(method);
    let route = settings.routes.get(method).unwrap_or(&settings.route);
    let route = route.clone();
    let asked = timeout::of(request.headers());
    let within = match (asked, rule.timeout) {
        (Some(asked), Some(configured)) => Some(asked.min(configured)),
        (asked, configured) => asked.or(configured),
    };
    let already_hedge = super::mark::is_hedge(request.headers());
    let mut sendable = if rule.idempotent {
        Sendable::of(request, settings.request_bytes_max).await
    } else {
        Sendable::Once(Some(request))
    };
    let mut call = match &sendable {
        Sendable::Again(_) => Call::idempotent(),
        Sendable::Once(_) => Call::not_idempotent(),
    }
    .already_hedge(already_hedge);
    call.deadline = within;
    let covers_body = within.is_some() || !settings.stream_past_deadline;

    let attempts = move |attempt: Attempt| {
        let channel = settings.channels.to(attempt.replica());
        answer::send(channel, sendable.next(), attempt, covers_body)
    };
    let verdicts = rule.verdicts;
    let classify = move |result: &Result<Answer, Failure>| match result {
        Ok(answer) => answer.verdict(&verdicts),
        Err(failure) => failure.verdict(&verdicts),
    };
    match route.call_with(call, classify, attempts).await {
        Ok(answer) => Ok(answer.into_response()),
        Err(CallError::Failed(failure)) => Err(failure.into_status()),
        Err(CallError::DeadlineExceeded) => Err(answer::deadline_exceeded()),
    }
}
