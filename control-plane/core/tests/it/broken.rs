//! Agents that say what no agent can, in ways that passed once.

use std::time::Duration;

use hedgerow_core::event::{ConnectionId, Event, Order};
use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::report::{Report, Totals};

use crate::agent::Agent;
use crate::traffic::{Traffic, histogram};
use crate::world::{World, policy, policy_with, route, set};

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

/// What agents are told must be a number and within the policy, whatever was reported.
fn sound(world: &World, key: &RouteKey, budget: f64) {
    let view = world.view(key);
    for agent in world.agents.values() {
        let Some(live) = agent.held.get(key).map(|it| &it.live) else {
            continue;
        };
        assert!(live.budget.get() <= budget + 1e-9, "{live:?}");
        assert!(live.cap.is_finite() && live.cap >= 0.0, "{live:?}");
        assert!(live.probability.get().is_finite());
    }
    let json = serde_json::to_string(&view).unwrap();
    assert!(!json.contains("NaN"), "{json}");
}

#[test]
fn x76_a_fleet_from_nothing_to_a_million_calls_and_back() {
    let mut world = World::new();
    for number in 1..=20 {
        world.join(Agent::new(number));
    }
    world.ordered(set(policy())).unwrap();
    for calls in [0, 1, 0, 1_000_000, 0, 3, 1_000_000, 1_000_000, 1, 0, 400] {
        let traffic = Traffic {
            calls,
            ..Traffic::HEALTHY
        };
        for _ in 0..12 {
            world.second(&[(route(), traffic)]);
            sound(&world, &route(), 1.0);
        }
    }
    world.seconds(90, &[(route(), Traffic::HEALTHY)]);
    let live = world.agent(1).held[&route()].live;
    assert!(
        live.arming.is_none() && live.threshold.is_some(),
        "{live:?}"
    );
}

#[test]
fn x77_a_goal_where_every_call_takes_as_long() {
    for (goal, pool) in [(Some(0.99), false), (Some(0.999), false), (None, true)] {
        let mut world = World::new();
        for number in 1..=3 {
            world.join(Agent::new(number));
        }
        let change = |draft: &mut hedgerow_protocol::policy::PolicyDraft| {
            draft.goal = goal;
            if pool {
                draft.pool = Some("p".into());
                draft.objective_ms = Some(5.0);
            }
        };
        world.ordered(set(policy_with(change))).unwrap();
        let same = Traffic {
            slow: 0.0,
            ..Traffic::HEALTHY
        };
        for _ in 0..120 {
            world.second(&[(route(), same)]);
            sound(&world, &route(), 0.11);
        }
        // One second of stalls.
        world.seconds(1, &[(route(), Traffic { slow: 0.5, ..same })]);
        world.seconds(120, &[(route(), same)]);
        sound(&world, &route(), 0.11);
    }
}

#[test]
fn x78_a_switchback_with_no_calls_in_one_half() {
    let mut world = World::hedging();
    let rounds = 3;
    let order = Order::StartSwitchback {
        route: route(),
        rounds,
    };
    world.ordered(order).unwrap();
    for second in 0..200_u64 {
        let calls = if second / 30 % 2 == 1 { 0 } else { 400 };
        let traffic = Traffic {
            calls,
            ..Traffic::HEALTHY
        };
        world.second(&[(route(), traffic)]);
        sound(&world, &route(), 0.1);
    }
    // A half without a call is no half to compare with.
    let view = world.view(&route()).switchback.unwrap();
    assert!(view.ended.is_some() && view.result.is_none());
}
