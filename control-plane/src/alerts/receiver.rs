//! A receiver as configured, of whichever kind.

use secrecy::SecretString;

use super::alertmanager::Alertmanager;
use super::attempt::{AttemptError, Taken};
use super::email::Email;
use super::endpoint::Endpoint;
use super::notice::Message;
use super::pagerduty::PagerDuty;
use super::signature::SecretError;
use super::slack::Slack;
use super::webhook::Webhook;
use crate::config::{self, ReceiverKind};
use crate::outward::AddressError;

/// Where notices go.
#[derive(Debug, Clone)]
pub struct Receiver {
    name: String,
    way: Way,
}

#[derive(Debug, Clone)]
enum Way {
    Webhook(Webhook),
    Alertmanager(Alertmanager),
    Slack(Slack),
    PagerDuty(PagerDuty),
    Email(Box<Email>),
}

/// Which notices go out together, and which wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grouping {
    /// Each by itself: a program tells episodes apart.
    Episodes,
    /// Each by itself, and of one subject one after the other: to the receiver they are one alert,
    /// which the end of an older episode would end.
    Subjects,
    /// Those of one dependency in one message, and of one subject one after the other: a person reads
    /// it, and takes what comes last for what is so now.
    Dependencies,
}

/// Why a receiver cannot be used. Neither its address nor its secret is repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReceiverError {
    /// No name.
    #[error("must not be blank")]
    Name,
    /// Not an address.
    #[error("expected an address such as https://alerts.example.org/hedgerow")]
    Url,
    /// Another scheme.
    #[error("expected http:// or https://")]
    Scheme,
    /// Another port.
    #[error("expected port 80, 443 or one from 1024 on")]
    Port,
    /// A name and password before the host.
    #[error("expected no name and password in it")]
    Credentials,
    /// An address that is not connected to.
    #[error("{0}")]
    Address(AddressError),
    /// The signing secret.
    #[error("{0}")]
    Secret(SecretError),
    /// The bearer token.
    #[error("expected printable characters only")]
    Token,
    /// The integration key.
    #[error("expected the integration key of a service, of 32 letters and digits")]
    RoutingKey,
    /// The mail server's name.
    #[error("expected the name or the address of a mail server")]
    Host,
    /// The mail server's address is not connected to.
    #[error("{0}")]
    HostAddress(AddressError),
    /// The mail server's port.
    #[error("expected port 25, 465, 587 or one from 1024 on")]
    MailPort,
    /// The sender.
    #[error("expected an address such as hedgerow@example.com or Hedgerow <hedgerow@example.com>")]
    From,
    /// Whom to.
    #[error("expected 1 to 50 addresses such as on-call@example.com")]
    To,
    /// The authority.
    #[error("expected certificates in PEM")]
    Authority,
    /// Nothing can be encrypted here.
    #[error("no encrypted connection can be made on this machine: no certificates are trusted")]
    Client,
}

impl ReceiverError {
    /// The setting it is about.
    pub const fn field(&self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Secret(_) => "secret",
            Self::Token => "token",
            Self::RoutingKey => "routing_key",
            Self::Host | Self::HostAddress(_) => "host",
            Self::MailPort => "port",
            Self::From => "from",
            Self::To => "to",
            Self::Authority => "ca_file",
            Self::Url
            | Self::Scheme
            | Self::Port
            | Self::Credentials
            | Self::Address(_)
            | Self::Client => "url",
        }
    }
}

impl TryFrom<&config::Receiver> for Receiver {
    type Error = ReceiverError;

    fn try_from(configured: &config::Receiver) -> Result<Self, ReceiverError> {
        let config::Receiver {
            name,
            kind,
            allow_private,
            ca,
        } = configured;
        let endpoint = |url| Endpoint::new(url, *allow_private, ca.as_deref());
        let way = match kind {
            ReceiverKind::Webhook { url, secret } => {
                Way::Webhook(Webhook::new(endpoint(url)?, secret)?)
            }
            ReceiverKind::Alertmanager { url, token, labels } => Way::Alertmanager(
                Alertmanager::new(endpoint(url)?, token.as_ref(), labels.clone())?,
            ),
            ReceiverKind::Slack { url } => Way::Slack(Slack::new(endpoint(url)?)),
            ReceiverKind::PagerDuty {
                url,
                routing_key,
                severity,
            } => Way::PagerDuty(PagerDuty::new(endpoint(url)?, routing_key, severity)?),
            ReceiverKind::Email(mail) => {
                Way::Email(Box::new(Email::new(mail, *allow_private, ca.as_deref())?))
            }
        };
        Self::new(name, way)
    }
}

impl Receiver {
    fn new(name: &str, way: Way) -> Result<Self, ReceiverError> {
        if name.trim().is_empty() {
            return Err(ReceiverError::Name);
        }
        Ok(Self {
            name: name.trim().into(),
            way,
        })
    }

    /// Checks and keeps a webhook receiver.
    pub fn webhook(
        name: &str,
        url: &str,
        secret: &SecretString,
        allow_private: bool,
    ) -> Result<Self, ReceiverError> {
        let endpoint = Endpoint::new(&url.into(), allow_private, None)?;
        Self::new(name, Way::Webhook(Webhook::new(endpoint, secret)?))
    }

    /// Its name, as pages and the outbox have it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its kind, as the configuration has it.
    pub fn kind(&self) -> &'static str {
        match self.way {
            Way::Webhook(_) => "webhook",
            Way::Alertmanager(_) => "alertmanager",
            Way::Slack(_) => "slack",
            Way::PagerDuty(_) => "pagerduty",
            Way::Email(_) => "email",
        }
    }

    /// Where notices go, as far as may be shown: a host, or the domains of addresses.
    pub fn to(&self) -> String {
        match &self.way {
            Way::Webhook(it) => it.host().to_owned(),
            Way::Alertmanager(it) => it.host().to_owned(),
            Way::Slack(it) => it.host().to_owned(),
            Way::PagerDuty(it) => it.host().to_owned(),
            Way::Email(it) => it.domains(),
        }
    }

    pub(super) fn grouping(&self) -> Grouping {
        match self.way {
            Way::Webhook(_) | Way::PagerDuty(_) => Grouping::Episodes,
            Way::Alertmanager(_) => Grouping::Subjects,
            Way::Slack(_) | Way::Email(_) => Grouping::Dependencies,
        }
    }

    /// Whether it forgets what it is not told again.
    pub(super) fn forgets(&self) -> bool {
        matches!(self.way, Way::Alertmanager(_))
    }

    /// Whether a beginning without an end would stay with it, as it does with programs.
    pub(super) fn keeps_open(&self) -> bool {
        !matches!(self.way, Way::Slack(_) | Way::Email(_))
    }

    /// Tries once to hand a message over.
    pub(super) async fn attempt(&self, message: &Message) -> Result<Taken, AttemptError> {
        match &self.way {
            Way::Webhook(it) => it.attempt(message).await,
            Way::Alertmanager(it) => it.attempt(message).await,
            Way::Slack(it) => it.attempt(message).await,
            Way::PagerDuty(it) => it.attempt(message).await,
            Way::Email(it) => it.attempt(message).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s09_a_receiver_prints_neither_its_address_nor_its_secret() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into();
        let url = "https://example.org/canary-path";
        let text = format!(
            "{:?}",
            Receiver::webhook("pager", url, &secret, false).unwrap()
        );
        assert!(!text.contains("canary") && !text.contains("MfKQ"), "{text}");
    }
}
