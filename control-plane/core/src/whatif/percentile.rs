//! Percentiles as people write them, held as exact parts.

use std::fmt;
use std::str::FromStr;

use hedgerow_protocol::units::Quantile;

use super::exact::{ONE, parts};

/// A percentile, such as p99.9; exact to nine digits of its share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percentile {
    /// The share at or below, in parts of [`ONE`].
    share: u64,
}

/// Not a percentile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a percentile: expected p and a number above 0 and below 100, such as p99.9")]
pub struct PercentileError(String);

impl Percentile {
    /// The median.
    pub const P50: Self = Self::of(500_000_000);
    /// 90 %.
    pub const P90: Self = Self::of(900_000_000);
    /// 95 %.
    pub const P95: Self = Self::of(950_000_000);
    /// 99 %.
    pub const P99: Self = Self::of(990_000_000);
    /// 99.9 %.
    pub const P99_9: Self = Self::of(999_000_000);

    /// Those a curve shows.
    pub const SHOWN: [Self; 5] = [Self::P50, Self::P90, Self::P95, Self::P99, Self::P99_9];

    const fn of(share: u64) -> Self {
        Self { share }
    }

    /// The share of calls that may take longer, above 0 and below 1.
    pub fn beyond(self) -> f64 {
        self.tail() as f64 / ONE as f64
    }

    /// The same in parts of [`ONE`].
    pub(super) const fn tail(self) -> u64 {
        ONE - self.share
    }
}

impl From<Quantile> for Percentile {
    fn from(quantile: Quantile) -> Self {
        Self::of(parts(quantile.get()))
    }
}

impl FromStr for Percentile {
    type Err = PercentileError;

    fn from_str(text: &str) -> Result<Self, PercentileError> {
        text.strip_prefix('p')
            .and_then(|percent| percent.parse::<f64>().ok())
            .and_then(|percent| Quantile::new(percent / 100.0).ok())
            .map(Self::from)
            // What rounds to all or nothing is none.
            .filter(|percentile| percentile.share > 0 && percentile.share < ONE)
            .ok_or_else(|| PercentileError(text.into()))
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // At most nine digits: the shortest decimal of the quotient is the exact one.
        write!(f, "p{}", self.share as f64 / (ONE / 100) as f64)
    }
}
