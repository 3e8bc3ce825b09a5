//! How long attempts take, also those that were stopped before they answered.
//!
//! A cancelled attempt is a slow one. Leaving it out, or counting the winner's latency for it,
//! makes the threshold fall and the hedge rate run away (ALGORITHMS, section 1). What is known of
//! it is that it takes *longer* than it was let live; the Kaplan-Meier estimate uses exactly that.
//!
//! - The curve: E. L. Kaplan and P. Meier, "Nonparametric estimation from incomplete observations",
//!   1958, on buckets. Attempts censored within a bucket count as at risk for half of it: the
//!   actuarial (life-table, half-interval) correction.
//! - The test: N. Mantel, "Evaluation of survival data and two new rank order statistics arising in
//!   its consideration", 1966, in its one-sample form: the primaries' curve is the reference, the
//!   hedges are the sample.

use std::ops::Range;
use std::time::Duration;

use super::layout::{bucket_of, point_in, share_of, upper_edge_us};
use super::weighted::{RANK_SLACK, Weights};

/// Fewest primaries at risk for their hazard to say anything about the hedges.
pub const AT_RISK_MIN: f64 = 10.0;

/// The share of attempts that take longer than a latency, as far as it is known.
///
/// ```
/// use std::time::Duration;
/// use hedgerow_protocol::latency::{Histogram, SurvivalCurve};
///
/// let ms = Duration::from_millis;
/// let (mut done, mut cens) = (Histogram::new(), Histogram::new());
/// for _ in 0..96 { done.record(ms(10)); }
/// for _ in 0..2 { cens.record(ms(30)); } // a hedge won; how long would they have taken?
/// for _ in 0..2 { done.record(ms(200)); } // losers that were let finish
///
/// let curve = SurvivalCurve::estimate(&done, &cens);
/// // 4 of 100 take longer than 10 ms, whatever became of them. Beyond 30 ms, the two that were
/// // let finish speak for all four.
/// assert!((curve.survival_at(ms(20)).unwrap() - 0.04).abs() < 1e-9);
/// assert!((curve.survival_at(ms(100)).unwrap() - 0.04).abs() < 1e-9);
/// let p99 = curve.quantile(0.99).unwrap();
/// assert!(p99 > ms(195) && p99 < ms(205));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SurvivalCurve {
    /// The bucket of the first point. Before it nothing ends: all are at risk, and survive.
    first: usize,
    /// From there to the last bucket the curve is known in; empty without samples.
    points: Vec<Point>,
}

/// One bucket's part of the curve.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Point {
    at_risk: f64,
    hazard: f64,
    /// At the bucket's upper edge.
    survival: f64,
}

/// One bucket of a curve, for those who walk along it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Index of the bucket.
    pub bucket: usize,
    /// Its upper edge in microseconds.
    pub upper_edge_us: f64,
    /// Attempts that lived into this bucket.
    pub at_risk: f64,
    /// Share of them that are answered within it, 0 to 1.
    pub hazard: f64,
    /// Share of all attempts that live longer than the upper edge, 0 to 1.
    pub survival: f64,
    /// Sum of the hazards up to and including this bucket (Nelson-Aalen), at least 0.
    pub cumulative_hazard: f64,
}

