//! Settings: small validated structs, handed down. Read once at start, from flags, environment and
//! a file, in this order of precedence; nothing reads the environment later.

mod args;
mod error;
mod file;
mod oidc;
mod receiver;
mod resolve;
mod secret;
mod tokens;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use hedgerow_protocol::policy::Policy;

use crate::auth::Oidc;
use crate::store::AgentToken;

pub use args::ServeArgs;
pub use error::ConfigError;
pub use receiver::{MailSettings, MailTls, Receiver, ReceiverKind};

/// Where the dashboard and the API listen, where nothing else is said.
pub const HTTP_DEFAULT: &str = "127.0.0.1:7410";
/// Where agents are served, where nothing else is said.
pub const GRPC_DEFAULT: &str = "127.0.0.1:7420";
/// The store, where nothing else is said: in the working directory.
pub const STORE_DEFAULT: &str = "hedgerow.db";

/// Everything `hedgerow serve` is told.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The controller's name, for people.
    pub name: String,
    /// The listener of dashboard, API, metrics and health.
    pub http: Listen,
    /// The listener of agents.
    pub grpc: Listen,
    /// The address people reach the dashboard by, for links; without one, the listener's own serves.
    pub public_url: Option<reqwest::Url>,
    /// The store's file.
    pub store: PathBuf,
    /// Credentials of agents, beside those in the store.
    pub agent_tokens: Vec<AgentToken>,
    /// Policies for dependencies that never had one.
    pub policies: Vec<Policy>,
    /// Single sign-on, where there is a provider.
    pub oidc: Option<Oidc>,
    /// Where alerts go.
    pub receivers: Vec<Receiver>,
    /// How many agents, how fast.
    pub agents: AgentLimits,
    /// What is logged and traced.
    pub telemetry: Telemetry,
}

impl Settings {
    /// The address people reach the dashboard by, ending in a slash. `http` is where it listens.
    pub fn public_base(&self, http: SocketAddr) -> String {
        if let Some(url) = &self.public_url {
            let text = url.as_str();
            return if text.ends_with('/') {
                text.to_owned()
            } else {
                format!("{text}/")
            };
        }
        let scheme = if self.http.tls.is_some() {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://{http}/")
    }

    /// The address for links that are sent away, as in notices. None: there is no public one, and
    /// "all addresses of this machine" is none to go to.
    pub fn link_base(&self, http: SocketAddr) -> Option<reqwest::Url> {
        if self.public_url.is_none() && http.ip().is_unspecified() {
            return None;
        }
        reqwest::Url::parse(&self.public_base(http)).ok()
    }
}

/// A listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// Its address.
    pub address: SocketAddr,
    /// Its certificate; None: plaintext.
    pub tls: Option<TlsFiles>,
}

/// PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by those that lead to the authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Bounds on agents (P7, P11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentLimits {
    /// Most streams at once; further ones are told to come back.
    pub streams_max: u32,
    /// New streams admitted in a second; further ones are told to come back.
    pub admitted_per_s: u32,
    /// How long a stream may be silent: the heartbeat is due every 10 s (P9).
    pub silence_max: Duration,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self {
            streams_max: 20_000,
            admitted_per_s: 1_000,
            silence_max: Duration::from_secs(30),
        }
    }
}

/// What is logged and traced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telemetry {
    /// How a log line is written.
    pub log_format: LogFormat,
    /// Which: directives of `tracing`'s EnvFilter, such as `info` or `hedgerow=debug,warn`.
    pub log_filter: String,
    /// Where traces go by OTLP over gRPC; None: nowhere.
    pub otlp_endpoint: Option<String>,
    /// Whether `/metrics` answers others than loopback.
    pub metrics_public: bool,
}

/// How a log line is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs: a JSON object a line.
    Json,
}
