//! How the parts of a snapshot are written out: units in names, reasons by name.

use std::time::Duration;

use hedgerow_protocol::directive::OffReason;
use hedgerow_protocol::latency::Histogram;
use hedgerow_protocol::report::{Effective, LinkState, Refusal, Totals};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::stats::recorder::ByReason;

/// What stands for the state of a link where there is no controller.
pub(crate) const NO_CONTROLLER: &str = "none";

#[expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
pub(crate) fn link<S: Serializer>(
    link: &Option<LinkState>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(link.map_or(NO_CONTROLLER, LinkState::as_str))
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

pub(super) fn totals<S: Serializer>(totals: &Totals, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for (name, count) in totals.named() {
        map.serialize_entry(name, &count)?;
    }
    // The kinds of hedges together, so that whoever divides takes all of them.
    map.serialize_entry("hedges_sent", &totals.hedges())?;
    map.serialize_entry("hedges_won", &totals.hedges_won())?;
    map.serialize_entry("refused", &ByName(totals.refused))?;
    map.end()
}

struct ByName(ByReason);

impl Serialize for ByName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let by_reason = |reason: Refusal| (reason.as_str(), self.0[reason as usize]);
        serializer.collect_map(Refusal::ALL.map(by_reason))
    }
}

/// Hedges beyond a call's first, and hedges on error, that were not sent, by reason: see
/// [`RouteSnapshot::further_refused`](crate::RouteSnapshot::further_refused). Serialised by the
/// reasons' names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FurtherRefused(ByReason);

impl FurtherRefused {
    pub(super) fn new(by_reason: ByReason) -> Self {
        Self(by_reason)
    }

    /// How many for one reason.
    pub fn of(&self, reason: Refusal) -> u64 {
        self.0[reason as usize]
    }
}

impl Serialize for FurtherRefused {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ByName(self.0).serialize(serializer)
    }
}

#[derive(serde::Serialize)]
struct Does {
    mode: &'static str,
    reason: Option<&'static str>,
    own_off: bool,
    threshold_ms: Option<f64>,
    probability: f64,
    budget: f64,
    cap: f64,
    tokens: f64,
    replicas: u32,
    watched_losers: u32,
    /// Epoch, revision and mode sequence, as `1.4.2`.
    directive: String,
}

pub(super) fn effective<S: Serializer>(does: &Effective, serializer: S) -> Result<S::Ok, S::Error> {
    Does {
        mode: does.mode.as_str(),
        reason: does.mode.reason().map(OffReason::as_str),
        own_off: does.own_off,
        threshold_ms: does.threshold.map(|threshold| ms(threshold.get())),
        probability: does.probability.get(),
        budget: does.budget.get(),
        cap: does.cap,
        tokens: does.tokens,
        replicas: does.replicas,
        watched_losers: does.watched_losers,
        directive: does.stamp.to_string(),
    }
    .serialize(serializer)
}

#[derive(serde::Serialize)]
struct Waited {
    count: u64,
    p50_ms: Option<f64>,
    p95_ms: Option<f64>,
    p99_ms: Option<f64>,
    p999_ms: Option<f64>,
}

pub(super) fn latencies<S: Serializer>(
    histogram: &Histogram,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let at = |quantile| histogram.quantile(quantile).map(ms);
    Waited {
        count: histogram.count(),
        p50_ms: at(0.5),
        p95_ms: at(0.95),
        p99_ms: at(0.99),
        p999_ms: at(0.999),
    }
    .serialize(serializer)
}
