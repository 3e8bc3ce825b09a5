//! Who is there, and who is silent.

use std::time::Duration;

use hedgerow_core::event::{ConnectionId, Departure, Event};
use hedgerow_core::view::AgentState;
use hedgerow_protocol::ids::Sequence;

use crate::agent::Agent;
use crate::traffic::Traffic;
use crate::world::{World, route};

const CALLS: Traffic = Traffic::HEALTHY;

fn states(world: &World) -> Vec<AgentState> {
    world
        .snapshot()
        .agents
        .iter()
        .map(|agent| agent.state)
        .collect()
}

#[test]
fn an_agent_is_stale_after_two_heartbeats_of_silence_and_live_at_its_next_word() {
    let mut world = World::new();
    world.join(Agent::new(1));
    world.second(&[(route(), CALLS)]);
    world.silence();
    for second in 1..=25 {
        world.now = world.now.plus(Duration::from_secs(1));
        world.tick();
        let expected = if second < 20 {
            AgentState::Live
        } else {
            AgentState::Stale
        };
        assert_eq!(states(&world), [expected], "after {second} s");
    }
    let held_hash = world.agent(1).hash();
    world.event(Event::Heartbeat {
        connection: ConnectionId(1),
        held_hash,
    });
    assert_eq!(states(&world), [AgentState::Live]);
}

#[test]
fn c22_the_controllers_own_pause_makes_nobody_stale() {
    let mut world = World::new();
    for number in 1..=3 {
        world.join(Agent::new(number));
    }
    world.second(&[(route(), CALLS)]);
    world.silence();
    world.now = world.now.plus(Duration::from_secs(40));
    world.tick();
    assert_eq!(states(&world), [AgentState::Live; 3]);
    // But from then on silence counts.
    for _ in 0..20 {
        world.now = world.now.plus(Duration::from_secs(1));
        world.tick();
    }
    assert_eq!(states(&world), [AgentState::Stale; 3]);
}

#[test]
fn c18_two_agents_with_one_identity_are_counted_apart() {
    let mut world = World::new();
    world.join(Agent::new(1));
    world.seconds(5, &[(route(), CALLS)]);
    // A clone of the machine, with the same instance and incarnation, and counters of its own.
    let mut clone = Agent::new(1);
    clone.connection = ConnectionId(2);
    world.join(clone);
    world.seconds(5, &[(route(), CALLS)]);
    assert_eq!(world.snapshot().agents.len(), 2);
    let before = world.view(&route()).totals.started;
    world.seconds(5, &[(route(), CALLS)]);
    assert_eq!(world.view(&route()).totals.started - before, 2 * 5 * 400);
    // Neither was thrown out, and both are told what to do.
    assert_eq!(states(&world), [AgentState::Live; 2]);
    assert!(
        world
            .agents
            .values()
            .all(|agent| agent.held.contains_key(&route()))
    );
}

#[test]
fn c19_a_clock_that_is_off_is_shown_and_changes_nothing() {
    let figures = |skew_ms: i64| {
        let mut world = World::hedging();
        let number = ConnectionId(2);
        world.agents.get_mut(&number).unwrap().skew_ms = skew_ms;
        world.seconds(10, &[(route(), CALLS)]);
        let agents = world.snapshot().agents;
        let skews: Vec<_> = agents.iter().map(|agent| agent.skew_ms.unwrap()).collect();
        let view = world.view(&route());
        (skews, view.figures, view.course, view.stamp)
    };
    let (skews, right, course, stamp) = figures(0);
    assert_eq!(skews, [0, 0, 0]);
    for skew_ms in [20 * 60_000, -20 * 60_000, i64::MIN / 2] {
        let (skews, figures, its_course, its_stamp) = figures(skew_ms);
        assert_eq!(
            (figures, its_course, its_stamp),
            (right, course.clone(), stamp)
        );
        assert_eq!((skews[0], skews[2]), (0, 0));
        assert_eq!(skews[1].signum(), skew_ms.signum());
    }
}

#[test]
fn p18_the_same_run_at_another_date_decides_the_same() {
    let run = |start: hedgerow_core::moment::Moment| {
        let mut world = World::with(
            crate::store::Store::default(),
            hedgerow_core::event::Settings::default(),
            start,
        );
        world.join(Agent::new(1));
        world
            .ordered(crate::world::set(crate::world::policy()))
            .unwrap();
        world.seconds(30, &[(route(), CALLS)]);
        world.seconds(
            10,
            &[(
                route(),
                Traffic {
                    errors: 0.3,
                    ..CALLS
                },
            )],
        );
        let sent: Vec<_> = world.pushes.iter().map(|(_, set)| set.clone()).collect();
        let transitions = world.store.transitions.iter();
        let modes: Vec<_> = transitions.map(|it| (it.at.since(start), it.to)).collect();
        (sent, modes)
    };
    let (hour, start) = (Duration::from_hours(1), crate::world::START);
    assert_eq!(run(start), run(start.plus(hour)));
}

#[test]
fn gone_agents_are_shown_for_five_minutes() {
    let mut world = World::new();
    for number in 1..=2 {
        world.join(Agent::new(number));
    }
    world.second(&[(route(), CALLS)]);
    world.leave(ConnectionId(1), Departure::Left);
    world.leave(ConnectionId(2), Departure::Lost);
    assert_eq!(states(&world), [AgentState::Left, AgentState::Lost]);
    world.seconds(299, &[]);
    assert_eq!(world.snapshot().agents.len(), 2);
    world.seconds(2, &[]);
    assert!(world.snapshot().agents.is_empty());
}

#[test]
fn b59_a_controller_that_flaps_loses_no_count_and_no_directive() {
    let mut world = World::hedging();
    for _ in 0..5 {
        world.restart(Duration::from_secs(3));
        world.seconds(9, &[(route(), CALLS)]);
    }
    let view = world.view(&route());
    assert_eq!((view.acked.n, view.acked.m), (3, 3));
    // The first report to a new controller is what the others are counted from.
    assert_eq!(view.totals.started, 3 * 8 * 400);
    let (_, sequence, refused) = world.last_ack();
    assert_eq!((*sequence, refused), (Sequence(30 + 5 * 9), &None));
}
