//! Slow for a cause that hedges share: off, probed, and on again.

use hedgerow_protocol::directive::{Mode, OffReason};

use super::setup::{Fate, STALLS, Script, Setup};
use super::world::World;
use crate::memory::Memory;
use crate::moment::Moment;

const PROBING: Mode = Mode::Probing(OffReason::SharedSlowdown);

fn all_slower(seed: u64, slower: f64) -> Setup {
    Setup::new(seed, move |t, _, _, random| {
        let bad = (40.0..70.0).contains(&t);
        Fate::stalling(random, STALLS).times(if bad { slower } else { 1.0 })
    })
}

#[test]
fn all_five_times_slower_is_off_within_five_seconds_and_back_within_thirty() {
    for (seed, rate) in [(21, 600.0), (22, 200.0)] {
        let mut setup = all_slower(seed, 5.0);
        setup.calls_per_s = rate;
        let world = World::run(setup, 130);
        let words = world.one_off_one_on((40, 5), (70, 30));
        assert!(
            words.starts_with("off: shared slowdown (median "),
            "{words}"
        );
        assert!(
            words.ends_with(" times its base; 5 of 5 replicas slow together)"),
            "{words}"
        );
        for row in world.between(40, 130) {
            assert!(row.decision.named.is_empty(), "second {}", row.second);
        }
        // But for probes, nothing is hedged, and what they are sent at has not followed the fault.
        let probes = world.hedge_rate(50, 70);
        assert!(probes > 0.0 && probes < 0.05, "seed {seed}: {probes}");
        let times = world.threshold_ms(65) / world.threshold_ms(39);
        assert!((0.7..1.2).contains(&times), "seed {seed}: {times}");
    }
}

#[test]
fn b12_200_ms_on_every_call_is_off_within_ten_seconds_and_within_the_budget() {
    let mut setup = Setup::new(23, |t, _, _, random| {
        let mut fate = Fate::stalling(random, STALLS);
        fate.ms += if (40.0..70.0).contains(&t) {
            200.0
        } else {
            0.0
        };
        fate
    });
    setup.draft.threshold_min_ms = Some(50.0);
    let world = World::run(setup, 120);
    let words = world.one_off_one_on((40, 10), (70, 40));
    assert!(words.contains("5 of 5 replicas slow together"), "{words}");
}

#[test]
fn nothing_answers_any_more_and_it_is_seen_within_seconds() {
    let world = World::run(all_slower(24, 1e6), 45);
    let offs = world.offs();
    assert!(offs.len() == 1 && offs[0] <= 45, "{:?}", world.changes());
}

#[test]
fn expensive_queries_are_off_within_ten_seconds() {
    for (seed, rate, within) in [(25, 1_000.0, 10), (26, 100.0, 25)] {
        let mut setup = Setup::new(seed, |_, _, expensive, random| {
            if expensive {
                Fate {
                    ms: 300.0 * random.lognormal(0.2),
                    fails: false,
                }
            } else {
                Fate::stalling(random, STALLS)
            }
        });
        setup.calls_per_s = rate;
        setup.expensive = |t| {
            if (40.0..100.0).contains(&t) {
                0.03
            } else {
                0.0
            }
        };
        let world = World::run(setup, 180);
        let words = world.one_off_one_on((40, within), (100, 60));
        assert!(
            words.starts_with("off: shared slowdown (hedges answer 0."),
            "{words}"
        );
        let evidence = &world.row(90).decision.evidence;
        assert_eq!(evidence[0].what, "hedges answered / expected");
        assert!(evidence[0].value < evidence[0].limit);
    }
}

#[test]
fn b36_agents_that_leave_in_the_middle_of_a_probe_do_not_hold_it_up() {
    let mut setup = all_slower(27, 5.0);
    setup.calls_per_s = 200.0;
    // All calls end, and with them every probe under way, just when things are well again.
    setup.traffic = |t| if (72.0..150.0).contains(&t) { 0.0 } else { 1.0 };
    let world = World::run(setup, 220);
    assert!(
        world
            .between(73, 150)
            .iter()
            .all(|row| row.decision.mode == PROBING)
    );
    let deadlines: std::collections::BTreeSet<_> = world
        .between(50, 150)
        .iter()
        .map(|row| row.decision.tries_again)
        .collect();
    assert!(
        deadlines.len() >= 2,
        "a probe that gets no answer starts anew: {deadlines:?}"
    );
    world.one_off_one_on((40, 5), (150, 60));
}

