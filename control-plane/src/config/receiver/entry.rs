//! The keys of one `[[receiver]]`, taken out one after the other.

use std::collections::BTreeMap;
use std::path::Path;

use secrecy::SecretString;
use toml::{Table, Value};

use crate::config::error::Problem;
use crate::config::{ConfigError, file, secret};

/// Longest name of a receiver, in bytes: a table cell.
const NAME_LEN_MAX: usize = 64;
/// Most labels added to alerts.
const LABELS_MAX: usize = 20;
/// Keys of every kind.
const COMMON: [&str; 4] = ["name", "kind", "allow_private", "ca_file"];
/// Kinds, and the keys that each takes beside those.
const KINDS: [(&str, &[&str]); 5] = [
    ("webhook", &["url", "url_file", "secret", "secret_file"]),
    (
        "alertmanager",
        &["url", "url_file", "token", "token_file", "labels"],
    ),
    ("slack", &["url", "url_file"]),
    (
        "pagerduty",
        &[
            "routing_key",
            "routing_key_file",
            "severity",
            "url",
            "url_file",
        ],
    ),
    (
        "email",
        &[
            "host",
            "port",
            "tls",
            "from",
            "to",
            "username",
            "password",
            "password_file",
        ],
    ),
];

/// What is left of an entry, and how to call it.
pub(super) struct Entry<'a> {
    left: Table,
    number: usize,
    folder: &'a Path,
    name: String,
    kind: &'static str,
    takes: &'static [&'static str],
}

impl<'a> Entry<'a> {
    /// Reads name and kind; refuses keys that the kind does not take.
    pub(super) fn begin(left: Table, number: usize, folder: &'a Path) -> Result<Self, ConfigError> {
        let mut entry = Self {
            left,
            number,
            folder,
            name: String::new(),
            kind: "",
            takes: &[],
        };
        let expected = "1 to 64 letters, digits and . _ -";
        let name = entry.needed_text("name", expected)?;
        let fine = !name.is_empty()
            && name.len() <= NAME_LEN_MAX
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        entry.name = name.chars().take(NAME_LEN_MAX).collect();
        if !fine {
            return Err(entry.wrong("name", format!("expected {expected}")));
        }
        let kinds = || {
            let names: Vec<_> = KINDS.iter().map(|(name, _)| *name).collect();
            format!("one of {}", names.join(", "))
        };
        let kind = entry.needed_text("kind", &kinds())?;
        let Some((known, takes)) = KINDS.iter().find(|(name, _)| *name == kind) else {
            let kind: String = kind.chars().take(NAME_LEN_MAX).collect();
            return Err(entry.wrong("kind", format!("{kind:?} is no kind, expected {}", kinds())));
        };
        (entry.kind, entry.takes) = (known, takes);
        entry.nothing_foreign()?;
        Ok(entry)
    }

    fn nothing_foreign(&self) -> Result<(), ConfigError> {
        let known = |key: &&str| COMMON.contains(key) || self.takes.contains(key);
        match self.left.keys().find(|key| !known(&key.as_str())) {
            None => Ok(()),
            // A table's key is a name, though a slip of the pen may have made a secret one.
            Some(key) => {
                let problem = format!(
                    "is no key of the kind {}, which takes {}, {}",
                    self.kind,
                    COMMON.join(", "),
                    self.takes.join(", ")
                );
                let key: String = key.chars().take(NAME_LEN_MAX).collect();
                Err(self.wrong(&key, problem))
            }
        }
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Its kind, one that exists.
    pub(super) fn kind(&self) -> &'static str {
        self.kind
    }

    /// An error about `key`.
    pub(super) fn wrong(&self, key: &str, problem: impl Into<Problem>) -> ConfigError {
        let key = format!(
            "[[receiver]] number {} ({:?}) {key}",
            self.number, self.name
        );
        ConfigError::value(key, problem)
    }

