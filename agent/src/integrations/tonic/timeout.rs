//! `grpc-timeout`: what is left of a call's deadline, on the wire.

use std::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::Instant;

const NAME: HeaderName = HeaderName::from_static("grpc-timeout");
/// Digits the protocol allows.
const DIGITS_MAX: usize = 8;
const LARGEST: u128 = 99_999_999;

/// Units that a value is written in, finest first. (Nanoseconds are read, never written: nobody's
/// clock on the other side is that good.)
const UNITS: [(char, u128); 5] = [
    ('u', 1),
    ('m', 1_000),
    ('S', 1_000_000),
    ('M', 60_000_000),
    ('H', 3_600_000_000),
];

/// A request's own; one that is not in the protocol's form is none.
pub(super) fn of(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(NAME)?.to_str().ok()?;
    let unit = text.chars().last()?;
    let digits = text.strip_suffix(unit)?;
    if digits.is_empty() || digits.len() > DIGITS_MAX {
        return None;
    }
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let value: u64 = digits.parse().ok()?;
    if unit == 'n' {
        return Some(Duration::from_nanos(value));
    }
    let (_, micros) = UNITS.iter().find(|(letter, _)| *letter == unit)?;
    // At most eight digits of hours: 2^59 microseconds.
    Some(Duration::from_micros(value * *micros as u64))
}

/// Sets what is left until `deadline`, rounded up: the server is not to give up first.
pub(super) fn set(headers: &mut HeaderMap, deadline: Instant) {
    let left = deadline.saturating_duration_since(Instant::now());
    if let Ok(value) = HeaderValue::try_from(text(left)) {
        headers.insert(NAME, value);
    }
}

/// None: the other side is told nothing.
pub(super) fn clear(headers: &mut HeaderMap) {
    headers.remove(NAME);
}

fn text(left: Duration) -> String {
    let micros = left.as_nanos().div_ceil(1_000);
    let fits = UNITS
        .iter()
        .map(|(letter, unit)| (letter, micros.div_ceil(*unit)))
        .find(|(_, value)| *value <= LARGEST);
    // A thousand years and more are as good as what fits.
    let (letter, value) = fits.unwrap_or((&'H', LARGEST));
    format!("{value}{letter}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(NAME, HeaderValue::from_str(text).unwrap());
        of(&headers)
    }

    #[test]
    fn every_unit_is_read_and_anything_else_is_none() {
        for (text, expected) in [
            ("99999999n", Some(Duration::from_nanos(99_999_999))),
            ("250u", Some(Duration::from_micros(250))),
            ("1500m", Some(Duration::from_millis(1500))),
            ("10S", Some(Duration::from_secs(10))),
            ("2M", Some(Duration::from_mins(2))),
            ("99999999H", Some(Duration::from_hours(99_999_999))),
            ("0m", Some(Duration::ZERO)),
            ("", None),
            ("m", None),
            ("10", None),
            ("+1m", None),
            ("100000000m", None),
            ("1.5S", None),
        ] {
            assert_eq!(read(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_written_is_never_shorter_and_hardly_longer() {
        for micros in [0, 1, 999, 99_999_999, 100_000_001, 86_400_000_000] {
            let left = Duration::from_micros(micros);
            let back = read(&text(left)).unwrap();
            assert!(back >= left && back <= left + Duration::from_millis(1));
        }
        assert_eq!(text(Duration::from_nanos(1)), "1u");
    }
}
