//! A switchback and what came of it.

use std::time::Duration;

use serde::Serialize;

use super::millis;
use crate::event::Actor;
use crate::moment::Moment;

/// A switchback that runs, or has ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SwitchbackView {
    /// Since when.
    pub started: Moment,
    /// Who wanted it.
    pub by: Actor,
    /// Why, in their words.
    pub reason: String,
    /// Rounds wanted, each with hedging and then without.
    pub rounds: u32,
    /// Rounds over, also those left out.
    pub rounds_done: u32,
    /// Whether the fleet hedges at the moment; None: it has ended.
    pub hedging: Option<bool>,
    /// When it ends by itself, or has ended.
    pub ends: Moment,
    /// Why it ended: `all 10 rounds are done`, `stopped by ann`; None: it runs.
    pub ended: Option<String>,
    /// What was measured so far; None: no round is complete.
    pub result: Option<SwitchbackResult>,
}

/// What the rounds say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SwitchbackResult {
    /// In one line: `hedging makes p99 177 ms worse: 97 ms off, 274 ms on; worse in 9 of 10 rounds`.
    pub words: String,
    /// All complete rounds together, with hedging.
    pub on: ArmView,
    /// The same without.
    pub off: ArmView,
    /// With less without, round by round.
    pub differences: Vec<DifferenceView>,
    /// Each complete round.
    pub per_round: Vec<RoundView>,
    /// Rounds that had too few calls or seconds to compare.
    pub left_out: u32,
}

/// What callers got while the fleet hedged, or while it did not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ArmView {
    /// Calls that ended.
    pub calls: u64,
    /// Calls started a second.
    pub calls_per_s: Option<f64>,
    /// What callers waited.
    #[serde(rename = "p50_ms", serialize_with = "millis::option")]
    pub p50: Option<Duration>,
    /// See `p50`.
    #[serde(rename = "p95_ms", serialize_with = "millis::option")]
    pub p95: Option<Duration>,
    /// See `p50`.
    #[serde(rename = "p99_ms", serialize_with = "millis::option")]
    pub p99: Option<Duration>,
    /// Calls that failed / calls that ended.
    pub error_rate: Option<f64>,
    /// Hedges sent / calls started.
    pub hedge_rate: Option<f64>,
}

/// One figure with hedging less the same without, over the rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DifferenceView {
    /// `p50`, `p95`, `p99`, `error rate`, `calls/s`.
    pub what: &'static str,
    /// `ms`, `%` (points), `/s`.
    pub unit: &'static str,
    /// The middle one of the rounds' differences; above 0: more with hedging.
    pub median: f64,
    /// Between these it lies in 19 of 20 such switchbacks; None: under six rounds say nothing.
    pub low: Option<f64>,
    /// See `low`.
    pub high: Option<f64>,
    /// Rounds in which it was more with hedging.
    pub higher: u32,
    /// Rounds in which it was less.
    pub lower: u32,
    /// Rounds compared.
    pub rounds: u32,
    /// How often chance alone would divide the rounds so unevenly, 0 to 1.
    pub chance: f64,
    /// Whether that is less than once in twenty.
    pub certain: bool,
}

/// One round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RoundView {
    /// Counted from 1.
    pub number: u32,
    /// With hedging.
    pub on: ArmView,
    /// Without.
    pub off: ArmView,
}
