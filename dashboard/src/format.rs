//! How figures, times and durations read on a page: three significant digits, the exact value in
//! the tooltip, a dash with its reason where there is none.

use std::time::Duration;

use askama::Template;
use askama::filters::HtmlSafe;
use hedgerow_core::moment::Moment;
use hedgerow_protocol::units::as_millis;

/// A figure in a cell, or a dash and why.
#[derive(Debug, Clone, PartialEq, Eq, Template)]
#[template(
    ext = "html",
    source = r#"{% match text %}{% when Some(text) %}<span class="n" title="{{ exact }}">{{ text }}</span>{% when None %}<span class="none" title="{{ exact }}">–<span class="sr"> no value: {{ exact }}</span></span>{% endmatch %}"#
)]
pub(crate) struct Figure {
    text: Option<String>,
    exact: String,
}

/// The template above escapes both of its parts.
impl HtmlSafe for Figure {}

impl Figure {
    /// A figure and its exact value.
    pub(crate) fn new(text: impl Into<String>, exact: impl Into<String>) -> Self {
        Self {
            text: Some(text.into()),
            exact: exact.into(),
        }
    }

    /// A dash, and why.
    pub(crate) fn none(why: impl Into<String>) -> Self {
        Self {
            text: None,
            exact: why.into(),
        }
    }

    /// A share as percent, without the sign: it stands in the heading.
    pub(crate) fn percent(share: Option<f64>, why: &str) -> Self {
        share.map_or_else(
            || Self::none(why),
            |share| {
                Self::new(
                    significant(share * 100.0),
                    format!("{} %", trimmed(share * 100.0)),
                )
            },
        )
    }

    /// A share that is read from its far end, such as success: 99.97 is never shown as 100.
    pub(crate) fn success(share: Option<f64>, why: &str) -> Self {
        share.map_or_else(
            || Self::none(why),
            |share| Self::new(near_hundred(share), format!("{} %", trimmed(share * 100.0))),
        )
    }

    /// A duration in milliseconds.
    pub(crate) fn millis(value: Option<Duration>, why: &str) -> Self {
        value.map_or_else(
            || Self::none(why),
            |value| {
                let ms = as_millis(value);
                Self::new(significant(ms), format!("{} ms", trimmed(ms)))
            },
        )
    }

    /// A rate, or another number that may be large.
    pub(crate) fn rate(value: Option<f64>, unit: &str, why: &str) -> Self {
        value.map_or_else(
            || Self::none(why),
            |value| {
                Self::new(
                    prefixed(value),
                    format!("{} {unit}", trimmed(value)).trim().to_owned(),
                )
            },
        )
    }

    /// A plain number.
    pub(crate) fn number(value: Option<f64>, why: &str) -> Self {
        value.map_or_else(
            || Self::none(why),
            |value| Self::new(significant(value), trimmed(value)),
        )
    }

    /// A count, with an SI prefix from a thousand on.
    pub(crate) fn count(value: u64) -> Self {
        Self::new(count(value), grouped(value))
    }
}

/// Three significant digits: `0.0123`, `4.71`, `61.2`, `1230`.
pub(crate) fn significant(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 {
            "0".into()
        } else {
            "–".into()
        };
    }
    let decimals = |v: f64| 2 - v.abs().log10().floor() as i32;
    let first = decimals(value);
    let scale = 10f64.powi(first);
    let rounded = (value * scale).round() / scale;
    // 9.996 rounds to 10.0, which has one decimal fewer.
    let decimals = decimals(rounded).clamp(0, 6) as usize;
    format!("{rounded:.decimals$}")
}

/// Three significant digits with an SI prefix from a thousand on: `942`, `1.23 k`, `4.50 M`.
pub(crate) fn prefixed(value: f64) -> String {
    // A thousandth under the step, so that 999.7 reads 1.00 k and not 1000.
    for (step, prefix) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if value.abs() >= step * 0.9995 {
            return format!("{} {prefix}", significant(value / step));
        }
    }
    significant(value)
}

/// A count: whole below a thousand, with a prefix above.
pub(crate) fn count(value: u64) -> String {
    if value < 1000 {
        value.to_string()
    } else {
        prefixed(value as f64)
    }
}

