//! Agents that are lost, silent or behind, and agents that refuse.

use std::time::Duration;

use hedgerow_core::event::{ConnectionId, Departure};
use hedgerow_core::view::{AlertPhase, AlertRule};

use super::{CALLS, assert_one_each, of, told};
use crate::agent::Agent;
use crate::world::{World, policy, policy_with, route, set};

const STALE: AlertRule = AlertRule::AgentsStale;
const REFUSED: AlertRule = AlertRule::PolicyRefused;

/// Ten agents on a policy that hedges.
fn ten() -> World {
    let mut world = World::new();
    for number in 1..=10 {
        world.join(Agent::new(number));
    }
    world.ordered(set(policy())).unwrap();
    world.seconds(30, &[(route(), CALLS)]);
    world
}

fn lose(world: &mut World, agents: u64, how: Departure) -> Vec<Agent> {
    let numbers = (1..=agents).map(ConnectionId);
    numbers.map(|number| world.leave(number, how)).collect()
}

#[test]
fn agents_lost_are_told_after_two_heartbeats_and_are_well_when_they_are_back() {
    let mut world = ten();
    let lost = lose(&mut world, 2, Departure::Lost);
    world.seconds(19, &[(route(), CALLS)]);
    assert!(told(&world, STALE).is_empty());
    assert_eq!(world.snapshot().alerts[0].phase, AlertPhase::Pending);
    world.seconds(3, &[(route(), CALLS)]);
    let fired = of(&world, STALE);
    assert_eq!(fired.len(), 1);
    let said = &fired[0].summary;
    assert!(
        said.contains("of 10 agents 2 lost without a goodbye"),
        "{said}"
    );
    for mut agent in lost {
        agent.connection = ConnectionId(agent.connection.0 + 100);
        world.join(agent);
    }
    world.seconds(18, &[(route(), CALLS)]);
    assert_eq!(told(&world, STALE).len(), 1, "not at once");
    world.seconds(5, &[(route(), CALLS)]);
    assert_one_each(&told(&world, STALE), 1);
}

#[test]
fn one_agent_a_goodbye_or_two_agents_that_are_all_there_were_are_not_the_fleet() {
    let mut world = ten();
    lose(&mut world, 1, Departure::Lost);
    world.seconds(60, &[(route(), CALLS)]);
    let mut left = ten();
    lose(&mut left, 5, Departure::Left);
    left.seconds(60, &[(route(), CALLS)]);
    let mut two = World::new();
    for number in 1..=2 {
        two.join(Agent::new(number));
    }
    two.seconds(10, &[(route(), CALLS)]);
    lose(&mut two, 2, Departure::Lost);
    two.seconds(60, &[]);
    for world in [world, left, two] {
        assert!(told(&world, STALE).is_empty(), "{:?}", of(&world, STALE));
    }
}

#[test]
fn agents_that_fall_silent_are_told_and_count_from_their_last_word() {
    let mut world = ten();
    for number in 1..=2 {
        world.agents.remove(&ConnectionId(number));
    }
    world.seconds(38, &[(route(), CALLS)]);
    assert!(told(&world, STALE).is_empty(), "20 s of silence, and 20 s");
    world.seconds(4, &[(route(), CALLS)]);
    let fired = of(&world, STALE);
    assert!(fired[0].summary.contains("2 silent"), "{fired:?}");
}

#[test]
fn agents_that_hold_an_old_revision_are_told() {
    let mut world = ten();
    for number in 1..=2 {
        let agent = world.agents.get_mut(&ConnectionId(number)).unwrap();
        agent.deaf = true;
    }
    world
        .ordered(set(policy_with(|it| it.budget = 0.05)))
        .unwrap();
    world.seconds(19, &[(route(), CALLS)]);
    assert!(told(&world, STALE).is_empty());
    world.seconds(4, &[(route(), CALLS)]);
    let fired = of(&world, STALE);
    assert!(
        fired[0].summary.contains("2 holding an old revision"),
        "{fired:?}"
    );
    for agent in world.agents.values_mut() {
        agent.deaf = false;
    }
    world
        .ordered(set(policy_with(|it| it.budget = 0.06)))
        .unwrap();
    world.seconds(25, &[(route(), CALLS)]);
    assert_one_each(&told(&world, STALE), 1);
}

#[test]
fn p16_that_nobody_is_there_resolves_nothing_also_after_a_restart() {
    let mut world = ten();
    lose(&mut world, 10, Departure::Lost);
    // For longer than gone agents are remembered.
    world.seconds(400, &[]);
    assert_eq!(told(&world, STALE).len(), 1);
    world.restart(Duration::from_secs(5));
    world.seconds(100, &[]);
    assert_eq!(told(&world, STALE).len(), 1);
    for number in 1..=10 {
        world.join(Agent::new(number));
    }
    world.seconds(30, &[(route(), CALLS)]);
    assert_one_each(&told(&world, STALE), 1);
}

#[test]
fn a_policy_that_agents_refuse_is_told_with_their_reason_until_they_hold_another() {
    let mut world = ten();
    for number in 1..=2 {
        let agent = world.agents.get_mut(&ConnectionId(number)).unwrap();
        agent.refuses.insert(route());
    }
    world
        .ordered(set(policy_with(|it| it.budget = 0.05)))
        .unwrap();
    world.seconds(9, &[(route(), CALLS)]);
    assert!(told(&world, REFUSED).is_empty());
    world.seconds(3, &[(route(), CALLS)]);
    let fired = of(&world, REFUSED);
    assert_eq!(fired.len(), 1);
    let said = &fired[0].summary;
    assert!(
        said.contains("2 of 10 agents refuse") && said.contains("live.budget"),
        "{said}"
    );
    for agent in world.agents.values_mut() {
        agent.refuses.clear();
    }
    world
        .ordered(set(policy_with(|it| it.budget = 0.06)))
        .unwrap();
    world.seconds(8, &[(route(), CALLS)]);
    assert_eq!(told(&world, REFUSED).len(), 1, "not at once");
    world.seconds(5, &[(route(), CALLS)]);
    assert_one_each(&told(&world, REFUSED), 1);
    // Behind they were never: a refusal is an answer.
    assert!(told(&world, STALE).is_empty());
}

#[test]
fn one_agent_that_refuses_calls_nobody_and_ends_nothing() {
    let mut world = ten();
    let agent = world.agents.get_mut(&ConnectionId(1)).unwrap();
    agent.refuses.insert(route());
    world
        .ordered(set(policy_with(|it| it.budget = 0.05)))
        .unwrap();
    world.seconds(60, &[(route(), CALLS)]);
    assert!(told(&world, REFUSED).is_empty());
}
