//! The agents' listener and its limits.

use std::sync::Arc;
use std::time::Duration;

use hedgerow_protocol::limits::MESSAGE_BYTES_MAX;
use hedgerow_protocol::wire::proto::fleet_server::FleetServer;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::transport::ServerTlsConfig;

use super::admission::Admission;
use super::identity::{Authenticated, Identities};
use super::service::{FleetService, Shared};
use crate::config::AgentLimits;
use crate::engine::Engine;
use crate::listen::{Bound, Patience, PemPair};
use crate::telemetry::Metrics;

/// Streams on one connection: an agent has one, and a second while it reconnects.
const STREAMS_PER_CONNECTION: u32 = 4;
/// Bytes of headers: a token and what gRPC adds.
const HEADER_BYTES: u32 = 16 * 1024;
/// Bytes in flight for a stream: most messages fit. Larger ones take turns.
const WINDOW_BYTES: u32 = 64 * 1024;
/// Streams reset before they are looked at; beyond, the connection is a flood and is closed (S5).
const PENDING_RESETS: usize = 20;
/// How long a TLS handshake may take.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// How long a connection may stay without a stream that has a token, whatever else it says.
const STRANGER_STAYS: Duration = Duration::from_secs(30);
/// Connections beyond the streams: those that are about to be refused, and half-open ones.
const SPARE_CONNECTIONS: usize = 1024;

/// The listener could not be set up, or ended.
#[derive(Debug, thiserror::Error)]
#[error("agents cannot be served")]
pub struct ServerError(#[from] tonic::transport::Error);

/// What agents are served with.
#[derive(Debug)]
pub struct Server {
    /// The core.
    pub engine: Engine,
    /// Credentials.
    pub identities: Identities,
    /// Bounds.
    pub limits: AgentLimits,
    /// Counters.
    pub metrics: Metrics,
    /// Ends all streams, each with a time to come back.
    pub stop: CancellationToken,
}

impl Server {
    /// Serves until stopped and every stream has ended.
    pub async fn serve(self, bound: Bound, tls: Option<PemPair>) -> Result<(), ServerError> {
        let Self {
            engine,
            identities,
            limits,
            metrics,
            stop,
        } = self;
        let sessions = TaskTracker::new();
        let service = FleetService {
            shared: Arc::new(Shared {
                engine,
                admission: Admission::new(limits),
                limits,
                metrics: metrics.clone(),
                stop: stop.clone(),
            }),
            sessions: sessions.clone(),
        };
        // Compressed requests stay refused: nothing may unfold before it is measured (B68).
        let service = FleetServer::new(service)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        let mut server = tonic::transport::Server::builder()
            .accept_http1(false)
            .max_concurrent_streams(STREAMS_PER_CONNECTION)
            .http2_max_header_list_size(HEADER_BYTES)
            .http2_max_pending_accept_reset_streams(Some(PENDING_RESETS))
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            // The heartbeat is application data: some proxies answer pings with GOAWAY (B64).
            .http2_keepalive_interval(None);
        if let Some(pem) = tls {
            let identity = tonic::transport::Identity::from_pem(pem.certificate, pem.key);
            server = server.tls_config(
                ServerTlsConfig::new()
                    .identity(identity)
                    .timeout(HANDSHAKE_WITHIN),
            )?;
        }
        let connections = limits.streams_max as usize + SPARE_CONNECTIONS;
        // Also ends handshakes that stall and connections that never open a stream.
        let patience = Patience {
            idle: limits.silence_max + HANDSHAKE_WITHIN,
            stranger: STRANGER_STAYS,
        };
        let incoming = bound.incoming(connections, patience, metrics.clone());
        server
            .add_service(Authenticated::new(service, identities, metrics))
            .serve_with_incoming_shutdown(incoming, stop.cancelled_owned())
            .await?;
        sessions.close();
        sessions.wait().await;
        Ok(())
    }
}
