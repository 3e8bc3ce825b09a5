use super::*;
use crate::naming::{NamedFor, Tally};

const FLOORS: Floors = Floors {
    crossed: 0.025,
    errors: 0.025,
};

fn names(count: usize) -> Vec<ReplicaName> {
    let name = |i| format!("r{i}:1").parse().unwrap();
    (0..count).map(name).collect()
}

/// A route of `N` replicas of which the first ones may be bad, each second of its life.
struct World {
    replicas: Vec<ReplicaName>,
    probation: Probation,
    ledger: Ledger,
    now: Duration,
    only: Option<Vec<ReplicaName>>,
    changes: Vec<(u64, Change)>,
}

impl World {
    fn new(replicas: usize) -> Self {
        Self {
            replicas: names(replicas),
            probation: Probation::default(),
            ledger: Ledger::default(),
            now: Duration::ZERO,
            only: None,
            changes: vec![],
        }
    }

    /// So many seconds of so many calls for each replica, a tenth where it is on probation, of which
    /// `crossed` cross on each.
    fn run(&mut self, seconds: u32, calls: u64, crossed: &[f64]) {
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            let on = self.probation.replicas();
            let second = self.replicas.iter().enumerate().map(|(i, name)| {
                let calls = if on.contains(name) { calls / 10 } else { calls };
                let share = crossed.get(i).copied().unwrap_or(0.05);
                let tally = Tally {
                    started: calls,
                    crossed: (calls as f64 * share).round() as u64,
                    finished: calls,
                    errors: 0,
                };
                (name.clone(), tally)
            });
            self.ledger.push(second.collect());
            let named = self.ledger.look(FLOORS).named();
            let situation = Situation {
                now: self.now,
                floors: FLOORS,
                places: self.replicas.len(),
                known: &self.replicas,
                only: self.only.as_deref(),
            };
            let changes = self.probation.tick(&mut self.ledger, &named, &situation);
            let second = self.now.as_secs();
            self.changes
                .extend(changes.into_iter().map(|change| (second, change)));
            assert!(self.probation.replicas().len() <= self.replicas.len() / 3);
        }
    }

    fn on(&self) -> Vec<String> {
        self.probation
            .replicas()
            .iter()
            .map(ToString::to_string)
            .collect()
    }
}

#[test]
fn a_slow_replica_is_put_on_probation_with_its_reason_and_comes_back_when_it_is_well() {
    let mut world = World::new(3);
    world.run(10, 300, &[]);
    assert!(world.on().is_empty());
    world.run(1, 300, &[0.9]);
    assert_eq!(world.on(), ["r0:1"]);
    let why = world.probation.reasons().next().unwrap();
    assert_eq!((why.why, why.share, why.calls), (NamedFor::Slow, 0.9, 300));
    world.run(120, 300, &[0.9]);
    assert_eq!(
        world.on(),
        ["r0:1"],
        "thirty calls a second are enough to see that it is not well"
    );
    world.run(20, 300, &[]);
    assert!(world.on().is_empty());
    assert_eq!(world.changes.len(), 2, "{:?}", world.changes);
}

#[test]
fn p14_it_stays_ten_seconds_and_half_well_is_not_well() {
    let mut world = World::new(3);
    world.run(1, 3000, &[0.9]);
    world.run(9, 3000, &[]);
    assert_eq!(world.on(), ["r0:1"], "not yet ten seconds");
    world.run(1, 3000, &[]);
    assert!(world.on().is_empty());
    world.run(1, 3000, &[0.9]);
    // Over one and a half times the others, under twice.
    world.run(200, 3000, &[0.09]);
    assert_eq!(world.on(), ["r0:1"]);
}

#[test]
fn a_third_at_most_and_none_of_two() {
    for (replicas, most) in [(1, 0), (2, 0), (3, 1), (5, 1), (6, 2), (9, 3)] {
        let mut world = World::new(replicas);
        world.run(30, 300, &vec![0.9; replicas / 2]);
        assert_eq!(world.on().len(), most, "of {replicas}");
    }
}

