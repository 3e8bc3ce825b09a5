//! E-mail, by a mail server: one message for what is due of a dependency.

mod letter;
mod session;

use std::net::IpAddr;
use std::str::FromStr as _;

use lettre::message::Mailbox;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, TlsParameters};
use secrecy::ExposeSecret as _;

use super::attempt::{AttemptError, Taken};
use super::notice::Message;
use super::receiver::ReceiverError;
use crate::config::{MailSettings, MailTls};
use crate::outward::address;

/// Ports below 1024 that mail servers listen on.
const LOW_PORTS: [u16; 3] = [25, 465, 587];
/// Most recipients.
const TO_MAX: usize = 50;
/// Mail servers let strangers wait before they greet: an attempt may take so many times what another
/// kind's may.
const PATIENCE: u32 = 3;

/// A mail server, and who is written to.
#[derive(Clone)]
pub(super) struct Email {
    host: String,
    port: u16,
    tls: Option<(MailTls, TlsParameters)>,
    credentials: Option<Credentials>,
    from: Mailbox,
    to: Vec<Mailbox>,
    allow_private: bool,
}

impl std::fmt::Debug for Email {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Email")
            .field("to", &self.domains())
            .finish_non_exhaustive()
    }
}

impl Email {
    /// Checks what is configured; `ca` is PEM of authorities trusted beside the system's.
    pub(super) fn new(
        mail: &MailSettings,
        allow_private: bool,
        ca: Option<&[u8]>,
    ) -> Result<Self, ReceiverError> {
        let host = check_host(&mail.host, allow_private)?;
        if mail.port < 1024 && !LOW_PORTS.contains(&mail.port) {
            return Err(ReceiverError::MailPort);
        }
        let from = mailbox(&mail.from).ok_or(ReceiverError::From)?;
        if !(1..=TO_MAX).contains(&mail.to.len()) {
            return Err(ReceiverError::To);
        }
        let to: Option<Vec<_>> = mail.to.iter().map(|it| mailbox(it)).collect();
        let tls = match mail.tls {
            MailTls::None => None,
            how => Some((how, parameters(&host, ca)?)),
        };
        let credentials = mail.login.as_ref().map(|(name, password)| {
            Credentials::new(name.clone(), password.expose_secret().to_owned())
        });
        Ok(Self {
            host,
            port: mail.port,
            tls,
            credentials,
            from,
            to: to.ok_or(ReceiverError::To)?,
            allow_private,
        })
    }

    /// The domains of those who are written to.
    pub(super) fn domains(&self) -> String {
        let mut domains: Vec<_> = self.to.iter().map(|it| it.email.domain()).collect();
        domains.sort_unstable();
        domains.dedup();
        domains.join(", ")
    }

    /// Tries once.
    pub(super) async fn attempt(&self, message: &Message) -> Result<Taken, AttemptError> {
        let letter = letter::write(message, &self.from, &self.to)?;
        let within = message.timeout * PATIENCE;
        let handing_in = session::hand_in(self, &letter, within, message.timeout);
        tokio::time::timeout(within, handing_in)
            .await
            .unwrap_or(Err(AttemptError::Timeout(within)))
    }
}

fn check_host(host: &str, allow_private: bool) -> Result<String, ReceiverError> {
    let literal = host.trim_matches(['[', ']']);
    if let Ok(ip) = literal.parse::<IpAddr>() {
        address::check(ip, allow_private).map_err(ReceiverError::HostAddress)?;
        return Ok(literal.to_owned());
    }
    // Other ways to write an address in figures are resolved as names are, and checked there.
    let fine = (1..=253).contains(&host.len())
        && host
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if fine {
        Ok(host.to_owned())
    } else {
        Err(ReceiverError::Host)
    }
}

/// An address in letters that every server takes.
fn mailbox(text: &str) -> Option<Mailbox> {
    let mailbox = Mailbox::from_str(text).ok()?;
    let address: &str = mailbox.email.as_ref();
    let name_fine = mailbox
        .name
        .as_ref()
        .is_none_or(|name| !name.chars().any(char::is_control));
    (address.is_ascii() && name_fine).then_some(mailbox)
}

fn parameters(host: &str, ca: Option<&[u8]>) -> Result<TlsParameters, ReceiverError> {
    let mut builder = TlsParameters::builder(host.to_owned());
    if let Some(pem) = ca {
        let known = Certificate::from_pem(pem).map_err(|_| ReceiverError::Authority)?;
        builder = builder.add_root_certificate(known);
    }
    builder.build_rustls().map_err(|_| ReceiverError::Client)
}