impl SurvivalCurve {
    /// Estimates the curve from attempts that answered and attempts that were stopped or are still
    /// in flight, each on its own clock.
    ///
    /// Exact up to the shortest censored attempt's bucket. Beyond, right if what stops an attempt
    /// knows nothing of how long it would still take; a hedge that wins because both wait for the
    /// same thing makes the curve err upward, which is the safe side. Allocates once: 24 bytes for
    /// each bucket from the first to the last with samples.
    pub fn estimate(done: &impl Weights, cens: &impl Weights) -> Self {
        // Who is at risk is summed from the far end, not subtracted from the near one: with
        // real-valued weights a remainder could otherwise fall below what it consists of.
        let mut used = used(done, cens);
        let ends = |bucket: &usize| done.weight(*bucket) + cens.weight(*bucket) > 0.0;
        used.start = used.clone().find(ends).unwrap_or(used.end);
        // Until they are worked out, hazard and survival are the weights of done and censored: each
        // is asked for once.
        let weights = |bucket| Point {
            at_risk: 0.0,
            hazard: done.weight(bucket),
            survival: cens.weight(bucket),
        };
        let mut points: Vec<_> = used.clone().map(weights).collect();
        let mut alive = 0.0;
        for point in points.iter_mut().rev() {
            alive += point.hazard + point.survival;
            point.at_risk = alive;
        }
        // Nobody at risk: no value from here on.
        let known = points.iter().rposition(|point| point.at_risk > 0.0);
        points.truncate(known.map_or(0, |last| last + 1));
        let mut survival = 1.0;
        for point in &mut points {
            let (done, cens) = (point.hazard, point.survival);
            if done > 0.0 {
                // Positive: at risk are at least the bucket's own, and somebody is.
                let exposed = point.at_risk - cens / 2.0;
                point.hazard = (done / exposed).min(1.0);
                survival *= 1.0 - point.hazard;
            }
            point.survival = survival;
        }
        Self {
            first: used.start,
            points,
        }
    }

    /// The point of a bucket; None beyond what is known.
    fn point(&self, bucket: usize) -> Option<Point> {
        match bucket.checked_sub(self.first) {
            Some(at) => self.points.get(at).copied(),
            None => self.points.first().map(|first| Point {
                at_risk: first.at_risk,
                hazard: 0.0,
                survival: 1.0,
            }),
        }
    }

    /// The share of attempts (0 to 1) that take longer than a latency, interpolated inside its
    /// bucket. `None` where the curve is not known that far; where it has reached zero it stays
    /// there. Latencies over 1 h are taken as 1 h, as they are in the histograms.
    pub fn survival_at(&self, latency: Duration) -> Option<f64> {
        let bucket = bucket_of(latency);
        let Some(point) = self.point(bucket) else {
            return self
                .points
                .last()
                .map(|last| last.survival)
                .filter(|&last| last == 0.0);
        };
        let before = self.survival_before(bucket);
        Some(before - share_of(bucket, latency) * (before - point.survival))
    }

    /// The least latency that a share `q` (0 to 1) of the attempts takes at most, interpolated
    /// inside its bucket. `None` where the curve is not known that far, and for a `q` outside 0
    /// to 1.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        if !(0.0..=1.0).contains(&q) {
            return None;
        }
        let target = 1.0 - q;
        let reached = |point: &Point| point.hazard > 0.0 && point.survival <= target + RANK_SLACK;
        let at = self.points.iter().position(reached)?;
        let before = match at.checked_sub(1) {
            Some(previous) => self.points[previous].survival,
            None => 1.0,
        };
        let drop = before - self.points[at].survival;
        Some(point_in(self.first + at, (before - target) / drop))
    }

    /// The share of the attempts alive at the start of a bucket that answer within it, 0 to 1.
    /// `None` beyond what is known.
    pub fn hazard(&self, bucket: usize) -> Option<f64> {
        self.point(bucket).map(|point| point.hazard)
    }

    /// Attempts alive at the start of a bucket; 0 beyond what is known.
    pub fn at_risk(&self, bucket: usize) -> f64 {
        self.point(bucket).map_or(0.0, |point| point.at_risk)
    }

    /// Buckets the curve is known in: all below this index.
    pub fn known_buckets(&self) -> usize {
        match self.points.len() {
            0 => 0,
            points => self.first + points,
        }
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// The longest latency the curve is known at; `None` where nothing is.
    pub fn known_until(&self) -> Option<Duration> {
        self.known_buckets()
            .checked_sub(1)
            .map(|last| point_in(last, 1.0))
    }

    /// Along the curve, bucket by bucket from 0, also those in which nothing happens.
    pub fn steps(&self) -> impl Iterator<Item = Step> + '_ {
        self.steps_from(0)
    }

    /// The same from a bucket on, for those who need not walk all the way there.
    pub fn steps_from(&self, bucket: usize) -> impl Iterator<Item = Step> + '_ {
        let before = bucket.saturating_sub(self.first).min(self.points.len());
        let hazards = self.points[..before].iter().map(|point| point.hazard);
        // Not `sum`, which begins with -0.
        let mut cumulative_hazard = hazards.fold(0.0, |sum, hazard| sum + hazard);
        (bucket..self.known_buckets()).filter_map(move |bucket| {
            let point = self.point(bucket)?;
            cumulative_hazard += point.hazard;
            Some(Step {
                bucket,
                upper_edge_us: upper_edge_us(bucket),
                at_risk: point.at_risk,
                hazard: point.hazard,
                survival: point.survival,
                cumulative_hazard,
            })
        })
    }

    fn survival_before(&self, bucket: usize) -> f64 {
        bucket
            .checked_sub(1)
            .and_then(|previous| self.point(previous))
            .map_or(1.0, |previous| previous.survival)
    }
}

