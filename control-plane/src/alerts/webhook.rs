//! One attempt to hand a notice over.

use std::error::Error;
use std::time::Duration;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, redirect};

use super::address::{self, AddressError, CheckedResolver};
use super::backoff::retry_after;
use super::receiver::Receiver;

/// Hands notices over to one receiver.
#[derive(Debug, Clone)]
pub(super) struct Webhook {
    client: Client,
    receiver: Receiver,
}

/// Why the receiver does not have the notice. For people; without its address or its answer's body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum AttemptError {
    /// It answered, but not with 2xx.
    #[error("answered {status}")]
    Status {
        /// With what.
        status: u16,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// It did not answer in time.
    #[error("did not answer within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// No connection.
    #[error("could not be connected to")]
    Connect,
    /// Its address is none to connect to.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The connection ended.
    #[error("ended the connection without an answer")]
    Broken,
}

impl Webhook {
    /// A client of its own for each receiver: none waits for another's connections.
    pub(super) fn new(receiver: Receiver, timeout: Duration) -> Result<Self, reqwest::Error> {
        let client = Client::builder()
            // A proxy from the environment would connect to where we do not look.
            .no_proxy()
            .redirect(redirect::Policy::none())
            .dns_resolver(CheckedResolver {
                allow_private: receiver.allow_private(),
            })
            .timeout(timeout)
            // Notices are rare; a kept connection would be one that was checked long ago.
            .pool_max_idle_per_host(0)
            .http1_only()
            .user_agent(concat!("hedgerow/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { client, receiver })
    }

    pub(super) fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// Tries once. The answer's body is never read.
    pub(super) async fn attempt(
        &self,
        id: &str,
        now: jiff::Timestamp,
        timeout: Duration,
        body: Vec<u8>,
    ) -> Result<(), AttemptError> {
        let url = self.receiver.url();
        if let Ok(literal) = url
            .host_str()
            .unwrap_or_default()
            .trim_matches(['[', ']'])
            .parse()
        {
            address::check(literal, self.receiver.allow_private())?;
        }
        let timestamp = now.as_second();
        let answer = self
            .client
            .post(url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", timestamp.to_string())
            .header(
                "webhook-signature",
                self.receiver.secret().sign(id, timestamp, &body),
            )
            .body(body)
            .send()
            .await
            .map_err(|error| named(&error, timeout))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let wait = answer
            .headers()
            .get(RETRY_AFTER)
            .and_then(|v| v.to_str().ok());
        Err(AttemptError::Status {
            status: status.as_u16(),
            retry_after: wait.and_then(|text| retry_after(text, now)),
        })
    }
}

/// The client's own words name the address; these do not.
fn named(error: &reqwest::Error, timeout: Duration) -> AttemptError {
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    while let Some(error) = cause {
        if let Some(refused) = error.downcast_ref::<AddressError>() {
            return (*refused).into();
        }
        cause = error.source();
    }
    if error.is_timeout() {
        AttemptError::Timeout(timeout)
    } else if error.is_connect() {
        AttemptError::Connect
    } else {
        AttemptError::Broken
    }
}
