//! Before, during and after what goes wrong.

use std::collections::BTreeMap;

use hedgerow_protocol::latency::Histogram;
use hedgerow_protocol::units::as_millis;
use serde::Serialize;

use crate::scenario::Scenario;

/// Which part of a run. Seconds of warming up are in none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseName {
    /// Nothing is wrong yet, or ever.
    Before,
    /// From the first fault's beginning to the last one's end.
    During,
    /// All is well again.
    After,
}

impl PhaseName {
    /// `before`, `during` or `after`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::During => "during",
            Self::After => "after",
        }
    }

    /// Where the second belongs that begins at `second`.
    pub(crate) fn of(scenario: &Scenario, second: u64) -> Option<Self> {
        let begins = second as f64;
        let (from, to) = scenario.trouble().unwrap_or((f64::MAX, f64::MAX));
        if begins >= to.ceil() {
            Some(Self::After)
        } else if begins >= from.floor() {
            Some(Self::During)
        } else {
            (second >= scenario.warm_up_s).then_some(Self::Before)
        }
    }

    pub(crate) fn span(self, scenario: &Scenario) -> (f64, f64) {
        let (begin, end) = (scenario.warm_up_s as f64, scenario.seconds as f64);
        let (from, to) = scenario.trouble().unwrap_or((end, end));
        match self {
            Self::Before => (begin.min(from), from),
            Self::During => (from, to),
            Self::After => (to, end),
        }
    }
}

/// A part of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Phase {
    /// Which.
    pub name: PhaseName,
    /// When it begins.
    pub from_s: f64,
    /// When it ends.
    pub to_s: f64,
    /// Calls begun.
    pub calls: u64,
    /// Calls ended.
    pub finished: u64,
    /// Of these, without an answer.
    pub failed: u64,
    /// Calls that crossed.
    pub crossed: u64,
    /// Hedges sent.
    pub hedged: u64,
    /// Hedges that answered first.
    pub won: u64,
    /// Crossed calls not hedged, by reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// Hedges / calls: the extra attempts that replicas get.
    pub hedge_rate: Option<f64>,
    /// What callers waited.
    pub waited: Waits,
}

/// What callers waited, milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Waits {
    /// The median.
    pub p50_ms: Option<f64>,
    /// The 95th percentile.
    pub p95_ms: Option<f64>,
    /// The 99th.
    pub p99_ms: Option<f64>,
    /// The 99.9th.
    pub p999_ms: Option<f64>,
}

impl Waits {
    pub(crate) fn of(waited: &Histogram) -> Self {
        let at = |q| waited.quantile(q).map(as_millis);
        Self {
            p50_ms: at(0.5),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
        }
    }
}
