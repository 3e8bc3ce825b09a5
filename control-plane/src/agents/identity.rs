//! Which service a stream speaks for.
//!
//! Invariant: a request without a known token is answered from its headers alone; nothing of its
//! body is read, let alone decoded (S4). The service follows from the token and from nothing the
//! agent says (S1).
//!
//! Invariant: a token that is taken back ends the streams that came by it: at once where this process
//! took it back, within [`REFRESHED_EVERY`] where it was a command beside it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use hedgerow_protocol::ids::ServiceName;
use subtle::ConstantTimeEq as _;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::transport::server::TlsConnectInfo;
use tower::Service;

use crate::listen::Peer;
use crate::store::{AgentToken, Store, sha256};
use crate::telemetry::Metrics;

/// How often the store is asked for new tokens, at most: a flood of wrong tokens costs hashes, not
/// queries.
const LOOKED_UP_EVERY: Duration = Duration::from_millis(500);
/// How often the store is looked into for tokens that were taken back by another process.
const REFRESHED_EVERY: Duration = Duration::from_secs(2);
/// Longest header looked at. Tokens made here have 43 characters.
const HEADER_LEN_MAX: usize = 1024;

/// The service a stream speaks for, put into its request by [`Authenticated`].
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub(super) service: ServiceName,
    pub(super) credential: Credential,
}

/// What a stream came by.
#[derive(Debug, Clone)]
pub(super) struct Credential {
    hash: [u8; 32],
    /// None: it is one of the settings, which stand as long as the process.
    stored: Option<watch::Receiver<Arc<[AgentToken]>>>,
}

impl Credential {
    /// Waits until it has been taken back.
    pub(super) async fn taken_back(&mut self) {
        if let Some(stored) = &mut self.stored {
            // It was there when this receiver was made; only a change can have taken it back.
            while stored.changed().await.is_ok() {
                let them = stored.borrow_and_update();
                if !them.iter().any(|it| it.sha256 == self.hash) {
                    return;
                }
            }
        }
        // One of the settings; or nobody is there who could take it back.
        std::future::pending::<()>().await;
    }
}

/// Known credentials: those of the settings, and those of the store.
#[derive(Debug, Clone)]
pub struct Identities {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: Vec<AgentToken>,
    stored: watch::Sender<Arc<[AgentToken]>>,
    store: Store,
    looked_up: tokio::sync::Mutex<Option<Instant>>,
    /// Whether the store was away when it was last read: that is logged once, not every two seconds.
    away: AtomicBool,
}

impl Identities {
    /// Those of the settings; the store is asked when somebody presents an unknown one.
    pub fn new(settings: Vec<AgentToken>, store: Store) -> Self {
        Self {
            shared: Arc::new(Shared {
                settings,
                stored: watch::Sender::new(Arc::from([])),
                store,
                looked_up: tokio::sync::Mutex::new(None),
                away: AtomicBool::new(false),
            }),
        }
    }

    /// Keeps them as the store has them until told to stop; `changed` rings when this process changed
    /// something.
    pub async fn keep_fresh(self, changed: Arc<Notify>, stop: CancellationToken) {
        loop {
            self.read().await;
            tokio::select! {
                () = stop.cancelled() => return,
                () = changed.notified() => {}
                () = tokio::time::sleep(REFRESHED_EVERY) => {}
            }
        }
    }

    /// Whom a token speaks for.
    async fn identity(&self, token: &[u8]) -> Option<Identity> {
        let hash = sha256(token);
        if let Some(identity) = self.known(&hash) {
            return Some(identity);
        }
        self.look_up().await;
        self.known(&hash)
    }

    fn known(&self, hash: &[u8; 32]) -> Option<Identity> {
        let stored = self.shared.stored.subscribe();
        let by_settings = service_of(hash, &self.shared.settings);
        let by_store = service_of(hash, &stored.borrow());
        let stored = by_settings.is_none().then_some(stored);
        let service = by_settings.or(by_store)?;
        Some(Identity {
            service,
            credential: Credential {
                hash: *hash,
                stored,
            },
        })
    }

    /// `hedgerow agent-token new` works beside a running controller: its tokens are found here.
    async fn look_up(&self) {
        let mut looked_up = self.shared.looked_up.lock().await;
        if looked_up.is_some_and(|at| at.elapsed() < LOOKED_UP_EVERY) {
            return;
        }
        self.read().await;
        *looked_up = Some(Instant::now());
    }

    /// What cannot be read changes nothing: streams go on while the store is away.
    async fn read(&self) {
        match self.shared.store.agent_tokens().await {
            Ok(tokens) => {
                self.shared.away.store(false, Ordering::Relaxed);
                self.shared.stored.send_if_modified(|stored| {
                    let changed = **stored != *tokens;
                    if changed {
                        *stored = tokens.into();
                    }
                    changed
                });
            }
            Err(error) => {
                if !self.shared.away.swap(true, Ordering::Relaxed) {
                    tracing::error!(error = %error.in_full(), "agents' tokens could not be read");
                }
            }
        }
    }

    async fn identify(&self, headers: &http::HeaderMap) -> Result<Identity, &'static str> {
        let header = headers
            .get(http::header::AUTHORIZATION)
            .ok_or("it is missing")?;
        if header.len() > HEADER_LEN_MAX {
            return Err("it is too long");
        }
        let token = bearer(header.as_bytes()).ok_or("it is not of this form")?;
        self.identity(token)
            .await
            .ok_or("the token is not known here")
    }
}

fn service_of(hash: &[u8; 32], tokens: &[AgentToken]) -> Option<ServiceName> {
    let mut found = None;
    // All of them, whether found or not: the time says nothing about which came close.
    for token in tokens {
        if bool::from(token.sha256.ct_eq(hash)) {
            found = Some(token.service.clone());
        }
    }
    found
}

fn bearer(header: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = header.split_at_checked(7)?;
    (scheme.eq_ignore_ascii_case(b"bearer ") && !rest.is_empty()).then(|| rest.trim_ascii())
}

/// Whose connection a request came by, with TLS or without.
pub(super) fn peer(extensions: &http::Extensions) -> Option<&Peer> {
    extensions.get::<Peer>().or_else(|| {
        extensions
            .get::<TlsConnectInfo<Peer>>()
            .map(TlsConnectInfo::get_ref)
    })
}

/// A service behind the check.
#[derive(Debug, Clone)]
pub(super) struct Authenticated<S> {
    inner: S,
    identities: Identities,
    metrics: Metrics,
}

impl<S> Authenticated<S> {
    pub(super) fn new(inner: S, identities: Identities, metrics: Metrics) -> Self {
        Self {
            inner,
            identities,
            metrics,
        }
    }
}

impl<S: NamedService> NamedService for Authenticated<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for Authenticated<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        // The one that was polled ready goes with the future; a fresh clone stays.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let (identities, metrics) = (self.identities.clone(), self.metrics.clone());
        Box::pin(async move {
            match identities.identify(request.headers()).await {
                Ok(identity) => {
                    if let Some(peer) = peer(request.extensions()) {
                        peer.vouch();
                    }
                    request.extensions_mut().insert(identity);
                    inner.call(request).await
                }
                Err(problem) => {
                    metrics
                        .streams_refused
                        .with_label_values(&["unauthenticated"])
                        .inc();
                    let text = format!(
                        "expected the metadata `authorization: Bearer <token>` with a token of this controller's ([[agent_token]] in its settings, or `hedgerow agent-token new`): {problem}"
                    );
                    Ok(Status::unauthenticated(text).into_http())
                }
            }
        })
    }
}