#[test]
fn b37_a_dependency_with_few_calls_comes_to_a_verdict() {
    let mut setup = Setup::new(28, |_, _, expensive, random| {
        Fate::stalling(random, STALLS).times(if expensive { 20.0 } else { 1.0 })
    });
    setup.calls_per_s = 20.0;
    setup.expensive = |t| {
        if (100.0..260.0).contains(&t) {
            0.06
        } else {
            0.0
        }
    };
    let world = World::run(setup, 700);
    let offs = world.offs();
    assert!(offs.len() == 1 && offs[0] <= 160, "{:?}", world.changes());
    assert_eq!(
        world.row(700).decision.mode,
        Mode::On,
        "{:?}",
        world.changes()
    );
}

#[test]
fn a_new_speed_that_lasts_becomes_the_base_and_a_persons_word_does_it_at_once() {
    let lasting = |seed| {
        let mut setup = Setup::new(seed, |t, _, _, random| {
            Fate::stalling(random, STALLS).times(if t > 40.0 { 4.0 } else { 1.0 })
        });
        setup.calls_per_s = 100.0;
        setup
    };
    let world = World::run(lasting(29), 430);
    world.one_off_one_on((40, 10), (340, 80));

    let mut setup = lasting(30);
    setup.script = |second, script| {
        if second == 80 {
            script.order = Some(Memory::accept_base);
        }
    };
    let world = World::run(setup, 140);
    world.one_off_one_on((40, 10), (80, 50));
}

#[test]
fn p02_what_was_off_stays_off_over_a_restart_until_it_is_found_well() {
    let scripts: [fn(u64, &mut Script); 2] = [
        |second, script| script.restart = second == 60,
        |second, script| (script.restart, script.base_lost) = (second == 60, true),
    ];
    for script in scripts {
        let mut setup = all_slower(31, 5.0);
        setup.script = script;
        let world = World::run(setup, 150);
        for row in world.between(60, 75) {
            assert_eq!(row.decision.mode, PROBING, "second {}", row.second);
        }
        assert_eq!(
            world.row(150).decision.mode,
            Mode::On,
            "{:?}",
            world.changes()
        );
    }
}

#[test]
fn a_fault_that_begins_just_before_a_restart_is_seen_by_the_base_of_before() {
    let mut setup = all_slower(33, 5.0);
    setup.script = |second, script| script.restart = second == 41;
    let world = World::run(setup, 130);
    let words = world.one_off_one_on((40, 10), (70, 30));
    assert!(
        words.starts_with("off: shared slowdown (median "),
        "{words}"
    );
}

#[test]
fn p18_an_off_that_was_stored_by_a_clock_since_set_back_ends_like_any_other() {
    let (now, ahead) = (
        Moment::from_millis(1_000_000),
        Moment::from_millis(9_000_000),
    );
    let memory = Memory::restore(PROBING, ahead, now);
    assert_eq!(memory.since(), now);
}

#[test]
fn one_fault_after_the_other_is_one_off_and_one_on_for_each() {
    let mut setup = Setup::new(32, |t, replica, _, random| {
        let (slow, all_slow) = ((30.0..60.0).contains(&t), (60.0..80.0).contains(&t));
        let failing = (110.0..125.0).contains(&t);
        let stalls = if slow && replica == 3 { 0.2 } else { STALLS };
        let fails = failing && random.chance(0.6);
        Fate::stalling(random, stalls)
            .times(if all_slow { 5.0 } else { 1.0 })
            .failing(fails)
    });
    setup.draft.holdout = 0.1;
    let world = World::run(setup, 160);
    let changes = world.changes();
    let expected = [
        (0, 5, Mode::On),
        (60, 10, PROBING),
        (80, 30, Mode::On),
        (110, 5, Mode::Off(OffReason::Errors)),
        (125, 20, Mode::On),
    ];
    assert_eq!(changes.len(), expected.len(), "{changes:?}");
    for ((second, mode, _), (from, within, wanted)) in changes.iter().zip(expected) {
        assert_eq!(*mode, wanted, "{changes:?}");
        assert!(*second > from && *second <= from + within, "{changes:?}");
    }
    assert_eq!(world.seconds_over_budget(), 0);
    assert!(world.row(55).decision.named.len() == 1);
    assert!(world.row(160).decision.named.is_empty());
}