/// Percent of a share near 1, with as many decimals as it takes to tell it from 100.
fn near_hundred(share: f64) -> String {
    if share >= 1.0 {
        return "100".into();
    }
    if share < 0.99 {
        return significant(share * 100.0);
    }
    let decimals = (-((1.0 - share) * 100.0).log10() - 1e-6)
        .ceil()
        .clamp(1.0, 4.0);
    let scale = 10f64.powf(decimals);
    let decimals = decimals as usize;
    // Down, so that it never reaches 100; the little more is for what floating point lost.
    format!(
        "{:.decimals$}",
        (share * 100.0 * scale + 1e-6).floor() / scale
    )
}

/// As exact as a person can use: up to six decimals, no trailing zeros.
pub(crate) fn trimmed(value: f64) -> String {
    let text = format!("{value:.6}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A whole number in groups of three.
pub(crate) fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() * 2);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// A size in bytes, with an SI prefix.
pub(crate) fn bytes(value: Option<u64>, why: &str) -> Figure {
    value.map_or_else(
        || Figure::none(why),
        |value| Figure::new(prefixed(value as f64), format!("{} bytes", grouped(value))),
    )
}

/// `61.2 ms`, `850 µs`, `1.20 s`: where no heading carries the unit.
pub(crate) fn latency(value: Duration) -> String {
    let us = value.as_secs_f64() * 1e6;
    if us < 999.5 {
        format!("{} µs", significant(us))
    } else if us < 999_500.0 {
        format!("{} ms", significant(us / 1e3))
    } else {
        format!("{} s", significant(us / 1e6))
    }
}

/// A share as percent, with its sign.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", significant(share * 100.0))
}

/// A share that was set, not measured: without the zeros that would claim precision.
pub(crate) fn percent_set(share: f64) -> String {
    let text = significant(share * 100.0);
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text} %")
}

/// How long: `4 s`, `3 min`, `2 h 5 min`, `6 d`.
pub(crate) fn span(value: Duration) -> String {
    let s = value.as_secs();
    match s {
        0..60 => format!("{s} s"),
        60..3600 if s.is_multiple_of(60) || s >= 600 => format!("{} min", s / 60),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        3600..86_400 if s % 3600 < 60 => format!("{} h", s / 3600),
        3600..86_400 => format!("{} h {} min", s / 3600, s % 3600 / 60),
        _ => format!("{} d", s / 86_400),
    }
}

/// `14:03:07`, UTC.
pub(crate) fn clock(at: Moment) -> String {
    strftime(at, "%H:%M:%S")
}

/// `14:03`, UTC.
pub(crate) fn clock_minutes(at: Moment) -> String {
    strftime(at, "%H:%M")
}

/// `Mar 1`, UTC.
pub(crate) fn day(at: Moment) -> String {
    strftime(at, "%b %-d")
}

/// `2026-03-01 14:03:07 UTC`.
pub(crate) fn date(at: Moment) -> String {
    strftime(at, "%Y-%m-%d %H:%M:%S UTC")
}

/// For `<time datetime>`.
pub(crate) fn iso(at: Moment) -> String {
    strftime(at, "%Y-%m-%dT%H:%M:%SZ")
}

/// To the millisecond: `2026-03-01T14:03:07.250Z`.
pub(crate) fn precise(at: Moment) -> String {
    strftime(at, "%Y-%m-%dT%H:%M:%S%.3fZ")
}

/// A moment as people and programs write it: a date, or a date and a time, in UTC where no other
/// zone is said, or milliseconds since 1970. None: it is none of these.
pub(crate) fn parse_moment(text: &str) -> Option<Moment> {
    let text = text.trim();
    if text.len() > 10 && text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().ok().map(Moment::from_millis);
    }
    let at = text.parse::<jiff::Timestamp>().ok().or_else(|| {
        let civil: jiff::civil::DateTime = text.parse().ok()?;
        jiff::tz::Offset::UTC.to_timestamp(civil).ok()
    })?;
    u64::try_from(at.as_millisecond())
        .ok()
        .map(Moment::from_millis)
}

fn strftime(at: Moment, pattern: &str) -> String {
    i64::try_from(at.as_millis())
        .ok()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok())
        .map_or_else(|| "–".into(), |t| t.strftime(pattern).to_string())
}

