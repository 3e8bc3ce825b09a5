//! Real-valued weights on the buckets, and how a quantile is read from them.
//!
//! Counts become weights where an agent may not weigh more than its share of a window. Weights are
//! put together anew for each estimate and never subtracted from: differences of floats drift.

use std::ops::Range;
use std::time::Duration;

use super::histogram::Counts;
use super::layout::{BUCKETS, bucket_of, point_in, share_of};

/// How far a rank may miss a bucket's end and still count as reached, as a share of the whole.
/// `0.07 * 100.0` is a little over 7; without this the answer would be the next sample, which in a
/// gap of the distribution is far away.
pub(super) const RANK_SLACK: f64 = 1e-12;

/// Something with a weight for each bucket: what an estimate is computed from.
pub trait Weights {
    /// The weight in a bucket: finite, at least 0; 0 beyond the last bucket.
    fn weight(&self, bucket: usize) -> f64;

    /// Buckets outside of which there is no weight, for those who walk along them.
    fn used(&self) -> Range<usize> {
        0..BUCKETS
    }
}

/// A histogram of real-valued weights. One allocation of 8 KiB when made, none afterwards.
///
/// ```
/// use std::time::Duration;
/// use hedgerow_protocol::latency::{Histogram, WeightedHistogram};
///
/// let mut honest = Histogram::new();
/// let mut loud = Histogram::new();
/// for _ in 0..100 { honest.record(Duration::from_millis(10)); }
/// for _ in 0..900 { loud.record(Duration::from_millis(500)); }
///
/// let mut window = WeightedHistogram::new();
/// window.add(&honest, 1.0);
/// window.add(&loud, 0.05);
/// assert!(window.quantile(0.5).unwrap() < Duration::from_millis(11));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct WeightedHistogram {
    weights: Box<[f64; BUCKETS]>,
}

impl Default for WeightedHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl WeightedHistogram {
    /// Nothing in any bucket.
    pub fn new() -> Self {
        Self {
            weights: Box::new([0.0; BUCKETS]),
        }
    }

    /// Adds counts, each of them as `weight`. A weight that is not finite and above zero adds
    /// nothing: it comes from a division, and what it is the share of was empty.
    pub fn add(&mut self, counts: &impl Counts, weight: f64) {
        if !(weight.is_finite() && weight > 0.0) {
            return;
        }
        for (bucket, count) in counts.pairs() {
            self.weights[bucket] += weight * count as f64;
        }
    }

    /// The sum of all weights.
    pub fn sum(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// Whether every weight is zero.
    pub fn is_empty(&self) -> bool {
        self.weights.iter().all(|&weight| weight == 0.0)
    }

    /// See [`Histogram::quantile`](super::Histogram::quantile).
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        quantile_of(self, self.sum(), q)
    }

    /// See [`Histogram::share_above`](super::Histogram::share_above).
    pub fn share_above(&self, latency: Duration) -> Option<f64> {
        share_above_of(self, self.sum(), latency)
    }
}

impl Weights for WeightedHistogram {
    fn weight(&self, bucket: usize) -> f64 {
        self.weights.get(bucket).copied().unwrap_or(0.0)
    }
}

/// The point that `q` of the weights lie at or below, interpolated inside its bucket. `None` where
/// there is no weight, or `q` is not within 0 to 1.
pub(super) fn quantile_of(weights: &impl Weights, total: f64, q: f64) -> Option<Duration> {
    if !(0.0..=1.0).contains(&q) || total <= 0.0 {
        return None;
    }
    let rank = q * total;
    let slack = RANK_SLACK * total;
    let mut before = 0.0;
    let each = weights
        .used()
        .map(|bucket| (bucket, weights.weight(bucket)));
    for (bucket, weight) in each.filter(|&(_, weight)| weight > 0.0) {
        if before + weight >= rank - slack {
            return Some(point_in(bucket, (rank - before) / weight));
        }
        before += weight;
    }
    None
}

/// The share of the weights above a latency, interpolated inside its bucket.
pub(super) fn share_above_of(weights: &impl Weights, total: f64, latency: Duration) -> Option<f64> {
    if total <= 0.0 {
        return None;
    }
    let at = bucket_of(latency);
    let within = weights.weight(at) * (1.0 - share_of(at, latency));
    let beyond: f64 = (at + 1..weights.used().end)
        .map(|bucket| weights.weight(bucket))
        .sum();
    Some(((within + beyond) / total).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::histogram::Histogram;
    use super::*;

    #[test]
    fn empty_has_no_value() {
        let empty = WeightedHistogram::default();
        assert!(empty.is_empty());
        assert_eq!(empty.quantile(0.5), None);
        assert_eq!(empty.share_above(Duration::from_millis(1)), None);
    }

    #[test]
    fn a_weight_that_is_not_a_positive_number_adds_nothing() {
        let mut counts = Histogram::new();
        counts.record(Duration::from_millis(1));
        let mut weighted = WeightedHistogram::new();
        for weight in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0] {
            weighted.add(&counts, weight);
        }
        assert!(weighted.is_empty());
    }

    proptest! {
        #[test]
        fn weights_of_one_read_like_counts(
            samples in prop::collection::vec(0_u64..1_u64 << 36, 1..200),
            weight in 0.01..1.0_f64,
            q in 0.0..=1.0_f64,
        ) {
            let mut counts = Histogram::new();
            for &ns in &samples {
                counts.record(Duration::from_nanos(ns));
            }
            let mut ones = WeightedHistogram::new();
            ones.add(&counts, 1.0);
            prop_assert_eq!(ones.quantile(q), counts.quantile(q));
            prop_assert_eq!(ones.sum(), samples.len() as f64);

            let mut scaled = WeightedHistogram::new();
            scaled.add(&counts, weight);
            let latency = Duration::from_nanos(samples[0]);
            let (a, b) = (scaled.share_above(latency).unwrap(), counts.share_above(latency).unwrap());
            prop_assert!((a - b).abs() < 1e-9);
        }
    }
}
