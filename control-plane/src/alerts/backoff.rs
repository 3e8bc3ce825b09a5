//! How long to wait before a notice is tried again.

use std::time::Duration;

/// The longest a receiver can put us off by `Retry-After`.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(1);

/// The wait after the failed attempt number `attempt` (from 1): doubled each time from `first` up to
/// `most`, of which a random half is jitter, so that receivers that fell together are not all called
/// together; and never before the receiver asked to be called again. `jitter` is from 0 to 1.
pub(super) fn delay(
    attempt: u32,
    first: Duration,
    most: Duration,
    retry_after: Option<Duration>,
    jitter: f64,
) -> Duration {
    let doubled = first.saturating_mul(1 << attempt.saturating_sub(1).min(20));
    let jittered = doubled
        .min(most)
        .mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0));
    jittered.max(retry_after.unwrap_or_default().min(RETRY_AFTER_MAX))
}

/// Reads a `Retry-After`: seconds, or a date.
pub(super) fn retry_after(value: &str, now: jiff::Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<u32>() {
        return Some(Duration::from_secs(seconds.into()));
    }
    let at = jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(value)
        .ok()?;
    Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_from_a_second_to_five_minutes_half_of_it_jitter() {
        let (first, most) = (Duration::from_secs(1), Duration::from_mins(5));
        for (attempt, longest) in [(1, 1), (2, 2), (3, 4), (9, 256), (10, 300), (10_000, 300)] {
            let longest = Duration::from_secs(longest);
            assert_eq!(delay(attempt, first, most, None, 1.0), longest, "{attempt}");
            assert_eq!(
                delay(attempt, first, most, None, 0.0),
                longest / 2,
                "{attempt}"
            );
        }
    }

    #[test]
    fn a_receiver_is_not_called_before_it_asked_to_be() {
        let (first, most) = (Duration::from_secs(1), Duration::from_mins(5));
        let asked = Some(Duration::from_secs(90));
        assert_eq!(delay(1, first, most, asked, 0.0), Duration::from_secs(90));
        let asked = Some(Duration::from_hours(48));
        assert_eq!(delay(1, first, most, asked, 0.0), Duration::from_hours(1));
    }

    #[test]
    fn retry_after_is_read_in_both_forms() {
        let now = jiff::Timestamp::from_second(784_111_777).unwrap();
        for (text, seconds) in [
            ("120", Some(120)),
            ("Sun, 06 Nov 1994 08:51:37 GMT", Some(120)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("soon", None),
            ("-5", None),
        ] {
            assert_eq!(
                retry_after(text, now),
                seconds.map(Duration::from_secs),
                "{text}"
            );
        }
    }
}
