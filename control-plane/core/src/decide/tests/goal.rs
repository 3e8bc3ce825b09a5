//! A percentile brought down under a budget.

use hedgerow_protocol::directive::Mode;

use super::agent::name;
use super::setup::{Fate, Random, STALLS, Setup};
use super::world::World;
use crate::view::{Named, NoGain};

/// Five minutes at a budget of 5 %, nobody held out.
fn setup(
    seed: u64,
    goal: Option<f64>,
    service: impl Fn(f64, usize, bool, &mut Random) -> Fate + 'static,
) -> Setup {
    let mut setup = Setup::new(seed, service);
    setup.draft.goal = goal;
    setup.draft.budget = 0.05;
    setup.draft.holdout = 0.0;
    setup
}

/// What callers waited at a percentile once settled, in milliseconds.
fn waited_ms(world: &World, quantile: f64) -> f64 {
    let waited = world.waited(60, 300).quantile(quantile).unwrap();
    waited.as_secs_f64() * 1e3
}

#[test]
fn stalls_commoner_than_the_target_are_brought_down_by_a_goal_and_not_by_a_percentile() {
    for seed in 51..54 {
        let stalling = |_, _, _, random: &mut Random| Fate::stalling(random, 0.08);
        let percentile = World::run(setup(seed, None, stalling), 300);
        assert!(waited_ms(&percentile, 0.95) > 290.0, "seed {seed}");

        let goal = World::run(setup(seed, Some(0.95), stalling), 300);
        let p95 = waited_ms(&goal, 0.95);
        assert!(p95 < 80.0, "seed {seed}: {p95} ms");
        // No more hedges than the percentile's, and where they help.
        let load = goal.hedge_rate(60, 300);
        assert!((0.03..0.05).contains(&load), "seed {seed}: {load}");
        assert_eq!(goal.seconds_over_budget(), 0, "seed {seed}");
        assert!(goal.offs().is_empty(), "seed {seed}: {:?}", goal.changes());

        let decision = &goal.row(300).decision;
        let figures = decision.figures.unwrap();
        assert!((0.03..=0.05 + 1e-9).contains(&figures.target));
        // More calls cross than may be hedged, by design: demand is what would be.
        let demand = figures.demand.unwrap();
        assert!(demand < 0.07, "seed {seed}: {demand}");
        assert!(decision.live.probability.get() < 0.8);
        assert!(
            decision.words.contains(" % of calls slower than "),
            "{}",
            decision.words
        );
    }
}

#[test]
fn a_goal_beyond_what_the_budget_can_rescue_is_not_hedged_for() {
    // Of 8 % stalls a budget of 5 % leaves 3 %: p99 is a stall either way.
    let world = World::run(
        setup(55, Some(0.99), |_, _, _, random| {
            Fate::stalling(random, 0.08)
        }),
        120,
    );
    let decision = &world.row(120).decision;
    let Some(NoGain::Small { unhedged, .. }) = decision.no_gain else {
        panic!("{:?}", decision.no_gain);
    };
    assert!(unhedged.as_millis() > 290, "{unhedged:?}");
    assert_eq!(world.hedge_rate(30, 120), 0.0);
}

#[test]
fn where_nothing_is_gained_it_is_on_hedges_nothing_and_says_so() {
    // Hardly a tail: a hedge is never back before the call.
    let world = World::run(
        setup(56, Some(0.99), |_, _, _, random| Fate {
            ms: 10.0 * random.lognormal(0.03),
            fails: false,
        }),
        120,
    );
    for row in world.between(10, 120) {
        let decision = &row.decision;
        assert_eq!(decision.mode, Mode::On, "second {}", row.second);
        assert_eq!(
            decision.live.probability.get(),
            0.0,
            "second {}",
            row.second
        );
        assert!(
            decision.words.starts_with("no gain: p99 would stay at 10."),
            "{}",
            decision.words
        );
        assert!(matches!(decision.no_gain, Some(NoGain::Small { .. })));
        assert_eq!(decision.figures.unwrap().target, 0.0);
    }
    assert_eq!(world.hedge_rate(10, 120), 0.0);
}

#[test]
fn p99_is_as_low_as_with_a_percentile_that_can_help_and_costs_no_more() {
    let service = |_, _, _, random: &mut Random| Fate::stalling(random, STALLS);
    let percentile = World::run(setup(57, None, service), 300);
    let goal = World::run(setup(57, Some(0.99), service), 300);
    let (before, now) = (waited_ms(&percentile, 0.99), waited_ms(&goal, 0.99));
    assert!(now < 1.1 * before, "{now} for {before} ms");
    let (before, now) = (percentile.hedge_rate(60, 300), goal.hedge_rate(60, 300));
    assert!(now < before, "{now} for {before}");
}

