//! Settings of a hedged channel.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use hedgerow_protocol::ids::{ReplicaName, RouteKey};
use tonic::transport::Endpoint;

use super::channels::{Channels, Configure};
use super::{GrpcVerdicts, HedgedChannel, Settings};
#[cfg(feature = "service-config")]
use crate::integrations::service_config::ServiceConfig;
use crate::replicas::Replicas;
use crate::route::Route;

/// Largest request that is held to be sent again, unless set. What is larger is seldom a read.
const REQUEST_BYTES_MAX: usize = 64 * 1024;

/// Settings of a [`HedgedChannel`]: see [`HedgedChannel::builder`]. Nothing is checked before
/// [`build`](Self::build).
///
/// ```
/// use std::time::Duration;
///
/// use hedgerow_agent::integrations::tonic::{GrpcVerdicts, HedgedChannel};
/// use hedgerow_agent::{Agent, Replicas, Verdict};
/// use tonic::Code;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = Agent::builder().service("checkout").connect().await?;
/// let replicas = Replicas::new([("10.0.0.1:80", None), ("10.0.0.2:80", None)])?;
/// let reads = agent.route("catalog", "read").replicas(replicas.clone()).build()?;
/// let searches = agent.route("catalog", "search").replicas(replicas.clone()).build()?;
/// let channel = HedgedChannel::builder(reads, replicas)
///     .idempotent(["/shop.Catalog/Get", "/shop.Catalog/Search"])
///     .method_route("/shop.Catalog/Search", searches) // much slower than the others
///     .verdicts(GrpcVerdicts::new().with(Code::Aborted, Verdict::Retryable))
///     .request_bytes_max(16 * 1024)
///     .endpoint(|endpoint| Ok(endpoint.connect_timeout(Duration::from_secs(1))))
///     .build()?;
/// # let _ = channel;
/// # Ok(())
/// # }
/// ```
#[must_use = "settings do nothing until `build`"]
pub struct HedgedChannelBuilder {
    route: Route,
    routes: HashMap<String, Route>,
    replicas: Replicas,
    all_idempotent: bool,
    idempotent: HashSet<String>,
    #[cfg(feature = "service-config")]
    service_config: Option<ServiceConfig>,
    verdicts: GrpcVerdicts,
    request_bytes_max: usize,
    stream_past_deadline: bool,
    configure: Box<Configure>,
}

impl fmt::Debug for HedgedChannelBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HedgedChannelBuilder")
            .field("route", self.route.key())
            .field("idempotent", &self.idempotent)
            .finish_non_exhaustive()
    }
}

/// A setting of a channel that cannot stand.
///
/// ```
/// use hedgerow_agent::integrations::tonic::ChannelError;
///
/// let error = ChannelError::Method("Get".to_owned());
/// let expected = "method \"Get\": expected its path, as in \"/package.Service/Method\"";
/// assert_eq!(error.to_string(), expected);
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// A method's name.
    #[error("method {0:?}: expected its path, as in \"/package.Service/Method\"")]
    Method(String),
    /// A replica's name, or what was made of it.
    #[error("replica {replica}: expected host:port, http://host:port or https://host:port")]
    Address {
        /// The replica.
        replica: ReplicaName,
        /// Why.
        #[source]
        source: tonic::transport::Error,
    },
    /// A route that picks from another list than the channel connects to, or from none.
    #[error(
        "route {0}: picks from other replicas than the channel's: expected the channel's Replicas, \
         or a clone of them, given to RouteBuilder::replicas"
    )]
    Replicas(RouteKey),
}

impl HedgedChannelBuilder {
    pub(super) fn new(route: Route, replicas: Replicas) -> Self {
        Self {
            route,
            routes: HashMap::new(),
            replicas,
            all_idempotent: false,
            idempotent: HashSet::new(),
            #[cfg(feature = "service-config")]
            service_config: None,
            verdicts: GrpcVerdicts::new(),
            request_bytes_max: REQUEST_BYTES_MAX,
            stream_past_deadline: false,
            configure: Box::new(Ok),
        }
    }

