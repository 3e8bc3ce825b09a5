//! Flags and environment of `hedgerow serve`. Whatever is absent is left to the file.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::LogFormat;

/// Flags of `hedgerow serve`; each also by an environment variable.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ServeArgs {
    /// A TOML file with settings; flags and environment go before it.
    #[arg(long, env = "HEDGEROW_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The controller's name, for people [default: hedgerow].
    #[arg(long, env = "HEDGEROW_NAME")]
    pub name: Option<String>,
    /// Where dashboard, API, /metrics, /healthz and /readyz listen [default: 127.0.0.1:7410].
    #[arg(long, env = "HEDGEROW_HTTP", value_name = "ADDRESS")]
    pub http: Option<SocketAddr>,
    /// Where agents are served, by gRPC [default: 127.0.0.1:7420].
    #[arg(long, env = "HEDGEROW_GRPC", value_name = "ADDRESS")]
    pub grpc: Option<SocketAddr>,
    /// The address people reach the dashboard by, for links in alerts and logs.
    #[arg(long, env = "HEDGEROW_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<String>,
    /// The store: an SQLite file, made where there is none [default: hedgerow.db].
    #[arg(long, env = "HEDGEROW_STORE", value_name = "FILE")]
    pub store: Option<PathBuf>,
    /// A file of agents' tokens, a line each: the service's name, a space, the token.
    #[arg(long, env = "HEDGEROW_AGENT_TOKEN_FILE", value_name = "FILE")]
    pub agent_token_file: Option<PathBuf>,
    /// Certificate of the HTTP listener, PEM.
    #[arg(long, env = "HEDGEROW_HTTP_TLS_CERTIFICATE", value_name = "FILE")]
    pub http_tls_certificate: Option<PathBuf>,
    /// Private key of the HTTP listener, PEM.
    #[arg(long, env = "HEDGEROW_HTTP_TLS_KEY", value_name = "FILE")]
    pub http_tls_key: Option<PathBuf>,
    /// Certificate of the agents' listener, PEM.
    #[arg(long, env = "HEDGEROW_GRPC_TLS_CERTIFICATE", value_name = "FILE")]
    pub grpc_tls_certificate: Option<PathBuf>,
    /// Private key of the agents' listener, PEM.
    #[arg(long, env = "HEDGEROW_GRPC_TLS_KEY", value_name = "FILE")]
    pub grpc_tls_key: Option<PathBuf>,
    /// Serve without TLS beyond loopback: tokens, passwords and sessions then cross the network
    /// readable. For networks that encrypt by themselves, or behind a proxy that ends TLS.
    #[arg(
        long,
        env = "HEDGEROW_ALLOW_PLAINTEXT_BEYOND_LOOPBACK",
        num_args = 0..=1,
        default_missing_value = "true",
        value_name = "BOOL"
    )]
    pub allow_plaintext_beyond_loopback: Option<bool>,
    /// How log lines are written, to standard error [default: text].
    #[arg(long, env = "HEDGEROW_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// Which log lines are written, such as `info` or `hedgerow=debug,warn` [default: info].
    #[arg(long, env = "HEDGEROW_LOG", value_name = "FILTER")]
    pub log: Option<String>,
    /// Where traces go, by OTLP over gRPC, such as http://127.0.0.1:4317 [default: nowhere].
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL")]
    pub otlp_endpoint: Option<String>,
    /// Answer /metrics to others than loopback too; it needs no login.
    #[arg(
        long,
        env = "HEDGEROW_METRICS_PUBLIC",
        num_args = 0..=1,
        default_missing_value = "true",
        value_name = "BOOL"
    )]
    pub metrics_public: Option<bool>,
}
