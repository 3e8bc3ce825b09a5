//! Numbers and times as people read them: three significant digits, units in the headings.

use crate::whatif::figures::three_digits;

/// A dash: there is no figure.
pub(in crate::cli) const NONE: &str = "–";

/// Three significant digits.
pub(in crate::cli) fn number(value: f64) -> String {
    if value == 0.0 {
        // A sum of nothing is -0.
        "0".into()
    } else if value.is_finite() {
        three_digits(value).to_string()
    } else {
        NONE.into()
    }
}

/// Three significant digits, with an SI prefix from a thousand on: `942`, `12.3 k`.
pub(in crate::cli) fn prefixed(value: f64) -> String {
    let value = three_digits(value);
    for (step, prefix) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if value.abs() >= step {
            return format!("{} {prefix}", number(value / step));
        }
    }
    number(value)
}

/// A share in per cent, for a column whose heading has the unit.
pub(in crate::cli) fn percent(share: f64) -> String {
    number(share * 100.0)
}

/// A share that is read from its far end: 99.97 is never shown as 100.
pub(in crate::cli) fn success(share: f64) -> String {
    if share >= 1.0 || share < 0.99 {
        return percent(share);
    }
    // As many digits as it takes to tell it from all, at most four.
    let decimals = (-((1.0 - share) * 100.0).log10()).ceil().clamp(1.0, 4.0);
    let scale = 10f64.powf(decimals);
    let decimals = decimals as usize;
    format!(
        "{:.decimals$}",
        (share * 100.0 * scale + 1e-6).floor() / scale
    )
}

/// Bytes: `4.2 MB`.
pub(in crate::cli) fn bytes(value: u64) -> String {
    let unit = if value < 1000 { " B" } else { "B" };
    format!("{}{unit}", prefixed(value as f64))
}

/// How long: `4 s`, `3 min`, `2 h 5 min`, `6 d`.
pub(in crate::cli) fn span(millis: u64) -> String {
    let s = millis / 1000;
    match s {
        0..60 => format!("{s} s"),
        60..600 if !s.is_multiple_of(60) => format!("{} min {} s", s / 60, s % 60),
        60..3600 => format!("{} min", s / 60),
        3600..86_400 if s % 3600 < 60 => format!("{} h", s / 3600),
        3600..86_400 => format!("{} h {} min", s / 3600, s % 3600 / 60),
        _ => format!("{} d", s / 86_400),
    }
}

/// `2026-03-01 14:03:07 UTC`.
pub(in crate::cli) fn date(millis: u64) -> String {
    i64::try_from(millis)
        .ok()
        .and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok())
        .map_or_else(
            || NONE.into(),
            |at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        )
}

/// This machine's time, in milliseconds since 1970.
pub(in crate::cli) fn now() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}

/// What others wrote, as one line that cannot steer a terminal or turn the direction of reading.
pub(in crate::cli) fn clean(text: &str) -> String {
    let odd =
        |c: char| c.is_control() || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => ' ',
            c if odd(c) => '\u{FFFD}',
            c => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (0.012_34, "0.0123"),
            (61.26, "61.3"),
            (942.0, "942"),
            (999.7, "1 k"),
            (12_345.0, "12.3 k"),
            (4.5e6, "4.5 M"),
        ] {
            assert_eq!(prefixed(value), text);
        }
        for (share, text) in [
            (1.0, "100"),
            (0.9997, "99.97"),
            (0.995, "99.5"),
            (0.9, "90"),
            (0.999_999_99, "99.9999"),
        ] {
            assert_eq!(success(share), text);
        }
        assert_eq!(number(f64::NAN), NONE);
    }

    #[test]
    fn spans_bytes_and_dates_read_like_speech() {
        for (s, text) in [
            (4, "4 s"),
            (75, "1 min 15 s"),
            (120, "2 min"),
            (7500, "2 h 5 min"),
            (172_800, "2 d"),
        ] {
            assert_eq!(span(s * 1000), text);
        }
        for (value, text) in [(12, "12 B"), (4_200_000, "4.2 MB")] {
            assert_eq!(bytes(value), text);
        }
        assert_eq!(date(1_772_373_787_000), "2026-03-01 14:03:07 UTC");
    }

    #[test]
    fn s08_what_others_wrote_cannot_steer_a_terminal() {
        assert_eq!(clean("a\x1b[2Jb\nc\u{202E}d"), "a\u{FFFD}[2Jb c\u{FFFD}d");
    }
}
