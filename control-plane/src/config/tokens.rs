//! Credentials of agents: `[[agent_token]]` and `--agent-token-file`.

use std::path::{Path, PathBuf};

use hedgerow_protocol::ids::ServiceName;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::secret::{self, InFile};
use super::{ConfigError, file};
use crate::store::{AgentToken, sha256, sha256_from_hex};

/// Shortest token, in bytes: below, it could be guessed.
const TOKEN_LEN_MIN: usize = 16;

/// As it is in the file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentTokenEntry {
    service: String,
    token: Option<InFile>,
    token_file: Option<PathBuf>,
    token_sha256: Option<String>,
}

impl AgentTokenEntry {
    pub(super) fn check(self, number: usize, folder: &Path) -> Result<AgentToken, ConfigError> {
        let key = |field: &str| {
            format!(
                "[[agent_token]] number {number} ({:?}) {field}",
                self.service
            )
        };
        let service =
            ServiceName::new(&self.service).map_err(|e| ConfigError::value(key("service"), e))?;
        let sha256 = match (self.token, self.token_file, self.token_sha256) {
            (Some(InFile(token)), None, None) => hashed(&key("token"), &token)?,
            (None, Some(path), None) => {
                let token = secret::from_file("the agent's token", &file::beside(folder, &path))?;
                hashed(&key("token_file"), &token)?
            }
            (None, None, Some(hash)) => sha256_from_hex(&hash).ok_or_else(|| {
                ConfigError::value(key("token_sha256"), "expected 64 hexadecimal digits")
            })?,
            _ => {
                let problem = "expected exactly one of token, token_file and token_sha256";
                return Err(ConfigError::value(key("token"), problem));
            }
        };
        Ok(AgentToken { sha256, service })
    }
}

/// Reads lines of `service token`; blank ones and those that begin with # are skipped.
pub(super) fn from_file(path: &Path) -> Result<Vec<AgentToken>, ConfigError> {
    let what = "the agents' token file";
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
        what,
        path: path.to_owned(),
        source,
    })?;
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
        .map(|(i, line)| {
            let key = format!("{} line {}", path.display(), i + 1);
            let (service, token) =
                line.trim().split_once(char::is_whitespace).ok_or_else(|| {
                    ConfigError::value(&key, "expected the service's name, a space, the token")
                })?;
            let service = ServiceName::new(service).map_err(|e| ConfigError::value(&key, e))?;
            Ok(AgentToken {
                sha256: hashed(&key, &token.trim().into())?,
                service,
            })
        })
        .collect()
}

fn hashed(key: &str, token: &SecretString) -> Result<[u8; 32], ConfigError> {
    let token = token.expose_secret();
    if token.len() < TOKEN_LEN_MIN {
        let problem = format!(
            "is too short: expected at least {TOKEN_LEN_MIN} characters; `hedgerow agent-token new` makes one"
        );
        return Err(ConfigError::value(key, problem));
    }
    if !token.bytes().all(|b| b.is_ascii_graphic()) {
        let problem =
            "has a character that a header cannot carry: expected printable ASCII without spaces";
        return Err(ConfigError::value(key, problem));
    }
    Ok(sha256(token.as_bytes()))
}
