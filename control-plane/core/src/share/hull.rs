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
    /// Calls kept within the objective by hedging all of these, as a share of all.
    rescued: f64,
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
    /// Calls kept within the objective, as a share of all.
    pub rescued: f64,
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
}

impl Rescue {
    /// From the primaries' curve, for delays within a range. `shared`: the share of slowness that a
    /// call and its hedge have in common. None where too little is known to tell what misses the
    /// objective, or no call lasts as long as any of the delays.
    pub fn of(
        curve: &SurvivalCurve,
        objective: Duration,
        shared: Ratio,
        delays: &RangeInclusive<Duration>,
    ) -> Option<Self> {
        let missed = curve.survival_at(objective)?;
        let least = *delays.start();
        let edges = curve.steps().map(|step| {
            let at = Duration::from_nanos((step.upper_edge_us * 1e3).ceil() as u64);
            (at, step.survival)
        });
        let first = curve.survival_at(least).map(|crossed| (least, crossed));
        let all = first.into_iter().chain(edges.filter(|(at, _)| *at > least));
        let mut found: Vec<Delay> = Vec::new();
        for (at, crossed) in all {
            // Nothing ended in most buckets: as few cross, and the hedge is only later.
            let same = found.last().is_some_and(|last| last.crossed <= crossed);
            if same || crossed <= 0.0 || !delays.contains(&at) {
                continue;
            }
            let back = objective
                .checked_sub(at)
                .and_then(|left| curve.survival_at(left))
                .map_or(0.0, |alive| 1.0 - alive);
            found.push(Delay {
                at,
                crossed,
                rescued: missed * back * (1.0 - shared.get()),
            });
        }
        (!found.is_empty()).then_some(Self { delays: found })
    }

    /// The delay and probability that rescue most with so many hedges for each call (above 0); of
    /// equals the largest delay.
    pub fn best(&self, budget: f64) -> Option<Best> {
        let mut best: Option<Best> = None;
        for delay in &self.delays {
            let probability = (budget / delay.crossed).min(1.0);
            let rescued = probability * delay.rescued;
            if best.is_none_or(|best| rescued >= best.rescued) {
                best = Some(Best {
                    delay: delay.at,
                    probability,
                    crossed: delay.crossed,
                    rescued,
                });
            }
        }
        best.filter(|best| best.rescued > 0.0)
    }

    /// The concave hull from no hedges on, steepest first; it ends where more hedges rescue no more.
    pub(super) fn hull(&self) -> Vec<Segment> {
        let mut corners: Vec<(f64, f64)> = vec![(0.0, 0.0)];
        let slope = |from: (f64, f64), to: (f64, f64)| (to.1 - from.1) / (to.0 - from.0);
        for delay in self.delays.iter().rev() {
            let point = (delay.crossed, delay.rescued);
            while let [.., before, last] = corners[..]
                && slope(before, last) <= slope(last, point)
            {
                corners.pop();
            }
            corners.push(point);
        }
        let pairs = corners.windows(2);
        pairs
            .map(|pair| Segment {
                end: pair[1].0,
                slope: slope(pair[0], pair[1]),
            })
            .take_while(|segment| segment.slope > 0.0)
            .collect()
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
        let hull = rescue(0.0).hull();
        // Hedged after 20 ms: 8 % cross, all miss 100 ms, 92 % of their hedges do not.
        assert_eq!(hull.len(), 1, "{hull:?}");
        assert!((hull[0].end - 0.08).abs() < 1e-9 && (hull[0].slope - 0.92).abs() < 1e-9);
        let half = rescue(0.5).hull();
        assert!((half[0].slope - 0.46).abs() < 1e-9, "{half:?}");
        assert!(rescue(1.0).hull().is_empty());
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
        assert_eq!(rescue(1.0).best(0.02), None);
    }

    #[test]
    fn what_misses_the_objective_has_to_be_known() {
        let (mut done, mut censored) = (Histogram::new(), Histogram::new());
        (0..950).for_each(|_| done.record(10 * MS));
        (0..50).for_each(|_| censored.record(40 * MS));
        let curve = SurvivalCurve::estimate(&done, &censored);
        let any = Duration::ZERO..=Duration::MAX;
        let of = |objective| Rescue::of(&curve, objective, Ratio::ZERO, &any);
        assert_eq!(of(100 * MS), None);
        assert!(of(30 * MS).is_some());
    }
}
