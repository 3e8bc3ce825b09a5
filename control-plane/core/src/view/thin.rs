//! A long course in few points.

use hedgerow_protocol::report::Refusal;

use crate::moment::Moment;
use crate::view::Point;

/// Takes points in their order, and gives one for each stretch of time that has any.
///
/// What is held against a limit or looked at for peaks (percentiles of all calls, hedge rate, demand,
/// errors) is the stretch's highest. What is compared (treated with held out, wins with what is
/// expected) is its mean, weighted by calls: of two series the one with more noise would have the
/// higher peaks.
#[derive(Debug, Clone)]
pub struct Thinner {
    from: u64,
    stretch_ms: u64,
    open: Option<(u64, Stretch)>,
    done: Vec<Point>,
}

/// What a stretch has so far.
#[derive(Debug, Clone, Default)]
struct Stretch {
    highest: Point,
    points: u32,
    hedging: u32,
    calls: Mean,
    threshold: Mean,
    treated_p99: Mean,
    treated_p95: Mean,
    holdout_p99: Mean,
    holdout_p95: Mean,
    holdout_low: Mean,
    holdout_high: Mean,
    holdout_calls: Mean,
    win_rate: Mean,
    refused: [Mean; Refusal::ALL.len()],
}

#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: f64,
    weight: f64,
}

impl Mean {
    fn add(&mut self, value: Option<f64>, weight: f64) {
        if let Some(value) = value.filter(|it| it.is_finite()) {
            self.sum += value * weight;
            self.weight += weight;
        }
    }

    fn get(self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }

    fn short(self) -> Option<f32> {
        self.get().map(|it| it as f32)
    }
}

impl Thinner {
    /// After a moment, up to another one, in at most `points`, of which there is one at least.
    pub fn new(from: Moment, until: Moment, points: u32) -> Self {
        let span = until.since(from).as_millis() as u64;
        Self {
            from: from.as_millis(),
            stretch_ms: span.div_ceil(u64::from(points.max(1))).max(1),
            open: None,
            done: Vec::new(),
        }
    }

    /// Takes the next point. One before the beginning belongs to the first stretch.
    pub fn push(&mut self, point: &Point) {
        // A stretch has its end and not its beginning, as the whole has.
        let after = point.at.as_millis().saturating_sub(self.from + 1);
        let number = after / self.stretch_ms;
        if self.open.as_ref().is_some_and(|(open, _)| *open != number) {
            self.close();
        }
        let (_, stretch) = self
            .open
            .get_or_insert_with(|| (number, Stretch::default()));
        stretch.add(point);
    }

    /// All of it.
    pub fn finish(mut self) -> Vec<Point> {
        self.close();
        self.done
    }

    fn close(&mut self) {
        if let Some((_, stretch)) = self.open.take() {
            self.done.push(stretch.point());
        }
    }
}

impl Stretch {
    fn add(&mut self, point: &Point) {
        let highest = |held: &mut Option<f64>, new: Option<f64>| {
            *held = match (*held, new) {
                (Some(held), Some(new)) => Some(held.max(new)),
                (held, new) => held.or(new),
            };
        };
        let top = &mut self.highest;
        top.at = point.at;
        top.base_ms = point.base_ms.or(top.base_ms);
        highest(&mut top.p50_ms, point.p50_ms);
        highest(&mut top.p95_ms, point.p95_ms);
        highest(&mut top.p99_ms, point.p99_ms);
        highest(&mut top.hedge_rate, point.hedge_rate);
        highest(&mut top.demand, point.demand);
        highest(&mut top.error_rate, point.error_rate);
        self.points += 1;
        self.hedging += u32::from(point.hedging);
        self.calls.add(Some(point.calls_per_s), 1.0);
        let weight = point.calls_per_s.max(f64::MIN_POSITIVE);
        let long = |it: Option<f32>| it.map(f64::from);
        for (mean, value) in [
            (&mut self.threshold, point.threshold_ms),
            (&mut self.treated_p99, point.treated_p99_ms),
            (&mut self.treated_p95, long(point.treated_p95_ms)),
            (&mut self.holdout_p99, point.holdout_p99_ms),
            (&mut self.holdout_p95, long(point.holdout_p95_ms)),
            (&mut self.holdout_low, long(point.holdout_p99_low_ms)),
            (&mut self.holdout_high, long(point.holdout_p99_high_ms)),
            (&mut self.holdout_calls, point.holdout_calls.map(f64::from)),
            (&mut self.win_rate, point.win_rate),
        ] {
            mean.add(value, weight);
        }
        for (mean, value) in self.refused.iter_mut().zip(point.refused.iter().flatten()) {
            mean.add(Some(f64::from(*value)), weight);
        }
    }

    fn point(self) -> Point {
        let refused = self.refused.map(|it| it.short().unwrap_or(0.0));
        Point {
            calls_per_s: self.calls.get().unwrap_or(0.0),
            threshold_ms: self.threshold.get(),
            treated_p99_ms: self.treated_p99.get(),
            treated_p95_ms: self.treated_p95.short(),
            holdout_p99_ms: self.holdout_p99.get(),
            holdout_p95_ms: self.holdout_p95.short(),
            holdout_p99_low_ms: self.holdout_low.short(),
            holdout_p99_high_ms: self.holdout_high.short(),
            holdout_calls: self.holdout_calls.get().map(|it| it.round() as u32),
            win_rate: self.win_rate.get(),
            refused: (self.refused[0].weight > 0.0).then_some(refused),
            // As it was for most of the time.
            hedging: 2 * self.hedging >= self.points,
            ..self.highest
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(at: u64, p99: Option<f64>, calls: f64) -> Point {
        Point {
            at: Moment::from_millis(at),
            calls_per_s: calls,
            p99_ms: p99,
            treated_p99_ms: p99,
            hedging: p99.is_some(),
            ..Point::default()
        }
    }

    fn thin(points: &[Point], until: u64, most: u32) -> Vec<Point> {
        let at = Moment::from_millis;
        let mut thinner = Thinner::new(at(0), at(until), most);
        for point in points {
            thinner.push(point);
        }
        thinner.finish()
    }

    #[test]
    fn u04_a_peak_stays_and_a_comparison_is_of_means_by_calls() {
        let all = [
            point(10, Some(10.0), 30.0),
            point(20, Some(90.0), 10.0),
            point(60, Some(10.0), 30.0),
        ];
        let thinned = thin(&all, 100, 2);
        assert_eq!(thinned.len(), 2);
        assert_eq!(thinned[0].p99_ms, Some(90.0));
        assert_eq!(thinned[0].treated_p99_ms, Some(30.0));
        assert_eq!(thinned[0].calls_per_s, 20.0);
        assert_eq!(thinned[0].at, Moment::from_millis(20));
    }

    #[test]
    fn u03_where_there_is_no_value_none_is_made() {
        let thinned = thin(&[point(10, None, 0.0), point(20, None, 0.0)], 100, 1);
        assert_eq!(thinned[0].p99_ms, None);
        assert_eq!(thinned[0].treated_p99_ms, None);
        assert_eq!(thinned[0].refused, None);
        assert!(!thinned[0].hedging);
        assert!(thin(&[], 100, 10).is_empty());
    }

    #[test]
    fn there_are_never_more_points_than_asked_for() {
        let all: Vec<Point> = (1..=1_000).map(|n| point(n * 7, Some(1.0), 1.0)).collect();
        for most in [1, 2, 7, 100, 999, 5_000] {
            assert!(thin(&all, 7_000, most).len() <= most as usize, "{most}");
        }
        assert_eq!(thin(&all, 7_000, 0).len(), 1, "one at least");
    }
}
