//! No data, no decision.

use super::setup::{Fate, STALLS, Setup};
use super::world::World;
use crate::view::NoData;
use hedgerow_protocol::directive::{Mode, OffReason};

/// A minute of calls, then none for four.
fn falls_silent(t: f64) -> f64 {
    if t < 60.0 { 1.0 } else { 0.0 }
}

#[test]
fn b42_without_calls_there_is_no_figure_and_the_threshold_is_the_last_good_one() {
    let mut setup = Setup::new(41, |_, _, _, random| Fate::stalling(random, STALLS));
    setup.traffic = falls_silent;
    let world = World::run(setup, 300);
    let last = world.row(60).decision.live.threshold;
    for row in world.between(140, 300) {
        let decision = &row.decision;
        assert_eq!(decision.figures, None);
        assert_eq!(decision.no_data, Some(NoData::NoTraffic));
        assert_eq!(decision.conditions.hedge_rate, None);
        assert_eq!(decision.conditions.demand, None);
        assert_eq!(decision.mode, Mode::On);
        let times = decision.live.threshold.unwrap().get().as_secs_f64()
            / last.unwrap().get().as_secs_f64();
        assert!((0.8..1.25).contains(&times), "{times}");
    }
}

#[test]
fn p16_silence_turns_nothing_on_and_lets_nobody_go() {
    // Failing until the calls end: nothing says that it would not still fail.
    let mut setup = Setup::new(42, |t, replica, _, random| {
        let share = if replica == 3 { 0.2 } else { STALLS };
        let fails = t > 40.0 && random.chance(0.6);
        Fate::stalling(random, share).failing(fails)
    });
    setup.traffic = falls_silent;
    let world = World::run(setup, 300);
    let named = world.row(60).decision.named.clone();
    assert_eq!(named.len(), 1);
    let live = world.row(60).decision.live;
    for row in world.between(60, 300) {
        assert_eq!(
            row.decision.mode,
            Mode::Off(OffReason::Errors),
            "second {}",
            row.second
        );
        assert_eq!(row.decision.named, named, "second {}", row.second);
        assert!(row.decision.live.budget <= live.budget);
        assert!(row.decision.live.cap <= live.cap);
    }
}

#[test]
fn p16_too_few_calls_never_turn_it_on() {
    let mut setup = Setup::new(43, |_, _, _, random| Fate::stalling(random, STALLS));
    setup.calls_per_s = 2.0;
    let world = World::run(setup, 300);
    for row in &world.rows {
        assert_eq!(row.decision.mode, Mode::Observing);
        assert_eq!(row.decision.live.threshold, None);
    }
    assert_eq!(
        world.row(300).decision.words,
        "observing: not enough traffic"
    );
    assert_eq!(world.row(300).decision.no_data, Some(NoData::TooFew));
}

#[test]
fn no_figures_say_why() {
    let silent = |agents, stale, second| {
        let mut setup = Setup::new(44, |_, _, _, random| Fate::stalling(random, STALLS));
        setup.traffic = |_| 0.0;
        setup.agents_seen = (agents, stale);
        World::run(setup, second).row(second).decision.no_data
    };
    assert_eq!(silent(5, 0, 5), Some(NoData::JustStarted));
    assert_eq!(silent(5, 0, 30), Some(NoData::NoTraffic));
    assert_eq!(silent(0, 0, 30), Some(NoData::NoAgents));
    assert_eq!(silent(0, 3, 30), Some(NoData::AgentsStale));
}
