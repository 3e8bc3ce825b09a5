//! A replay as JSON.

use hedgerow_core::moment::Moment;
use hedgerow_core::whatif::{ASSUMED, Replay, Row};
use hedgerow_protocol::directive::OffReason;
use serde::Serialize;

use super::figures::{number, three_digits};
use super::json::{Figure, Percentiles, figure};

/// What a policy would have done.
#[derive(Debug, Serialize)]
pub(crate) struct Replayed {
    /// Beginning and end of what was replayed; null where nothing is stored.
    from: Option<Moment>,
    until: Option<Moment>,
    minutes: usize,
    calls: u64,
    /// Hedges for each call, with this policy and as it was; null where there were no calls.
    hedge_rate: Figure,
    hedge_rate_then: Figure,
    unhedged_ms: Percentiles,
    hedged_ms: Percentiles,
    minutes_off: usize,
    minutes_alerting: usize,
    /// What is assumed.
    assumed: &'static [&'static str],
    rows: Vec<Minute>,
}

#[derive(Debug, Serialize)]
struct Minute {
    at: Moment,
    calls: u64,
    threshold_ms: Figure,
    hedge_rate: Figure,
    hedge_rate_then: Figure,
    unhedged_p99_ms: Figure,
    hedged_p99_ms: Figure,
    #[serde(skip_serializing_if = "Option::is_none")]
    off: Option<OffReason>,
}

impl From<&Replay> for Replayed {
    fn from(replay: &Replay) -> Self {
        Self {
            from: replay.rows.first().map(|row| row.at),
            until: replay.rows.last().map(|row| row.at),
            minutes: replay.rows.len(),
            calls: replay.calls,
            hedge_rate: share(replay.hedge_rate, replay.calls),
            hedge_rate_then: share(replay.hedge_rate_then, replay.calls),
            unhedged_ms: Percentiles::new(replay.unhedged),
            hedged_ms: Percentiles::new(replay.hedged),
            minutes_off: replay.minutes_off,
            minutes_alerting: replay.minutes_alerting,
            assumed: ASSUMED,
            rows: replay.rows.iter().map(Minute::from).collect(),
        }
    }
}

impl From<&Row> for Minute {
    fn from(row: &Row) -> Self {
        Self {
            at: row.at,
            calls: row.calls,
            threshold_ms: figure(row.threshold),
            hedge_rate: share(row.hedge_rate, row.calls),
            hedge_rate_then: share(row.hedge_rate_then, row.calls),
            unhedged_p99_ms: figure(row.unhedged_p99),
            hedged_p99_ms: figure(row.hedged_p99),
            off: row.off,
        }
    }
}

/// Of calls: of none there is no share.
fn share(value: f64, calls: u64) -> Figure {
    (calls > 0).then(|| number(three_digits(value))).flatten()
}