    /// A text, if it is there.
    pub(super) fn text(&mut self, key: &str) -> Result<Option<String>, ConfigError> {
        match self.left.remove(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(key, "expected a text in quotes")),
        }
    }

    /// A text that has to be there.
    pub(super) fn needed_text(&mut self, key: &str, expected: &str) -> Result<String, ConfigError> {
        match self.text(key)? {
            Some(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
            _ => Err(self.wrong(key, format!("expected {expected}"))),
        }
    }

    /// One of some words, if it is there.
    pub(super) fn one_of(
        &mut self,
        key: &str,
        words: &[&str],
    ) -> Result<Option<String>, ConfigError> {
        match self.text(key)? {
            Some(word) if !words.contains(&word.as_str()) => {
                Err(self.wrong(key, format!("expected one of {}", words.join(", "))))
            }
            other => Ok(other),
        }
    }

    /// A secret, written under `key` or in the file that `key_file` names.
    pub(super) fn secret(&mut self, key: &str) -> Result<Option<SecretString>, ConfigError> {
        let in_file = format!("{key}_file");
        match (self.text(key)?, self.text(&in_file)?) {
            (None, None) => Ok(None),
            (Some(secret), None) => Ok(Some(secret.into())),
            (None, Some(path)) => {
                let path = file::beside(self.folder, Path::new(&path));
                secret::from_file("a receiver's secret", &path).map(Some)
            }
            (Some(_), Some(_)) => {
                let problem = format!("expected only one of {key} and {in_file}");
                Err(self.wrong(key, problem))
            }
        }
    }

    /// A secret that has to be there.
    pub(super) fn needed_secret(&mut self, key: &str) -> Result<SecretString, ConfigError> {
        let problem = format!("expected exactly one of {key} and {key}_file");
        self.secret(key)?.ok_or_else(|| self.wrong(key, problem))
    }

    /// Yes or no, if it is there.
    pub(super) fn flag(&mut self, key: &str) -> Result<Option<bool>, ConfigError> {
        match self.left.remove(key) {
            None => Ok(None),
            Some(Value::Boolean(flag)) => Ok(Some(flag)),
            Some(_) => Err(self.wrong(key, "expected true or false")),
        }
    }

    /// A port, if it is there.
    pub(super) fn port(&mut self, key: &str) -> Result<Option<u16>, ConfigError> {
        match self.left.remove(key) {
            None => Ok(None),
            Some(Value::Integer(port)) if (1..=65_535).contains(&port) => {
                Ok(u16::try_from(port).ok())
            }
            Some(_) => Err(self.wrong(key, "expected a number from 1 to 65535")),
        }
    }

    /// The contents of a file that is named, if one is.
    pub(super) fn file(
        &mut self,
        key: &str,
        what: &'static str,
    ) -> Result<Option<Vec<u8>>, ConfigError> {
        let Some(path) = self.text(key)? else {
            return Ok(None);
        };
        let path = file::beside(self.folder, Path::new(&path));
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(source) => Err(ConfigError::Read { what, path, source }),
        }
    }

    /// A list of texts, or one.
    pub(super) fn texts(&mut self, key: &str) -> Result<Vec<String>, ConfigError> {
        let expected = "expected a list of texts such as [\"on-call@example.com\"]";
        let list = match self.left.remove(key) {
            Some(Value::Array(list)) => list,
            Some(text @ Value::String(_)) => vec![text],
            _ => return Err(self.wrong(key, expected)),
        };
        list.into_iter()
            .map(|it| match it {
                Value::String(text) => Ok(text.trim().to_owned()),
                _ => Err(self.wrong(key, expected)),
            })
            .collect()
    }

    /// Labels that alerts get beside their own.
    pub(super) fn labels(&mut self) -> Result<BTreeMap<String, String>, ConfigError> {
        const OWN: [&str; 4] = ["alertname", "dependency", "operation", "replica"];
        let table = match self.left.remove("labels") {
            None => return Ok(BTreeMap::new()),
            Some(Value::Table(table)) if table.len() <= LABELS_MAX => table,
            Some(_) => {
                let problem =
                    format!("expected at most {LABELS_MAX}, such as {{ severity = \"page\" }}");
                return Err(self.wrong("labels", problem));
            }
        };
        let mut labels = BTreeMap::new();
        for (name, value) in table {
            let mut letters = name.chars();
            let fine = letters
                .next()
                .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
                && letters.all(|c| c.is_ascii_alphanumeric() || c == '_');
            match value {
                Value::String(value) if fine && !OWN.contains(&name.as_str()) => {
                    labels.insert(name, value);
                }
                _ => {
                    let problem = format!(
                        "expected names of letters, digits and _, other than {}, and values in quotes",
                        OWN.join(", ")
                    );
                    return Err(self.wrong("labels", problem));
                }
            }
        }
        Ok(labels)
    }
}
