//! What a notice tells, whatever the receiver's kind makes of it.

use std::time::Duration;

use hedgerow_core::effect::AlertState;
use hedgerow_core::moment::Moment;
use hedgerow_protocol::ids::RouteKey;
use reqwest::Url;
use sha2::{Digest as _, Sha256};

use super::attempt::AttemptError;
use crate::store::sha256_hex;

/// The beginning or the end of an episode.
#[derive(Debug, Clone)]
pub(super) struct Notice {
    /// The episode: the same in both notices.
    pub(super) episode: String,
    /// The rule's name.
    pub(super) rule: &'static str,
    /// What it is about.
    pub(super) route: RouteKey,
    /// The replica, where the rule names one.
    pub(super) replica: Option<String>,
    /// In words.
    pub(super) summary: String,
    /// When it began.
    pub(super) since: Moment,
    /// When it ended; None in the notice of its beginning.
    pub(super) ended: Option<Moment>,
    /// Where to look; None where nobody knows the dashboard's address.
    pub(super) link: Option<String>,
}

impl Notice {
    /// Of `alert`; `dashboard` is the dashboard's address.
    pub(super) fn of(alert: &AlertState, resolved: bool, dashboard: Option<&Url>) -> Self {
        Self {
            episode: alert.id.clone(),
            rule: alert.rule.as_str(),
            route: alert.route.clone(),
            replica: alert.replica.clone(),
            summary: alert.summary.clone(),
            since: alert.since,
            ended: alert.resolved.filter(|_| resolved),
            link: dashboard.and_then(|base| {
                let route = [
                    "dependencies",
                    alert.route.dependency.as_str(),
                    alert.route.operation.as_str(),
                ];
                link(base, &route)
            }),
        }
    }

    /// How long the episode lasted; None: it goes on.
    pub(super) fn lasted(&self) -> Option<Duration> {
        self.ended.map(|ended| ended.since(self.since))
    }
}

/// Notices that go out together: all of beginnings, or all of ends.
#[derive(Debug, Clone)]
pub(super) struct Message {
    /// At least one; several only for receivers that are read by people, and then of one dependency.
    pub(super) notices: Vec<Notice>,
    /// Whether they tell of ends.
    pub(super) resolved: bool,
    /// Asked for by a person, to see whether it arrives.
    pub(super) test: bool,
    /// The receiver's name.
    pub(super) receiver: String,
    /// The time of this attempt.
    pub(super) now: Moment,
    /// How long the attempt may take.
    pub(super) timeout: Duration,
    /// How long a receiver that forgets is to hold on to what it is told.
    pub(super) held_for: Duration,
}

impl Message {
    /// The notice, for receivers that take one at a time.
    pub(super) fn only(&self) -> Result<&Notice, AttemptError> {
        match self.notices.as_slice() {
            [only] => Ok(only),
            several => Err(AttemptError::Unwritable(format!(
                "{} notices in one message, expected one",
                several.len()
            ))),
        }
    }
}

/// A page of the dashboard.
pub(super) fn link(base: &Url, path: &[&str]) -> Option<String> {
    let mut url = base.clone();
    url.path_segments_mut().ok()?.pop_if_empty().extend(path);
    Some(url.into())
}

/// An identity made of parts: the same for every attempt, over restarts too, and another where any
/// part is another.
pub(super) fn identity(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        // The length first: no two lists of parts read the same.
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    sha256_hex(&hash.finalize().into())[..32].to_owned()
}

/// A moment, for what is printed.
pub(super) fn timestamp(at: Moment) -> jiff::Timestamp {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX)
}

/// A moment as RFC 3339, UTC.
pub(super) fn date(at: Moment) -> String {
    format!("{:.3}", timestamp(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_differ_where_any_part_does_and_by_nothing_else() {
        let ids = [
            identity(&["a", "firing", "x"]),
            identity(&["a", "resolved", "x"]),
            identity(&["a", "firing", "y"]),
            identity(&["b", "firing", "x"]),
            identity(&["afiring", "firing", "x"]),
            identity(&["a", "firingx"]),
        ];
        let different: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(different.len(), ids.len());
        assert_eq!(ids[0], identity(&["a", "firing", "x"]));
        assert!(
            !ids[0].contains('.'),
            "the parts of a webhook's signature are joined by dots"
        );
    }
}
