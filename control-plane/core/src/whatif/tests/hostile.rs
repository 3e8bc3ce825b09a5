//! Tiny, huge and senseless samples.

use std::time::Duration;

use hedgerow_protocol::latency::COUNT_MAX;
use hedgerow_protocol::units::Ratio;

use super::{Distribution, Percentile, goal, ms, plan, sample, why_not};
use crate::whatif::{SAMPLE_MAX, SampleError, VALUES_MAX, latency};

#[test]
fn one_value_is_every_percentile_and_no_delay() {
    for count in [1, 1_000_000_000_000] {
        let one = sample(&[(7, count)]);
        assert_eq!(one.curve(Ratio::ZERO, 100), []);
        for percentile in Percentile::SHOWN {
            assert_eq!(one.percentile(percentile), Some(ms(7)));
        }
        let why = why_not(one.best(&goal(Percentile::P99, 0.05)));
        assert!(why.contains("no call lasts longer"), "{why}");
    }
}

#[test]
fn calls_of_no_time_at_all_are_calls() {
    let sample = sample(&[(0, 90), (100, 10)]);
    let row = sample.hedged(ms(0), Ratio::ZERO);
    assert_eq!(
        (row.extra_load, row.at(Percentile::P99)),
        (0.1, Some(ms(0)))
    );
    // At 99.9 % both are slow in one call of a hundred.
    assert_eq!(row.at(Percentile::P99_9), Some(ms(100)));
}

#[test]
fn equal_values_are_added_up_and_counts_of_zero_are_nothing() {
    let parts = sample(&[(20, 3), (10, 40), (15, 0), (20, 7), (10, 50)]);
    assert_eq!(parts, sample(&[(10, 90), (20, 10)]));
    assert_eq!((parts.calls(), parts.values()), (100, 2));
}

#[test]
fn at_the_boundary_one_call_in_a_trillion_decides() {
    let most = 990_000_000_000;
    let exact = sample(&[(10, most), (500, 10_000_000_000)]);
    assert_eq!(exact.percentile(Percentile::P99), Some(ms(10)));
    let one_more = sample(&[(10, most - 1), (500, 10_000_000_001)]);
    assert_eq!(one_more.percentile(Percentile::P99), Some(ms(500)));

    // Hedged: a tenth of a tenth is a hundredth, and one call more is not.
    let exact = sample(&[(10, 900_000_000_000), (500, 100_000_000_000)]);
    let hedged = exact.hedged(ms(10), Ratio::ZERO);
    assert_eq!(hedged.at(Percentile::P99), Some(ms(20)));
    let one_more = sample(&[(10, 899_999_999_999), (500, 100_000_000_001)]);
    let hedged = one_more.hedged(ms(10), Ratio::ZERO);
    assert_eq!(hedged.at(Percentile::P99), Some(ms(500)));
}

#[test]
fn the_most_calls_there_can_be_do_not_overflow() {
    let most = sample(&[(10, COUNT_MAX - 3), (50, 2), (3_600_000, 1)]);
    assert_eq!(most.percentile(Percentile::P99_9), Some(ms(10)));
    let advice = most.best(&goal("p99.9999999".parse().unwrap(), 1e-9));
    assert!(why_not(advice).contains("nothing is gained"));
    let half = sample(&[(10, COUNT_MAX / 2 - 1), (500, COUNT_MAX / 2 + 1)]);
    let plan = plan(half.best(&goal(Percentile::P50, 0.25)));
    assert_eq!((plan.delay, plan.reached), (ms(10), ms(20)));
}

#[test]
fn what_is_no_sample_is_refused_with_what_was_expected() {
    let many = |count: u64| Distribution::of_counts([(ms(1), count), (ms(2), count)]);
    for (refused, expected) in [
        (Distribution::of_counts([]), "expected at least one value"),
        (
            Distribution::of_counts([(ms(1), 0)]),
            "expected at least one value",
        ),
        (many(u64::MAX), "expected at most 281474976710656"),
        (many(COUNT_MAX / 2 + 1), "expected at most 281474976710656"),
        (
            Distribution::of_counts([(SAMPLE_MAX + ms(1), 1)]),
            "86400001 is not a latency: expected milliseconds, a number from 0 to 86400000",
        ),
        (
            Distribution::of_counts((0..=VALUES_MAX as u64).map(|at| (ms(at), 1))),
            "1000001 different values: expected at most 1000000",
        ),
    ] {
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
    for millis in [
        -1.0,
        -1e-9,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        86_400_000.1,
    ] {
        let refused = latency(millis).unwrap_err();
        assert!(matches!(refused, SampleError::Latency(_)));
        assert!(
            refused.to_string().contains("from 0 to 86400000"),
            "{refused}"
        );
    }
}

#[test]
fn milliseconds_are_exact_to_the_nanosecond() {
    for (millis, nanos) in [
        (0.0, 0),
        (-0.0, 0),
        (0.000_001, 1),
        (0.1, 100_000),
        (0.3, 300_000),
        (12.345_678, 12_345_678),
        (86_399_999.999_999, 86_399_999_999_999),
        (86_400_000.0, 86_400_000_000_000),
    ] {
        assert_eq!(latency(millis), Ok(Duration::from_nanos(nanos)));
    }
    // 0.3 - 0.1 is 0.2, also where floats would have it below: a hedge of 0.2 ms is back by then.
    let tenths = [(0.1, 70), (0.2, 20), (0.3, 5), (0.5, 5)];
    let tenths = tenths.map(|(at, n)| (latency(at).unwrap(), n));
    let row = Distribution::of_counts(tenths)
        .unwrap()
        .hedged(latency(0.1).unwrap(), Ratio::ZERO);
    assert_eq!(row.at(Percentile::P99), Some(latency(0.3).unwrap()));
}

#[test]
fn many_values_are_gone_through_and_a_curve_of_them_is_thinned_by_load() {
    // A hundred thousand different values with a long tail.
    let values = 100_000_u64;
    let long = Distribution::of_counts(
        (1..=values).map(|i| (Duration::from_nanos(1_000_000 + 50_000_000_000 / i), 1)),
    )
    .unwrap();
    assert_eq!(long.values(), 100_000);
    let curve = long.curve(Ratio::ZERO, 24);
    assert!(curve.len() > 12 && curve.len() <= 24, "{}", curve.len());
    let loads: Vec<_> = curve.iter().map(|row| row.extra_load).collect();
    assert!(loads.is_sorted_by(|a, b| a > b), "{loads:?}");
    assert_eq!(curve.first().map(|row| row.delay), long.delays().next());
    // The last row is the first of those that gain nothing.
    let alone = Percentile::SHOWN.map(|percentile| long.percentile(percentile));
    let (last, others) = curve.split_last().unwrap();
    assert!(
        last.extra_load <= 0.001 && last.latencies == alone,
        "{last:?}"
    );
    assert!(
        others
            .iter()
            .all(|row| row.extra_load > 0.001 && row.latencies != alone)
    );

    let plan = plan(long.best(&goal(Percentile::P99_9, 0.05)));
    assert!(plan.extra_load <= 0.05 + 1e-12, "{plan:?}");
    // 501 ms without: the hundredth of a hundred thousand is 1 ms + 50 s / 101.
    assert!(plan.reached < ms(100), "{plan:?}");
}
