//! A policy put in force in steps.

use std::time::Duration;

use hedgerow_core::effect::{Done, OrderError};
use hedgerow_core::event::{ConnectionId, Event, KillScope, Order};
use hedgerow_core::view::{PolicyView, RolloutView};
use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::ids::{DependencyName, Revision, RouteKey};
use hedgerow_protocol::policy::Intent;

use crate::agent::Agent;
use crate::store::Answers;
use crate::traffic::Traffic;
use crate::world::{World, policy_with, roll_out, route, set};

const CALLS: Traffic = Traffic::HEALTHY;
const AGENTS: u64 = 16;

fn catalog() -> DependencyName {
    DependencyName::new("catalog").unwrap()
}

/// Sixteen agents that hedge by revision 1.
fn world() -> World {
    let mut world = World::new();
    for number in 1..=AGENTS {
        world.join(Agent::new(number));
    }
    world
        .ordered(set(policy_with(|it| it.budget = 0.08)))
        .unwrap();
    world.seconds(30, &[(route(), CALLS)]);
    world
}

/// The same, with revision 2 begun for a quarter of them.
fn rolling() -> World {
    let mut world = world();
    begin(&mut world, 0.1);
    world
}

fn begin(world: &mut World, budget: f64) {
    let done = world.ordered(roll_out(policy_with(|it| it.budget = budget)));
    assert!(
        matches!(done, Ok(Done::Policy { changed: true, .. })),
        "{done:?}"
    );
}

fn policy_view(world: &World) -> PolicyView {
    world.snapshot().policies[&catalog()].clone()
}

fn rollout(world: &World) -> Option<RolloutView> {
    policy_view(world).rollout
}

/// Which agents hold a revision.
fn holders(world: &World, revision: u64) -> Vec<u64> {
    let held = |agent: &Agent| agent.held[&route()].stamp.revision == Revision(revision);
    let agents = world.agents.values();
    agents
        .filter(|agent| held(agent))
        .map(|agent| agent.connection.0 % 1_000)
        .collect()
}

/// A second in which agents that hold `revision` do `theirs`, and the others what is usual.
fn second(world: &mut World, revision: u64, theirs: Traffic) {
    world.now = world.now.plus(Duration::from_secs(1));
    let connections: Vec<_> = world.agents.keys().copied().collect();
    for connection in connections {
        let held = world.agents[&connection].held.get(&route());
        let new = held.is_some_and(|it| it.stamp.revision == Revision(revision));
        let traffic = if new { theirs } else { CALLS };
        world.report(connection, &[(route(), traffic)]);
    }
    world.tick();
}

fn actions(world: &World) -> Vec<&str> {
    let rows = world.store.audit.iter().map(|row| row.action.as_str());
    rows.filter(|action| action.starts_with("rollout."))
        .collect()
}

#[test]
fn u07_stages_go_on_by_themselves_until_all_agents_hold_it() {
    let mut world = rolling();
    let first = holders(&world, 2);
    assert!((1..AGENTS as usize / 2).contains(&first.len()), "{first:?}");
    let view = rollout(&world).unwrap();
    assert_eq!((view.stage, view.base), (1, Revision(1)));
    world.seconds(29, &[(route(), CALLS)]);
    assert_eq!(holders(&world, 2), first, "not before its time");
    let view = rollout(&world).unwrap();
    assert_eq!(
        (view.agents_in, view.agents_holding, view.agents),
        (first.len() as u64, first.len() as u64, AGENTS)
    );
    assert_eq!(view.words, "well so far");
    // By whom each is acknowledged is what it should hold.
    let acked = world.view(&route()).acked;
    assert_eq!((acked.n, acked.m), (AGENTS, AGENTS));
    world.seconds(3, &[(route(), CALLS)]);
    let second = holders(&world, 2);
    assert!(second.len() > first.len() && second.len() < AGENTS as usize);
    assert!(
        first.iter().all(|it| second.contains(it)),
        "nobody goes back"
    );
    world.seconds(33, &[(route(), CALLS)]);
    assert_eq!(holders(&world, 2).len(), AGENTS as usize);
    assert_eq!(rollout(&world).unwrap().stage, 3);
    world.seconds(33, &[(route(), CALLS)]);
    assert!(rollout(&world).is_none());
    assert_eq!(policy_view(&world).revision, Revision(2));
    assert_eq!(
        actions(&world),
        [
            "rollout.begin",
            "rollout.advance",
            "rollout.advance",
            "rollout.finish"
        ]
    );
    assert!(world.store.rollouts.is_empty() && world.store.trial_modes.is_empty());
    // From here on it is a policy like any other.
    assert!(world.agent(1).may_hedge(&route()));
    assert_eq!(
        world.view(&route()).stamp,
        world.agent(1).held[&route()].stamp
    );
}

