//! PagerDuty's Events API, version 2: an event for each notice; the episode is the `dedup_key`.

use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;

use super::attempt::{AttemptError, Taken};
use super::endpoint::Endpoint;
use super::notice::{Message, Notice, date, identity};
use super::plain::{as_is, plain};
use super::receiver::ReceiverError;

/// Longest summary, in characters, by the API's description.
const SUMMARY_CHARS_MAX: usize = 1024;
/// Longest `dedup_key`, likewise.
const KEY_CHARS_MAX: usize = 255;
/// Longest text of another field, in characters: an event has 512 KB.
const TEXT_CHARS_MAX: usize = 10_000;
/// How long an integration key may be. Today's have 32.
const ROUTING_KEY_LEN: std::ops::RangeInclusive<usize> = 16..=64;

/// A service of PagerDuty.
#[derive(Clone)]
pub(super) struct PagerDuty {
    endpoint: Endpoint,
    routing_key: SecretString,
    severity: String,
}

impl std::fmt::Debug for PagerDuty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PagerDuty([hidden])")
    }
}

impl PagerDuty {
    pub(super) fn new(
        endpoint: Endpoint,
        routing_key: &SecretString,
        severity: &str,
    ) -> Result<Self, ReceiverError> {
        let key = routing_key.expose_secret().trim();
        if !ROUTING_KEY_LEN.contains(&key.len()) || !key.chars().all(|c| c.is_ascii_alphanumeric())
        {
            return Err(ReceiverError::RoutingKey);
        }
        Ok(Self {
            endpoint,
            routing_key: key.into(),
            severity: severity.to_owned(),
        })
    }

    pub(super) fn host(&self) -> &str {
        self.endpoint.host()
    }

    /// Tries once.
    pub(super) async fn attempt(&self, message: &Message) -> Result<Taken, AttemptError> {
        let notice = message.only()?;
        let event = Event {
            routing_key: self.routing_key.expose_secret(),
            action: if message.resolved {
                "resolve"
            } else {
                "trigger"
            },
            dedup_key: dedup_key(&notice.episode),
            client: "Hedgerow",
            client_url: notice.link.as_deref(),
            payload: self.payload(notice),
        };
        self.endpoint.post_json(&event, message).await
    }

    fn payload<'a>(&'a self, notice: &'a Notice) -> Payload<'a> {
        let text = |text: &str| plain(text, TEXT_CHARS_MAX, as_is);
        let subject = format!("{} {}", notice.route.dependency, notice.route.operation);
        let summary = format!("{} {subject}: {}", notice.rule, notice.summary);
        Payload {
            summary: plain(&summary, SUMMARY_CHARS_MAX, as_is),
            source: text(&subject),
            severity: &self.severity,
            timestamp: date(notice.ended.unwrap_or(notice.since)),
            component: text(notice.route.dependency.as_str()),
            class: notice.rule,
            custom_details: Details {
                rule: notice.rule,
                dependency: text(notice.route.dependency.as_str()),
                operation: text(notice.route.operation.as_str()),
                replica: notice.replica.as_deref().map(text),
                summary: text(&notice.summary),
                since: date(notice.since),
                resolved: notice.ended.map(date),
            },
        }
    }
}

/// The episode, as the API takes it: a long one is cut, and its identity put in the place of the rest.
fn dedup_key(episode: &str) -> String {
    let fine = episode.chars().count() <= KEY_CHARS_MAX && !episode.chars().any(char::is_control);
    if fine {
        return episode.to_owned();
    }
    let rest = identity(&[episode]);
    let begin = episode.chars().filter(|c| !c.is_control());
    let begin: String = begin.take(KEY_CHARS_MAX - rest.len() - 1).collect();
    format!("{begin}#{rest}")
}

// Holds the routing key: without Debug.
#[derive(Serialize)]
struct Event<'a> {
    routing_key: &'a str,
    #[serde(rename = "event_action")]
    action: &'static str,
    dedup_key: String,
    client: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_url: Option<&'a str>,
    payload: Payload<'a>,
}

#[derive(Serialize)]
struct Payload<'a> {
    summary: String,
    source: String,
    severity: &'a str,
    timestamp: String,
    component: String,
    class: &'static str,
    custom_details: Details,
}

#[derive(Serialize)]
struct Details {
    rule: &'static str,
    dependency: String,
    operation: String,
    replica: Option<String>,
    summary: String,
    since: String,
    resolved: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p15_an_episode_keeps_its_key_however_long_it_is() {
        assert_eq!(dedup_key("SharedSlowdown/a/b/1"), "SharedSlowdown/a/b/1");
        let long = "ä".repeat(10_000);
        let key = dedup_key(&long);
        assert_eq!(key.chars().count(), KEY_CHARS_MAX);
        assert_eq!(key, dedup_key(&long));
        assert_ne!(key, dedup_key(&format!("{long}!")));
        assert_ne!(dedup_key("a\nb"), dedup_key("ab"));
    }
}
