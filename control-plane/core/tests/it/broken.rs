//! Agents that say what no agent can, in ways that passed once.

use std::time::Duration;

use hedgerow_core::event::{ConnectionId, Event};
use hedgerow_protocol::report::{Report, Totals};

use crate::agent::Agent;
use crate::traffic::{Traffic, histogram};
use crate::world::{World, policy, route, set};

fn send(world: &mut World, number: u64, report: Report) -> Option<String> {
    let connection = ConnectionId(number);
    let held_hash = world.agents[&connection].hash();
    world.event(Event::Reported {
        connection,
        report: Box::new(report),
        held_hash,
    });
    world.last_ack().2.clone()
}

fn two() -> World {
    let mut world = World::new();
    for number in 1..=2 {
        world.join(Agent::new(number));
    }
    world.ordered(set(policy())).unwrap();
    world.second(&[(route(), Traffic::HEALTHY)]);
    world
}

fn report(world: &mut World, number: u64) -> Report {
    let agent = world.agents.get_mut(&ConnectionId(number)).unwrap();
    agent.report(&[(route(), Traffic::HEALTHY)], 0)
}

/// So many more calls, all of them well, in an agent's counters.
fn inflate(totals: &mut Totals, calls: u64) {
    for counter in [
        &mut totals.started,
        &mut totals.finished,
        &mut totals.primary_finished,
        &mut totals.treated_finished,
    ] {
        *counter += calls;
    }
}

#[test]
fn x69_time_that_refused_reports_claim_is_no_credit_for_calls() {
    let mut world = two();
    for number in 1..=2 {
        // Refused for the order of its counters; it claims to cover more than the agent has lived.
        let mut refused = report(&mut world, number);
        refused.covers = Duration::from_hours(366 * 24);
        refused.routes[0].totals.won = 1 << 40;
        assert!(send(&mut world, number, refused).is_some());
    }
    for number in 1..=2 {
        let mut more = report(&mut world, number);
        inflate(&mut more.routes[0].totals, 1 << 44);
        more.routes[0].primary.done = histogram(&[(10, 1 << 40)]);
        more.routes[0].treated = histogram(&[(10, 1 << 40)]);
        let said = send(&mut world, number, more).unwrap_or_default();
        assert!(said.contains("calls begun"), "{said:?}");
    }
    world.tick();
}

#[test]
fn x70_a_report_that_covers_ages_is_no_credit_either() {
    let mut world = two();
    for number in 1..=2 {
        let mut more = report(&mut world, number);
        more.covers = Duration::from_hours(366 * 24);
        inflate(&mut more.routes[0].totals, 1 << 44);
        let said = send(&mut world, number, more).unwrap_or_default();
        assert!(said.contains("calls begun"), "{said:?}");
    }
    world.tick();
}

#[test]
fn x71_what_was_counted_by_an_agent_that_was_alone_for_an_hour_is_taken() {
    let mut world = two();
    world.now = world.now.plus(Duration::from_hours(1));
    for number in 1..=2 {
        let agent = world.agents.get_mut(&ConnectionId(number)).unwrap();
        inflate(agent.totals.get_mut(&route()).unwrap(), 100_000 * 3_600);
        let mut late = report(&mut world, number);
        late.covers = Duration::from_hours(1);
        assert_eq!(send(&mut world, number, late), None);
        // A report that stood in a queue meanwhile comes at once after it.
        let next = report(&mut world, number);
        assert_eq!(send(&mut world, number, next), None);
    }
}
