//! Figures as people read them, alike in every sentence.

use std::time::Duration;

use crate::moment::Moment;

/// A share in per cent, one digit after the point where it says anything: `6.1 %`, `5 %`, `0.05 %`.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value > 0.0 && value < 0.95 {
        format!("{} %", significant(value, 2))
    } else {
        format!("{} %", trimmed(format!("{value:.1}")))
    }
}

/// A latency with three digits and its unit: `21.3 ms`, `850 us`, `1.25 s`.
pub(crate) fn latency(value: Duration) -> String {
    let us = value.as_secs_f64() * 1e6;
    let (value, unit) = if us < 999.5 {
        (us, "us")
    } else if us < 999_500.0 {
        (us / 1e3, "ms")
    } else {
        (us / 1e6, "s")
    };
    format!("{} {unit}", significant(value, 3))
}

/// A ratio, one digit after the point: `5.0`.
pub(crate) fn times(ratio: f64) -> String {
    format!("{ratio:.1}")
}

/// A time of day: `14:03:05 UTC`.
pub(crate) fn clock(at: Moment) -> String {
    let second = at.as_millis() / 1_000 % 86_400;
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!("{hour:02}:{minute:02}:{:02} UTC", second % 60)
}

fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (digits - 1 - magnitude).clamp(0, 9) as usize;
    trimmed(format!("{value:.decimals$}"))
}

/// Without zeros that nobody measured.
fn trimmed(text: String) -> String {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_as_on_the_page() {
        for (share, expected) in [
            (0.061, "6.1 %"),
            (0.05, "5 %"),
            (0.6, "60 %"),
            (0.0005, "0.05 %"),
            (0.0, "0 %"),
            (1.0, "100 %"),
        ] {
            assert_eq!(percent(share), expected);
        }
        for (us, expected) in [
            (21_310, "21.3 ms"),
            (850, "850 us"),
            (1_254_000, "1.25 s"),
            (100_000, "100 ms"),
            (999_900, "1 s"),
        ] {
            assert_eq!(latency(Duration::from_micros(us)), expected);
        }
        assert_eq!(times(5.02), "5.0");
    }
}
