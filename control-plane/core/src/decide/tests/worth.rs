//! Hedges that are sent, and win nothing.

use hedgerow_protocol::directive::{Mode, OffReason};

use super::setup::{Fate, STALLS, Setup};
use super::world::World;
use crate::memory::Memory;
use crate::moment::Moment;

const PROBING: Mode = Mode::Probing(OffReason::WinsNothing);
/// When the service of [`useless`] is mended.
const MENDED: f64 = 780.0;

/// Calls of 10 ms; 4.5 % are slow, two thirds of them for a cause of their own that a second copy
/// meets too, and the others by so little that a hedge comes late.
fn useless(seed: u64) -> Setup {
    let mut setup = Setup::new(seed, |t, _, expensive, random| {
        let slow = if t > MENDED { 300.0 } else { 34.0 };
        let ms = if expensive {
            29.7 * random.lognormal(0.04)
        } else if random.chance(0.015) {
            slow * random.lognormal(0.05)
        } else {
            10.0 * random.lognormal(0.3)
        };
        Fate { ms, fails: false }
    });
    setup.calls_per_s = 1_500.0;
    setup.expensive = |t| if t > MENDED { 0.0 } else { 0.03 };
    setup.draft.holdout = 0.02;
    // Probes are five a second, whatever the traffic.
    setup.traffic = |t| if t > MENDED { 0.3 } else { 1.0 };
    setup
}

#[test]
fn two_thirds_shared_and_little_won_is_off_within_twelve_minutes_and_on_again_when_mended() {
    for seed in [81, 82] {
        let world = World::run(useless(seed), 1_020);
        let changes = world.changes();
        assert_eq!(changes.len(), 3, "seed {seed}: {changes:?}");
        let (off, mode, words) = changes[1];
        assert_eq!(mode, PROBING, "seed {seed}: {changes:?}");
        assert!((600..=720).contains(&off), "seed {seed}: {changes:?}");
        assert!(
            words.starts_with("off: wins nothing (hedges answer 0.")
                && words.contains(" ms callers wait "),
            "{words}"
        );
        // The figures: answered, waited, and on how many calls that rests.
        let evidence = &world.row(off + 1).decision.evidence;
        let [answered, waited, expected, held_out] = &evidence[..] else {
            panic!("{evidence:?}");
        };
        assert!(
            (0.3..answered.limit).contains(&answered.value),
            "{answered:?}"
        );
        assert!((waited.limit..1.1).contains(&waited.value), "{waited:?}");
        assert!(expected.value > expected.limit && held_out.value > held_out.limit);
        assert_eq!(waited.window.as_secs(), 600);
        // But for probes nothing is hedged; they show when it is over.
        let probes = world.hedge_rate(off + 5, MENDED as u64);
        assert!(probes > 0.0 && probes < 0.01, "seed {seed}: {probes}");
        let (on, mode, words) = changes[2];
        assert_eq!(mode, Mode::On);
        assert!(
            on > MENDED as u64 && on <= MENDED as u64 + 240,
            "{changes:?}"
        );
        assert!(words.contains("probes answer "), "{words}");
    }
}

#[test]
fn a_useful_service_is_never_off_in_an_hour() {
    let mut setup = Setup::new(84, |_, _, _, random| Fate::stalling(random, STALLS));
    setup.calls_per_s = 100.0;
    setup.draft.holdout = 0.05;
    let world = World::run(setup, 3_600);
    assert!(world.offs().is_empty(), "{:?}", world.changes());
}

#[test]
fn a_third_shared_stays_on_since_the_others_gain() {
    let mut setup = Setup::new(85, |_, _, expensive, random| {
        let stall = expensive || random.chance(STALLS);
        Fate {
            ms: 10.0 * random.lognormal(0.5) + if stall { 300.0 } else { 0.0 },
            fails: false,
        }
    });
    setup.calls_per_s = 1_000.0;
    setup.expensive = |_| STALLS / 2.0;
    let world = World::run(setup, 780);
    assert!(world.offs().is_empty(), "{:?}", world.changes());
    let ratio = world
        .row(700)
        .decision
        .figures
        .unwrap()
        .hedges_answered_ratio;
    assert!(ratio.is_some_and(|ratio| ratio < 0.65), "{ratio:?}");
}

#[test]
fn without_calls_held_out_there_is_no_verdict() {
    let mut setup = useless(86);
    setup.draft.holdout = 0.0;
    setup.calls_per_s = 600.0;
    let world = World::run(setup, 760);
    assert!(
        world.changes().iter().all(|(_, mode, _)| *mode != PROBING),
        "{:?}",
        world.changes()
    );
}

#[test]
fn p02_what_won_nothing_stays_off_over_a_restart_and_ten_minutes_begin_anew() {
    let mut setup = useless(81);
    setup.calls_per_s = 600.0;
    setup.script = |second, script| script.restart = second == 500;
    let world = World::run(setup, 760);
    let changes = world.changes();
    assert!(
        changes.iter().all(|(_, mode, _)| *mode != PROBING),
        "no verdict before ten minutes of its own: {changes:?}"
    );
    let (then, now) = (Moment::from_millis(1_000), Moment::from_millis(60_000));
    let memory = Memory::restore(PROBING, then, now);
    assert_eq!((memory.mode(), memory.since()), (PROBING, then));
}
