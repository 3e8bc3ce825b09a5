use proptest::prelude::*;

use super::super::histogram::Histogram;
use super::super::layout::BUCKETS;
use super::super::weighted::WeightedHistogram;
use super::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn of(samples: impl IntoIterator<Item = Duration>) -> Histogram {
    let mut histogram = Histogram::new();
    for latency in samples {
        histogram.record(latency);
    }
    histogram
}

/// The edge as a whole number of nanoseconds that is still inside the bucket.
fn edge(bucket: usize) -> Duration {
    Duration::from_nanos((upper_edge_us(bucket) * 1e3) as u64)
}

/// A pseudo-random number in [0, 1) for each index: the tests need no more than that.
fn uniform(seed: u64, index: u64) -> f64 {
    let mut x =
        (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed.wrapping_mul(0xd6e8_feb8_6659_fd93);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Mostly exponential around 20 ms; a share of the calls stalls for ten times as long.
fn stalling(seed: u64, index: u64, stalls: f64) -> Duration {
    let scale = if uniform(seed ^ 0xa5, index) < stalls {
        0.2
    } else {
        0.02
    };
    Duration::from_secs_f64(-scale * (1.0 - uniform(seed, index)).ln())
}

#[test]
fn b42_no_data_is_no_value() {
    let empty = Histogram::new();
    let curve = SurvivalCurve::estimate(&empty, &empty);
    assert!(curve.is_empty());
    assert_eq!(curve.survival_at(Duration::ZERO), None);
    assert_eq!(curve.quantile(0.5), None);
    assert_eq!(curve.hazard(0), None);
    assert_eq!(curve.at_risk(0), 0.0);
    assert_eq!(curve.known_until(), None);
    assert_eq!(curve.steps().count(), 0);
}

#[test]
fn the_recurrence_of_the_algorithms_by_hand() {
    // R = 10. Bucket 3: h = 2 / (10 - 1) and 6 left; bucket 5: h = 3 / 6 and 3 left; bucket 9: all
    // three censored, no hazard; then nobody is left.
    let (mut done, mut cens) = (Histogram::new(), Histogram::new());
    done.add_to_bucket(3, 2).unwrap();
    cens.add_to_bucket(3, 2).unwrap();
    done.add_to_bucket(5, 3).unwrap();
    cens.add_to_bucket(9, 3).unwrap();
    let curve = SurvivalCurve::estimate(&done, &cens);

    assert_eq!(curve.known_buckets(), 10);
    let steps: Vec<Step> = curve.steps().collect();
    assert_eq!(
        [steps[3].at_risk, steps[4].at_risk, steps[5].at_risk],
        [10.0, 6.0, 6.0]
    );
    assert_eq!(steps[9].at_risk, 3.0);
    assert!((steps[3].hazard - 2.0 / 9.0).abs() < 1e-12);
    assert!((steps[5].hazard - 0.5).abs() < 1e-12);
    assert!((steps[9].survival - 7.0 / 18.0).abs() < 1e-12);
    assert!((steps[9].cumulative_hazard - (2.0 / 9.0 + 0.5)).abs() < 1e-12);
    assert_eq!(steps[3].upper_edge_us, upper_edge_us(3));

    // Known up to there and no further: 0.39 are still alive when sight is lost.
    assert!((curve.survival_at(edge(9)).unwrap() - 7.0 / 18.0).abs() < 1e-12);
    assert_eq!(curve.survival_at(edge(10)), None);
    assert!(curve.quantile(0.61).is_some());
    assert_eq!(curve.quantile(0.62), None);
    assert_eq!(curve.known_until(), Some(point_in(9, 1.0)));
}

#[test]
fn a_curve_that_reached_zero_stays_there() {
    let curve = SurvivalCurve::estimate(&of([ms(5), ms(9)]), &Histogram::new());
    assert_eq!(curve.survival_at(ms(100)), Some(0.0));
    assert_eq!(curve.survival_at(Duration::MAX), Some(0.0));
    assert_eq!(curve.survival_at(Duration::ZERO), Some(1.0));
}

#[test]
fn all_censored_has_survivors_and_no_quantile() {
    let curve = SurvivalCurve::estimate(&Histogram::new(), &of([ms(5), ms(9)]));
    assert_eq!(curve.survival_at(ms(8)), Some(1.0));
    assert_eq!(curve.survival_at(ms(20)), None);
    for q in [0.0, 0.5, 1.0, 95.0, f64::NAN] {
        assert_eq!(curve.quantile(q), None, "{q}");
    }
}

#[test]
fn c04_extremes_neither_panic_nor_get_lost() {
    let done = of([Duration::ZERO, Duration::MAX]);
    let curve = SurvivalCurve::estimate(&done, &of([Duration::from_hours(1)]));
    assert_eq!(curve.known_buckets(), BUCKETS);
    assert_eq!(curve.at_risk(0), 3.0);
    assert!(curve.survival_at(Duration::MAX).is_some());
    assert_eq!(curve.hazard(BUCKETS), None);
}

#[test]
fn dropping_the_cancelled_underestimates_and_the_curve_does_not() {
    let (mut done, mut cens, mut truth) = (Histogram::new(), Histogram::new(), Histogram::new());
    let d = ms(80);
    for i in 0..100_000 {
        let primary = stalling(1, i, 0.05);
        let hedged_at = d + stalling(2, i, 0.05);
        truth.record(primary);
        // One in ten of the hedged is let finish.
        if primary <= hedged_at || i % 10 == 0 {
            done.record(primary);
        } else {
            cens.record(hedged_at);
        }
    }
    let curve = SurvivalCurve::estimate(&done, &cens);
    let off = |read: Duration, q: f64| {
        read.as_secs_f64() / truth.quantile(q).unwrap().as_secs_f64() - 1.0
    };
    assert!(off(curve.quantile(0.95).unwrap(), 0.95).abs() < 0.01);
    assert!(off(curve.quantile(0.99).unwrap(), 0.99).abs() < 0.15);
    assert!(
        off(done.quantile(0.99).unwrap(), 0.99) < -0.25,
        "the naive p99 is far too low"
    );
    let crossed = curve.survival_at(d).unwrap();
    // Not to the last digit: hedges that win within d's own bucket censor in it.
    let off = crossed / truth.share_above(d).unwrap() - 1.0;
    assert!(off.abs() < 0.002, "{off}");
}

#[test]
fn weights_in_proportion_give_the_same_curve() {
    let (done, cens) = (of((1..500).map(ms)), of((200..400).map(ms)));
    let exact = SurvivalCurve::estimate(&done, &cens);
    let (mut part_done, mut part_cens) = (WeightedHistogram::new(), WeightedHistogram::new());
    part_done.add(&done, 0.3);
    part_cens.add(&cens, 0.3);
    let weighted = SurvivalCurve::estimate(&part_done, &part_cens);
    assert_eq!(exact.known_buckets(), weighted.known_buckets());
    for (a, b) in exact.steps().zip(weighted.steps()) {
        assert!((a.survival - b.survival).abs() < 1e-9);
        assert!((a.at_risk * 0.3 - b.at_risk).abs() < 1e-9);
    }
}

/// Hedges with a shared share of stalls: with that share the hedge takes as long as what is left
/// of its primary.
fn hedges(shared: f64) -> LogRank {
    let d = ms(60);
    let (mut done, mut cens) = (Histogram::new(), Histogram::new());
    let (mut hedge_done, mut hedge_cens) = (Histogram::new(), Histogram::new());
    for i in 0..100_000 {
        let primary = stalling(3, i, 0.05);
        if primary <= d {
            done.record(primary);
            continue;
        }
        let hedge = if uniform(9, i) < shared {
            primary + ms(1)
        } else {
            stalling(4, i, 0.05)
        };
        if d + hedge < primary {
            hedge_done.record(hedge);
            cens.record(d + hedge);
        } else {
            done.record(primary);
            hedge_cens.record(primary.saturating_sub(d));
        }
    }
    log_rank(
        &SurvivalCurve::estimate(&done, &cens),
        &hedge_done,
        &hedge_cens,
    )
}

#[test]
fn the_log_rank_test_tells_independent_from_shared_causes() {
    let independent = hedges(0.0);
    let ratio = independent.ratio.unwrap();
    assert!((0.9..1.15).contains(&ratio), "{independent:?}");
    assert!(independent.z.unwrap() > -4.0);

    let shared = hedges(0.9);
    assert!(shared.ratio.unwrap() < 0.3, "{shared:?}");
    assert!(shared.z.unwrap() < -4.0);
    assert!(hedges(0.5).ratio.unwrap() < 0.75);
}

#[test]
fn the_log_rank_formula_by_hand() {
    let mut primaries = Histogram::new();
    primaries.add_to_bucket(3, 50).unwrap();
    primaries.add_to_bucket(4, 44).unwrap();
    primaries.add_to_bucket(8, 6).unwrap(); // fewer than ten at risk: adds nothing
    let curve = SurvivalCurve::estimate(&primaries, &Histogram::new());
    let (mut done, mut cens) = (Histogram::new(), Histogram::new());
    done.add_to_bucket(3, 4).unwrap();
    cens.add_to_bucket(3, 2).unwrap();
    done.add_to_bucket(4, 1).unwrap();
    done.add_to_bucket(8, 3).unwrap();
    let test = log_rank(&curve, &done, &cens);
    let expected = 0.5 * (10.0 - 3.0) + 0.88 * (4.0 - 0.5);
    assert_eq!(test.observed, 5.0);
    assert!((test.expected - expected).abs() < 1e-12);
    assert!((test.ratio.unwrap() - 5.0 / expected).abs() < 1e-12);
    assert!((test.z.unwrap() - (5.0 - expected) / expected.sqrt()).abs() < 1e-12);
}

#[test]
fn without_hedges_the_test_has_no_value() {
    let empty = Histogram::new();
    let curve = SurvivalCurve::estimate(&of((0..100).map(ms)), &empty);
    let test = log_rank(&curve, &empty, &empty);
    assert_eq!((test.z, test.ratio), (None, None));
    let nothing = SurvivalCurve::estimate(&empty, &empty);
    assert_eq!(log_rank(&nothing, &of([ms(1)]), &empty).ratio, None);
}

fn latencies() -> impl Strategy<Value = Vec<Duration>> {
    let latency =
        (22_u32..54, any::<u64>()).prop_map(|(bits, ns)| Duration::from_nanos(ns >> bits));
    prop::collection::vec(latency, 1..200)
}

proptest! {
    #[test]
    fn without_censoring_it_is_the_empirical_curve(
        samples in latencies(),
        q in 0.0..=1.0_f64,
        ns in 0_u64..1 << 42,
    ) {
        let done = of(samples.iter().copied());
        let curve = SurvivalCurve::estimate(&done, &Histogram::new());
        let at = Duration::from_nanos(ns);
        let (a, b) = (curve.survival_at(at).unwrap(), done.share_above(at).unwrap());
        prop_assert!((a - b).abs() < 1e-9, "{a} {b}");
        let (a, b) = (curve.quantile(q).unwrap(), done.quantile(q).unwrap());
        let off = a.as_secs_f64() - b.as_secs_f64();
        prop_assert!(off.abs() <= 2e-9 + 1e-8 * b.as_secs_f64(), "{a:?} {b:?}");
    }

    #[test]
    fn censoring_beyond_d_leaves_it_exact_up_to_d(
        samples in latencies(),
        cut in 0_usize..BUCKETS - 1,
        later in prop::collection::vec(1_u64..1 << 33, 200),
    ) {
        let d = edge(cut);
        let (mut done, mut cens) = (Histogram::new(), Histogram::new());
        for (&latency, &later) in samples.iter().zip(&later) {
            if latency <= d {
                done.record(latency);
            } else {
                cens.record((d + Duration::from_nanos(later)).min(latency));
            }
        }
        let truth = of(samples);
        let curve = SurvivalCurve::estimate(&done, &cens);
        for bucket in 0..=cut {
            let (read, exact) = (curve.survival_at(edge(bucket)), truth.share_above(edge(bucket)));
            let off = read.unwrap() - exact.unwrap();
            // The edge in whole nanoseconds is a little before the real one.
            let width = (upper_edge_us(bucket) - upper_edge_us(bucket.max(1) - 1)) * 1e3;
            prop_assert!(off.abs() <= 1e-9 + 1.0 / width.max(1.0), "{bucket}: {off}");
        }
        prop_assert_eq!(curve.at_risk(0), truth.count() as f64);
    }

    #[test]
    fn it_descends_from_one_and_quantiles_ascend(
        done in latencies(),
        cens in latencies(),
        a in 0.0..=1.0_f64,
        b in 0.0..=1.0_f64,
    ) {
        let curve = SurvivalCurve::estimate(&of(done), &of(cens));
        let mut before = 1.0;
        for step in curve.steps() {
            prop_assert!((0.0..=1.0).contains(&step.hazard));
            prop_assert!((0.0..=before).contains(&step.survival));
            before = step.survival;
        }
        let (low, high) = (curve.quantile(a.min(b)), curve.quantile(a.max(b)));
        prop_assert!(high.is_none() || low <= high);
        if let Some(point) = low {
            let survival = curve.survival_at(point).unwrap();
            prop_assert!(survival <= 1.0 - a.min(b) + 0.05 || point < Duration::from_micros(100));
        }
    }
}
