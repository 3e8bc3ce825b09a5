//! Sockets and certificates of both listeners.

mod body;
mod http;
mod idle;
mod pem;
mod places;
mod stall;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::telemetry::Metrics;

pub(crate) use body::BodyLate;
pub use http::{HttpLimits, serve_http};
pub(crate) use idle::{Connection, Patience, Peer};
pub use pem::{PemError, PemPair};

/// How long to wait after an accept failed: most often the process has no file descriptor left, and
/// trying at once again would only burn a core.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// An address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for {what}: expected a free address of this machine")]
pub struct BindError {
    address: SocketAddr,
    what: &'static str,
    #[source]
    source: io::Error,
}

/// A socket that listens.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
}

impl Bound {
    /// Listens. `what` is for people: what it is that listens.
    pub async fn new(address: SocketAddr, what: &'static str) -> Result<Self, BindError> {
        let failed = |source| BindError {
            address,
            what,
            source,
        };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    /// The address, with the port the system chose where 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next connection; failures of single ones are logged and passed over.
    pub(crate) async fn accept(&self) -> (TcpStream, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    // Messages are small and waited for; a refused option costs only time.
                    let _ = stream.set_nodelay(true);
                    return (stream, peer);
                }
                Err(error) => {
                    tracing::warn!(error = %error, address = %self.address, "a connection could not be accepted");
                    tokio::time::sleep(AFTER_FAILURE).await;
                }
            }
        }
    }

    /// Connections as a stream: at most `connections` at once, further ones closed at once and
    /// counted; each closed when `patience` with it ends.
    pub(crate) fn incoming(
        self,
        connections: usize,
        patience: Patience,
        metrics: Metrics,
    ) -> impl Stream<Item = io::Result<Connection>> {
        let places = Arc::new(Semaphore::new(connections));
        futures::stream::unfold(
            (self, places, metrics),
            move |(bound, places, metrics)| async move {
                loop {
                    let (stream, peer) = bound.accept().await;
                    if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
                        let connection = Connection::new(stream, peer, patience, place);
                        return Some((Ok(connection), (bound, places, metrics)));
                    }
                    metrics
                        .streams_refused
                        .with_label_values(&["connections"])
                        .inc();
                }
            },
        )
    }
}