#[test]
fn p16_with_too_few_calls_it_stays_and_is_tried_again_ever_later() {
    // Four calls a second for each: on probation none at all.
    let mut world = World::new(3);
    world.run(3600, 4, &[1.0]);
    let puts: Vec<_> = world
        .changes
        .iter()
        .filter(|(_, c)| matches!(c, Change::Put(_)))
        .collect();
    let tried: Vec<_> = world
        .changes
        .iter()
        .filter(|(_, c)| matches!(c, Change::Tried(_)))
        .collect();
    let stays: Vec<_> = puts
        .iter()
        .zip(&tried)
        .map(|((put, _), (tried, _))| tried - put)
        .collect();
    assert_eq!(stays[..5], [60, 120, 240, 480, 600], "{:?}", world.changes);
    assert!(stays[5..].iter().all(|stay| *stay == 600));
    // And a dead one costs a trial of a hundred calls at most.
    for ((tried, _), (put, _)) in tried.iter().zip(&puts[1..]) {
        assert!(put - tried <= 26, "{:?}", world.changes);
    }
    world.run(700, 4, &[]);
    assert!(
        world.on().is_empty(),
        "back within ten minutes of being well"
    );
}

#[test]
fn p14_no_more_than_twelve_times_an_hour() {
    let mut world = World::new(3);
    let mut puts = 0;
    for _ in 0..110 {
        world.run(2, 3000, &[0.9]);
        world.run(28, 3000, &[]);
    }
    for (_, change) in &world.changes {
        puts += u32::from(matches!(change, Change::Put(_)));
    }
    assert_eq!(puts, 12);
    assert_eq!(world.on(), ["r0:1"]);
    world.run(600, 3000, &[]);
    assert!(world.on().is_empty(), "the hour is over");
}

#[test]
fn no_word_about_nobody_and_a_silent_route_changes_nothing_for_a_minute() {
    let mut world = World::new(3);
    world.run(5, 300, &[0.9]);
    let before = world.changes.len();
    world.run(59, 0, &[]);
    assert_eq!(world.changes.len(), before, "silence is no acquittal");
}

#[test]
fn p02_what_a_controller_put_there_is_judged_by_own_figures() {
    let mut world = World::new(6);
    world.run(10, 300, &[]);
    let (now, put) = (world.now, names(2));
    world.probation.adopt(now, &put, &mut world.ledger);
    world.only = Some(put);
    // The first is still slow, the second is well; the third turns slow, which nobody allowed.
    world.run(60, 300, &[0.9, 0.05, 0.9]);
    assert_eq!(world.on(), ["r0:1"]);
    world.run(60, 300, &[]);
    assert!(world.on().is_empty());
}

#[test]
fn what_left_the_list_is_forgotten() {
    let mut world = World::new(4);
    world.run(2, 300, &[0.9]);
    assert_eq!(world.on(), ["r0:1"]);
    world.replicas.remove(0);
    world.run(1, 300, &[]);
    assert!(world.on().is_empty());
    assert!(world.probation.puts.is_empty());
}

/// Once a second, on a thread that serves calls: what is looked at is looked at once, however many
/// are on probation.
#[test]
fn many_on_probation_cost_no_more_than_a_few_looks() {
    let mut world = World::new(200);
    world.run(3, 1000, &[1.0; 60]);
    assert_eq!(world.on().len(), 60);
    let best = |what: &mut dyn FnMut()| {
        let times = (0..3).map(|_| {
            let began = std::time::Instant::now();
            what();
            began.elapsed()
        });
        times.min().unwrap()
    };
    let look = best(&mut || drop(world.ledger.look(FLOORS).named()));
    let situation = Situation {
        now: world.now,
        floors: FLOORS,
        places: world.replicas.len(),
        known: &world.replicas,
        only: None,
    };
    let tick = best(&mut || {
        let changes = world.probation.tick(&mut world.ledger, &[], &situation);
        assert!(changes.is_empty(), "ten seconds are not over");
    });
    assert!(tick < 10 * look, "{tick:?}, where a look takes {look:?}");
}