#[test]
fn u07_who_begins_is_the_same_each_time_and_another_for_another_dependency() {
    let (first, again) = (holders(&rolling(), 2), holders(&rolling(), 2));
    assert_eq!(first, again);
    let search = RouteKey::new("search", "query").unwrap();
    let mut world = world();
    world.second(&[(route(), CALLS), (search.clone(), CALLS)]);
    let name = DependencyName::new("search").unwrap();
    let Order::SetPolicy { rollout, .. } = roll_out(policy_with(|_| ())) else {
        unreachable!()
    };
    let policy = policy_with(|it| it.dependency = "search".into());
    world
        .ordered(Order::SetPolicy {
            policy: Box::new(policy),
            expected: None,
            rollout,
        })
        .unwrap();
    let view = &world.snapshot().policies[&name];
    assert_eq!(view.rollout.as_ref().unwrap().base, Revision(0));
    let others: Vec<_> = world
        .agents
        .values()
        .filter(|it| it.held[&search].stamp.revision == Revision(1))
        .map(|it| it.connection.0)
        .collect();
    assert!(!others.is_empty() && others != first, "{others:?}");
}

#[test]
fn u07_from_observing_to_hedging_only_the_share_hedges() {
    let mut world = World::new();
    for number in 1..=AGENTS {
        world.join(Agent::new(number));
    }
    world
        .ordered(set(policy_with(|it| it.intent = Intent::Observe)))
        .unwrap();
    world.seconds(30, &[(route(), CALLS)]);
    begin(&mut world, 0.08);
    world.seconds(3, &[(route(), CALLS)]);
    let share = holders(&world, 2);
    for agent in world.agents.values() {
        let new = share.contains(&agent.connection.0);
        assert_eq!(agent.may_hedge(&route()), new);
        let mode = if new { Mode::On } else { Mode::Observing };
        assert_eq!(agent.mode(&route()), mode);
    }
    world.seconds(100, &[(route(), CALLS)]);
    assert!(rollout(&world).is_none());
    assert!(world.agents.values().all(|it| it.may_hedge(&route())));
}

#[test]
fn u07_a_revision_that_an_agent_refuses_is_taken_back() {
    let mut world = world();
    begin(&mut world, 0.1);
    let share = holders(&world, 2);
    let mut world = self::world();
    let refusing = ConnectionId(share[0]);
    world
        .agents
        .get_mut(&refusing)
        .unwrap()
        .refuses
        .insert(route());
    begin(&mut world, 0.1);
    world.second(&[(route(), CALLS)]);
    let view = policy_view(&world);
    assert_eq!((view.revision, view.rollout.is_none()), (Revision(3), true));
    assert!((view.policy.budget().get() - 0.08).abs() < 1e-9);
    assert!(world.agents.values().all(|it| {
        it.connection == refusing || it.held[&route()].stamp.revision == Revision(3)
    }));
    let row = world
        .store
        .audit
        .iter()
        .find(|it| it.action == "rollout.revert");
    let row = row.unwrap();
    assert_eq!(row.actor.name, "controller");
    assert!(
        row.reason.contains("live.budget: 0.3 is out of range"),
        "{}",
        row.reason
    );
}

