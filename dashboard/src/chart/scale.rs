//! Numbers to positions.

use std::fmt::Write as _;

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
