//! A switchback from its order to its line in the record.

use std::time::Duration;

use hedgerow_core::effect::{Done, OrderError};
use hedgerow_core::event::{ConnectionId, Event, Order};
use hedgerow_core::view::SwitchbackView;
use hedgerow_protocol::directive::Mode;

use crate::traffic::{Traffic, histogram};
use crate::world::{World, policy_with, roll_out, route, set};

/// A dependency and what hedging does to it.
#[derive(Debug, Clone, Copy)]
struct Service {
    /// What the slow tenth takes, in milliseconds: without hedging; hedged; held out beside that.
    without: u64,
    treated: u64,
    held_out: u64,
}

/// Its queues are long: five hedges for a hundred calls make everybody wait, and those that are not
/// hedged wait longest.
const LOADED: Service = Service {
    without: 97,
    treated: 274,
    held_out: 312,
};
const ROOMY: Service = Service {
    without: 300,
    treated: 100,
    held_out: 300,
};
/// Hedging changes nothing.
const SAME: Service = Service {
    without: 100,
    treated: 100,
    held_out: 100,
};

impl Service {
    /// A second of every agent's calls: hedged where it may hedge. Figures differ by up to a tenth
    /// from second to second, by the same in either arm.
    fn second(self, world: &mut World) {
        world.now = world.now.plus(Duration::from_secs(1));
        let second = world.now.as_millis() / 1_000;
        let vary = |ms: u64| ms * (95 + second * 7 % 11) / 100;
        let connections: Vec<_> = world.agents.keys().copied().collect();
        for connection in connections {
            let report = self.report(world, connection, &vary);
            world.event(report);
        }
        world.tick();
    }

    fn report(
        self,
        world: &mut World,
        connection: ConnectionId,
        vary: &dyn Fn(u64) -> u64,
    ) -> Event {
        let wall_clock = world.now.as_millis();
        let agent = world.agents.get_mut(&connection).unwrap();
        let hedges = agent.may_hedge(&route());
        let traffic = Traffic {
            hedged: if hedges { 0.05 } else { 0.0 },
            ..Traffic::HEALTHY
        };
        let (calls, held_out, slow) = (traffic.calls, 20, traffic.calls / 10);
        let mut report = agent.report(&[(route(), traffic)], wall_clock);
        let totals = agent.totals.get_mut(&route()).unwrap();
        totals.treated_finished -= held_out;
        totals.holdout_finished += held_out;
        let (treated_ms, held_out_ms) = if hedges {
            (self.treated, self.held_out)
        } else {
            (self.without, self.without)
        };
        let part = &mut report.routes[0];
        part.totals = *totals;
        part.treated = histogram(&[(10, calls - held_out - slow), (vary(treated_ms), slow)]);
        part.holdout = histogram(&[(10, held_out - 2), (vary(held_out_ms), 2)]);
        Event::Reported {
            connection,
            report: Box::new(report),
            held_hash: agent.hash(),
        }
    }

    fn seconds(self, world: &mut World, seconds: u64) {
        for _ in 0..seconds {
            self.second(world);
        }
    }
}

fn start(rounds: u32) -> Order {
    Order::StartSwitchback {
        route: route(),
        rounds,
    }
}

fn stop() -> Order {
    Order::StopSwitchback { route: route() }
}

/// Three agents that hedge, and a switchback that has run for some seconds.
fn running(service: Service, rounds: u32, seconds: u64) -> World {
    let mut world = World::hedging();
    service.seconds(&mut world, 60);
    assert_eq!(world.ordered(start(rounds)), Ok(Done::Route));
    service.seconds(&mut world, seconds);
    world
}

fn seen(world: &World) -> SwitchbackView {
    (*world.view(&route()).switchback.unwrap()).clone()
}

/// Lines of the record about switchbacks: action, after, reason.
fn recorded(world: &World) -> Vec<(String, String, String)> {
    let rows = world.store.audit.iter();
    rows.filter(|row| row.action.starts_with("switchback."))
        .map(|row| (row.action.clone(), row.after.clone(), row.reason.clone()))
        .collect()
}

