//! A policy as a point of the curve.

use std::time::Duration;

use hedgerow_protocol::ids::DependencyName;
use hedgerow_protocol::latency::{Histogram, SurvivalCurve};
use hedgerow_protocol::policy::{Intent, Policy, PolicyDraft};
use hedgerow_protocol::units::Ratio;

use super::{ms, ratio};
use crate::whatif::{Latencies, Percentile, Planned};

/// Of a hundred thousand calls 94 % take some 10 ms, the others stall for 200.
fn latencies(phi: Option<f64>) -> Latencies {
    let mut done = Histogram::new();
    (0..94_000).for_each(|i| done.record(Duration::from_micros(8_000 + i / 25)));
    (0..6_000).for_each(|_| done.record(ms(200)));
    Latencies {
        curve: SurvivalCurve::estimate(&done, &Histogram::new()),
        attempts: 100_000,
        window: Duration::from_mins(5),
        phi: phi.map(ratio),
        threshold: Some(ms(12)),
        probability: ratio(0.5),
        hedge_rate: Some(0.03),
    }
}

fn policy(change: impl FnOnce(&mut PolicyDraft)) -> Policy {
    let name = DependencyName::new("catalog").unwrap();
    let mut draft: PolicyDraft = Policy::observing(name.into()).into();
    draft.intent = Intent::Hedge;
    draft.holdout = 0.0;
    draft.percentile = 0.94;
    change(&mut draft);
    Policy::try_from(draft).unwrap()
}

#[track_caller]
fn hedged(known: &Latencies, policy: &Policy) -> (crate::whatif::Hedged, f64) {
    match known.planned(policy, &known.distribution().unwrap()) {
        Planned::Hedges {
            hedged,
            probability,
        } => (hedged, probability),
        other => panic!("{other:?}"),
    }
}

#[test]
fn u05_a_policy_hedges_what_crosses_its_threshold_and_no_more_than_its_budget() {
    let known = latencies(None);
    let (whole, probability) = hedged(&known, &policy(|_| {}));
    assert!(probability > 0.99, "{probability}");
    assert!((whole.extra_load - 0.06).abs() < 0.006, "{whole:?}");
    let p99 = whole.at(Percentile::P99).unwrap();
    assert!(p99 < ms(60), "{p99:?} where 200 ms would be waited");
    let (half, probability) = hedged(&known, &policy(|it| it.budget = 0.03));
    assert!((half.extra_load - 0.03).abs() < 1e-9, "{half:?}");
    assert!(probability < 0.6, "{probability}");
    // Half of six stalls in a hundred are still more than p99 leaves.
    assert!(half.at(Percentile::P99).unwrap() > ms(190));
}

#[test]
fn u05_the_holdout_is_left_alone_and_shared_slowness_costs_budget() {
    let (held, _) = hedged(&latencies(None), &policy(|it| it.holdout = 0.1));
    let (all, _) = hedged(&latencies(None), &policy(|_| {}));
    assert!((held.extra_load / all.extra_load - 0.9).abs() < 1e-6);
    let (shared, _) = hedged(&latencies(Some(0.5)), &policy(|_| {}));
    assert!((shared.extra_load - 0.04).abs() < 1e-9, "{shared:?}");
}

#[test]
fn u05_a_goal_is_the_best_there_is_or_says_that_nothing_is_gained() {
    let known = latencies(None);
    let (best, _) = hedged(&known, &policy(|it| it.goal = Some(0.99)));
    assert!(best.at(Percentile::P99).unwrap() < ms(40), "{best:?}");
    assert!(best.extra_load <= 0.08 + 1e-9);
    let alike = latencies(Some(1.0));
    let none = policy(|it| {
        it.goal = Some(0.99);
        it.threshold_min_ms = Some(250.0);
    });
    let planned = alike.planned(&none, &alike.distribution().unwrap());
    assert_eq!(planned, Planned::NoGain);
}

#[test]
fn u05_a_policy_that_does_not_hedge_has_no_point() {
    let known = latencies(None);
    for intent in [Intent::Off, Intent::Observe] {
        let planned = known.planned(
            &policy(|it| it.intent = intent),
            &known.distribution().unwrap(),
        );
        assert_eq!(planned, Planned::NotWanted);
    }
}

#[test]
fn u05_what_is_done_now_is_a_point_with_its_share_drawn() {
    let known = latencies(None);
    let sample = known.distribution().unwrap();
    let now = known.as_hedged(&sample).unwrap();
    assert!((now.extra_load - sample.crossed(ms(12)) / 2.0).abs() < 1e-9);
    assert_eq!(
        sample.drawn(ms(12), ratio(1.0), Ratio::ZERO),
        sample.hedged(ms(12), Ratio::ZERO)
    );
    let unknown = Latencies {
        threshold: None,
        ..known
    };
    assert_eq!(unknown.as_hedged(&sample), None);
}
