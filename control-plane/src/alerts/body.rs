//! What a notice says.

use hedgerow_core::effect::AlertState;
use hedgerow_core::moment::Moment;
use hedgerow_protocol::ids::RouteKey;
use reqwest::Url;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::store::sha256_hex;

/// The body of a notice.
#[derive(Debug, Serialize)]
pub(super) struct Body<'a> {
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
    link: Option<String>,
}

/// The body of a notice of `alert`; `dashboard` is the dashboard's address.
pub(super) fn body<'a>(alert: &'a AlertState, resolved: bool, dashboard: Option<&Url>) -> Body<'a> {
    let ended = alert.resolved.filter(|_| resolved);
    Body {
        kind: if resolved {
            "alert.resolved"
        } else {
            "alert.firing"
        },
        timestamp: date(ended.unwrap_or(alert.since)),
        data: Data {
            alert: &alert.id,
            rule: alert.rule.as_str(),
            dependency: alert.route.dependency.as_str(),
            operation: alert.route.operation.as_str(),
            replica: alert.replica.as_deref(),
            summary: &alert.summary,
            since: date(alert.since),
            resolved: ended.map(date),
            link: dashboard.and_then(|base| link(base, &alert.route)),
        },
    }
}

/// The page of a route.
fn link(base: &Url, route: &RouteKey) -> Option<String> {
    let mut url = base.clone();
    url.path_segments_mut().ok()?.pop_if_empty().extend([
        "dependencies",
        route.dependency.as_str(),
        route.operation.as_str(),
    ]);
    Some(url.into())
}

/// A notice's identity: the same for every attempt, over restarts too, and another for every other
/// episode, kind and receiver.
pub(super) fn webhook_id(alert: &str, resolved: bool, receiver: &str) -> String {
    let mut hash = Sha256::new();
    for part in [
        alert,
        if resolved { "resolved" } else { "firing" },
        receiver,
    ] {
        // The length first: no two lists of parts read the same.
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    format!("msg_{}", &sha256_hex(&hash.finalize().into())[..32])
}

/// A moment as RFC 3339, UTC.
fn date(at: Moment) -> String {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis)
        .map_or_else(|_| String::new(), |at| format!("{at:.3}"))
}

#[cfg(test)]
mod tests {
    use hedgerow_core::view::AlertRule;
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
        assert_eq!(
            serde_json::to_value(body(&alert, true, Some(&base))).unwrap(),
            json!({"type": "alert.resolved", "timestamp": "2023-11-14T22:14:20.000Z", "data": data})
        );
        let firing = serde_json::to_value(body(&alert, false, None)).unwrap();
        assert_eq!(firing["type"], "alert.firing");
        assert_eq!(firing["timestamp"], "2023-11-14T22:13:20.123Z");
        assert_eq!(firing["data"]["resolved"], serde_json::Value::Null);
    }

    #[test]
    fn identities_differ_by_episode_kind_and_receiver_and_by_nothing_else() {
        let ids = [
            webhook_id("a", false, "x"),
            webhook_id("a", true, "x"),
            webhook_id("a", false, "y"),
            webhook_id("b", false, "x"),
            webhook_id("afiring", false, "x"),
        ];
        let different: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(different.len(), ids.len());
        assert_eq!(ids[0], webhook_id("a", false, "x"));
        assert!(
            !ids[0].contains('.'),
            "the signature's parts are joined by dots"
        );
    }
}