#[test]
fn where_hedging_slows_everybody_the_holdout_says_gain_and_the_switchback_loss() {
    let world = running(LOADED, 10, 601);
    // Side by side, hedged calls are the faster ones.
    let figures = world.view(&route()).figures.unwrap();
    assert!(figures.treated_p99.unwrap() < figures.holdout_p99.unwrap());

    let view = seen(&world);
    assert_eq!(view.ended.as_deref(), Some("all 10 rounds are done"));
    assert_eq!((view.rounds_done, view.hedging), (10, None));
    let result = view.result.unwrap();
    assert_eq!((result.per_round.len(), result.left_out), (10, 0));
    let p99 = result
        .differences
        .iter()
        .find(|it| it.what == "p99")
        .unwrap();
    assert!(
        p99.certain && p99.higher == 10 && p99.low.unwrap() > 150.0,
        "{p99:?}"
    );
    assert!(
        result.words.starts_with("hedging makes p99 ") && result.words.contains(" worse: "),
        "{}",
        result.words
    );
    assert!(
        result.words.contains("worse in 10 of 10 rounds"),
        "{}",
        result.words
    );
    for round in &result.per_round {
        // Nothing of the other half is left in either.
        assert_eq!(round.off.hedge_rate, Some(0.0), "{round:?}");
        assert!(
            (round.on.hedge_rate.unwrap() - 0.05).abs() < 1e-9,
            "{round:?}"
        );
        assert_eq!(round.on.calls, 20 * 3 * 400, "{round:?}");
        assert_eq!(round.on.calls_per_s, round.off.calls_per_s);
    }
    let lines = recorded(&world);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[0].0, "switchback.start");
    assert_eq!(lines[0].2, "a test wants it");
    assert_eq!(lines[1].0, "switchback.end");
    assert!(lines[1].1.starts_with(&result.words), "{lines:?}");
    assert!(lines[1].1.contains(". On: p50 ") && lines[1].1.contains(". Off: p50 "));
}

#[test]
fn a_service_with_room_gains_and_one_without_difference_is_told_so() {
    let result = |service| seen(&running(service, 10, 601)).result.unwrap();
    let gain = result(ROOMY);
    assert!(
        gain.words.starts_with("hedging makes p99 ") && gain.words.contains(" better: "),
        "{}",
        gain.words
    );
    let none = result(SAME);
    assert!(
        none.words
            .starts_with("no difference in p99 that is more than chance: "),
        "{}",
        none.words
    );
    // Three rounds are allowed, and prove nothing.
    let few = seen(&running(ROOMY, 3, 181)).result.unwrap();
    assert!(
        few.words.contains("too few to tell from chance"),
        "{}",
        few.words
    );
    assert!(
        few.differences
            .iter()
            .all(|it| !it.certain && it.low.is_none())
    );
}

#[test]
fn while_it_is_off_nobody_may_hedge_and_nothing_else_changes() {
    let mut world = running(ROOMY, 4, 0);
    let before = world.view(&route());
    for second in 1..=245 {
        ROOMY.second(&mut world);
        // What is told at the end of a second is for the next one.
        let off = second < 240 && second / 30 % 2 == 1;
        for agent in world.agents.values() {
            assert_eq!(agent.may_hedge(&route()), !off, "second {second}");
        }
        let view = world.view(&route());
        assert_eq!(
            (view.mode, view.since, view.stamp),
            (Mode::On, before.since, before.stamp)
        );
        assert_eq!(view.transitions, before.transitions);
        let hedging = (second < 240).then_some(!off);
        assert_eq!(view.switchback.unwrap().hedging, hedging, "second {second}");
        assert_eq!(view.words.contains("switchback"), off, "{}", view.words);
    }
}

