//! Receivers of alerts, and the controller's own process.

use std::time::Duration;

use hedgerow_core::moment::Moment;
use serde::Serialize;

/// A receiver of alerts, and how it does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReceiverView {
    /// Its name.
    pub name: String,
    /// `webhook`, `alertmanager`, `slack`, `pagerduty` or `email`.
    pub kind: String,
    /// Where its notices go, as far as may be shown: a host, or the domain of an address.
    pub to: String,
    /// Notices that wait for it.
    pub waiting: u64,
    /// Notices given up, of those still kept.
    pub given_up: u64,
    /// When one was delivered last.
    pub delivered: Option<Moment>,
    /// The newest attempt's error, if it failed; without the receiver's address or answer.
    pub last_error: Option<String>,
}

/// What came of a test notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TestOutcome {
    /// Whether the receiver took it.
    pub delivered: bool,
    /// Its answer's status, as `204` or `250`, or what kept it from being reached.
    pub status: String,
    /// How long that took.
    #[serde(rename = "took_ms", serialize_with = "whole_millis")]
    pub took: Duration,
}

fn whole_millis<S: serde::Serializer>(took: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(took.as_millis()).unwrap_or(u64::MAX))
}

/// The controller's process.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ProcessView {
    /// Its version.
    pub version: String,
    /// Its name, where there are several.
    pub name: String,
    /// Whether it decides. With one controller on a store always.
    pub leader: bool,
    /// The store's file and its log, in bytes; None: not known.
    pub store_bytes: Option<u64>,
    /// Notices that wait, over all receivers.
    pub outbox_depth: u64,
    /// Event streams open, of pages.
    pub open_pages: u64,
    /// Resident memory in bytes; None: not known on this system.
    pub resident_bytes: Option<u64>,
    /// Time between the newest report's arrival and its decision, the last tick; None: no report.
    #[serde(rename = "report_lag_ms", skip_serializing_if = "Option::is_none")]
    pub report_lag_ms: Option<f64>,
}
