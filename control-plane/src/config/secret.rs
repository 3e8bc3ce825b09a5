//! Secrets in the file: read without ever being part of an error's text.

use std::path::Path;

use secrecy::SecretString;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::ConfigError;

/// A secret written in the file.
#[derive(Debug, Clone)]
pub(super) struct InFile(pub(super) SecretString);

impl<'de> Deserialize<'de> for InFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // By way of a Value: serde's own message for a wrong type would quote what it found.
        match toml::Value::deserialize(deserializer)? {
            toml::Value::String(text) => Ok(Self(text.into())),
            _ => Err(D::Error::custom(
                "a secret of the wrong type; expected a text in quotes",
            )),
        }
    }
}

/// Reads a secret from a file of its own, without the line's end.
pub(super) fn from_file(what: &'static str, path: &Path) -> Result<SecretString, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
        what,
        path: path.to_owned(),
        source,
    })?;
    Ok(SecretString::from(text.trim_end_matches(['\r', '\n'])))
}