#[test]
fn u07_a_share_that_fails_or_waits_more_is_taken_back_and_the_rest_never_had_it() {
    for (theirs, said) in [
        (
            Traffic {
                errors: 0.03,
                ..CALLS
            },
            "calls failed with the new policy",
        ),
        (
            Traffic {
                usual_ms: 10,
                slow: 0.2,
                ..CALLS
            },
            "of calls want a hedge",
        ),
        (
            Traffic {
                usual_ms: 14,
                ..CALLS
            },
            "callers' p99 is",
        ),
    ] {
        let mut world = rolling();
        let share = holders(&world, 2);
        for _ in 0..25 {
            second(&mut world, 2, theirs);
        }
        assert!(rollout(&world).is_none(), "{said}");
        let view = policy_view(&world);
        assert_eq!(view.revision, Revision(3));
        assert!((view.policy.budget().get() - 0.08).abs() < 1e-9);
        assert_eq!(holders(&world, 3).len(), AGENTS as usize);
        assert_eq!(actions(&world), ["rollout.begin", "rollout.revert"]);
        let row = world
            .store
            .audit
            .iter()
            .rfind(|it| it.action == "rollout.revert");
        assert!(row.unwrap().reason.contains(said), "{:?}", row.unwrap());
        let marks = world.view(&route()).marks;
        assert!(
            marks
                .iter()
                .any(|it| it.words.contains("taken back by controller"))
        );
        for agent in world.agents.values() {
            let had = agent.sets.iter().flat_map(|set| &set.directives);
            let mut had = had.filter(|it| it.stamp.revision == Revision(2));
            assert_eq!(had.next().is_some(), share.contains(&agent.connection.0));
        }
        // Nobody was left out for doing as told.
        assert!(
            world
                .store
                .audit
                .iter()
                .all(|it| it.action != "agent.quarantine")
        );
    }
}

#[test]
fn u07_what_happens_to_all_alike_takes_nothing_back() {
    let mut world = rolling();
    let fault = Traffic {
        errors: 0.03,
        usual_ms: 14,
        ..CALLS
    };
    world.seconds(29, &[(route(), fault)]);
    assert_eq!(rollout(&world).unwrap().stage, 1);
    assert_eq!(actions(&world), ["rollout.begin"]);
}

#[test]
fn p16_without_calls_a_stage_lasts() {
    let mut world = rolling();
    world.seconds(200, &[(route(), Traffic { calls: 0, ..CALLS })]);
    let view = rollout(&world).unwrap();
    assert_eq!(view.stage, 1);
    assert!(view.words.starts_with("waiting"), "{}", view.words);
    world.seconds(3, &[(route(), CALLS)]);
    assert_eq!(rollout(&world).unwrap().stage, 2);
}

#[test]
fn u07_a_stage_in_which_nobody_is_passes() {
    let mut world = World::hedging();
    begin(&mut world, 0.1);
    world.seconds(100, &[(route(), CALLS)]);
    assert!(rollout(&world).is_none());
    assert_eq!(holders(&world, 2), [1, 2, 3]);
}

#[test]
fn u07_a_person_takes_it_back_or_on() {
    let mut world = rolling();
    let step = |back: bool, expected: u64| {
        let (dependency, expected) = (catalog(), Some(Revision(expected)));
        if back {
            Order::AbortRollout {
                dependency,
                expected,
            }
        } else {
            Order::AdvanceRollout {
                dependency,
                expected,
            }
        }
    };
    let stale = OrderError::Stale {
        expected: Revision(1),
        current: Revision(2),
    };
    assert_eq!(world.ordered(step(true, 1)), Err(stale));
    let done = |revision| {
        Ok(Done::Policy {
            revision: Revision(revision),
            changed: true,
        })
    };
    assert_eq!(world.ordered(step(false, 2)), done(2));
    assert_eq!(rollout(&world).unwrap().stage, 2);
    assert_eq!(world.ordered(step(true, 2)), done(3));
    assert_eq!(holders(&world, 3).len(), AGENTS as usize);
    let row = world.store.audit.last().unwrap();
    assert_eq!(
        (row.actor.name.as_str(), row.action.as_str()),
        ("ann", "rollout.revert")
    );
    assert_eq!(
        world.ordered(step(true, 2)),
        Err(OrderError::NoRollout(catalog()))
    );
}