/// Buckets outside of which nothing ends.
fn used(done: &impl Weights, cens: &impl Weights) -> Range<usize> {
    let (done, cens) = (done.used(), cens.used());
    match (done.is_empty(), cens.is_empty()) {
        (_, true) => done,
        (true, false) => cens,
        (false, false) => done.start.min(cens.start)..done.end.max(cens.end),
    }
}

/// Whether hedges answer as fast as primaries of the same age do; see [`log_rank`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogRank {
    /// Hedges that answered (O).
    pub observed: f64,
    /// Hedges that would have answered, were they primaries (E).
    pub expected: f64,
    /// Standard errors between the two, `(O - E) / sqrt(E)`: far below zero where hedges are slow
    /// for the same reason as the primaries they were sent for. `None` where nothing is expected.
    pub z: Option<f64>,
    /// O/E: 1 for independent stalls, towards 0 the more of the cause is shared. `None` where
    /// nothing is expected.
    pub ratio: Option<f64>,
}

/// The one-sample log-rank test of hedges against the primaries' curve of the same window, each
/// hedge on its own age.
///
/// Buckets with fewer than [`AT_RISK_MIN`] primaries at risk add nothing, neither to E nor to O:
/// there is nothing to compare with. O and E are sums of weights; Z assumes that they are counts,
/// as it takes E for the variance.
///
/// ```
/// use std::time::Duration;
/// use hedgerow_protocol::latency::{Histogram, SurvivalCurve, log_rank};
///
/// let ms = Duration::from_millis;
/// let mut done = Histogram::new();
/// for i in 1..=1000 { done.record(ms(i)); }
/// let curve = SurvivalCurve::estimate(&done, &Histogram::new());
///
/// // A hundred hedges, all cancelled at 500 ms without an answer: half should have answered.
/// let mut cens = Histogram::new();
/// for _ in 0..100 { cens.record(ms(500)); }
/// let test = log_rank(&curve, &Histogram::new(), &cens);
/// assert_eq!(test.ratio, Some(0.0));
/// assert!(test.z.unwrap() < -4.0);
/// ```
pub fn log_rank(
    primary: &SurvivalCurve,
    hedge_done: &impl Weights,
    hedge_cens: &impl Weights,
) -> LogRank {
    let (mut observed, mut expected) = (0.0, 0.0);
    let mut alive = 0.0;
    let hedges = used(hedge_done, hedge_cens);
    let from = hedges.start.min(primary.first);
    // From the far end, so that hedges at risk are summed and not subtracted from.
    for bucket in (from..hedges.end.max(primary.known_buckets())).rev() {
        let done = hedge_done.weight(bucket);
        let ended = done + hedge_cens.weight(bucket);
        alive += ended;
        if let Some(point) = primary.point(bucket).filter(|it| it.at_risk >= AT_RISK_MIN) {
            observed += done;
            expected += point.hazard * (alive - ended / 2.0);
        }
    }
    let some = (expected > 0.0).then_some(expected);
    LogRank {
        observed,
        expected,
        z: some.map(|expected| (observed - expected) / expected.sqrt()),
        ratio: some.map(|expected| observed / expected),
    }
}

#[cfg(test)]
mod tests;