#[test]
fn it_ends_early_where_what_it_compares_is_gone() {
    type Disturb = fn(&mut World);
    let cases: [(&str, Disturb, &str); 5] = [
        (
            "kill",
            |world| {
                world.kill(true).unwrap();
            },
            "the mode is off: kill_switch",
        ),
        (
            "policy",
            |world| {
                world
                    .ordered(set(policy_with(|it| it.budget = 0.05)))
                    .unwrap();
            },
            "the policy was changed",
        ),
        (
            "rollout",
            |world| {
                world
                    .ordered(roll_out(policy_with(|it| it.budget = 0.05)))
                    .unwrap();
            },
            "the policy was changed",
        ),
        (
            "stopped",
            |world| {
                world.ordered(stop()).unwrap();
            },
            "stopped by ann",
        ),
        (
            "errors",
            |world| {
                let failing = Traffic {
                    errors: 0.5,
                    ..Traffic::HEALTHY
                };
                world.seconds(6, &[(route(), failing)]);
            },
            "the mode is off: errors",
        ),
    ];
    for (case, disturb, why) in cases {
        // In the off half of the third round.
        let mut world = running(LOADED, 10, 160);
        disturb(&mut world);
        LOADED.seconds(&mut world, 2);
        let view = seen(&world);
        let ended = view
            .ended
            .unwrap_or_else(|| panic!("{case}: still running"));
        assert!(ended.contains(why), "{case}: {ended}");
        assert_eq!(view.result.unwrap().per_round.len(), 2, "{case}");
        let (action, after, reason) = recorded(&world).pop().unwrap();
        assert_eq!(
            (action.as_str(), &reason),
            ("switchback.end", &ended),
            "{case}"
        );
        assert!(after.contains("2 rounds"), "{case}: {after}");
        // It leaves nothing behind: where the mode still hedges, so does everybody.
        let on = world.view(&route()).mode == Mode::On;
        assert_eq!(world.agent(1).may_hedge(&route()), on, "{case}");
    }
}

#[test]
fn a_restart_loses_it_and_the_record_says_so() {
    let mut world = running(LOADED, 10, 100);
    assert!(!world.agent(1).may_hedge(&route()));
    world.restart(Duration::from_secs(2));
    LOADED.seconds(&mut world, 3);
    assert_eq!(world.view(&route()).switchback, None);
    for agent in world.agents.values() {
        assert!(agent.may_hedge(&route()));
    }
    let lines = recorded(&world);
    assert_eq!(lines.len(), 2, "{lines:?}");
    let (action, after, reason) = &lines[1];
    assert_eq!(
        (action.as_str(), after.as_str()),
        ("switchback.end", "lost")
    );
    assert!(reason.contains("started anew"), "{reason}");
    // Said once.
    world.restart(Duration::from_secs(2));
    LOADED.seconds(&mut world, 3);
    assert_eq!(recorded(&world).len(), 2);
}

#[test]
fn what_cannot_be_compared_is_not_begun() {
    let mut world = World::new();
    let unknown = OrderError::UnknownRoute(route());
    assert_eq!(world.ordered(start(10)), Err(unknown.clone()));
    assert_eq!(world.ordered(stop()), Err(unknown));

    let mut world = World::hedging();
    for rounds in [0, 2, 61] {
        let refused = world.ordered(start(rounds)).unwrap_err().to_string();
        assert!(refused.contains("expected 3 to 60"), "{refused}");
    }
    let refused = world.ordered(stop()).unwrap_err().to_string();
    assert_eq!(refused, "no switchback runs on catalog get");
    let request = world.order_because(" ", start(10));
    assert_eq!(world.replies[&request], Err(OrderError::NoReason));
    assert_eq!(world.ordered(start(3)), Ok(Done::Route));
    let refused = world.ordered(start(3)).unwrap_err().to_string();
    assert!(refused.contains("runs on catalog get already"), "{refused}");
    world.ordered(stop()).unwrap();
    world
        .ordered(roll_out(policy_with(|it| it.budget = 0.05)))
        .unwrap();
    let refused = world.ordered(start(3)).unwrap_err().to_string();
    assert!(refused.contains("in force in steps"), "{refused}");
    world.kill(true).unwrap();
    let refused = world.ordered(start(3)).unwrap_err().to_string();
    assert!(refused.contains("expected it to be on"), "{refused}");
}
