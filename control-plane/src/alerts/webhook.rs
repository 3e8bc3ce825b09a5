//! A webhook after the Standard Webhooks convention: one notice a request, signed.

use http::{HeaderMap, HeaderValue};
use secrecy::SecretString;
use serde::Serialize;

use super::attempt::{AttemptError, Taken};
use super::endpoint::Endpoint;
use super::notice::{Message, Notice, date, identity, timestamp};
use super::receiver::ReceiverError;
use super::signature::SigningSecret;

/// A webhook.
#[derive(Debug, Clone)]
pub(super) struct Webhook {
    endpoint: Endpoint,
    secret: SigningSecret,
}

impl Webhook {
    pub(super) fn new(endpoint: Endpoint, secret: &SecretString) -> Result<Self, ReceiverError> {
        let secret = SigningSecret::parse(secret).map_err(ReceiverError::Secret)?;
        Ok(Self { endpoint, secret })
    }

    pub(super) fn host(&self) -> &str {
        self.endpoint.host()
    }

    /// Tries once.
    pub(super) async fn attempt(&self, message: &Message) -> Result<Taken, AttemptError> {
        let notice = message.only()?;
        let body = serde_json::to_vec(&body(notice, message.resolved))
            .expect("text and options of text are JSON");
        let id = webhook_id(&notice.episode, message.resolved, &message.receiver);
        let timestamp = timestamp(message.now).as_second();
        let signature = self.secret.sign(&id, timestamp, &body);
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("webhook-id", id),
            ("webhook-timestamp", timestamp.to_string()),
            ("webhook-signature", signature),
        ] {
            let value = HeaderValue::try_from(value).expect("digits, base64 and commas");
            headers.insert(name, value);
        }
        self.endpoint.post(headers, body, message).await
    }
}

/// The body of a notice.
#[derive(Debug, Serialize)]
struct Body<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    /// When it happened; not when it is sent.
    timestamp: String,
    data: Data<'a>,
}

#[derive(Debug, Serialize)]
struct Data<'a> {
    /// The episode: the same in the firing and the resolved notice.
    alert: &'a str,
    rule: &'static str,
    dependency: &'a str,
    operation: &'a str,
    replica: Option<&'a str>,
    summary: &'a str,
    since: String,
    resolved: Option<String>,
    /// Where to look; null where nobody knows the dashboard's address.
    link: Option<&'a str>,
}

fn body(notice: &Notice, resolved: bool) -> Body<'_> {
    Body {
        kind: if resolved {
            "alert.resolved"
        } else {
            "alert.firing"
        },
        timestamp: date(notice.ended.unwrap_or(notice.since)),
        data: Data {
            alert: &notice.episode,
            rule: notice.rule,
            dependency: notice.route.dependency.as_str(),
            operation: notice.route.operation.as_str(),
            replica: notice.replica.as_deref(),
            summary: &notice.summary,
            since: date(notice.since),
            resolved: notice.ended.map(date),
            link: notice.link.as_deref(),
        },
    }
}

/// A notice's identity: the same for every attempt, over restarts too, and another for every other
/// episode, kind and receiver.
fn webhook_id(episode: &str, resolved: bool, receiver: &str) -> String {
    let kind = if resolved { "resolved" } else { "firing" };
    format!("msg_{}", identity(&[episode, kind, receiver]))
}

#[cfg(test)]
mod tests {
    use hedgerow_core::effect::AlertState;
    use hedgerow_core::moment::Moment;
    use hedgerow_core::view::AlertRule;
    use hedgerow_protocol::ids::RouteKey;
    use reqwest::Url;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_notice_says_what_when_and_where_to_look() {
        let alert = AlertState {
            id: "SharedSlowdown/catalog/get/1".into(),
            rule: AlertRule::SharedSlowdown,
            route: RouteKey::new("catalog", "pkg.Svc/Get").unwrap(),
            replica: None,
            summary: "slow together".into(),
            since: Moment::from_millis(1_700_000_000_123),
            resolved: Some(Moment::from_millis(1_700_000_060_000)),
        };
        let data = json!({
            "alert": "SharedSlowdown/catalog/get/1", "rule": "SharedSlowdown",
            "dependency": "catalog", "operation": "pkg.Svc/Get", "replica": null,
            "summary": "slow together", "since": "2023-11-14T22:13:20.123Z",
            "resolved": "2023-11-14T22:14:20.000Z", "link": "https://h.example/x/dependencies/catalog/pkg.Svc%2FGet",
        });
        let base = Url::parse("https://h.example/x/").unwrap();
        let ended = Notice::of(&alert, true, Some(&base));
        assert_eq!(
            serde_json::to_value(body(&ended, true)).unwrap(),
            json!({"type": "alert.resolved", "timestamp": "2023-11-14T22:14:20.000Z", "data": data})
        );
        let begun = Notice::of(&alert, false, None);
        let firing = serde_json::to_value(body(&begun, false)).unwrap();
        assert_eq!(firing["type"], "alert.firing");
        assert_eq!(firing["timestamp"], "2023-11-14T22:13:20.123Z");
        assert_eq!(firing["data"]["resolved"], serde_json::Value::Null);
    }

    #[test]
    fn an_identity_stays_the_same_over_versions() {
        // A receiver that took a notice just before an update must know it again after it.
        let id = webhook_id("a", false, "x");
        assert_eq!(id, "msg_ce9fbca03b17ccee67a81afdd381b62e");
        assert_ne!(id, webhook_id("a", true, "x"));
        assert_ne!(id, webhook_id("a", false, "y"));
    }
}
