//! When to hedge for a goal, and when not.

use hedgerow_protocol::units::{Quantile, Ratio};

use super::{Percentile, goal, lab, ms, plan, ratio, sample, why_not};
use crate::whatif::Leave;

#[test]
fn stalls_commoner_than_any_percentile_rule_allows_for_are_cut_all_the_same() {
    // 8 % stall, 5 % may be hedged: no threshold with q = 1 helps p95, a draw among the crossed does.
    let stalls = sample(&[(20, 92), (320, 8)]);
    let plan = plan(stalls.best(&goal(Percentile::P95, 0.05)));
    assert_eq!((plan.delay, plan.reached), (ms(20), ms(40)));
    assert!(
        plan.probability < 1.0 && plan.extra_load <= 0.05,
        "{plan:?}"
    );
}

#[test]
fn under_a_gain_of_five_percent_there_is_no_hedging_and_the_reason_is_said() {
    // Whoever crosses 95 ms is back at 95 + 1 = 96 ms at best, of 100: 4 %. A millisecond earlier
    // it is 5 %.
    let four = sample(&[(1, 98), (95, 1), (100, 1)]);
    let late = ms(95)..=ms(1000);
    let why = why_not(four.best(&goal(Percentile::P99_9, 0.25).with_delays(late)));
    assert_eq!(
        why,
        "p99.9 would be 96ms for 100ms at best: a gain under 5 % is not worth the load"
    );
    let five = sample(&[(1, 98), (94, 1), (100, 1)]);
    let late = ms(94)..=ms(1000);
    let plan = plan(five.best(&goal(Percentile::P99_9, 0.25).with_delays(late)));
    assert_eq!(plan.reached, ms(95));
}

#[test]
fn what_cannot_gain_says_so() {
    let lab = lab::lab();
    let shared = goal(Percentile::P99, 0.05).with_shared(Ratio::ONE);
    assert_eq!(
        why_not(lab.best(&shared)),
        "p99 would stay at 120ms: nothing is gained"
    );
    let beyond = goal(Percentile::P99, 0.05).with_delays(ms(300)..=ms(400));
    assert_eq!(
        lab.best(&beyond),
        super::Advice::Leave(Leave::NothingCrosses)
    );
}

#[test]
fn what_is_shared_takes_part_of_the_gain() {
    let lab = lab::lab();
    let apart = plan(lab.best(&goal(Percentile::P99, 0.05)));
    let close = plan(lab.best(&goal(Percentile::P99, 0.05).with_shared(ratio(0.2))));
    // 0.05 (1 - 0.8 F(t - 30)) <= 0.01 would need F = 1; 0.02 (1 - 0.8 q F(20)) is reached at 50.
    assert_eq!((apart.reached, close.reached), (ms(45), ms(50)));
    assert_eq!(close.delay, ms(30));
    assert!((close.probability - 0.5 / (0.8 * 0.9)).abs() < 1e-12);
}

#[test]
fn only_allowed_delays_are_chosen() {
    let lab = lab::lab();
    let goal = goal(Percentile::P99, 0.10);
    assert_eq!(plan(lab.best(&goal)).delay, ms(20));
    let late = goal.clone().with_delays(ms(30)..=ms(100));
    assert_eq!(plan(lab.best(&late)).delay, ms(30));
    // Between two values as few cross as from the lower one on: 5 % from 30 ms to 35.
    let pinned = plan(lab.best(&goal.clone().with_delays(ms(32)..=ms(32))));
    assert_eq!(pinned.delay, ms(32));
    assert!((pinned.extra_load - 0.05).abs() < 1e-9, "{pinned:?}");
    // An agent accepts none under 100 us.
    let fast = crate::whatif::Distribution::of_counts([
        (std::time::Duration::from_micros(50), 99),
        (std::time::Duration::from_micros(99), 1),
    ]);
    let why = why_not(fast.unwrap().best(&goal));
    assert_eq!(why, "no call lasts longer than a delay that is allowed");
}

#[test]
fn percentiles_are_read_as_people_write_them() {
    for (text, quantile) in [
        ("p50", 0.5),
        ("p99", 0.99),
        ("p99.9", 0.999),
        ("p99.99", 0.9999),
    ] {
        let percentile: Percentile = text.parse().unwrap();
        assert_eq!(percentile, Quantile::new(quantile).unwrap().into());
        assert_eq!(percentile.to_string(), text);
    }
    for wrong in [
        "", "p", "99", "p0", "p100", "p-1", "pnan", "p0.99.9", "P99", "p1e-30",
    ] {
        let refused = wrong.parse::<Percentile>().unwrap_err().to_string();
        assert!(refused.contains("expected p and a number"), "{refused}");
    }
}
