//! The TOML file, as it is written.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use hedgerow_protocol::policy::PolicyDraft;
use serde::Deserialize;

use super::oidc::OidcTable;
use super::receiver::ReceiverEntry;
use super::tokens::AgentTokenEntry;
use super::{ConfigError, LogFormat};

/// Everything that may stand in the file. Paths in it are relative to its folder. Holds receivers'
/// addresses, which may be secrets: it is not to be printed.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: Option<String>,
    pub(super) http: Option<SocketAddr>,
    pub(super) grpc: Option<SocketAddr>,
    pub(super) public_url: Option<String>,
    pub(super) store: Option<PathBuf>,
    pub(super) allow_plaintext_beyond_loopback: Option<bool>,
    pub(super) http_tls: Option<TlsTable>,
    pub(super) grpc_tls: Option<TlsTable>,
    #[serde(default)]
    pub(super) log: LogTable,
    #[serde(default)]
    pub(super) telemetry: TelemetryTable,
    #[serde(default)]
    pub(super) agents: AgentsTable,
    #[serde(default)]
    pub(super) agent_token: Vec<AgentTokenEntry>,
    #[serde(default)]
    pub(super) policy: Vec<PolicyDraft>,
    #[serde(default)]
    pub(super) receiver: Vec<ReceiverEntry>,
    pub(super) oidc: Option<OidcTable>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TlsTable {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogTable {
    pub(super) format: Option<LogFormat>,
    pub(super) filter: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TelemetryTable {
    pub(super) otlp_endpoint: Option<String>,
    pub(super) metrics_public: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentsTable {
    pub(super) streams_max: Option<u32>,
    pub(super) admitted_per_s: Option<u32>,
}

/// Reads the file.
pub(super) fn read(path: &Path) -> Result<File, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
        what: "the configuration file",
        path: path.to_owned(),
        source,
    })?;
    toml::from_str(&text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let (line, column) = place(&text, at);
        ConfigError::Parse {
            path: path.to_owned(),
            line,
            column,
            problem: error.message().to_owned(),
        }
    })
}

/// `path` as seen from the configuration file's folder.
pub(super) fn beside(folder: &Path, path: &Path) -> PathBuf {
    folder.join(path)
}

/// Line and column, from 1, of a byte offset.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .map_or(0, |last| last.chars().count())
        + 1;
    (line, column)
}
