//! Reading one field: each function takes its name, so that no refusal is without one.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::WireError;
use crate::ids::{NameError, ZoneName};
use crate::latency::{COUNT_MAX, SparseHistogram};
use crate::session::Text;
use crate::units::{Budget, Threshold};

/// Adds the field's name to any error.
pub(super) trait At<T> {
    /// The value, or an error in `field`.
    fn at(self, field: impl fmt::Display) -> Result<T, WireError>;
}

impl<T, E: fmt::Display> At<T> for Result<T, E> {
    fn at(self, field: impl fmt::Display) -> Result<T, WireError> {
        self.map_err(|problem| WireError::new(field.to_string(), problem))
    }
}

/// Adds the holding field's name to an error that has one already.
pub(super) trait Within<T> {
    /// The value, or the error seen from outside.
    fn within(self, outer: impl fmt::Display) -> Result<T, WireError>;
}

impl<T> Within<T> for Result<T, WireError> {
    fn within(self, outer: impl fmt::Display) -> Result<T, WireError> {
        self.map_err(|error| error.within(outer))
    }
}

/// A field that must be there.
pub(super) fn required<T>(field: &str, value: Option<T>) -> Result<T, WireError> {
    value.ok_or_else(|| WireError::new(field, "is missing: expected a value"))
}

/// A message that must be there and be good.
pub(super) fn message<T, P>(field: &str, value: Option<P>) -> Result<T, WireError>
where
    T: TryFrom<P, Error = WireError>,
{
    T::try_from(required(field, value)?).within(field)
}

/// At most `max` elements: checked before any of them is read.
pub(super) fn at_most<T>(field: &str, values: &[T], max: usize) -> Result<(), WireError> {
    if values.len() <= max {
        Ok(())
    } else {
        Err(WireError::new(
            field,
            format_args!("{}; at most {max} are allowed", values.len()),
        ))
    }
}

/// Every element, its error under its index.
pub(super) fn each<T, P>(
    field: &str,
    values: Vec<P>,
    read: impl Fn(P) -> Result<T, WireError>,
) -> Result<Vec<T>, WireError> {
    values
        .into_iter()
        .enumerate()
        .map(|(i, value)| read(value).within(format_args!("{field}[{i}]")))
        .collect()
}

pub(super) fn text(field: &str, value: &str) -> Result<Text, WireError> {
    Text::new(value).at(field)
}

/// Empty: not known.
pub(super) fn zone(field: &str, value: &str) -> Result<Option<ZoneName>, WireError> {
    match ZoneName::new(value) {
        Ok(zone) => Ok(Some(zone)),
        Err(NameError::Blank) if value.is_empty() => Ok(None),
        Err(problem) => Err(WireError::new(field, problem)),
    }
}

/// Absent: none. Zero is a number like any other, and out of range.
pub(super) fn threshold(field: &str, us: Option<u64>) -> Result<Option<Threshold>, WireError> {
    us.map(|us| Threshold::new(Duration::from_micros(us)).at(field))
        .transpose()
}

/// Zero is allowed where it was said: nothing is lent for now.
pub(super) fn budget(field: &str, value: f64) -> Result<Budget, WireError> {
    if value == 0.0 {
        Ok(Budget::ZERO)
    } else {
        Budget::new(value).at(field)
    }
}

pub(super) fn millis(
    field: &str,
    ms: u64,
    range: RangeInclusive<Duration>,
) -> Result<Duration, WireError> {
    let value = Duration::from_millis(ms);
    if range.contains(&value) {
        Ok(value)
    } else {
        let (min, max) = range.into_inner();
        let problem = format_args!("{value:?} is out of range: expected from {min:?} to {max:?}");
        Err(WireError::new(field, problem))
    }
}

/// A count nobody can have reached is refused, so that sums over a fleet cannot overflow.
pub(super) fn count(field: &str, value: u64) -> Result<u64, WireError> {
    if value <= COUNT_MAX {
        Ok(value)
    } else {
        let problem = format_args!("{value} is out of range: expected at most {COUNT_MAX}");
        Err(WireError::new(field, problem))
    }
}

pub(super) fn histogram(field: &str, bytes: &[u8]) -> Result<SparseHistogram, WireError> {
    SparseHistogram::from_bytes(bytes).at(field)
}

/// Whole microseconds; what does not fit, which no duration here comes near, is the largest.
pub(super) fn as_us(value: Duration) -> u64 {
    u64::try_from(value.as_micros()).unwrap_or(u64::MAX)
}

/// Whole milliseconds; see [`as_us`].
pub(super) fn as_ms(value: Duration) -> u64 {
    u64::try_from(value.as_millis()).unwrap_or(u64::MAX)
}
