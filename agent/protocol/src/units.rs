//! Numbers that cannot be out of range.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limits::{ATTEMPTS_MAX, BUDGET_MAX, THRESHOLD_MAX, THRESHOLD_MIN};

/// A number was outside its range. The message names the range, so that it can stand beside a
/// form's field as it is.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum RangeError {
    /// A quantile must be a share, not a percentage.
    #[error("{0} is not a quantile: expected a number above 0 and below 1, such as 0.95")]
    Quantile(f64),
    /// A ratio must be a share, not a percentage.
    #[error("{0} is not a share: expected a number from 0 to 1, such as 0.05")]
    Ratio(f64),
    /// A budget beyond the hard limit, zero, or not a number.
    #[error(
        "{0} is not a budget: expected a number above 0 and at most {BUDGET_MAX}, such as 0.08"
    )]
    Budget(f64),
    /// A threshold outside the limits.
    #[error("{0:?} is not a threshold: expected from {THRESHOLD_MIN:?} to {THRESHOLD_MAX:?}")]
    Threshold(Duration),
    /// More copies of a call than are ever allowed, or too few for a hedge.
    #[error("{0} is not a number of attempts: expected 2 or {ATTEMPTS_MAX}")]
    Attempts(u64),
    /// A duration in milliseconds that is negative, infinite or not a number.
    #[error("{0} is not a number of milliseconds: expected a number from 0.1 to 3600000")]
    Millis(f64),
}

/// A quantile strictly between 0 and 1: 0.95 is the 95th percentile.
///
/// ```
/// use hedgerow_protocol::units::Quantile;
/// assert!(Quantile::new(0.95).is_ok());
/// let refused = Quantile::new(95.0).unwrap_err();
/// assert!(refused.to_string().contains("above 0 and below 1"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Quantile(f64);

impl Quantile {
    /// Refuses 0, 1, 95, NaN and the infinities.
    pub fn new(value: f64) -> Result<Self, RangeError> {
        if value > 0.0 && value < 1.0 {
            Ok(Self(value))
        } else {
            Err(RangeError::Quantile(value))
        }
    }

    /// The share at or below.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// The share above: rho for a threshold's percentile.
    pub fn tail(self) -> f64 {
        1.0 - self.0
    }
}

/// Copies of one call at most, the primary among them: 2 or 3.
///
/// ```
/// use hedgerow_protocol::units::AttemptLimit;
/// assert_eq!(AttemptLimit::default().get(), 2);
/// assert!(AttemptLimit::new(4).is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct AttemptLimit(u8);

impl AttemptLimit {
    /// Refuses what is not 2 or 3.
    pub const fn new(value: u64) -> Result<Self, RangeError> {
        if value >= 2 && value <= ATTEMPTS_MAX as u64 {
            Ok(Self(value as u8))
        } else {
            Err(RangeError::Attempts(value))
        }
    }

    /// How many.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// The primary and one hedge.
impl Default for AttemptLimit {
    fn default() -> Self {
        Self(2)
    }
}

impl TryFrom<u64> for AttemptLimit {
    type Error = RangeError;
    fn try_from(value: u64) -> Result<Self, RangeError> {
        Self::new(value)
    }
}

impl From<AttemptLimit> for u64 {
    fn from(attempts: AttemptLimit) -> Self {
        attempts.0.into()
    }
}

/// A share from 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Ratio(f64);

impl Ratio {
    /// Nothing.
    pub const ZERO: Self = Self(0.0);
    /// All.
    pub const ONE: Self = Self(1.0);

    /// Refuses what is outside 0 to 1, and NaN.
    pub fn new(value: f64) -> Result<Self, RangeError> {
        if (0.0..=1.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err(RangeError::Ratio(value))
        }
    }

    /// The nearest ratio; NaN becomes 0. For computed values, never for input.
    pub fn clamped(value: f64) -> Self {
        if value.is_nan() {
            Self::ZERO
        } else {
            Self(value.clamp(0.0, 1.0))
        }
    }

    /// The share.
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// Hedges allowed as a share of eligible finished calls: above 0, at most 25 %, or exactly
/// [`Budget::ZERO`] where a controller lends nothing for now.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "StoredBudget", into = "f64")]
pub struct Budget(f64);

/// What a budget is stored as: also [`Budget::ZERO`], which a controller lends and stores.
#[derive(Deserialize)]
#[serde(transparent)]
struct StoredBudget(f64);

impl TryFrom<StoredBudget> for Budget {
    type Error = RangeError;
    fn try_from(StoredBudget(value): StoredBudget) -> Result<Self, RangeError> {
        if value == 0.0 {
            Ok(Self::ZERO)
        } else {
            Self::new(value)
        }
    }
}

impl Budget {
    /// No hedges. Only computed budgets may be zero; a policy switches hedging off by its intent.
    pub const ZERO: Self = Self(0.0);

    /// Refuses zero, negatives, NaN, and more than a quarter.
    pub fn new(value: f64) -> Result<Self, RangeError> {
        if value > 0.0 && value <= BUDGET_MAX {
            Ok(Self(value))
        } else {
            Err(RangeError::Budget(value))
        }
    }

