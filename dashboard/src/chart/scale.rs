//! Numbers to positions.

use std::fmt::Write as _;
use std::time::Duration;

use hedgerow_core::moment::Moment;

use crate::format::{clock_minutes, day};

/// Least distance of two times on an axis, pixels.
const TIME_STEP: f64 = 52.0;
/// Steps between times on an axis, minutes.
const TIME_STEPS_MIN: [u64; 12] = [1, 2, 5, 10, 15, 30, 60, 120, 240, 720, 1_440, 10_080];

/// A linear scale.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    from: f64,
    per_unit: f64,
    start: f64,
}

impl Scale {
    /// `from..to` onto `start..end`. An empty domain maps to `start`.
    pub(super) fn new(from: f64, to: f64, start: f64, end: f64) -> Self {
        let per_unit = if to > from {
            (end - start) / (to - from)
        } else {
            0.0
        };
        Self {
            from,
            per_unit,
            start,
        }
    }

    /// The position of `value`.
    pub(super) fn at(&self, value: f64) -> f64 {
        self.start + (value - self.from) * self.per_unit
    }
}

/// Ticks from 0 to at least `highest`, in steps of 1, 2, 2.5 or 5 times a power of ten; the last one is
/// the top of the axis.
pub(super) fn nice_ticks(highest: f64, about: u32) -> Vec<f64> {
    let highest = if highest.is_finite() && highest > 0.0 {
        highest
    } else {
        1.0
    };
    let raw = highest / f64::from(about);
    let magnitude = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|m| m * magnitude)
        .find(|step| *step >= raw * 0.999)
        .unwrap_or(10.0 * magnitude);
    let count = (highest / step - 1e-9).ceil().max(1.0) as u32;
    (0..=count).map(|i| f64::from(i) * step).collect()
}

/// An SVG path through the points; a gap where there is none. A point between two gaps is drawn as
/// a dot: a line of no length with round ends.
pub(super) fn path(points: impl Iterator<Item = Option<(f64, f64)>>) -> String {
    let mut out = String::new();
    let mut pen_down = false;
    let mut lone: Option<(f64, f64)> = None;
    for point in points {
        if let Some((x, y)) = point {
            let command = if pen_down { 'L' } else { 'M' };
            let _ = write!(out, "{command}{} {}", px(x), px(y));
            lone = (!pen_down).then_some((x, y));
        } else {
            close_dot(&mut out, lone.take());
        }
        pen_down = point.is_some();
    }
    close_dot(&mut out, lone);
    out
}

fn close_dot(out: &mut String, lone: Option<(f64, f64)>) {
    if lone.is_some() {
        out.push_str("h.01");
    }
}

/// Closed shapes between a lower and an upper line, one for each stretch without a gap: x, low, high.
pub(super) fn area(points: &[Option<(f64, f64, f64)>]) -> String {
    let mut out = String::new();
    for stretch in points.split(Option::is_none).filter(|it| it.len() > 1) {
        let there = stretch.iter().flatten();
        let back = stretch.iter().rev().flatten();
        let upper = there.map(|(x, _, high)| (*x, *high));
        let lower = back.map(|(x, low, _)| (*x, *low));
        for (i, (x, y)) in upper.chain(lower).enumerate() {
            let command = if i == 0 { 'M' } else { 'L' };
            let _ = write!(out, "{command}{} {}", px(x), px(y));
        }
        out.push('Z');
    }
    out
}

/// Round times within a span, as many as there is room for, each with its words: of days the date.
pub(super) fn time_ticks(from: Moment, to: Moment, room: f64) -> Vec<(Moment, String)> {
    let span_min = to.since(from).as_secs_f64() / 60.0;
    let fits = |step: u64| span_min / step as f64 * TIME_STEP <= room;
    let step = TIME_STEPS_MIN.into_iter().find(|step| fits(*step));
    let step_ms = step.unwrap_or(10_080) * 60_000;
    let first = from.as_millis().div_ceil(step_ms) * step_ms;
    (first..=to.as_millis())
        .step_by(usize::try_from(step_ms).unwrap_or(usize::MAX))
        .map(|ms| {
            let at = Moment::from_millis(ms);
            let midnight = ms.is_multiple_of(Duration::from_hours(24).as_millis() as u64);
            let text = if midnight { day(at) } else { clock_minutes(at) };
            (at, text)
        })
        .collect()
}

/// A coordinate to a tenth of a pixel, as short as it can be.
pub(super) fn px(value: f64) -> String {
    let tenths = (value * 10.0).round();
    if tenths % 10.0 == 0.0 {
        format!("{:.0}", tenths / 10.0)
    } else {
        format!("{:.1}", tenths / 10.0)
    }
}

/// Moves sorted places apart by at least `step`, within `low..=high` where they fit.
pub(super) fn spread(wanted: &[f64], step: f64, low: f64, high: f64) -> Vec<f64> {
    let mut places: Vec<f64> = wanted.to_vec();
    let mut least = low;
    for place in &mut places {
        *place = place.max(least);
        least = *place + step;
    }
    let mut most = high;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - step;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_the_top() {
        for (highest, last, count) in [
            (12.0, 15.0, 4),
            (0.95, 1.0, 5),
            (74.0, 80.0, 5),
            (0.0, 1.0, 5),
        ] {
            let ticks = nice_ticks(highest, 4);
            assert!(
                (ticks.last().unwrap() - last).abs() < 1e-9,
                "{highest}: {ticks:?}"
            );
            assert_eq!(ticks.len(), count, "{highest}: {ticks:?}");
        }
    }

    #[test]
    fn a_gap_is_left_where_there_is_no_value() {
        let points = [
            Some((0.0, 1.0)),
            Some((1.0, 2.0)),
            None,
            Some((3.0, 4.0)),
            None,
        ];
        assert_eq!(path(points.into_iter()), "M0 1L1 2M3 4h.01");
    }

    #[test]
    fn u04_times_are_round_whatever_the_span() {
        let at = |minutes: u64| Moment::from_millis(1_772_373_787_000 + minutes * 60_000);
        for (minutes, first, most) in [
            (10, "14:04", 12),
            (60, "14:10", 12),
            (360, "15:00", 12),
            (1_440, "16:00", 12),
            (10_080, "Mar 2", 8),
        ] {
            let ticks = time_ticks(at(0), at(minutes), 508.0);
            assert_eq!(ticks[0].1, first, "{minutes}");
            assert!((3..=most).contains(&ticks.len()), "{minutes}: {ticks:?}");
        }
        assert!(time_ticks(at(5), at(5), 508.0).len() <= 1);
    }

    #[test]
    fn a_range_is_a_closed_shape_and_breaks_at_gaps() {
        let points = [
            Some((0.0, 9.0, 1.0)),
            Some((1.0, 8.0, 2.0)),
            None,
            Some((3.0, 7.0, 3.0)),
        ];
        assert_eq!(area(&points), "M0 1L1 2L1 8L0 9Z");
        assert_eq!(area(&[]), "");
    }

    #[test]
    fn no_value_at_all_draws_nothing() {
        assert_eq!(path([None, None].into_iter()), "");
    }

    #[test]
    fn labels_do_not_touch() {
        let places = spread(&[10.0, 11.0, 12.0, 95.0, 99.0], 10.0, 0.0, 100.0);
        assert!(
            places.windows(2).all(|w| w[1] - w[0] >= 9.999),
            "{places:?}"
        );
        assert!(
            places.iter().all(|p| (0.0..=100.0).contains(p)),
            "{places:?}"
        );
    }
}
