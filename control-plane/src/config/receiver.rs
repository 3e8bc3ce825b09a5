//! `[[receiver]]`: where alerts go.

use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::secret::{self, InFile};
use super::{ConfigError, file};

/// Longest name of a receiver, in bytes: a table cell.
const NAME_LEN_MAX: usize = 64;
/// Shortest secret, in bytes: below, a signature proves little.
const SECRET_LEN_MIN: usize = 16;

/// A receiver of alerts.
#[derive(Clone)]
pub struct Receiver {
    /// Its name, unique.
    pub name: String,
    /// What it understands.
    pub kind: ReceiverKind,
    /// Where; http or https. Shown to nobody, since it may hold a key.
    pub url: reqwest::Url,
    /// What notices are signed with, as it is in the file (`whsec_...` is base64 after the prefix).
    pub secret: SecretString,
    /// Whether its address may lie in a private or loopback range.
    pub allow_private: bool,
}

impl std::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receiver")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// What a receiver understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReceiverKind {
    /// JSON by POST, signed after the Standard Webhooks convention.
    Webhook,
}

/// As it is in the file.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReceiverEntry {
    name: String,
    kind: ReceiverKind,
    url: String,
    secret: Option<InFile>,
    secret_file: Option<PathBuf>,
    #[serde(default)]
    allow_private: bool,
}

impl ReceiverEntry {
    pub(super) fn check(self, number: usize, folder: &Path) -> Result<Receiver, ConfigError> {
        let key = |field: &str| format!("[[receiver]] number {number} ({:?}) {field}", self.name);
        let name_ok = !self.name.is_empty()
            && self.name.len() <= NAME_LEN_MAX
            && self
                .name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if !name_ok {
            let problem = "expected 1 to 64 letters, digits and . _ -";
            return Err(ConfigError::value(key("name"), problem));
        }
        let secret = match (&self.secret, &self.secret_file) {
            (Some(InFile(secret)), None) => secret.clone(),
            (None, Some(path)) => {
                secret::from_file("the receiver's secret", &file::beside(folder, path))?
            }
            _ => {
                let problem = "expected exactly one of secret and secret_file";
                return Err(ConfigError::value(key("secret"), problem));
            }
        };
        if secret.expose_secret().len() < SECRET_LEN_MIN {
            let problem = format!("is too short: expected at least {SECRET_LEN_MIN} characters");
            return Err(ConfigError::value(key("secret"), problem));
        }
        // The address itself stays out of the message: it may hold a key.
        let url = reqwest::Url::parse(&self.url).map_err(|e| {
            ConfigError::value(key("url"), format!("{e}; expected https://host/path"))
        })?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            let problem = "expected an address that begins with https:// or http://";
            return Err(ConfigError::value(key("url"), problem));
        }
        // What delivery itself demands (a signing secret of the convention, an address that may be
        // connected to) is said at the start too, not at the first alert.
        crate::alerts::Receiver::webhook(&self.name, url.as_str(), &secret, self.allow_private)
            .map_err(|e| ConfigError::value(key(e.field()), e))?;
        Ok(Receiver {
            kind: self.kind,
            url,
            secret,
            allow_private: self.allow_private,
            name: self.name,
        })
    }
}
