//! What callers use: Hedgerow, nothing, or what people build when they are alone.

use std::time::Duration;

use hedgerow_protocol::latency::Histogram;
use serde::{Deserialize, Serialize};

/// Who makes the calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Client {
    /// Agents and a controller.
    #[default]
    Hedgerow,
    /// Nothing is ever hedged: what all is measured against.
    Bare,
    /// Each process hedges at the live p95 of the latencies it has recorded, those of the attempts
    /// that answered first, each on its own clock; no budget, no controller.
    PlainP95,
}

impl Client {
    /// `hedgerow`, `bare` or `plain_p95`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hedgerow => "hedgerow",
            Self::Bare => "bare",
            Self::PlainP95 => "plain_p95",
        }
    }
}

/// How long samples are gathered before those before them are let go.
const ROTATION_S: u32 = 10;
/// Samples it takes for a percentile.
const SAMPLES_MIN: u64 = 100;

/// One process's live p95: two histograms in turn, as libraries in use have it. What a cancelled
/// loser would have taken is never known to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlainP95 {
    gathering: Histogram,
    before: Histogram,
    seconds: u32,
    threshold: Option<Duration>,
}

impl PlainP95 {
    /// An attempt answered its call.
    pub(crate) fn record(&mut self, latency: Duration) {
        self.gathering.record(latency);
    }

    /// A second is over.
    pub(crate) fn second(&mut self) {
        let mut all = self.before.clone();
        // Some thousand calls a second for 20 s are far from the most a histogram holds.
        let _ = all.add(&self.gathering);
        if all.count() >= SAMPLES_MIN {
            self.threshold = all.quantile(0.95);
        }
        self.seconds += 1;
        if self.seconds >= ROTATION_S {
            self.seconds = 0;
            self.before = std::mem::take(&mut self.gathering);
        }
    }

    /// When a call is hedged.
    pub(crate) fn threshold(&self) -> Option<Duration> {
        self.threshold
    }
}
