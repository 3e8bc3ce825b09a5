//! Whether the calls under one name are of two kinds, cheap ones and expensive ones. Pure.
//!
//! Such a route has one threshold for both: where few are expensive every one of them is hedged, and
//! a second copy of an expensive query is the last thing its dependency needs; where many are, no
//! cheap one ever is (B24). The cure is a name for each kind.

use std::time::Duration;

use hedgerow_protocol::latency::{BUCKETS, Histogram, upper_edge_us};

/// Samples that anything is said from: fewer make hills of chance.
const SAMPLES_MIN: u64 = 1000;
/// Buckets of a histogram to one bin here: a quarter of an octave, wide enough to be smooth.
const BUCKETS_PER_BIN: usize = 8;
const BINS: usize = BUCKETS.div_ceil(BUCKETS_PER_BIN);
/// Bins between two peaks at least: two octaves. Nearer ones have a threshold in common.
const APART: usize = 2 * 32 / BUCKETS_PER_BIN;
/// Least share of each kind. Less than a tenth that is slow is a tail, which hedging is for.
const SHARE_MIN: f64 = 0.1;
/// The valley between the two is at most this part of the lower peak.
const VALLEY_MAX: f64 = 0.2;

/// Two kinds of calls under one name: see
/// [`RouteSnapshot::cost_classes`](crate::RouteSnapshot::cost_classes).
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct CostClasses {
    /// What most of the cheap ones take, to a quarter of an octave.
    pub cheap: Duration,
    /// The same of the expensive ones: at least four times as long.
    pub expensive: Duration,
    /// Share of the expensive ones, 0.1 to 0.9.
    pub expensive_share: f64,
}

/// The two kinds, where there clearly are two. None also where there are too few samples to tell.
pub(crate) fn cost_classes(latencies: &Histogram) -> Option<CostClasses> {
    let all = latencies.count();
    if all < SAMPLES_MIN {
        return None;
    }
    let mut bins = [0.0; BINS];
    for (bucket, count) in latencies.iter() {
        bins[bucket / BUCKETS_PER_BIN] += count as f64;
    }
    let smooth = smoothed(&bins);
    let highest = |from: usize, to: usize| {
        let bins = from..to;
        bins.max_by(|a, b| smooth[*a].total_cmp(&smooth[*b]))
    };
    let mut deepest: Option<(f64, CostClasses)> = None;
    for valley in 1..BINS - 1 {
        let (left, right) = (highest(0, valley)?, highest(valley + 1, BINS)?);
        let lower = smooth[left].min(smooth[right]);
        let depth = smooth[valley] / lower;
        let share = bins[valley..].iter().sum::<f64>() / all as f64;
        let clear = lower > 0.0
            && depth <= VALLEY_MAX
            && right - left >= APART
            && (SHARE_MIN..=1.0 - SHARE_MIN).contains(&share);
        if clear && deepest.is_none_or(|(least, _)| depth < least) {
            let found = CostClasses {
                cheap: middle_of(left),
                expensive: middle_of(right),
                expensive_share: share,
            };
            deepest = Some((depth, found));
        }
    }
    deepest.map(|(_, found)| found)
}

/// Each bin with a part of its neighbours.
fn smoothed(bins: &[f64; BINS]) -> [f64; BINS] {
    let at = |bin: Option<usize>| bin.and_then(|bin| bins.get(bin)).copied().unwrap_or(0.0);
    std::array::from_fn(|bin| {
        0.25 * at(bin.checked_sub(1)) + 0.5 * bins[bin] + 0.25 * at(Some(bin + 1))
    })
}

fn middle_of(bin: usize) -> Duration {
    let bucket = (bin * BUCKETS_PER_BIN + BUCKETS_PER_BIN / 2).min(BUCKETS - 1);
    Duration::from_nanos((upper_edge_us(bucket) * 1e3) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance;

    /// Log-normal about `median`, with `sigma` in natural logarithms.
    fn about(median_ms: f64, sigma: f64) -> Duration {
        let uniform = || (chance::draw() >> 11) as f64 / (1_u64 << 53) as f64;
        let normal: f64 = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        Duration::from_secs_f64(median_ms / 1e3 * (sigma * normal).exp())
    }

    /// What is seen in `samples` calls, a share `expensive` of them about `ms`, the others about 10.
    fn seen(samples: u32, expensive: f64, ms: f64, sigma: f64) -> Option<CostClasses> {
        let mut latencies = Histogram::new();
        for n in 0..samples {
            let is_expensive = f64::from(n % 1000) < expensive * 1000.0;
            latencies.record(about(if is_expensive { ms } else { 10.0 }, sigma));
        }
        cost_classes(&latencies)
    }

    #[test]
    fn b24_two_cost_classes_are_seen_and_measured() {
        chance::seed(3);
        for (expensive, ms) in [(0.15, 200.0), (0.3, 100.0), (0.5, 1000.0), (0.8, 100.0)] {
            let found = seen(20_000, expensive, ms, 0.35).unwrap();
            assert!(
                (found.expensive_share - expensive).abs() < 0.03,
                "{found:?}"
            );
            let near =
                |found: Duration, ms: f64| (0.7..1.4).contains(&(found.as_secs_f64() * 1e3 / ms));
            assert!(
                near(found.cheap, 10.0) && near(found.expensive, ms),
                "{found:?}"
            );
        }
    }

    #[test]
    fn b24_one_class_is_never_taken_for_two() {
        for seed in 0..60 {
            chance::seed(seed);
            for sigma in [0.05, 0.35, 0.8, 1.5] {
                assert_eq!(seen(1500, 0.0, 1.0, sigma), None, "{seed} {sigma}");
            }
            // A tail that hedging is for; two kinds too near to tell; too little to go by.
            for (samples, expensive, ms) in
                [(5000, 0.05, 100.0), (5000, 0.4, 20.0), (999, 0.5, 999.0)]
            {
                assert_eq!(
                    seen(samples, expensive, ms, 0.35),
                    None,
                    "{seed} {expensive} {ms}"
                );
            }
        }
    }

    #[test]
    fn b24_no_calls_and_calls_at_the_edges_of_the_histogram_are_no_classes_and_no_panic() {
        let mut latencies = Histogram::new();
        assert_eq!(cost_classes(&latencies), None);
        for _ in 0..2000 {
            latencies.record(Duration::ZERO);
        }
        assert_eq!(cost_classes(&latencies), None);
        for _ in 0..2000 {
            latencies.record(Duration::MAX);
        }
        let found = cost_classes(&latencies).unwrap();
        assert!(found.expensive > Duration::from_mins(50), "{found:?}");
    }
}