/// A moment as people read it: the time of day, the date in the tooltip.
#[derive(Debug, Clone, Template)]
#[template(
    ext = "html",
    source = r#"<time datetime="{{ iso }}" title="{{ date }}"{% if absolute %} class="abs"{% endif %}>{{ text }}</time>"#
)]
pub(crate) struct Time {
    /// Shown as it is, whatever times somebody chose to see.
    absolute: bool,
    iso: String,
    date: String,
    text: String,
}

impl HtmlSafe for Time {}

impl Time {
    /// Shows the time of day; the date is in the tooltip.
    pub(crate) fn clock(at: Moment) -> Self {
        Self {
            absolute: false,
            iso: iso(at),
            date: date(at),
            text: clock(at),
        }
    }

    /// Shows date and time.
    pub(crate) fn full(at: Moment) -> Self {
        Self {
            absolute: false,
            iso: iso(at),
            date: date(at),
            text: date(at),
        }
    }

    /// Shows date and time in UTC, whatever times somebody chose to see.
    pub(crate) fn absolute(at: Moment) -> Self {
        Self {
            absolute: true,
            ..Self::full(at)
        }
    }

    /// Shows the time of day, and the date too where it is not today.
    pub(crate) fn near(at: Moment, now: Moment) -> Self {
        let today = strftime(at, "%Y-%m-%d") == strftime(now, "%Y-%m-%d");
        if today {
            Self::clock(at)
        } else {
            Self::full(at)
        }
    }
}

/// A part of an address: everything but unreserved characters as `%XX`.
pub(crate) fn url_part(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_significant_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.012_34, "0.0123"),
            (4.709, "4.71"),
            (9.996, "10.0"),
            (61.25, "61.3"),
            (999.6, "1000"),
            (1234.0, "1230"),
            (-4.709, "-4.71"),
        ] {
            assert_eq!(significant(value), text, "{value}");
        }
    }

    #[test]
    fn prefixes_begin_at_a_thousand() {
        for (value, text) in [
            (942.0, "942"),
            (999.7, "1.00 k"),
            (12_345.0, "12.3 k"),
            (4.5e6, "4.50 M"),
        ] {
            assert_eq!(prefixed(value), text, "{value}");
        }
    }

    #[test]
    fn success_below_all_is_never_shown_as_100() {
        for (share, text) in [
            (1.0, "100"),
            (0.9997, "99.97"),
            (0.999_99, "99.999"),
            (0.9, "90.0"),
            (0.995, "99.5"),
        ] {
            assert_eq!(near_hundred(share), text, "{share}");
        }
    }

    #[test]
    fn times_are_utc() {
        let at = Moment::from_millis(1_772_373_787_000);
        assert_eq!(date(at), "2026-03-01 14:03:07 UTC");
        assert_eq!(clock(at), "14:03:07");
    }

    #[test]
    fn u12_moments_are_read_as_people_write_them() {
        let at = |text: &str| parse_moment(text).map(Moment::as_millis);
        for (text, ms) in [
            ("2026-03-01T14:03:07Z", Some(1_772_373_787_000)),
            ("2026-03-01T15:03:07+01:00", Some(1_772_373_787_000)),
            ("2026-03-01T14:03", Some(1_772_373_780_000)),
            ("2026-03-01 14:03:07", Some(1_772_373_787_000)),
            (" 2026-03-01 ", Some(1_772_323_200_000)),
            ("1772373787000", Some(1_772_373_787_000)),
            ("yesterday", None),
            ("", None),
            ("14:03", None),
        ] {
            assert_eq!(at(text), ms, "{text}");
        }
        assert_eq!(
            precise(Moment::from_millis(1_772_373_787_250)),
            "2026-03-01T14:03:07.250Z"
        );
    }

    #[test]
    fn u03_a_missing_figure_is_a_dash_and_why() {
        let html = Figure::percent(None, "no traffic").to_string();
        assert!(html.contains('–') && html.contains("no traffic"), "{html}");
        assert!(!html.contains(">0<"), "{html}");
    }

    #[test]
    fn spans_read_like_speech() {
        for (s, text) in [
            (4, "4 s"),
            (60, "1 min"),
            (75, "1 min 15 s"),
            (7500, "2 h 5 min"),
            (172_800, "2 d"),
        ] {
            assert_eq!(span(Duration::from_secs(s)), text);
        }
    }
}
