//! What persons order, and what they read.

use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::policy::{Intent, Policy, PolicyDraft};

use super::setup::{Fate, STALLS, Setup};
use super::world::World;

fn healthy(seed: u64) -> Setup {
    Setup::new(seed, |_, _, _, random| Fate::stalling(random, STALLS))
}

fn with(intent: Intent, policy: &Policy) -> Policy {
    let draft = PolicyDraft {
        intent,
        ..policy.clone().into()
    };
    Policy::try_from(draft).unwrap()
}

#[test]
fn a_persons_off_is_at_once_and_so_is_its_end() {
    let mut setup = healthy(51);
    setup.script = |second, script| match second {
        20 => script.killed_by = Some("ada"),
        22 => script.killed_by = None,
        30 => script.policy = script.policy.as_ref().map(|p| with(Intent::Off, p)),
        32 => script.policy = script.policy.as_ref().map(|p| with(Intent::Observe, p)),
        34 => script.policy = script.policy.as_ref().map(|p| with(Intent::Hedge, p)),
        40 => script.policy = None,
        _ => {}
    };
    let world = World::run(setup, 45);
    let at = |second| {
        (
            world.row(second).decision.mode,
            world.row(second).decision.words.as_str(),
        )
    };
    assert_eq!(
        at(20),
        (Mode::Off(OffReason::KillSwitch), "off: kill switch, by ada")
    );
    assert_eq!(at(22).0, Mode::On);
    assert_eq!(
        at(30),
        (Mode::Off(OffReason::Policy), "off: the policy says off")
    );
    assert_eq!(
        at(32),
        (Mode::Observing, "observing: the policy says observe")
    );
    assert_eq!(at(34).0, Mode::On);
    assert!(
        at(34).1.starts_with("on: hedging calls slower than "),
        "{}",
        at(34).1
    );
    assert_eq!(at(40), (Mode::Observing, "observing: no policy yet"));
    for row in world
        .between(15, 45)
        .iter()
        .filter_map(|row| row.decision.change.as_ref())
    {
        assert!(!row.automatic, "{:?}", row.transition);
    }
    assert_eq!(world.row(21).decision.live.probability.get(), 0.0);
}

#[test]
fn an_automatic_reason_outlives_a_kill_switch() {
    let mut setup = Setup::new(52, |t, _, _, random| {
        let fails = (40.0..70.0).contains(&t) && random.chance(0.6);
        Fate::stalling(random, STALLS).failing(fails)
    });
    setup.script = |second, script| match second {
        50 => script.killed_by = Some("ada"),
        60 => script.killed_by = None,
        _ => {}
    };
    let world = World::run(setup, 100);
    assert_eq!(
        world.row(55).decision.mode,
        Mode::Off(OffReason::KillSwitch)
    );
    assert_eq!(world.row(60).decision.mode, Mode::Off(OffReason::Errors));
    assert_eq!(world.row(100).decision.mode, Mode::On);
}

#[test]
fn b23_a_policy_that_can_do_nothing_says_so() {
    let mut setup = healthy(53);
    setup.replicas = 1;
    let world = World::run(setup, 30);
    assert_eq!(world.row(30).decision.words, "no effect: one replica");
    assert_eq!(
        world.rows.iter().map(|row| row.totals.hedged).sum::<u64>(),
        0
    );

    let mut setup = healthy(54);
    setup.draft.threshold_min_ms = Some(10_000.0);
    let world = World::run(setup, 30);
    assert_eq!(
        world.row(30).decision.words,
        "no effect: threshold above deadline"
    );
}

#[test]
fn the_policys_limits_hold_for_the_threshold() {
    for (min, max, expected) in [(Some(50.0), None, 50.0), (None, Some(12.5), 12.5)] {
        let mut setup = healthy(55);
        setup.draft.threshold_min_ms = min;
        setup.draft.threshold_max_ms = max;
        let world = World::run(setup, 20);
        assert!((world.threshold_ms(20) - expected).abs() < 1e-9);
        assert_eq!(world.seconds_over_budget(), 0);
    }
}

#[test]
fn deciding_twice_on_the_same_changes_nothing() {
    let mut setup = Setup::new(56, |t, _, _, random| {
        let bad = (40.0..70.0).contains(&t);
        Fate::stalling(random, STALLS).times(if bad { 5.0 } else { 1.0 })
    });
    setup.calls_per_s = 200.0;
    setup.twice = true;
    let world = World::run(setup, 110);
    world.one_off_one_on((40, 5), (70, 30));
}
