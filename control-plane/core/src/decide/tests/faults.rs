//! One replica, or all of them, slow or failing.

use hedgerow_protocol::directive::{Mode, OffReason};

use super::agent::name;
use super::setup::{Fate, STALLS, Setup};
use super::world::World;
use crate::view::Named;

/// Whether a fault of these tests is on: from 40 s for 40 s.
fn faulty(t: f64) -> bool {
    (40.0..80.0).contains(&t)
}

/// Named within 10 s and nobody else, let go within 20 s of the end, never off, the threshold where
/// it was.
fn assert_contained(world: &World, replica: usize, kind: Named, times: f64) {
    assert!(world.offs().is_empty(), "{:?}", world.changes());
    assert_eq!(world.seconds_over_budget(), 0);
    let before = world.threshold_ms(39);
    for row in world.between(49, 80) {
        let named = &row.decision.named;
        assert_eq!(named.len(), 1, "second {}: {named:?}", row.second);
        assert_eq!(
            named.get(&name(replica)),
            Some(&kind),
            "second {}",
            row.second
        );
        let threshold = row.decision.live.threshold.unwrap().get().as_secs_f64() * 1e3;
        assert!(
            threshold < times * before && threshold > before / times,
            "second {}: {threshold} ms after {before} ms",
            row.second
        );
    }
    for row in world.between(100, 120) {
        assert!(row.decision.named.is_empty(), "second {}", row.second);
    }
}

#[test]
fn b09_one_slow_replica_of_five_is_named_and_the_threshold_stays() {
    for (seed, rate) in [(11, 600.0), (12, 200.0)] {
        let mut setup = Setup::new(seed, |t, replica, _, random| {
            let bad = replica == 1 && faulty(t);
            Fate::stalling(random, if bad { 0.2 } else { STALLS })
        });
        setup.calls_per_s = rate;
        assert_contained(&World::run(setup, 120), 1, Named::Slow, 1.5);
    }
}

#[test]
fn b09_one_of_three_ten_times_slower_neither_ratchets_nor_switches_off() {
    let mut setup = Setup::new(13, |t, replica, _, random| {
        let bad = replica == 0 && faulty(t);
        Fate::stalling(random, STALLS).times(if bad { 10.0 } else { 1.0 })
    });
    setup.replicas = 3;
    assert_contained(&World::run(setup, 120), 0, Named::Slow, 1.5);
}

#[test]
fn b08_one_of_three_dead_is_named_and_the_threshold_stays_within_two_times() {
    for (seed, rate) in [(14, 600.0), (15, 200.0)] {
        let mut setup = Setup::new(seed, |t, replica, _, random| {
            let bad = replica == 2 && faulty(t);
            Fate::stalling(random, STALLS).times(if bad { 1e6 } else { 1.0 })
        });
        setup.calls_per_s = rate;
        setup.replicas = 3;
        setup.draft.probation = true;
        let world = World::run(setup, 120);
        assert_contained(&world, 2, Named::Slow, 2.0);
        assert_eq!(world.row(60).decision.probation, [name(2)]);
        // Agents keep calls away from it: as many answer as before, but for what it still gets.
        let good = |from, to| {
            let rows = world.between(from, to);
            let failed: u64 = rows.iter().map(|row| row.totals.failed).sum();
            let finished: u64 = rows.iter().map(|row| row.totals.finished).sum();
            (finished - failed) as f64
        };
        assert!(good(55, 75) > 0.9 * good(15, 35), "seed {seed}");
    }
}

#[test]
fn one_failing_replica_of_five_is_named_and_left_out_of_the_error_rate() {
    let setup = Setup::new(16, |t, replica, _, random| {
        let bad = replica == 2 && faulty(t);
        let fails = bad && random.chance(0.6);
        Fate::stalling(random, STALLS).failing(fails)
    });
    assert_contained(&World::run(setup, 120), 2, Named::Failing, 1.5);
}

#[test]
fn failing_everywhere_is_off_within_four_seconds_for_errors_and_on_again() {
    for (seed, rate) in [(17, 600.0), (18, 200.0)] {
        let mut setup = Setup::new(seed, |t, _, _, random| {
            let fails = faulty(t) && random.chance(0.6);
            Fate::stalling(random, STALLS).failing(fails)
        });
        setup.calls_per_s = rate;
        let world = World::run(setup, 130);
        let words = world.one_off_one_on((40, 4), (80, 20));
        assert!(words.starts_with("off: error rate "), "{words}");
        assert!(words.ends_with(" % > 5 %"), "{words}");
        let off = world.row(60);
        assert_eq!(off.decision.mode, Mode::Off(OffReason::Errors));
        assert_eq!(off.totals.hedged, 0);
        assert!(off.decision.named.is_empty());
        // As it was before, not what the failures made of the curve.
        let times = world.threshold_ms(100) / world.threshold_ms(39);
        assert!((0.7..1.4).contains(&times), "seed {seed}: {times}");
    }
}

#[test]
fn everything_failing_is_an_error_and_no_shared_slowdown() {
    let setup = Setup::new(19, |t, _, _, random| {
        Fate::stalling(random, STALLS).failing(faulty(t))
    });
    let world = World::run(setup, 130);
    let words = world.one_off_one_on((40, 4), (80, 20));
    assert!(words.starts_with("off: error rate "), "{words}");
}

#[test]
fn p14_a_fault_that_comes_and_goes_is_off_for_good_after_twelve_changes() {
    let mut setup = Setup::new(20, |t, _, _, random| {
        let fails = t > 40.0 && t % 40.0 < 15.0 && random.chance(0.6);
        Fate::stalling(random, STALLS).failing(fails)
    });
    setup.calls_per_s = 100.0;
    setup.script = |second, script| {
        if second == 500 {
            script.order = Some(crate::memory::Memory::release);
        }
    };
    let world = World::run(setup, 560);
    let changes = world.changes();
    let last = changes
        .iter()
        .position(|(_, mode, _)| *mode == Mode::Off(OffReason::TooManyChanges));
    let (second, _, words) = changes[last.unwrap()];
    assert_eq!(last.unwrap(), crate::memory::CHANGES_MAX, "{changes:?}");
    assert!(
        words.contains("12 automatic changes within an hour"),
        "{words}"
    );
    let stays = world.between(second, 499).iter();
    assert!(
        stays
            .into_iter()
            .all(|row| row.decision.mode == Mode::Off(OffReason::TooManyChanges))
    );
    assert_eq!(world.row(499).decision.tries_again, None);
    assert_ne!(
        world.row(500).decision.mode,
        Mode::Off(OffReason::TooManyChanges)
    );
    // Every automatic change says why, in figures.
    for row in world
        .rows
        .iter()
        .filter_map(|row| row.decision.change.as_ref())
    {
        assert!(row.automatic);
        assert!(!row.transition.evidence.is_empty(), "{:?}", row.transition);
    }
    // And no off is shorter than its least stay.
    for pair in changes.windows(2).filter(|pair| pair[0].1 != Mode::On) {
        assert!(pair[1].0 - pair[0].0 >= 10, "{pair:?}");
    }
}
