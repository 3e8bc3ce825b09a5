use proptest::prelude::*;

use super::super::layout::{LATENCY_MAX, lower_edge_us, upper_edge_us};
use super::*;

fn of(samples: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    for &ns in samples {
        histogram.record(Duration::from_nanos(ns));
    }
    histogram
}

fn bins(histogram: &Histogram) -> u64 {
    histogram.counts.iter().sum()
}

fn us(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[test]
fn b26_the_extremes_are_clamped_and_none_is_lost() {
    let mut histogram = Histogram::new();
    let extremes = [
        Duration::ZERO,
        Duration::from_millis(10_001),
        LATENCY_MAX,
        LATENCY_MAX + Duration::from_nanos(1),
        Duration::MAX,
    ];
    for latency in extremes {
        histogram.record(latency);
    }
    assert_eq!(histogram.count(), 5);
    assert_eq!(bins(&histogram), 5);
    assert_eq!(histogram.in_bucket(0), 1);
    assert_eq!(histogram.in_bucket(BUCKETS - 1), 3);
    assert_eq!(histogram.quantile(1.0), Some(LATENCY_MAX));
    assert_eq!(histogram.share_above(Duration::MAX), Some(0.0));
    let ten = us(histogram.quantile(0.4).unwrap());
    assert!((ten / 10_001_000.0 - 1.0).abs() < 0.022, "{ten}");
}

#[test]
fn b39_bins_add_up_to_the_count_and_no_quantile_panics() {
    let mut histogram = Histogram::new();
    for _ in 0..100 {
        histogram.record(Duration::from_micros(1));
    }
    histogram.record(Duration::from_micros((1 << 30) - 1));
    assert_eq!(bins(&histogram), 101);
    assert_eq!(histogram.count(), 101);
    for step in 0..=10_000 {
        assert!(histogram.quantile(f64::from(step) / 1e4).is_some());
    }
    for q in [
        95.0,
        -0.1,
        1.000_001,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ] {
        assert_eq!(histogram.quantile(q), None, "{q}");
    }
    assert!(histogram.quantile(0.99).unwrap() <= Duration::from_micros(1));
    assert!(histogram.quantile(1.0).unwrap() > Duration::from_secs(1000));
}

#[test]
fn b42_no_data_is_no_value() {
    let empty = Histogram::default();
    assert!(empty.is_empty());
    assert_eq!(empty.quantile(0.5), None);
    assert_eq!(empty.share_above(Duration::ZERO), None);
    assert!(empty.to_sparse().is_empty());
}

#[test]
fn c05_below_a_millisecond_nothing_is_rounded_to_0_or_1_ms() {
    let histogram = of(&[437_000; 1000]);
    let p95 = us(histogram.quantile(0.95).unwrap());
    assert!((p95 / 437.0 - 1.0).abs() < 0.022, "{p95}");
    let few = of(&[3_000; 10]);
    assert!(few.quantile(0.95).unwrap() <= Duration::from_nanos(3_100));
    assert!(few.quantile(0.95).unwrap() >= Duration::from_nanos(2_900));
}

#[test]
fn quantiles_of_a_smooth_distribution_are_within_a_percent() {
    let n = 100_000;
    let mut histogram = Histogram::new();
    for i in 0..n {
        let share = (f64::from(i) + 0.5) / f64::from(n);
        histogram.record(Duration::from_secs_f64(-0.020 * (1.0 - share).ln()));
    }
    for q in [0.5, 0.9, 0.92, 0.95, 0.99, 0.999] {
        let exact = Duration::from_secs_f64(-0.020 * (1.0_f64 - q).ln());
        let off = us(histogram.quantile(q).unwrap()) / us(exact) - 1.0;
        assert!(off.abs() < 0.001, "{q}: off by {off}");
        let above = histogram.share_above(exact).unwrap();
        assert!((above / (1.0 - q) - 1.0).abs() < 0.01, "{q}: {above}");
    }
}

#[test]
fn a_rank_at_the_end_of_a_bucket_does_not_cross_the_gap() {
    // 0.07 * 100 is a little over 7 in floats.
    let mut samples = vec![1_000_000; 7];
    samples.extend([900_000_000; 93]);
    assert!(of(&samples).quantile(0.07).unwrap() < Duration::from_millis(2));
}

#[test]
fn too_much_is_refused_and_nothing_is_changed() {
    let mut full = Histogram::new();
    full.add_to_bucket(5, COUNT_MAX).unwrap();
    let before = full.clone();
    let one = of(&[1]);
    let refused = full.add(&one).unwrap_err();
    assert_eq!(
        refused,
        CountError::TooMany {
            held: COUNT_MAX,
            added: 1
        }
    );
    assert!(full.add_to_bucket(5, u64::MAX).is_err());
    full.record(Duration::ZERO);
    assert_eq!(full, before);
    assert_eq!(
        full.add_to_bucket(BUCKETS, 1),
        Err(CountError::NoSuchBucket(BUCKETS))
    );
    let mut empty = Histogram::new();
    let refused = empty.subtract(&one).unwrap_err();
    assert_eq!(
        refused,
        CountError::NotContained {
            bucket: 0,
            held: 0,
            taken: 1
        }
    );
}

#[test]
fn debug_shows_what_is_there() {
    assert_eq!(
        format!("{:?}", of(&[1_000, 1_001])),
        "Histogram(2) {0: 1, 1: 1}"
    );
}

fn samples() -> impl Strategy<Value = Vec<u64>> {
    // Evenly over the octaves, as latencies are.
    prop::collection::vec(
        (20_u32..64, any::<u64>()).prop_map(|(bits, ns)| ns >> bits),
        1..300,
    )
}

proptest! {
    #[test]
    fn b39_bins_always_add_up(samples in samples()) {
        let histogram = of(&samples);
        prop_assert_eq!(bins(&histogram), samples.len() as u64);
        prop_assert_eq!(histogram.count(), samples.len() as u64);
    }

    #[test]
    fn quantiles_ascend(samples in samples(), a in 0.0..=1.0_f64, b in 0.0..=1.0_f64) {
        let histogram = of(&samples);
        prop_assert!(histogram.quantile(a.min(b)) <= histogram.quantile(a.max(b)));
    }

    #[test]
    fn a_quantile_is_in_the_bucket_of_the_exact_one(
        mut samples in samples(),
        q in 0.0..=1.0_f64,
    ) {
        let read = us(of(&samples).quantile(q).unwrap());
        samples.sort_unstable();
        let rank = (q * samples.len() as f64).ceil().max(1.0) as usize;
        let bucket = bucket_of(Duration::from_nanos(samples[rank - 1]));
        // Results are whole nanoseconds.
        prop_assert!(read >= lower_edge_us(bucket) - 1e-3);
        prop_assert!(read <= upper_edge_us(bucket) + 1e-3);
    }

    #[test]
    fn share_above_undoes_quantile(samples in samples(), q in 0.0..=1.0_f64) {
        let histogram = of(&samples);
        let point = histogram.quantile(q).unwrap();
        // Below 100 us a nanosecond is a visible share of a bucket.
        let most = if point > Duration::from_micros(100) { 1e-3 } else { 1.0 };
        let above = histogram.share_above(point).unwrap();
        prop_assert!((above - (1.0 - q)).abs() <= most, "{above}");
    }

    #[test]
    fn merging_is_adding(a in samples(), b in samples()) {
        let mut merged = of(&a);
        merged.add(&of(&b)).unwrap();
        let mut by_sparse = of(&a);
        by_sparse.add(&of(&b).to_sparse()).unwrap();
        prop_assert_eq!(&merged, &by_sparse);
        prop_assert_eq!(merged, of(&[a, b].concat()));
    }

    #[test]
    fn add_then_subtract_changes_nothing(a in samples(), b in samples()) {
        let (before, other) = (of(&a), of(&b));
        let mut histogram = before.clone();
        histogram.add(&other).unwrap();
        prop_assert_eq!(histogram.since(&before).unwrap(), other.to_sparse());
        histogram.subtract(&other.to_sparse()).unwrap();
        prop_assert_eq!(histogram, before);
    }
}

#[test]
fn without_a_part_that_is_ahead_of_the_whole_nothing_is_left_and_the_rest_adds_up() {
    let mut whole = Histogram::new();
    let mut part = Histogram::new();
    for (bucket, all, of_it) in [(3, 5, 2), (4, 1, 3), (900, 7, 0)] {
        whole.add_to_bucket(bucket, all).unwrap();
        part.add_to_bucket(bucket, of_it).unwrap();
    }
    let rest = whole.without(&part);
    assert_eq!(rest.iter().collect::<Vec<_>>(), [(3, 3), (900, 7)]);
    assert_eq!(rest.count(), 10);
}
