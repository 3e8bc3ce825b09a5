//! Nothing is wrong for all: the rate is met and nothing is switched off.

use hedgerow_protocol::directive::Mode;

use super::setup::{Fate, STALLS, Setup};
use super::world::World;

#[test]
fn c07_ten_healthy_minutes_at_the_target_without_an_off() {
    for (seed, rate, least) in [(1, 600.0, 0.045), (2, 600.0, 0.045), (3, 200.0, 0.044)] {
        let mut setup = Setup::new(seed, |_, _, _, random| Fate::stalling(random, STALLS));
        setup.calls_per_s = rate;
        let world = World::run(setup, 600);
        assert!(
            world.offs().is_empty(),
            "seed {seed}: {:?}",
            world.changes()
        );
        let hedged = world.hedge_rate(60, 600);
        assert!((least..0.052).contains(&hedged), "seed {seed}: {hedged}");
        assert_eq!(world.seconds_over_budget(), 0, "seed {seed}");
        assert!(
            world.rows.iter().all(|row| row.decision.named.is_empty()),
            "seed {seed}"
        );
    }
}

#[test]
fn figures_show_what_hedging_buys() {
    let mut setup = Setup::new(10, |_, _, _, random| Fate::stalling(random, STALLS));
    setup.draft.holdout = 0.1;
    let world = World::run(setup, 120);
    let figures = world.row(120).decision.figures.unwrap();
    let (treated, holdout) = (figures.treated_p99.unwrap(), figures.holdout_p99.unwrap());
    assert!(treated * 2 < holdout, "{treated:?} for {holdout:?}");
    // The curve knows the primaries' own tail, although most of it was cancelled.
    let p99 = figures.p99.unwrap().as_millis();
    assert!((250..350).contains(&p99), "{p99} ms");
    let (won, expected) = (
        figures.win_rate.unwrap(),
        figures.win_rate_expected.unwrap(),
    );
    assert!((won - expected).abs() < 0.2, "{won} for {expected}");
    assert!((figures.target - 0.045).abs() < 1e-9);
    assert!(figures.phi.unwrap() < 0.1);
    assert_eq!(figures.success, Some(1.0));
}

#[test]
fn stalls_commoner_than_the_target_are_no_shared_cause() {
    let mut setup = Setup::new(4, |_, _, _, random| Fate::stalling(random, 0.08));
    setup.calls_per_s = 200.0;
    let world = World::run(setup, 300);
    assert!(world.offs().is_empty(), "{:?}", world.changes());
}

#[test]
fn stalls_about_as_many_as_the_target_are_hedged_at_the_near_end_of_the_gap() {
    // Usual answers end at some 40 ms, stalls begin at 300: the exact quantile lies at either end.
    for seed in 11..14 {
        let mut setup = Setup::new(seed, |_, _, _, random| Fate::stalling(random, 0.05));
        setup.draft.holdout = 0.0;
        let world = World::run(setup, 300);
        let near = world
            .between(60, 300)
            .iter()
            .filter(|row| world.threshold_ms(row.second) < 100.0);
        let near = near.count();
        assert!(near > 200, "seed {seed}: {near} of 240 s at the near end");
        let hedged = world.hedge_rate(60, 300);
        assert!((0.045..0.055).contains(&hedged), "seed {seed}: {hedged}");
        assert_eq!(world.seconds_over_budget(), 0, "seed {seed}");
    }
}

#[test]
fn a_lasting_slowdown_of_2_2_times_is_not_everything_slow() {
    for (seed, rate) in [(5, 600.0), (6, 200.0)] {
        let mut setup = Setup::new(seed, |t, _, _, random| {
            Fate::stalling(random, STALLS).times(if t > 60.0 { 2.2 } else { 1.0 })
        });
        setup.calls_per_s = rate;
        let world = World::run(setup, 240);
        assert!(
            world.offs().is_empty(),
            "seed {seed}: {:?}",
            world.changes()
        );
        // The threshold has followed.
        let times = world.threshold_ms(120) / world.threshold_ms(60);
        assert!((1.7..3.0).contains(&times), "seed {seed}: {times}");
        assert_eq!(world.seconds_over_budget(), 0, "seed {seed}");
    }
}

#[test]
fn b34_a_creep_of_2_percent_a_minute_for_an_hour_switches_nothing_off() {
    let mut setup = Setup::new(7, |t, _, _, random| {
        let minutes = ((t - 60.0) / 60.0).max(0.0);
        Fate::stalling(random, STALLS).times(1.02_f64.powf(minutes))
    });
    setup.calls_per_s = 50.0;
    let world = World::run(setup, 3_660);
    assert!(world.offs().is_empty(), "{:?}", world.changes());
    // After an hour it is 3.28 times slower. The base lags half an hour behind: the creep shows.
    let ratio = world
        .row(3_660)
        .decision
        .figures
        .unwrap()
        .median_ratio
        .unwrap();
    assert!((1.3..2.5).contains(&ratio), "{ratio}");
}

#[test]
fn b31_a_replica_without_calls_is_neither_named_nor_compared_with() {
    // The fifth begins to get calls after a minute; its share of them is as good as the others'.
    let mut setup = Setup::new(8, |_, _, _, random| Fate::stalling(random, STALLS));
    setup.replicas_at = |t| if t < 60.0 { 4 } else { 5 };
    let world = World::run(setup, 120);
    assert!(world.rows.iter().all(|row| row.decision.named.is_empty()));
    for row in world.between(10, 120) {
        let threshold = row.decision.live.threshold.unwrap().get().as_millis();
        assert!(
            (18..40).contains(&threshold),
            "second {}: {threshold} ms",
            row.second
        );
    }
}

#[test]
fn b46_no_hedge_before_there_are_enough_calls() {
    let mut setup = Setup::new(9, |_, _, _, random| Fate::stalling(random, 0.5));
    setup.calls_per_s = 20.0;
    let world = World::run(setup, 40);
    let mut started = 0;
    for row in &world.rows {
        assert!(
            row.totals.hedged == 0 || started >= 200,
            "second {}",
            row.second
        );
        started += row.totals.started;
        if started < 200 {
            assert_eq!(row.decision.mode, Mode::Observing);
            assert!(
                row.decision.words.starts_with("observing: "),
                "{}",
                row.decision.words
            );
        }
    }
    assert_eq!(world.row(40).decision.mode, Mode::On);
}
