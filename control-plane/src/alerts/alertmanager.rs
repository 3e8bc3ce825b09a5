//! Alertmanager, by version 2 of its API.
//!
//! To it an alert is its labels, and one that is not told again is over at the `endsAt` it came with.
//! So each firing one carries an `endsAt` some while ahead and is told again long before that
//! ([`super::resend`]): it ends when its end is told, and not because the controller was started anew
//! or looks less often than Alertmanager does (B78). Two episodes of one subject have the same labels:
//! they are told one after the other.

use std::collections::BTreeMap;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;

use super::attempt::{AttemptError, Taken};
use super::endpoint::Endpoint;
use super::notice::{Message, Notice, date};
use super::receiver::ReceiverError;

/// An Alertmanager.
#[derive(Clone)]
pub(super) struct Alertmanager {
    endpoint: Endpoint,
    /// `Bearer ...`, marked as sensitive.
    authorization: Option<HeaderValue>,
    labels: BTreeMap<String, String>,
}

impl std::fmt::Debug for Alertmanager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Alertmanager")
            .field("labels", &self.labels)
            .finish_non_exhaustive()
    }
}

impl Alertmanager {
    /// `endpoint`: its base address.
    pub(super) fn new(
        endpoint: Endpoint,
        token: Option<&SecretString>,
        labels: BTreeMap<String, String>,
    ) -> Result<Self, ReceiverError> {
        let authorization = token
            .map(|token| {
                let value = format!("Bearer {}", token.expose_secret().trim());
                let mut value = HeaderValue::try_from(value).map_err(|_| ReceiverError::Token)?;
                value.set_sensitive(true);
                Ok(value)
            })
            .transpose()?;
        Ok(Self {
            endpoint: endpoint.below(&["api", "v2", "alerts"]),
            authorization,
            labels,
        })
    }

    pub(super) fn host(&self) -> &str {
        self.endpoint.host()
    }

    /// Tries once.
    pub(super) async fn attempt(&self, message: &Message) -> Result<Taken, AttemptError> {
        let alerts: Vec<_> = message
            .notices
            .iter()
            .map(|notice| self.alert(notice, message))
            .collect();
        let body = serde_json::to_vec(&alerts).expect("maps of text are JSON");
        let mut headers = HeaderMap::new();
        if let Some(value) = &self.authorization {
            headers.insert(AUTHORIZATION, value.clone());
        }
        self.endpoint.post(headers, body, message).await
    }

    fn alert<'a>(&'a self, notice: &'a Notice, message: &Message) -> Alert<'a> {
        let mut labels: BTreeMap<&str, &str> = self
            .labels
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        labels.extend([
            ("alertname", notice.rule),
            ("dependency", notice.route.dependency.as_str()),
            ("operation", notice.route.operation.as_str()),
        ]);
        // An empty label is none to Alertmanager.
        labels.extend(notice.replica.as_deref().map(|it| ("replica", it)));
        let ends = notice
            .ended
            // An end before its beginning would be refused.
            .map_or_else(
                || message.now.plus(message.held_for),
                |it| it.max(notice.since),
            );
        Alert {
            labels,
            annotations: BTreeMap::from([("summary", notice.summary.as_str())]),
            starts_at: date(notice.since),
            ends_at: date(ends),
            generator_url: notice.link.as_deref(),
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Alert<'a> {
    labels: BTreeMap<&'a str, &'a str>,
    annotations: BTreeMap<&'static str, &'a str>,
    starts_at: String,
    ends_at: String,
    #[serde(rename = "generatorURL", skip_serializing_if = "Option::is_none")]
    generator_url: Option<&'a str>,
}
