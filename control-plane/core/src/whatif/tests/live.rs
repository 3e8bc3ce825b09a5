//! From what agents report: histograms and survival curves.

use std::time::Duration;

use hedgerow_protocol::latency::{Histogram, SurvivalCurve};
use hedgerow_protocol::units::Ratio;

use super::{Distribution, Percentile, goal, ms, plan, why_not};
use crate::whatif::SampleError;

/// The lab's calls, a hundred times.
const LAB: [(u64, u64); 8] = [
    (10, 40),
    (12, 25),
    (15, 15),
    (20, 10),
    (30, 5),
    (50, 3),
    (120, 1),
    (300, 1),
];

fn histogram(counts: &[(u64, u64)]) -> Histogram {
    let mut histogram = Histogram::new();
    for &(at, count) in counts {
        for _ in 0..count {
            histogram.record(ms(at));
        }
    }
    histogram
}

/// At or above, and by at most a bucket's width.
#[track_caller]
fn close(found: Option<Duration>, truth: Duration) {
    let ratio = found.unwrap().as_secs_f64() / truth.as_secs_f64();
    assert!((1.0..1.022).contains(&ratio), "{found:?} for {truth:?}");
}

#[test]
fn a_histogram_gives_the_samples_curve_within_a_bucket_above() {
    let sample = super::lab::lab();
    let live = Distribution::of_histogram(&histogram(&LAB)).unwrap();
    assert_eq!(live.calls(), 100);
    let rows = live.curve(Ratio::ZERO, 100);
    let exact = sample.curve(Ratio::ZERO, 100);
    assert_eq!(rows.len(), exact.len());
    for (row, exact) in rows.iter().zip(exact) {
        assert_eq!(row.extra_load, exact.extra_load);
        close(Some(row.delay), exact.delay);
        for percentile in Percentile::SHOWN {
            close(row.at(percentile), exact.at(percentile).unwrap());
        }
    }
}

#[test]
fn a_curve_with_nothing_stopped_is_its_histogram() {
    let done = histogram(&LAB);
    let curve = SurvivalCurve::estimate(&done, &Histogram::new());
    let (one, other) = (
        Distribution::of_curve(&curve).unwrap(),
        Distribution::of_histogram(&done).unwrap(),
    );
    assert_eq!(one.calls(), 100);
    assert_eq!(one.curve(Ratio::ZERO, 100), other.curve(Ratio::ZERO, 100));
    for budget in [0.02, 0.03, 0.04, 0.05, 0.10] {
        let goal = goal(Percentile::P99, budget);
        assert_eq!(plan(one.best(&goal)), plan(other.best(&goal)), "{budget}");
    }
}

#[test]
fn what_was_never_seen_to_end_has_no_value_and_may_still_be_rescued() {
    // Ten of a hundred calls were stopped at 30 ms: how long they take nobody knows.
    let done = histogram(&[(10, 90)]);
    let stopped = histogram(&[(30, 10)]);
    let live = Distribution::of_curve(&SurvivalCurve::estimate(&done, &stopped)).unwrap();
    close(live.percentile(Percentile::P90), ms(10));
    assert_eq!(live.percentile(Percentile::P95), None);
    // A tenth cross; of their hedges one in ten is slow as well, and that is a hundredth.
    let rows = live.curve(Ratio::ZERO, 100);
    assert_eq!(rows.len(), 1);
    close(rows[0].at(Percentile::P95), ms(20));
    assert_eq!(rows[0].at(Percentile::P99_9), None);

    let plan = plan(live.best(&goal(Percentile::P95, 0.10)));
    close(Some(plan.reached), ms(20));
    assert_eq!(plan.unhedged, None);
    let why = why_not(live.best(&goal(Percentile::P99_9, 0.10)));
    assert_eq!(
        why,
        "p99.9 is not known: too many calls were stopped before they answered"
    );
}

#[test]
fn of_nothing_there_is_no_distribution() {
    let none = Histogram::new();
    let curve = SurvivalCurve::estimate(&none, &none);
    assert_eq!(Distribution::of_curve(&curve), Err(SampleError::Empty));
    assert_eq!(Distribution::of_histogram(&none), Err(SampleError::Empty));
}
