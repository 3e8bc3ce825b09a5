//! What a share of calls hedged rescues at best: the concave hull of one route's delays.

use std::ops::RangeInclusive;
use std::time::Duration;

use hedgerow_protocol::latency::SurvivalCurve;
use hedgerow_protocol::units::Ratio;

/// One delay of a route.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Delay {
    at: Duration,
    /// Calls that last longer, as a share of all.
    crossed: f64,
    /// Hedges that would be back within the objective, as a share of them.
    back: f64,
}

/// How a route is hedged within a budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Best {
    /// A call that lasts longer may be hedged.
    pub delay: Duration,
    /// The share of those that is, above 0 and up to 1.
    pub probability: f64,
    /// The share of calls that last longer.
    pub crossed: f64,
}

/// A stretch of the hull.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Segment {
    /// Where it ends, in hedges for each call.
    pub(super) end: f64,
    /// Calls rescued by each hedge of it.
    pub(super) slope: f64,
}

/// One route's calls against an objective T: for each delay d the hedges S(d), and the calls that
/// would have taken longer than T and no longer do, `S(T) F(T - d) (1 - phi)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Rescue {
    /// Ascending in time, so descending in what crosses.
    delays: Vec<Delay>,
    /// Calls that hedging all could rescue, `S(T) (1 - phi)`; None: not known.
    rescuable: Option<f64>,
}

impl Rescue {
    /// From the primaries' curve, for delays within a range. `shared`: the share of slowness that a
    /// call and its hedge have in common. None where no call lasts longer than any of the delays.
    pub fn of(
        curve: &SurvivalCurve,
        objective: Duration,
        shared: Ratio,
        delays: &RangeInclusive<Duration>,
    ) -> Option<Self> {
        let least = *delays.start();
        let edges = curve.steps().map(|step| {
            let at = Duration::from_nanos((step.upper_edge_us * 1e3).ceil() as u64);
            (at, step.survival)
        });
        let first = curve.survival_at(least).map(|crossed| (least, crossed));
        let all = first.into_iter().chain(edges.filter(|(at, _)| *at > least));
        // Beyond what is known at least as many are back as at its end.
        let last = curve.steps().last().map_or(1.0, |step| step.survival);
        let mut found: Vec<Delay> = Vec::new();
        for (at, crossed) in all {
            // Nothing ended in most buckets: as few cross, and the hedge is only later.
            let same = found.last().is_some_and(|last| last.crossed <= crossed);
            if same || crossed <= 0.0 || !delays.contains(&at) {
                continue;
            }
            let back = objective
                .checked_sub(at)
                .map_or(0.0, |left| 1.0 - curve.survival_at(left).unwrap_or(last));
            found.push(Delay { at, crossed, back });
        }
        let missed = curve.survival_at(objective);
        (!found.is_empty()).then_some(Self {
            delays: found,
            rescuable: missed.map(|missed| missed * (1.0 - shared.get())),
        })
    }

    /// The delay and probability that rescue most with so many hedges for each call (above 0); of
    /// equals the largest delay. What misses the objective is a factor of all, and so has not to be
    /// known. None where no hedge would be back in time.
    pub fn best(&self, budget: f64) -> Option<Best> {
        let mut best: Option<(Best, f64)> = None;
        for delay in &self.delays {
            let probability = (budget / delay.crossed).min(1.0);
            let back = probability * delay.back;
            if back > 0.0 && best.is_none_or(|(_, most)| back >= most) {
                let found = Best {
                    delay: delay.at,
                    probability,
                    crossed: delay.crossed,
                };
                best = Some((found, back));
            }
        }
        best.map(|(best, _)| best)
    }

    /// The concave hull from no hedges on, steepest first; it ends where more hedges rescue no more.
    /// None where what misses the objective is not known.
    pub(super) fn hull(&self) -> Option<Vec<Segment>> {
        let rescuable = self.rescuable?;
        let mut corners: Vec<(f64, f64)> = vec![(0.0, 0.0)];
        let slope = |from: (f64, f64), to: (f64, f64)| (to.1 - from.1) / (to.0 - from.0);
        for delay in self.delays.iter().rev() {
            let point = (delay.crossed, rescuable * delay.back);
            while let [.., before, last] = corners[..]
                && slope(before, last) <= slope(last, point)
            {
                corners.pop();
            }
            corners.push(point);
        }
        let segments = corners.windows(2).map(|pair| Segment {
            end: pair[1].0,
            slope: slope(pair[0], pair[1]),
        });
        Some(segments.take_while(|segment| segment.slope > 0.0).collect())
    }
}

#[cfg(test)]
mod tests {
    use hedgerow_protocol::latency::Histogram;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// 900 calls of 10 ms, 80 of 300, 20 of 20.
    fn curve() -> SurvivalCurve {
        let mut done = Histogram::new();
        (0..900).for_each(|_| done.record(10 * MS));
        (0..20).for_each(|_| done.record(20 * MS));
        (0..80).for_each(|_| done.record(300 * MS));
        SurvivalCurve::estimate(&done, &Histogram::new())
    }

    fn rescue(shared: f64) -> Rescue {
        let any = Duration::ZERO..=Duration::MAX;
        Rescue::of(&curve(), 100 * MS, Ratio::clamped(shared), &any).unwrap()
    }

    #[test]
    fn the_hull_is_the_stalls_and_ends_where_more_hedges_rescue_no_more() {
        let hull = rescue(0.0).hull().unwrap();
        // Hedged after 20 ms: 8 % cross, all miss 100 ms, 92 % of their hedges do not.
        assert_eq!(hull.len(), 1, "{hull:?}");
        assert!((hull[0].end - 0.08).abs() < 1e-9 && (hull[0].slope - 0.92).abs() < 1e-9);
        let half = rescue(0.5).hull().unwrap();
        assert!((half[0].slope - 0.46).abs() < 1e-9, "{half:?}");
        assert_eq!(rescue(1.0).hull().unwrap(), []);
    }

    #[test]
    fn the_best_within_a_budget_is_drawn_from_the_stalls() {
        let best = rescue(0.0).best(0.02).unwrap();
        assert!((20 * MS..21 * MS).contains(&best.delay), "{best:?}");
        assert!((best.probability - 0.25).abs() < 1e-9, "{best:?}");
        // More than enough: each of them, and nothing earlier.
        let all = rescue(0.0).best(0.1).unwrap();
        assert!((20 * MS..21 * MS).contains(&all.delay), "{all:?}");
        assert!(all.probability >= 1.0);
        assert_eq!(rescue(1.0).best(0.02), Some(best));
    }

    #[test]
    fn what_misses_the_objective_has_to_be_known() {
        let (mut done, mut censored) = (Histogram::new(), Histogram::new());
        (0..950).for_each(|_| done.record(10 * MS));
        (0..50).for_each(|_| censored.record(40 * MS));
        let curve = SurvivalCurve::estimate(&done, &censored);
        let any = Duration::ZERO..=Duration::MAX;
        let of = |objective| Rescue::of(&curve, objective, Ratio::ZERO, &any).unwrap();
        assert_eq!(of(100 * MS).hull(), None);
        assert!(of(30 * MS).hull().is_some());
        // When to hedge is known all the same.
        assert!(of(100 * MS).best(0.02).is_some());
    }
}