    /// Methods that may run twice, both taking effect, as `/package.Service/Method`. All calls of a
    /// method are taken for alike: what a method does depending on its request is for its author to
    /// know.
    pub fn idempotent<M: Into<String>>(mut self, methods: impl IntoIterator<Item = M>) -> Self {
        self.idempotent.extend(methods.into_iter().map(Into::into));
        self
    }

    /// Every method may run twice: a service that only reads.
    pub fn all_idempotent(mut self) -> Self {
        self.all_idempotent = true;
        self
    }

    /// A method's own route, with its own threshold and counters: where methods differ in how long
    /// they take, one threshold is right for none of them. Built on the same [`Replicas`].
    pub fn method_route(mut self, method: impl Into<String>, route: Route) -> Self {
        self.routes.insert(method.into(), route);
        self
    }

    /// Takes from a gRPC service config, method by method: whether it may be hedged, its deadline,
    /// and which statuses let other attempts go on.
    #[cfg(feature = "service-config")]
    pub fn service_config(mut self, config: ServiceConfig) -> Self {
        self.service_config = Some(config);
        self
    }

    /// What statuses mean, where the [table](GrpcVerdicts) is not right for this dependency.
    pub fn verdicts(mut self, verdicts: GrpcVerdicts) -> Self {
        self.verdicts = verdicts;
        self
    }

    /// Largest request, in bytes on the wire, that is held in memory to be sent again; 64 KiB unless
    /// set. Larger ones are sent once.
    pub fn request_bytes_max(mut self, bytes: usize) -> Self {
        self.request_bytes_max = bytes;
        self
    }

    /// Whether a stream that began in time may be read for as long as it takes, where its request
    /// has no `grpc-timeout`: for subscriptions. Not so unless set: the deadline covers the whole
    /// response, and is told to the server. A stream keeps its attempt's permit until it ends: where
    /// many are long, the route's limits have to allow for them.
    pub fn stream_past_deadline(mut self, past: bool) -> Self {
        self.stream_past_deadline = past;
        self
    }

    /// Sets each replica's endpoint up: connect timeout, keep-alive, TLS. Its own `timeout` is best
    /// left alone, since the deadline is the call's.
    pub fn endpoint(
        mut self,
        configure: impl Fn(Endpoint) -> Result<Endpoint, tonic::transport::Error>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.configure = Box::new(configure);
        self
    }

    /// Checks the settings. Connects nowhere.
    ///
    /// # Errors
    /// [`ChannelError`]: a method that is no path, a replica that is no address, a route that was
    /// built without these [`Replicas`].
    pub fn build(self) -> Result<HedgedChannel, ChannelError> {
        for method in self.idempotent.iter().chain(self.routes.keys()) {
            if !is_path(method) {
                return Err(ChannelError::Method(method.clone()));
            }
        }
        for route in self.routes.values().chain([&self.route]) {
            let list = route.state.pool.list();
            if !list.is_some_and(|list| list.is(&self.replicas)) {
                return Err(ChannelError::Replicas(route.key().clone()));
            }
        }
        let channels = Channels::new(self.replicas, self.configure)
            .map_err(|(replica, source)| ChannelError::Address { replica, source })?;
        Ok(HedgedChannel {
            settings: Arc::new(Settings {
                route: self.route,
                routes: self.routes,
                all_idempotent: self.all_idempotent,
                idempotent: self.idempotent,
                #[cfg(feature = "service-config")]
                service_config: self.service_config,
                verdicts: self.verdicts,
                request_bytes_max: self.request_bytes_max,
                stream_past_deadline: self.stream_past_deadline,
                channels,
            }),
        })
    }
}

fn is_path(method: &str) -> bool {
    let parts = method.strip_prefix('/').and_then(|it| it.split_once('/'));
    parts.is_some_and(|(service, name)| {
        !service.is_empty() && !name.is_empty() && !name.contains('/')
    })
}
