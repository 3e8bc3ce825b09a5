//! Receivers that are spoken to by HTTP: where they may be, and one POST.

use std::error::Error;
use std::time::Duration;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue};
use reqwest::{Client, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;

use super::attempt::{AttemptError, Taken, is_of_tls};
use super::backoff::retry_after;
use super::notice::Message;
use super::receiver::ReceiverError;
use crate::outward::{self, Outside};

/// Where a receiver is, and a client of its own: none waits for another's connections.
#[derive(Clone)]
pub(super) struct Endpoint {
    client: Client,
    // It often is a secret itself.
    url: Url,
    allow_private: bool,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Endpoint([hidden])")
    }
}

impl Endpoint {
    /// Checks the address; `ca` is PEM of authorities trusted beside the system's.
    pub(super) fn new(
        url: &SecretString,
        allow_private: bool,
        ca: Option<&[u8]>,
    ) -> Result<Self, ReceiverError> {
        let url = check_url(url.expose_secret(), allow_private)?;
        let mut builder = outward::client(allow_private);
        if let Some(pem) = ca {
            let known = reqwest::Certificate::from_pem_bundle(pem);
            let known = known
                .ok()
                .filter(|it| !it.is_empty())
                .ok_or(ReceiverError::Authority)?;
            builder = builder.tls_certs_merge(known);
        }
        let client = builder.build().map_err(|_| ReceiverError::Client)?;
        Ok(Self {
            client,
            url,
            allow_private,
        })
    }

    /// The same receiver at a path below its address.
    pub(super) fn below(mut self, path: &[&str]) -> Self {
        self.url
            .path_segments_mut()
            .expect("an http address has a path")
            .pop_if_empty()
            .extend(path);
        self
    }

    /// What may be shown of the address.
    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Posts JSON.
    pub(super) async fn post_json(
        &self,
        body: &impl Serialize,
        message: &Message,
    ) -> Result<Taken, AttemptError> {
        let body = serde_json::to_vec(body).expect("text, numbers and lists of them are JSON");
        self.post(HeaderMap::new(), body, message).await
    }

    /// Posts once. The answer's body is never read.
    pub(super) async fn post(
        &self,
        mut headers: HeaderMap,
        body: Vec<u8>,
        message: &Message,
    ) -> Result<Taken, AttemptError> {
        outward::literal(&self.url, self.allow_private)?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let answer = self
            .client
            .post(self.url.clone())
            .timeout(message.timeout)
            .headers(headers)
            .body(body)
            .send()
            .await
            .map_err(|error| named(&error, message.timeout))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(Taken(status.as_u16()));
        }
        let wait = answer
            .headers()
            .get(RETRY_AFTER)
            .and_then(|v| v.to_str().ok());
        let now = super::notice::timestamp(message.now);
        Err(AttemptError::Status {
            status: status.as_u16(),
            retry_after: wait.and_then(|text| retry_after(text, now)),
        })
    }
}

/// The client's own words name the address; these do not.
fn named(error: &reqwest::Error, timeout: Duration) -> AttemptError {
    let known = |error: &(dyn Error + 'static)| match outward::refused(error) {
        Some(refused) => Some(refused.into()),
        None => is_of_tls(error).then_some(AttemptError::Tls),
    };
    if let Some(known) = outward::cause(error, known) {
        return known;
    }
    if error.is_timeout() {
        AttemptError::Timeout(timeout)
    } else if error.is_connect() {
        AttemptError::Connect
    } else {
        AttemptError::Broken
    }
}

fn check_url(text: &str, allow_private: bool) -> Result<Url, ReceiverError> {
    outward::check(text, allow_private).map_err(|outside| match outside {
        Outside::Url => ReceiverError::Url,
        Outside::Scheme => ReceiverError::Scheme,
        Outside::Credentials => ReceiverError::Credentials,
        Outside::Port => ReceiverError::Port,
        Outside::Address(problem) => ReceiverError::Address(problem),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outward::AddressError;

    fn endpoint(url: &str, allow_private: bool) -> Result<Endpoint, ReceiverError> {
        Endpoint::new(&url.into(), allow_private, None)
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
            assert_eq!(endpoint(url, false).map(|_| ()), expected, "{url}");
        }
        assert!(endpoint("http://127.0.0.1:9000/", true).is_ok());
        assert_eq!(
            endpoint("http://169.254.169.254/", true).map(|_| ()),
            Err(Address(AddressError::Reserved))
        );
    }

    #[test]
    fn a_path_is_added_to_the_address() {
        for base in ["http://h.example/am", "http://h.example/am/"] {
            let endpoint = endpoint(base, false).unwrap().below(&["api", "v2"]);
            assert_eq!(endpoint.url.as_str(), "http://h.example/am/api/v2");
        }
    }
}
