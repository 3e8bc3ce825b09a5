//! Numbers as they are shown.

use std::time::Duration;

use serde_json::Number;

/// Milliseconds. The nanoseconds of a day are exact in a float, and their quotient is the nearest
/// to the decimal: 12.3 is shown as such.
pub(crate) fn millis(latency: Duration) -> f64 {
    latency.as_nanos() as f64 / 1e6
}

/// As JSON: whole numbers without a point.
pub(crate) fn number(value: f64) -> Option<Number> {
    // Beyond 2^53 a float is not the whole number that was meant.
    if value.fract() == 0.0 && (0.0..9_007_199_254_740_992.0).contains(&value) {
        Some(Number::from(value as u64))
    } else {
        Number::from_f64(value)
    }
}

/// To three digits: 0.5555 is 0.556, and 0.02777 is 0.0278.
pub(crate) fn three_digits(value: f64) -> f64 {
    // The decimal it is written as, and no product of a power of ten, which may be off.
    format!("{value:.2e}").parse().unwrap_or(value)
}

/// A share in percent, to three digits.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", three_digits(share * 100.0))
}

/// Milliseconds for a column: to the microsecond.
pub(crate) fn column(latency: Option<Duration>) -> String {
    latency.map_or_else(
        || "unknown".into(),
        |latency| format!("{}", (millis(latency) * 1e3).round() / 1e3),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_people_write_them() {
        for (micros, text) in [(12_000, "12"), (12_300, "12.3"), (50, "0.05"), (0, "0")] {
            let latency = Duration::from_micros(micros);
            let number = number(millis(latency)).unwrap();
            assert_eq!(number.to_string(), text);
            assert_eq!(column(Some(latency)), text);
        }
        for (value, text) in [
            (5.0 / 9.0, "0.556"),
            (0.05 * 5.0 / 9.0, "0.0278"),
            (10.0 / 13.0, "0.769"),
            (0.02 * 10.0 / 13.0, "0.0154"),
            (0.1, "0.1"),
            (1.0, "1"),
            (0.0, "0"),
        ] {
            assert_eq!(number(three_digits(value)).unwrap().to_string(), text);
        }
        assert_eq!(percent(0.07), "7 %");
        assert_eq!(number(f64::NAN), None);
    }
}
