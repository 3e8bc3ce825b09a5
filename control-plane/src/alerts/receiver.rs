//! A receiver as configured.

use std::net::IpAddr;

use reqwest::Url;
use secrecy::SecretString;

use super::address::{self, AddressError};
use super::signature::{SecretError, SigningSecret};
use crate::config::{self, ReceiverKind};

/// Ports below 1024 that web servers listen on: a receiver's address cannot be used to talk to a
/// mail server or the like.
const LOW_PORTS: [u16; 2] = [80, 443];

/// Where notices go.
#[derive(Debug, Clone)]
pub struct Receiver {
    name: String,
    url: HiddenUrl,
    secret: SigningSecret,
    allow_private: bool,
}

/// A receiver's address: it often is a secret itself, so it is not printed.
#[derive(Clone)]
struct HiddenUrl(Url);

impl std::fmt::Debug for HiddenUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[hidden]")
    }
}

/// Why a receiver cannot be used. Neither its address nor its secret is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
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
    #[error("expected no name and password in it; notices are signed instead")]
    Credentials,
    /// An address that is not connected to.
    #[error("{0}")]
    Address(AddressError),
    /// The secret.
    #[error("{0}")]
    Secret(SecretError),
}

impl ReceiverError {
    /// The setting it is about.
    pub const fn field(&self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Secret(_) => "secret",
            _ => "url",
        }
    }
}

impl TryFrom<&config::Receiver> for Receiver {
    type Error = ReceiverError;

    fn try_from(configured: &config::Receiver) -> Result<Self, ReceiverError> {
        let config::Receiver {
            name,
            kind: ReceiverKind::Webhook,
            url,
            secret,
            allow_private,
        } = configured;
        Self::webhook(name, url.as_str(), secret, *allow_private)
    }
}

impl Receiver {
    /// Checks and keeps a webhook receiver.
    pub fn webhook(
        name: &str,
        url: &str,
        secret: &SecretString,
        allow_private: bool,
    ) -> Result<Self, ReceiverError> {
        if name.trim().is_empty() {
            return Err(ReceiverError::Name);
        }
        let url = check_url(url, allow_private)?;
        let secret = SigningSecret::parse(secret).map_err(ReceiverError::Secret)?;
        Ok(Self {
            name: name.trim().into(),
            url: HiddenUrl(url),
            secret,
            allow_private,
        })
    }

    /// Its name, as pages and the outbox have it.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn url(&self) -> &Url {
        &self.url.0
    }

    pub(super) fn secret(&self) -> &SigningSecret {
        &self.secret
    }

    pub(super) fn allow_private(&self) -> bool {
        self.allow_private
    }
}

fn check_url(text: &str, allow_private: bool) -> Result<Url, ReceiverError> {
    let url = Url::parse(text.trim()).map_err(|_| ReceiverError::Url)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(ReceiverError::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ReceiverError::Credentials);
    }
    let port = url.port_or_known_default().ok_or(ReceiverError::Port)?;
    if port < 1024 && !LOW_PORTS.contains(&port) {
        return Err(ReceiverError::Port);
    }
    let host = url
        .host_str()
        .filter(|h| !h.is_empty())
        .ok_or(ReceiverError::Url)?;
    // An address in figures never reaches the resolver that checks names. `Url` has already made
    // one form out of 0x7f.1, 2130706433 and the like.
    if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
        address::check(address, allow_private).map_err(ReceiverError::Address)?;
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn receiver(url: &str, allow_private: bool) -> Result<Receiver, ReceiverError> {
        Receiver::webhook("pager", url, &SECRET.into(), allow_private)
    }

    #[test]
    fn s08_schemes_ports_and_addresses_are_allowed_by_list() {
        use ReceiverError::{Address, Credentials, Port, Scheme, Url};
        let table = [
            ("https://alerts.example.org/x", Ok(())),
            ("http://alerts.example.org:8080/x", Ok(())),
            ("ftp://alerts.example.org/", Err(Scheme)),
            ("file:///etc/passwd", Err(Scheme)),
            ("gopher://127.0.0.1:25/", Err(Scheme)),
            ("alerts.example.org", Err(Url)),
            ("https://alerts.example.org:25/", Err(Port)),
            ("https://ada:secret@alerts.example.org/", Err(Credentials)),
            (
                "http://127.0.0.1:9000/",
                Err(Address(AddressError::Private)),
            ),
            ("http://0x7f.1:9000/", Err(Address(AddressError::Private))),
            (
                "http://2130706433:9000/",
                Err(Address(AddressError::Private)),
            ),
            (
                "http://[::ffff:127.0.0.1]:9000/",
                Err(Address(AddressError::Private)),
            ),
            (
                "http://169.254.169.254/",
                Err(Address(AddressError::Reserved)),
            ),
        ];
        for (url, expected) in table {
            assert_eq!(receiver(url, false).map(|_| ()), expected, "{url}");
        }
        assert!(receiver("http://127.0.0.1:9000/", true).is_ok());
        assert_eq!(
            receiver("http://169.254.169.254/", true).map(|_| ()),
            Err(Address(AddressError::Reserved))
        );
    }

    #[test]
    fn s09_a_receiver_prints_neither_its_address_nor_its_secret() {
        let text = format!(
            "{:?}",
            receiver("https://example.org/canary-path", false).unwrap()
        );
        assert!(!text.contains("canary") && !text.contains("MfKQ"), "{text}");
    }
}
