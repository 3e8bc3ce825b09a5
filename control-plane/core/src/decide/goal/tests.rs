//! The way a search is followed.

use std::time::Duration;

use hedgerow_protocol::units::{Budget, Ratio};

use super::search::for_goal;
use super::*;
use crate::whatif::{Distribution, Goal};

const MS: Duration = Duration::from_millis(1);

fn hedging(delay: Duration, crossed: f64) -> Found {
    Found {
        point: Some(Point {
            delay,
            probability: 0.02 / crossed,
            crossed,
        }),
        no_gain: None,
    }
}

const NOTHING: Found = Found {
    point: None,
    no_gain: Some(NoGain::NothingCrosses),
};

/// Half as many calls cross at ten times the delay: 8 % at 10 ms.
fn crossed(delay: Duration) -> f64 {
    0.08 * (delay.as_secs_f64() / 0.01).powf(-std::f64::consts::LOG10_2)
}

#[test]
fn up_at_once_and_down_by_three_tenths_of_the_log_step_at_the_same_load() {
    let mut track = Track::default();
    track.take(hedging(10 * MS, 0.08), ENDS, crossed);
    track.take(hedging(1000 * MS, 0.04), ENDS, crossed);
    let up = track.point.unwrap();
    assert_eq!(up.delay, 1000 * MS);
    // From 1000 to 10 ms: 0.7 of the two decades are left, then 0.49.
    for left in [1.4, 0.98, 0.686] {
        track.take(hedging(10 * MS, 0.08), ENDS, crossed);
        let point = track.point.unwrap();
        let decades = (point.delay.as_secs_f64() / 0.01).log10();
        assert!((decades - left).abs() < 1e-6, "{decades} for {left}");
        assert!((point.load() - 0.02).abs() < 1e-9, "{point:?}");
    }
}

#[test]
fn what_is_shared_takes_the_gain_and_leaves_a_fifth_of_the_hedges_to_see_it_end() {
    // 8 % stalls; p95 is one unless three eighths of them are rescued, and half can be hedged.
    let calls = [(10, 92), (300, 8)].map(|(ms, calls)| (ms * MS, calls));
    let latencies = Distribution::of_counts(calls).unwrap();
    let goal = Goal::new(Percentile::P95, Budget::new(0.04).unwrap());
    let search = |shared| for_goal(&latencies, &goal, Ratio::clamped(shared)).unwrap();
    let alone = search(0.0);
    assert_eq!(alone.no_gain, None);
    let full = alone.point.unwrap();
    assert!(search(0.1).no_gain.is_none());
    let shared = search(0.3);
    assert!(
        matches!(shared.no_gain, Some(NoGain::Shared { unhedged, .. }) if unhedged == 300 * MS),
        "{shared:?}"
    );
    let little = shared.point.unwrap();
    assert_eq!(little.delay, full.delay);
    assert!((little.probability / full.probability - 0.2).abs() < 1e-9);
}

#[test]
fn a_window_or_two_without_a_gain_end_nothing_and_one_with_a_gain_begins_nothing() {
    let mut track = Track::default();
    let mut hedges = Vec::new();
    let windows = [(1, true), (9, false), (1, true), (11, false), (4, true)];
    for (ticks, gain) in windows {
        for _ in 0..ticks {
            let found = if gain {
                hedging(10 * MS, 0.08)
            } else {
                NOTHING
            };
            track.take(found, ENDS, crossed);
            hedges.push(track.point.is_some());
        }
    }
    // Nine without a gain in a row, then ten; two with one, then three.
    let expected: Vec<_> = (0..26).map(|tick| !(20..24).contains(&tick)).collect();
    assert_eq!(hedges, expected);
}