#[test]
fn u07_another_policy_takes_a_rollouts_place() {
    let mut world = rolling();
    let stale = world.ordered(Order::SetPolicy {
        policy: Box::new(policy_with(|it| it.budget = 0.05)),
        expected: Some(Revision(1)),
        rollout: None,
    });
    let expected = OrderError::Stale {
        expected: Revision(1),
        current: Revision(2),
    };
    assert_eq!(stale, Err(expected));
    // For everybody at once.
    world
        .ordered(set(policy_with(|it| it.budget = 0.05)))
        .unwrap();
    assert!(rollout(&world).is_none());
    assert_eq!(holders(&world, 3).len(), AGENTS as usize);
    // In steps, twice: the first share goes back before the second one goes on.
    begin(&mut world, 0.1);
    let first = holders(&world, 4);
    world
        .ordered(Order::AdvanceRollout {
            dependency: catalog(),
            expected: None,
        })
        .unwrap();
    let more = holders(&world, 4);
    assert!(more.len() > first.len());
    begin(&mut world, 0.12);
    let newest = policy_view(&world).revision;
    assert_eq!(holders(&world, newest.0), first);
    let base = rollout(&world).unwrap().base;
    assert_eq!(holders(&world, base.0).len(), AGENTS as usize - first.len());
    // The same policy, for everybody at once, ends it.
    world
        .ordered(set(policy_with(|it| it.budget = 0.12)))
        .unwrap();
    assert!(rollout(&world).is_none());
    assert_eq!(holders(&world, newest.next().0).len(), AGENTS as usize);
}

#[test]
fn u07_a_kill_switch_takes_it_back() {
    for scope in [KillScope::Everything, KillScope::Dependency(catalog())] {
        let mut world = rolling();
        let order = |engaged| Order::Kill {
            scope: scope.clone(),
            engaged,
        };
        world.ordered(order(true)).unwrap();
        assert!(rollout(&world).is_none());
        assert_eq!(policy_view(&world).revision, Revision(3));
        for agent in world.agents.values() {
            let held = &agent.held[&route()];
            assert_eq!(held.mode, Mode::Off(OffReason::KillSwitch));
            assert_eq!(held.stamp.revision, Revision(3));
        }
        world.ordered(order(false)).unwrap();
        world.seconds(3, &[(route(), CALLS)]);
        assert!((policy_view(&world).policy.budget().get() - 0.08).abs() < 1e-9);
        assert!(world.agents.values().all(|it| it.may_hedge(&route())));
    }
    // One for another dependency does not.
    let mut world = rolling();
    let scope = KillScope::Dependency(DependencyName::new("search").unwrap());
    world
        .ordered(Order::Kill {
            scope,
            engaged: true,
        })
        .unwrap();
    assert!(rollout(&world).is_some());
}

#[test]
fn b69_a_restarted_controller_goes_on_in_the_same_stage() {
    let mut world = rolling();
    world.seconds(32, &[(route(), CALLS)]);
    let before = holders(&world, 2);
    assert_eq!(rollout(&world).unwrap().stage, 2);
    world.restart(Duration::from_secs(20));
    // Before anything is reported.
    assert_eq!(holders(&world, 2), before);
    assert_eq!(holders(&world, 1).len(), AGENTS as usize - before.len());
    assert!(
        world
            .agents
            .values()
            .all(|it| it.mode(&route()) == Mode::On)
    );
    // And again, with the same epoch, an agent that comes back is told the same.
    let mut agent = world.leave(
        ConnectionId(1_000 + before[0]),
        hedgerow_core::event::Departure::Lost,
    );
    agent.connection = ConnectionId(9_000 + before[0]);
    let epoch = world.store.epoch;
    world.join(agent);
    assert_eq!(world.store.epoch, epoch, "what it holds is ours");
    world.seconds(28, &[(route(), CALLS)]);
    assert_eq!(rollout(&world).unwrap().stage, 2, "the stage begins anew");
    world.seconds(4, &[(route(), CALLS)]);
    assert_eq!(rollout(&world).unwrap().stage, 3);
    world.seconds(35, &[(route(), CALLS)]);
    assert!(rollout(&world).is_none());
    world.restart(Duration::from_secs(20));
    assert_eq!(policy_view(&world).revision, Revision(2));
    assert_eq!(holders(&world, 2).len(), AGENTS as usize);
}

