//! A route's figures over time.

use std::time::Duration;

use hedgerow_protocol::latency::Histogram;
use hedgerow_protocol::report::Refusal;
use serde::{Deserialize, Serialize};

use super::millis;
use crate::moment::Moment;

/// Standard errors on each side of a percentile's rank: 95 % of samples have it between them.
const CONFIDENCE: f64 = 1.96;

/// One point of a route's course.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// When.
    pub at: Moment,
    /// Eligible calls a second.
    pub calls_per_s: f64,
    /// Milliseconds.
    pub p50_ms: Option<f64>,
    /// Milliseconds.
    pub p95_ms: Option<f64>,
    /// Milliseconds.
    pub p99_ms: Option<f64>,
    /// What callers of treated calls waited, milliseconds.
    pub treated_p99_ms: Option<f64>,
    /// What callers of held-out calls waited, milliseconds.
    pub holdout_p99_ms: Option<f64>,
    /// Milliseconds.
    pub threshold_ms: Option<f64>,
    /// The median that counts as normal speed, milliseconds; kept over a restart.
    #[serde(default)]
    pub base_ms: Option<f64>,
    /// Hedges sent / eligible calls started.
    pub hedge_rate: Option<f64>,
    /// See [`Figures::demand`].
    pub demand: Option<f64>,
    /// Hedges that answered first / hedges sent.
    pub win_rate: Option<f64>,
    /// Primary errors / primaries finished.
    pub error_rate: Option<f64>,
    /// See `treated_p99_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub treated_p95_ms: Option<f32>,
    /// See `holdout_p99_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdout_p95_ms: Option<f32>,
    /// What `holdout_p99_ms` is at least, with 95 % confidence. These are in single precision: a
    /// course holds three hundred of each, for every route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdout_p99_low_ms: Option<f32>,
    /// What it is at most; None beside a lower end: too few calls to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdout_p99_high_ms: Option<f32>,
    /// Held-out calls these rest on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdout_calls: Option<u32>,
    /// Crossed calls not hedged / crossed calls, by [`Refusal`] in the order of [`Refusal::ALL`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<[f32; Refusal::ALL.len()]>,
    /// Whether hedging was allowed (on or probing).
    pub hedging: bool,
}

impl Point {
    /// [`Point::base_ms`], where it is a length of time: it comes from a file.
    pub(crate) fn base(&self) -> Option<Duration> {
        let base = Duration::try_from_secs_f64(self.base_ms? / 1e3).ok()?;
        (!base.is_zero()).then_some(base)
    }
}

/// Where a percentile lies, with 95 % confidence: between the samples whose ranks it has with it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// At least.
    #[serde(rename = "low_ms", with = "millis")]
    pub low: Duration,
    /// At most; None: too few samples to say.
    #[serde(rename = "high_ms", serialize_with = "millis::option")]
    pub high: Option<Duration>,
}

impl Interval {
    /// Of the percentile `q`, 0 to 1. None: no samples.
    pub(crate) fn of(samples: &Histogram, q: f64) -> Option<Self> {
        let count = samples.count();
        if count == 0 {
            return None;
        }
        let error = CONFIDENCE * (q * (1.0 - q) / count as f64).sqrt();
        Some(Self {
            low: samples.quantile((q - error).max(0.0))?,
            // Beyond the last rank no sample says how far it goes.
            high: samples.quantile(q + error),
        })
    }
}

#[cfg(test)]
mod tests {
    use hedgerow_protocol::latency::bucket_of;

    use super::*;

    fn spread(calls: u64) -> Histogram {
        let mut all = Histogram::new();
        for ms in 1..=calls {
            all.add_to_bucket(bucket_of(Duration::from_millis(ms)), 1)
                .unwrap();
        }
        all
    }

    #[test]
    fn u04_an_interval_holds_the_percentile_and_is_wider_on_fewer_calls() {
        assert_eq!(Interval::of(&Histogram::new(), 0.99), None);
        let few = Interval::of(&spread(100), 0.99).unwrap();
        assert_eq!(few.high, None, "a hundred calls do not bound their p99");
        let width = |calls: u64| {
            let samples = spread(calls);
            let p99 = samples.quantile(0.99).unwrap();
            let it = Interval::of(&samples, 0.99).unwrap();
            let high = it.high.unwrap();
            assert!(
                it.low <= p99 && p99 <= high,
                "{calls}: {it:?} about {p99:?}"
            );
            high.saturating_sub(it.low).as_secs_f64() / p99.as_secs_f64()
        };
        assert!(width(40_000) < width(1_000));
    }

    #[test]
    fn a_point_of_an_older_history_is_read() {
        let text = r#"{"at":5,"calls_per_s":1.0,"p50_ms":null,"p95_ms":null,"p99_ms":null,
            "treated_p99_ms":null,"holdout_p99_ms":2.0,"threshold_ms":null,"hedge_rate":null,
            "demand":null,"win_rate":null,"error_rate":null,"hedging":true}"#;
        let point: Point = serde_json::from_str(text).unwrap();
        assert_eq!(
            (point.holdout_p99_ms, point.holdout_calls),
            (Some(2.0), None)
        );
        let written = serde_json::to_string(&point).unwrap();
        assert!(!written.contains("refused"), "{written}");
    }
}
