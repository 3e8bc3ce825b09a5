//! A route's last quarter of an hour in brief: what a table of a thousand routes can show of each.

use std::sync::Arc;

use crate::moment::Moment;
use crate::view::Point;

/// Milliseconds that are one point. They begin at whole multiples since 1970, so that every route's
/// change at the same moment and not in between.
const EACH_MS: u64 = 15_000;
/// Points kept: a quarter of an hour.
const KEPT: usize = 60;

/// The points, and the one under way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Brief {
    done: Arc<Vec<Point>>,
    open: Option<Point>,
}

impl Brief {
    /// Takes a point of the course. Of several within one span the highest p99 and hedge rate stay:
    /// a peak must not vanish; hedging was allowed only where it always was.
    pub(crate) fn take(&mut self, point: &Point) {
        let at = Moment::from_millis(point.at.as_millis() / EACH_MS * EACH_MS);
        let mut open = match self.open.take() {
            Some(open) if open.at == at => open,
            ended => {
                if let Some(ended) = ended {
                    self.end(&ended);
                }
                Point {
                    at,
                    hedging: true,
                    ..Point::default()
                }
            }
        };
        open.p99_ms = highest(open.p99_ms, point.p99_ms);
        open.hedge_rate = highest(open.hedge_rate, point.hedge_rate);
        open.hedging &= point.hedging;
        self.open = Some(open);
    }

    fn end(&mut self, point: &Point) {
        let kept = (KEPT - 1).min(self.done.len());
        let mut done = Vec::with_capacity(kept + 1);
        done.extend_from_slice(&self.done[self.done.len() - kept..]);
        done.push(*point);
        self.done = Arc::new(done);
    }

    /// The points whose time is over, oldest first.
    pub(crate) fn points(&self) -> Arc<Vec<Point>> {
        Arc::clone(&self.done)
    }
}

fn highest(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(ms: u64, p99_ms: Option<f64>, hedging: bool) -> Point {
        Point {
            at: Moment::from_millis(ms),
            p99_ms,
            hedging,
            ..Point::default()
        }
    }

    #[test]
    fn u01_a_span_keeps_its_peak_and_shows_once_it_is_over() {
        let mut brief = Brief::default();
        brief.take(&point(30_000, Some(20.0), true));
        brief.take(&point(32_000, Some(90.0), false));
        brief.take(&point(34_000, None, true));
        assert!(brief.points().is_empty());
        brief.take(&point(45_000, Some(21.0), true));
        let done = brief.points();
        assert_eq!(done.len(), 1);
        assert_eq!(
            (done[0].at.as_millis(), done[0].p99_ms, done[0].hedging),
            (30_000, Some(90.0), false)
        );
        assert_eq!(
            done[0].hedge_rate, None,
            "nothing was known, and nothing is"
        );
    }

    #[test]
    fn u01_a_quarter_of_an_hour_is_kept_and_no_more() {
        let mut brief = Brief::default();
        for i in 0..700 {
            brief.take(&point(i * 2000, Some(i as f64), true));
        }
        let done = brief.points();
        assert_eq!(done.len(), KEPT);
        let span = done[KEPT - 1].at.since(done[0].at);
        assert_eq!(span.as_secs(), 15 * 59);
    }
}
