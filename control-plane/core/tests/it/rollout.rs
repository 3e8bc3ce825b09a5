//! A policy put in force in steps.

use std::time::Duration;

use hedgerow_core::effect::Done;
use hedgerow_core::event::{ConnectionId, Departure, Event, Order};
use hedgerow_core::view::{PolicyView, RolloutView};
use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::ids::{DependencyName, Revision, RouteKey};
use hedgerow_protocol::policy::Intent;
use hedgerow_protocol::units::Ratio;

use crate::agent::Agent;
use crate::traffic::Traffic;
use crate::world::{World, policy_with, roll_out, route, set};

mod back;

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
    world.snapshot().policies[&catalog().into()].clone()
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
    let view = &world.snapshot().policies[&name.into()];
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
fn x75_a_stage_whose_agents_are_gone_is_not_passed() {
    let mut world = rolling();
    world.seconds(5, &[(route(), CALLS)]);
    // Whoever took the new policy dies of it.
    for number in holders(&world, 2) {
        world.leave(ConnectionId(number), Departure::Lost);
    }
    world.seconds(100, &[(route(), CALLS)]);
    let view = rollout(&world).unwrap();
    assert_eq!(view.stage, 1, "{}", view.words);
    assert_eq!(
        view.words,
        "waiting for the agents in the share, which are gone"
    );
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
    let mut agent = world.leave(ConnectionId(1_000 + before[0]), Departure::Lost);
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
fn u07_who_crosses_less_by_the_new_policy_is_not_taken_for_a_liar() {
    let mut world = world();
    let order = roll_out(policy_with(|it| it.percentile = 0.99));
    world.ordered(order).unwrap();
    let fewer = Traffic {
        slow: 0.01,
        ..CALLS
    };
    // To the end, and a minute on.
    for _ in 0..160 {
        second(&mut world, 2, fewer);
    }
    assert!(rollout(&world).is_none());
    assert_eq!(holders(&world, 2).len(), AGENTS as usize);
    let rows = world.store.audit.iter().map(|it| it.action.as_str());
    let agents: Vec<_> = rows.filter(|it| it.starts_with("agent.")).collect();
    assert!(agents.is_empty(), "{agents:?}");
    let held = world.snapshot().agents;
    let mut held = held.iter().flat_map(|it| &it.routes);
    assert!(held.all(|it| it.quarantine.is_none()));
}

#[test]
fn u07_a_stage_in_which_nothing_may_be_hedged_lasts() {
    let mut world = rolling();
    let busy = |utilisation: Option<f64>| Order::SetUtilisation {
        dependency: catalog(),
        utilisation: utilisation.map(|value| Ratio::new(value).unwrap()),
        valid_for: Duration::from_hours(1),
    };
    world.ordered(busy(Some(0.9))).unwrap();
    world.seconds(100, &[(route(), CALLS)]);
    let view = rollout(&world).unwrap();
    assert_eq!(view.stage, 1);
    assert!(view.words.contains("utilisation 0.90"), "{}", view.words);
    world.ordered(busy(None)).unwrap();
    world.seconds(3, &[(route(), CALLS)]);
    assert_eq!(rollout(&world).unwrap().stage, 2);
}

#[test]
fn u07_a_persons_word_on_a_route_is_for_the_share_as_well() {
    let mut world = rolling();
    world.seconds(20, &[(route(), CALLS)]);
    let slower = Traffic {
        usual_ms: 50,
        ..CALLS
    };
    let modes = |world: &World| {
        let each = world.agents.values().map(|it| it.mode(&route()));
        each.collect::<Vec<_>>()
    };
    world.seconds(30, &[(route(), slower)]);
    let off = Mode::Probing(OffReason::SharedSlowdown);
    assert_eq!(modes(&world), [off; AGENTS as usize]);
    world.ordered(Order::AcceptBase { route: route() }).unwrap();
    world.seconds(40, &[(route(), slower)]);
    assert!(rollout(&world).is_some());
    assert_eq!(modes(&world), [Mode::On; AGENTS as usize]);
}
