//! How the parts of a snapshot are written out: units in names, reasons by name.

use std::time::Duration;

use hedgerow_protocol::directive::OffReason;
use hedgerow_protocol::latency::Histogram;
use hedgerow_protocol::report::{Effective, Refusal, Totals};
use serde::ser::{Serialize, SerializeMap, Serializer};

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

pub(super) fn totals<S: Serializer>(totals: &Totals, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for (name, count) in totals.named() {
        map.serialize_entry(name, &count)?;
    }
    map.serialize_entry("refused", &Refused(totals))?;
    map.end()
}

struct Refused<'a>(&'a Totals);

impl Serialize for Refused<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let by_reason = |reason: Refusal| (reason.as_str(), self.0.refused_for(reason));
        serializer.collect_map(Refusal::ALL.map(by_reason))
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
