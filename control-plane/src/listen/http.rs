//! The HTTP listener: dashboard, API, metrics, health.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::body::TimelyBody;
use super::prompt::Prompt;
use super::{Bound, PemPair};

/// Connections at once: some hundred open pages with a stream each. Further ones wait in the
/// kernel's queue.
const CONNECTIONS: usize = 1024;
/// Bytes of headers, and of HTTP/1's read buffer.
const HEADER_BYTES: usize = 64 * 1024;
/// Streams on one HTTP/2 connection: a browser's tabs share one.
const STREAMS: u32 = 64;

/// How long a peer may take for what it has to say (S5).
#[derive(Debug, Clone, Copy)]
pub struct HttpLimits {
    /// For a TLS handshake, for the first bytes of a connection, and for a request's headers; each.
    pub opening: Duration,
    /// For a request's body, in all: the largest that is taken are 64 KB.
    pub body: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            opening: Duration::from_secs(10),
            body: Duration::from_secs(30),
        }
    }
}

/// Serves until stopped and every request has been answered. Streams without an end have to watch
/// `stop` themselves, or the caller gives up on them.
pub async fn serve_http(
    bound: Bound,
    tls: Option<PemPair>,
    router: Router,
    limits: HttpLimits,
    stop: CancellationToken,
) {
    let acceptor = tls.map(|pem| TlsAcceptor::from(pem.server_config(&["h2", "http/1.1"])));
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let connections = TaskTracker::new();
    loop {
        let place = Arc::clone(&places).acquire_owned().await;
        let (stream, peer) = tokio::select! {
            () = stop.cancelled() => break,
            accepted = bound.accept() => accepted,
        };
        let (acceptor, router, stop) = (acceptor.clone(), router.clone(), stop.clone());
        connections.spawn(async move {
            let _place = place;
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
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.opening)
        .max_buf_size(HEADER_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADER_BYTES as u32);
    let connection = builder.serve_connection_with_upgrades(
        TokioIo::new(Prompt::new(io, limits.opening)),
        TowerToHyperService::new(service),
    );
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
