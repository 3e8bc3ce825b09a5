//! `[[receiver]]`: where alerts go.
//!
//! Each kind takes keys of its own. They are read one by one rather than by serde: an error names the
//! entry's number and the key, says which keys its kind takes, and quotes no value, which may be a
//! secret.

mod entry;

use std::collections::BTreeMap;
use std::path::Path;

use secrecy::SecretString;
use serde::Deserialize;

use super::ConfigError;
use entry::Entry;

/// Where PagerDuty takes events, where nothing else is said.
const PAGERDUTY_URL: &str = "https://events.pagerduty.com/v2/enqueue";

/// A receiver of alerts.
#[derive(Clone)]
pub struct Receiver {
    /// Its name, unique.
    pub name: String,
    /// What it understands, and where it is.
    pub kind: ReceiverKind,
    /// Whether its address may lie in a private or loopback range.
    pub allow_private: bool,
    /// PEM of an authority that is trusted besides the system's.
    pub ca: Option<Vec<u8>>,
}

impl std::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receiver")
            .field("name", &self.name)
            .field("kind", &self.kind.as_str())
            .finish_non_exhaustive()
    }
}

/// What a receiver understands, and where it is. Addresses are secrets: they may hold a key.
#[derive(Debug, Clone)]
pub enum ReceiverKind {
    /// JSON by POST, signed after the Standard Webhooks convention.
    Webhook {
        /// Where.
        url: SecretString,
        /// What notices are signed with: `whsec_` and base64.
        secret: SecretString,
    },
    /// Alertmanager's API, version 2.
    Alertmanager {
        /// Its base, without `/api/v2/alerts`.
        url: SecretString,
        /// A bearer token, where something in front of it wants one.
        token: Option<SecretString>,
        /// Labels of each alert beside its own.
        labels: BTreeMap<String, String>,
    },
    /// A Slack incoming webhook.
    Slack {
        /// Where; whoever knows it may post.
        url: SecretString,
    },
    /// PagerDuty's Events API, version 2.
    PagerDuty {
        /// Where events are taken.
        url: SecretString,
        /// Which service they are for.
        routing_key: SecretString,
        /// `critical`, `error`, `warning` or `info`.
        severity: String,
    },
    /// E-mail, by a mail server.
    Email(MailSettings),
}

/// E-mail, by a mail server.
#[derive(Debug, Clone)]
pub struct MailSettings {
    /// The mail server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the connection is encrypted.
    pub tls: MailTls,
    /// The sender: an address, or a name and an address in angle brackets.
    pub from: String,
    /// Whom to, 1 to 50.
    pub to: Vec<String>,
    /// What the server lets in; None: it asks for nobody's name.
    pub login: Option<(String, SecretString)>,
}

/// How a connection to a mail server is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailTls {
    /// It begins in plain text and must change over before anything is said. Port 587.
    StartTls,
    /// From the first byte. Port 465.
    Tls,
    /// Not at all: for a relay on the same machine or network. Port 25.
    None,
}

impl MailTls {
    const fn port(self) -> u16 {
        match self {
            Self::StartTls => 587,
            Self::Tls => 465,
            Self::None => 25,
        }
    }
}

impl ReceiverKind {
    /// Its name, as in the file.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Webhook { .. } => "webhook",
            Self::Alertmanager { .. } => "alertmanager",
            Self::Slack { .. } => "slack",
            Self::PagerDuty { .. } => "pagerduty",
            Self::Email(_) => "email",
        }
    }
}

/// As it is in the file. Holds secrets: it is not to be printed.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub(super) struct ReceiverEntry(toml::Table);

impl ReceiverEntry {
    pub(super) fn check(self, number: usize, folder: &Path) -> Result<Receiver, ConfigError> {
        let mut entry = Entry::begin(self.0, number, folder)?;
        let kind = read_kind(&mut entry)?;
        let allow_private = entry.flag("allow_private")?.unwrap_or(false);
        let ca = entry.file("ca_file", "the receiver's authority")?;
        let receiver = Receiver {
            name: entry.name().to_owned(),
            kind,
            allow_private,
            ca,
        };
        // What delivery itself demands (a signing secret of the convention, an address that may be
        // connected to) is said at the start too, not at the first alert.
        crate::alerts::Receiver::try_from(&receiver)
            .map_err(|problem| entry.wrong(problem.field(), problem))?;
        Ok(receiver)
    }
}

fn read_kind(entry: &mut Entry<'_>) -> Result<ReceiverKind, ConfigError> {
    Ok(match entry.kind() {
        "webhook" => ReceiverKind::Webhook {
            url: entry.needed_secret("url")?,
            secret: entry.needed_secret("secret")?,
        },
        "alertmanager" => ReceiverKind::Alertmanager {
            url: entry.needed_secret("url")?,
            token: entry.secret("token")?,
            labels: entry.labels()?,
        },
        "slack" => ReceiverKind::Slack {
            url: entry.needed_secret("url")?,
        },
        "pagerduty" => ReceiverKind::PagerDuty {
            url: entry.secret("url")?.unwrap_or_else(|| PAGERDUTY_URL.into()),
            routing_key: entry.needed_secret("routing_key")?,
            severity: entry
                .one_of("severity", &["critical", "error", "warning", "info"])?
                .unwrap_or_else(|| "error".into()),
        },
        _ => ReceiverKind::Email(read_mail(entry)?),
    })
}

fn read_mail(entry: &mut Entry<'_>) -> Result<MailSettings, ConfigError> {
    let tls = match entry
        .one_of("tls", &["starttls", "tls", "none"])?
        .as_deref()
    {
        Some("tls") => MailTls::Tls,
        Some("none") => MailTls::None,
        _ => MailTls::StartTls,
    };
    let login = match (entry.text("username")?, entry.secret("password")?) {
        (None, None) => None,
        (Some(_), Some(_)) if tls == MailTls::None => {
            let problem = "expected tls = \"starttls\" or \"tls\": a password is not sent readable";
            return Err(entry.wrong("tls", problem));
        }
        (Some(name), Some(password)) => Some((name, password)),
        (Some(_), None) => {
            let problem = "expected password or password_file beside username";
            return Err(entry.wrong("password", problem));
        }
        (None, Some(_)) => {
            let problem = "expected a username beside the password";
            return Err(entry.wrong("username", problem));
        }
    };
    Ok(MailSettings {
        host: entry.needed_text("host", "the mail server's name")?,
        port: entry.port("port")?.unwrap_or(tls.port()),
        tls,
        from: entry.needed_text("from", "an address such as hedgerow@example.com")?,
        to: entry.texts("to")?,
        login,
    })
}