    /// The nearest allowed budget; NaN becomes 0. For computed values, never for input.
    pub fn clamped(value: f64) -> Self {
        if value.is_nan() {
            Self::ZERO
        } else {
            Self(value.clamp(0.0, BUDGET_MAX))
        }
    }

    /// The share.
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// How long a call may stay unanswered before it may be hedged: 100 us to 1 h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Duration", into = "Duration")]
pub struct Threshold(Duration);

impl Threshold {
    /// Refuses what is outside 100 us to 1 h.
    pub fn new(value: Duration) -> Result<Self, RangeError> {
        if (THRESHOLD_MIN..=THRESHOLD_MAX).contains(&value) {
            Ok(Self(value))
        } else {
            Err(RangeError::Threshold(value))
        }
    }

    /// The nearest allowed threshold. For computed values, never for input.
    pub fn clamped(value: Duration) -> Self {
        Self(value.clamp(THRESHOLD_MIN, THRESHOLD_MAX))
    }

    /// The duration.
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl TryFrom<Duration> for Threshold {
    type Error = RangeError;
    fn try_from(value: Duration) -> Result<Self, RangeError> {
        Self::new(value)
    }
}

impl From<Threshold> for Duration {
    fn from(value: Threshold) -> Duration {
        value.0
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// A budget is a share of calls.
impl From<Budget> for Ratio {
    fn from(budget: Budget) -> Self {
        Self(budget.0)
    }
}

macro_rules! f64_conversions {
    ($($name:ident),*) => {$(
        impl TryFrom<f64> for $name {
            type Error = RangeError;
            fn try_from(value: f64) -> Result<Self, RangeError> {
                Self::new(value)
            }
        }
        impl From<$name> for f64 {
            fn from(value: $name) -> f64 {
                value.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}
f64_conversions!(Quantile, Ratio, Budget);

/// Milliseconds as people write them in forms and files: a threshold's range, 0.1 to 3,600,000.
pub fn millis(value: f64) -> Result<Duration, RangeError> {
    // Checked as it is written, before rounding: what is accepted here must be accepted again when
    // it comes back from the store.
    if (0.1..=3_600_000.0).contains(&value) {
        Ok(Duration::from_nanos((value * 1e6).round() as u64))
    } else {
        Err(RangeError::Millis(value))
    }
}

/// A duration as milliseconds, for forms, files and pages.
pub fn as_millis(value: Duration) -> f64 {
    value.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c06_a_quantile_outside_0_to_1_is_refused_with_the_range_in_the_message() {
        for value in [95.0, 0.0, 1.0, -0.5, f64::NAN, f64::INFINITY] {
            let refused = Quantile::new(value).unwrap_err().to_string();
            assert!(refused.contains("above 0 and below 1"), "{refused}");
        }
    }

    #[test]
    fn milliseconds_that_pass_pass_again_after_their_way_through_a_duration() {
        for value in [
            0.0,
            1e-9,
            0.05,
            0.099_999_99,
            3_600_000.1,
            f64::NAN,
            f64::INFINITY,
        ] {
            let refused = millis(value).unwrap_err().to_string();
            assert!(refused.contains("from 0.1 to 3600000"), "{refused}");
        }
        for value in [0.1, 0.100_000_4, 2.5, 3_600_000.0] {
            let there = millis(value).unwrap();
            assert_eq!(millis(as_millis(there)), Ok(there), "{value}");
        }
    }

    #[test]
    fn p08_hard_limits_hold_for_every_number() {
        for value in [0.0, -0.1, 0.251, 25.0, f64::NAN, f64::INFINITY] {
            assert!(Budget::new(value).is_err(), "{value}");
            assert!(Budget::clamped(value).get() <= 0.25);
        }
        assert!(Threshold::new(Duration::ZERO).is_err());
        assert!(Threshold::new(Duration::from_micros(99)).is_err());
        assert!(Threshold::new(Duration::from_micros(100)).is_ok());
    }

    #[test]
    fn what_is_stored_comes_back_and_what_cannot_be_does_not() {
        for (stored, expected) in [("0.0", Some(0.0)), ("0.08", Some(0.08)), ("0.3", None)] {
            let read = serde_json::from_str::<Budget>(stored).ok().map(Budget::get);
            assert_eq!(read, expected, "{stored}");
            if let Some(budget) = read.map(Budget) {
                assert_eq!(serde_json::to_string(&budget).unwrap(), stored);
            }
        }
        let threshold = Threshold::new(Duration::from_millis(50)).unwrap();
        let stored = serde_json::to_string(&threshold).unwrap();
        assert_eq!(
            serde_json::from_str::<Threshold>(&stored).unwrap(),
            threshold
        );
        let zero = serde_json::to_string(&Duration::ZERO).unwrap();
        let refused = serde_json::from_str::<Threshold>(&zero).unwrap_err();
        assert!(
            refused.to_string().contains("is not a threshold"),
            "{refused}"
        );
    }
}