#[test]
fn stalls_that_are_partly_shared_are_hedged_less_and_the_budget_is_not_cut_as_well() {
    let world = |shared: bool| {
        let mut setup = setup(58, Some(0.95), move |_, _, expensive, random| {
            let own = if shared { 0.056 } else { 0.08 };
            Fate::stalling(random, if expensive { 1.0 } else { own })
        });
        if shared {
            setup.expensive = |_| 0.024;
        }
        setup.draft.budget = 0.04;
        World::run(setup, 100)
    };
    let (own, shared) = (world(false), world(true));
    assert!(shared.offs().is_empty(), "{:?}", shared.changes());
    let said = |world: &World| {
        let rows = world.between(40, 100).iter();
        rows.filter(|row| matches!(row.decision.no_gain, Some(NoGain::Shared { .. })))
            .count()
    };
    assert!(said(&own) == 0 && said(&shared) > 20);
    let (less, more) = (shared.hedge_rate(40, 100), own.hedge_rate(40, 100));
    assert!(less < 0.75 * more, "{less} for {more}");
    for row in shared.between(40, 100) {
        assert!((row.decision.live.budget.get() - 0.04).abs() < 1e-9);
    }
}

#[test]
fn a_goals_threshold_follows_up_at_once_and_comes_down_slowly() {
    // Three times slower from 100 s to 200 s.
    let world = World::run(
        setup(59, Some(0.95), |t, _, _, random| {
            let slow = (100.0..200.0).contains(&t);
            Fate::stalling(random, 0.06).times(if slow { 2.2 } else { 1.0 })
        }),
        300,
    );
    assert!(world.offs().is_empty(), "{:?}", world.changes());
    let mean = |from, to| {
        let rows = world.between(from, to);
        rows.iter()
            .map(|row| world.threshold_ms(row.second).ln())
            .sum::<f64>()
            / rows.len() as f64
    };
    let times = (mean(110, 195) - mean(60, 95)).exp();
    assert!((1.6..3.0).contains(&times), "{times}");
    let back = (mean(220, 300) - mean(60, 95)).exp();
    assert!((0.7..1.4).contains(&back), "{back}");
    // Never down by more than 30 % of the step to the least that could be meant.
    for pair in world.rows[60..].windows(2) {
        let ms = |second| world.threshold_ms(second);
        let (before, now) = (ms(pair[0].second), ms(pair[1].second));
        assert!(
            now > before * (10.0 / before).powf(0.31),
            "second {}: {before} to {now} ms",
            pair[1].second
        );
    }
}

#[test]
fn b09_a_slow_replica_is_named_and_the_goals_threshold_stays() {
    let world = World::run(
        setup(60, Some(0.95), |t, replica, _, random| {
            let bad = replica == 1 && t >= 60.0;
            Fate::stalling(random, 0.06).times(if bad { 10.0 } else { 1.0 })
        }),
        150,
    );
    assert!(world.offs().is_empty(), "{:?}", world.changes());
    let before = world.waited(30, 60).quantile(0.5).unwrap();
    for row in world.between(70, 150) {
        let named = &row.decision.named;
        assert_eq!(
            named.get(&name(1)),
            Some(&Named::Slow),
            "second {}",
            row.second
        );
        assert_eq!(named.len(), 1, "second {}: {named:?}", row.second);
        let threshold = row.decision.live.threshold.unwrap().get();
        assert!(
            threshold < 8 * before,
            "second {}: {threshold:?}",
            row.second
        );
    }
}

#[test]
fn b42_without_calls_the_last_good_goal_is_held_and_deciding_twice_changes_nothing() {
    let mut setup = setup(61, Some(0.95), |_, _, _, random| {
        Fate::stalling(random, 0.08)
    });
    setup.twice = true;
    setup.traffic = |t| if t < 60.0 { 1.0 } else { 0.0 };
    let world = World::run(setup, 240);
    let last = world.row(130).decision.live;
    assert!(last.probability.get() > 0.0 && last.threshold.is_some());
    for row in world.between(130, 240) {
        assert_eq!(row.decision.live.threshold, last.threshold);
        assert_eq!(row.decision.live.probability, last.probability);
        assert_eq!(row.decision.mode, Mode::On);
    }
}

#[test]
fn a_goal_set_and_taken_back_is_followed_from_the_next_decision_on() {
    let mut setup = setup(62, None, |_, _, _, random| Fate::stalling(random, 0.08));
    setup.script = |second, script| {
        let with = |goal| {
            let mut draft: hedgerow_protocol::policy::PolicyDraft =
                script.policy.clone().unwrap().into();
            draft.goal = goal;
            draft.try_into().ok()
        };
        match second {
            60 => script.policy = with(Some(0.95)),
            120 => script.policy = with(None),
            _ => {}
        }
    };
    let world = World::run(setup, 180);
    let stalls = |second| world.threshold_ms(second) > 250.0;
    assert!(stalls(59) && !stalls(100) && stalls(125));
    assert_eq!(world.row(125).decision.live.probability.get(), 1.0);
}

#[test]
fn the_policys_limits_hold_for_a_goal() {
    for (min, max) in [(50.0, 50.0), (60.0, 90.0), (5.0, 30.0)] {
        let mut setup = setup(63, Some(0.95), |_, _, _, random| {
            Fate::stalling(random, 0.08)
        });
        setup.draft.threshold_min_ms = Some(min);
        setup.draft.threshold_max_ms = Some(max);
        let world = World::run(setup, 60);
        for second in 20..=60 {
            let threshold = world.threshold_ms(second);
            assert!((min..=max).contains(&threshold), "{threshold}");
        }
        assert!(world.hedge_rate(20, 60) > 0.02, "{min} to {max}");
    }
}
