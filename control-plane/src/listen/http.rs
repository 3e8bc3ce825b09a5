//! The HTTP listener: dashboard, API, metrics, health.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::body::TimelyBody;
use super::places::Places;
use super::stall::Unstalled;
use super::{Bound, PemPair};

/// Connections at once: some hundred open pages with a stream each. Further ones wait in the
/// kernel's queue.
const CONNECTIONS: usize = 1024;
/// Bytes of headers, and of the read buffer.
const HEADER_BYTES: usize = 64 * 1024;

/// How long a peer may take for what it has to say, and how much room (S5).
#[derive(Debug, Clone, Copy)]
pub struct HttpLimits {
    /// For a TLS handshake, and for a request's headers, from the connection's beginning or from
    /// the answer before it; each.
    pub opening: Duration,
    /// For a request's body, in all: the largest that is taken are 64 KB.
    pub body: Duration,
    /// For taking the next bytes of an answer.
    pub taking: Duration,
    /// Connections at once of one address, or of one IPv6 /64: far fewer than there are.
    pub connections_each: usize,
    /// Connections at once from this machine, where a proxy may speak for many: not all either.
    pub connections_loopback: usize,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            opening: Duration::from_secs(10),
            body: Duration::from_secs(30),
            taking: Duration::from_secs(30),
            connections_each: CONNECTIONS / 4,
            connections_loopback: CONNECTIONS / 2,
        }
    }
}

/// Serves until stopped and every request has been answered. It speaks HTTP/1.1 alone, whose
/// limits are each request's; an HTTP/2 connection can be kept open by saying nothing. Streams without an end have to watch
/// `stop` themselves, or the caller gives up on them.
pub async fn serve_http(
    bound: Bound,
    tls: Option<PemPair>,
    router: Router,
    limits: HttpLimits,
    stop: CancellationToken,
) {
    let acceptor = tls.map(|pem| TlsAcceptor::from(pem.server_config(&["http/1.1"])));
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let peers = Places::new(limits.connections_each, limits.connections_loopback);
    let connections = TaskTracker::new();
    loop {
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, bound.accept().await)
        };
        let (place, (stream, peer)) = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accepted => accepted,
        };
        let Some(share) = peers.enter(peer.ip()) else {
            tracing::debug!(%peer, "a connection beyond its address's share was closed");
            continue;
        };
        let (acceptor, router, stop) = (acceptor.clone(), router.clone(), stop.clone());
        connections.spawn(async move {
            let _places = (place, share);
            serve_one(stream, peer, acceptor, router, limits, stop).await;
        });
    }
    drop(bound);
    connections.close();
    connections.wait().await;
}

async fn serve_one(
    stream: TcpStream,
    peer: SocketAddr,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    limits: HttpLimits,
    stop: CancellationToken,
) {
    let stream = Unstalled::new(stream, limits.taking);
    let Some(acceptor) = acceptor else {
        return serve_on(stream, peer, router, limits, stop).await;
    };
    match tokio::time::timeout(limits.opening, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => serve_on(stream, peer, router, limits, stop).await,
        Ok(Err(error)) => tracing::debug!(%peer, error = %error, "a TLS handshake failed"),
        Err(_) => tracing::debug!(%peer, "a TLS handshake took too long"),
    }
}

async fn serve_on<I>(
    io: I,
    peer: SocketAddr,
    router: Router,
    limits: HttpLimits,
    stop: CancellationToken,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = router.map_request(move |request: http::Request<Incoming>| {
        let mut request =
            request.map(|body| axum::body::Body::new(TimelyBody::new(body, limits.body)));
        request.extensions_mut().insert(ConnectInfo(peer));
        request
    });
    let connection = Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.opening)
        .max_buf_size(HEADER_BYTES)
        .serve_connection(TokioIo::new(io), TowerToHyperService::new(service));
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.as_mut().await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, error = %error, "a connection broke");
    }
}