#[test]
fn p02_what_was_off_for_the_share_is_off_after_a_restart() {
    let mut world = world();
    let off = policy_with(|it| it.error_limit = 0.02);
    world.ordered(roll_out(off)).unwrap();
    let failing = Traffic {
        errors: 0.03,
        ..CALLS
    };
    world.seconds(8, &[(route(), failing)]);
    let share = holders(&world, 2);
    let modes = |world: &World| {
        let each = world.agents.values();
        each.map(|it| (it.connection.0 % 1_000, it.mode(&route())))
            .collect::<Vec<_>>()
    };
    for (number, mode) in modes(&world) {
        let off = Mode::Off(OffReason::Errors);
        let expected = if share.contains(&number) {
            off
        } else {
            Mode::On
        };
        assert_eq!(mode, expected);
    }
    let before = modes(&world);
    world.restart(Duration::from_secs(20));
    assert_eq!(modes(&world), before);
    // A stage does not pass while its policy is not in effect.
    world.seconds(100, &[(route(), failing)]);
    let view = rollout(&world).unwrap();
    assert_eq!(view.stage, 1);
    assert!(view.words.contains("not in effect"), "{}", view.words);
}

#[test]
fn p10_no_step_is_told_before_it_is_stored_and_a_failed_one_is_tried_again() {
    let mut world = world();
    world.store.answers = Answers::Later;
    let request = world.order(roll_out(policy_with(|it| it.budget = 0.1)));
    assert!(world.replies.get(&request).is_none() && holders(&world, 2).is_empty());
    world.store_answers(true);
    let share = holders(&world, 2);
    assert!(!share.is_empty());
    world.store.answers = Answers::Never;
    let failing = Traffic {
        errors: 0.04,
        ..CALLS
    };
    for _ in 0..10 {
        second(&mut world, 2, failing);
    }
    // The store does not take it; but nobody in the share hedges.
    assert_eq!(holders(&world, 2), share);
    for agent in world.agents.values() {
        let new = share.contains(&agent.connection.0);
        assert_eq!(agent.may_hedge(&route()), !new);
    }
    assert!(rollout(&world).unwrap().words.starts_with("taken back: "));
    world.store.answers = Answers::Now;
    world.seconds(2, &[(route(), CALLS)]);
    assert!(rollout(&world).is_none());
    assert!(world.agents.values().all(|it| it.may_hedge(&route())));
}

#[test]
fn u07_an_agent_or_a_route_that_comes_meanwhile_is_told_by_its_place() {
    let mut world = rolling();
    let other = RouteKey::new("catalog", "list").unwrap();
    for number in AGENTS + 1..=AGENTS + 8 {
        world.join(Agent::new(number));
    }
    world.seconds(5, &[(route(), CALLS), (other.clone(), CALLS)]);
    for agent in world.agents.values() {
        let revisions = [&route(), &other].map(|it| agent.held[it].stamp.revision);
        assert_eq!(revisions[0], revisions[1]);
    }
    world.event(Event::Heartbeat {
        connection: ConnectionId(1),
        held_hash: world.agents[&ConnectionId(1)].hash(),
    });
    world.seconds(100, &[(route(), CALLS), (other.clone(), CALLS)]);
    assert!(rollout(&world).is_none());
    let view = world.view(&other);
    assert_eq!((view.acked.n, view.acked.m), (AGENTS + 8, AGENTS + 8));
    assert!(world.agents.values().all(|it| it.may_hedge(&other)));
}

#[test]
fn p05_the_numbers_of_a_rollout_that_was_taken_back_are_not_given_again() {
    let mut world = rolling();
    let order = Order::AbortRollout {
        dependency: catalog(),
        expected: None,
    };
    world.ordered(order).unwrap();
    world.restart(Duration::from_secs(7));
    // The store says so where a number comes twice.
    world.kill(true).unwrap();
    world.second(&[(route(), CALLS)]);
    let sequence = |world: &World| world.view(&route()).stamp.mode_sequence;
    assert!(
        world
            .store
            .sequences
            .keys()
            .all(|(_, it)| *it <= sequence(&world))
    );
}
