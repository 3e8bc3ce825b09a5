//! What a goal does not gain, and what a pool lends.

use std::time::Duration;

use hedgerow_protocol::ids::PoolName;
use serde::Serialize;

use super::millis;
use crate::decide::words::{latency, percent};
use crate::share::Lent;

/// Why a route with a goal hedges nothing, or little, though it is on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum NoGain {
    /// No call lasts as long as the least delay allowed.
    NothingCrosses,
    /// At best it would be hardly better.
    Small {
        /// The goal's percentile, above 0 and below 1.
        percentile: f64,
        /// That latency as it is, or at least this.
        #[serde(rename = "unhedged_ms", with = "millis")]
        unhedged: Duration,
        /// At best.
        #[serde(rename = "best_ms", with = "millis")]
        best: Duration,
    },
    /// It would be better, were slowness not shared by a call and its hedge. A little is hedged to
    /// see when that ends.
    Shared {
        /// The goal's percentile, above 0 and below 1.
        percentile: f64,
        /// That latency as it is, or at least this.
        #[serde(rename = "unhedged_ms", with = "millis")]
        unhedged: Duration,
        /// The shared share of slowness, 0 to 1.
        shared: f64,
    },
}

impl NoGain {
    /// In words.
    pub fn words(&self) -> String {
        // Nine digits: 1 - 0.001 is p99.9.
        let name = |percentile: f64| format!("p{}", (percentile * 1e9).round() / 1e7);
        match *self {
            Self::NothingCrosses => {
                "no gain: no call lasts longer than the least delay allowed".into()
            }
            Self::Small {
                percentile,
                unhedged,
                best,
            } if best >= unhedged => format!(
                "no gain: {} would stay at {}",
                name(percentile),
                latency(unhedged)
            ),
            Self::Small {
                percentile,
                unhedged,
                best,
            } => format!(
                "no gain: {} would be {} for {} at best, not worth the load",
                name(percentile),
                latency(best),
                latency(unhedged)
            ),
            Self::Shared {
                percentile,
                unhedged,
                shared,
            } => format!(
                "no gain: {} would stay near {} while {} of slowness is shared; hedging a little to \
                 see that end",
                name(percentile),
                latency(unhedged),
                percent(shared)
            ),
        }
    }
}

/// What a route's pool lends it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PoolView {
    /// The pool.
    pub pool: PoolName,
    /// The route's share, in hedges for each of its calls.
    pub budget: f64,
    /// What its policy puts in.
    pub own: f64,
}

impl PoolView {
    pub(crate) fn of(lent: &Lent) -> Self {
        Self {
            pool: lent.pool.clone(),
            budget: lent.budget.get(),
            own: lent.own.get(),
        }
    }
}
