//! Reports: counted once, or refused whole.

use std::time::Duration;

use hedgerow_core::event::{ConnectionId, Event, Settings};
use hedgerow_core::view::NoData;
use hedgerow_protocol::directive::Mode;
use hedgerow_protocol::ids::{Incarnation, ReplicaName, RouteKey, Sequence};
use hedgerow_protocol::report::Report;

use crate::agent::Agent;
use crate::store::Store;
use crate::traffic::{Traffic, histogram};
use crate::world::{START, World, policy, route, set};

const CALLS: Traffic = Traffic::HEALTHY;

/// Makes a report one that no honest agent sends.
type Spoil = fn(&mut Report);

fn started(world: &World) -> u64 {
    world.view(&route()).totals.started
}

fn send(world: &mut World, number: u64, report: Report) {
    let connection = ConnectionId(number);
    let held_hash = world.agent(number).hash();
    world.event(Event::Reported {
        connection,
        report: Box::new(report),
        held_hash,
    });
}

fn next(world: &mut World, number: u64) -> Report {
    let agent = world.agents.get_mut(&ConnectionId(number)).unwrap();
    agent.report(&[(route(), CALLS)], 0)
}

#[test]
fn b45_a_report_sent_again_after_a_reconnect_is_counted_once() {
    let mut world = World::new();
    world.join(Agent::new(1));
    let report = next(&mut world, 1);
    send(&mut world, 1, report.clone());
    // The acknowledgement is lost with the stream; on the next one the agent sends it again.
    let mut agent = world.leave(ConnectionId(1), hedgerow_core::event::Departure::Lost);
    agent.connection = ConnectionId(2);
    world.join(agent);
    send(&mut world, 2, report);
    world.tick();
    assert_eq!(started(&world), 400);
    assert_eq!(*world.last_ack(), (ConnectionId(2), Sequence(1), None));
    assert_eq!(world.snapshot().controller.reports_duplicate, 1);
    assert_eq!(world.snapshot().agents[0].duplicate_reports, 1);
    let report = next(&mut world, 2);
    send(&mut world, 2, report);
    world.tick();
    assert_eq!(started(&world), 800);
}

#[test]
fn p13_a_late_report_on_the_old_stream_is_counted_once_too() {
    let mut world = World::new();
    world.join(Agent::new(1));
    let report = next(&mut world, 1);
    let mut again = world.agents[&ConnectionId(1)].clone();
    again.connection = ConnectionId(2);
    world.join(again);
    send(&mut world, 2, report.clone());
    send(&mut world, 1, report);
    let report = next(&mut world, 2);
    send(&mut world, 2, report);
    world.tick();
    assert_eq!(started(&world), 800);
}

#[test]
fn p13_a_restart_is_not_a_negative_rate() {
    let mut world = World::new();
    world.join(Agent::new(1));
    for _ in 0..3 {
        world.second(&[(route(), CALLS)]);
    }
    let before = world.leave(ConnectionId(1), hedgerow_core::event::Departure::Lost);
    let mut after = Agent::new(1);
    after.connection = ConnectionId(2);
    after.incarnation = Incarnation(2);
    after.held = before.held;
    world.join(after);
    world.second(&[(route(), CALLS)]);
    assert_eq!(started(&world), 1_600);
    assert_eq!(world.snapshot().controller.reports_refused, 0);
    // And it is one agent, not one lost beside one attached.
    assert_eq!(world.snapshot().agents.len(), 1);
}

#[test]
fn p13_an_agent_older_than_the_controller_is_counted_from_where_it_is() {
    let mut world = World::new();
    let mut agent = Agent::new(1);
    for _ in 0..50 {
        agent.report(&[(route(), CALLS)], 0);
    }
    world.join(agent);
    world.second(&[(route(), CALLS)]);
    assert_eq!(started(&world), 0);
    world.second(&[(route(), CALLS)]);
    assert_eq!(started(&world), 400);
    // A route that it only now names may be as old.
    let other = RouteKey::new("search", "query").unwrap();
    world.second(&[(route(), CALLS), (other.clone(), CALLS)]);
    assert_eq!(world.view(&other).totals.started, 0);
}

#[test]
fn a_report_of_more_than_five_seconds_is_counted_but_not_timed() {
    let mut world = World::new();
    world.join(Agent::new(1));
    for covers in [1, 6] {
        let mut report = next(&mut world, 1);
        report.covers = Duration::from_secs(covers);
        send(&mut world, 1, report);
        world.now = world.now.plus(Duration::from_secs(1));
        world.tick();
    }
    assert_eq!(started(&world), 800);
    assert_eq!(world.view(&route()).figures.unwrap().calls, 400);
}

#[test]
fn p12_impossible_reports_are_refused_whole_counted_and_shown() {
    let mut world = World::new();
    world.join(Agent::new(1));
    let spoilers: [(&str, Spoil); 6] = [
        ("hedged (401) is above crossed (20)", |it| {
            it.routes[0].totals.hedged = 401;
        }),
        ("won (1) is above hedged + hedged_again (0)", |it| {
            it.routes[0].totals.won = 1;
        }),
        ("crossed (401) is above started (400)", |it| {
            it.routes[0].totals.crossed = 401;
        }),
        ("is there twice", |it| it.routes.push(it.routes[0].clone())),
        ("primaries in histograms", |it| {
            it.routes[0].primary.done = histogram(&[(1, 1_000_000_000)]);
        }),
        ("0 is not a sequence number", |it| it.sequence = Sequence(0)),
    ];
    for (number, (expected, spoil)) in spoilers.into_iter().enumerate() {
        let mut report = world
            .agents
            .get_mut(&ConnectionId(1))
            .unwrap()
            .clone()
            .report(
                &[
                    (route(), CALLS),
                    (RouteKey::new("search", "query").unwrap(), CALLS),
                ],
                0,
            );
        spoil(&mut report);
        send(&mut world, 1, report);
        let refused = world.last_ack().2.clone().unwrap();
        assert!(refused.contains(expected), "{refused}");
        let agent = &world.snapshot().agents[0];
        assert_eq!(agent.refused_reports, number as u64 + 1);
        assert_eq!(agent.last_refusal.as_ref(), Some(&refused));
    }
    world.tick();
    // Nothing of it was counted, not even the routes that were in order.
    assert!(world.snapshot().routes.is_empty());
    assert_eq!(world.snapshot().controller.reports_refused, 6);
}

#[test]
fn p12_a_counter_that_went_back_is_refused() {
    let mut world = World::new();
    world.join(Agent::new(1));
    world.second(&[(route(), CALLS)]);
    let mut report = next(&mut world, 1);
    let fewer = Traffic {
        calls: 300,
        ..CALLS
    };
    report.routes[0].totals = fewer.totals();
    send(&mut world, 1, report);
    let refused = world.last_ack().2.clone().unwrap();
    assert!(refused.contains("went back"), "{refused}");
    // The next one is counted, with what the refused one said.
    world.second(&[(route(), CALLS)]);
    assert_eq!(started(&world), 1_200);
}

#[test]
fn p12_a_liar_of_a_hundred_weighs_no_more_than_its_share() {
    let figures_with = |liars: u64| {
        let mut world = World::new();
        for number in 1..=100 {
            world.join(Agent::new(number));
        }
        world.ordered(set(policy())).unwrap();
        let honest = Traffic { calls: 20, ..CALLS };
        // They say that everything takes a minute, a thousand times as often as the others call.
        let lie = Traffic {
            calls: 20_000,
            usual_ms: 60_000,
            slow: 0.0,
            ..CALLS
        };
        for _ in 0..20 {
            world.now = world.now.plus(Duration::from_secs(1));
            for number in 1..=100 {
                let traffic = if number <= liars { lie } else { honest };
                world.report(ConnectionId(number), &[(route(), traffic)]);
            }
            world.tick();
        }
        let figures = world.view(&route()).figures.unwrap();
        (figures.p50.unwrap(), figures.threshold.unwrap())
    };
    let ((median, threshold), (median_then, threshold_then)) = (figures_with(0), figures_with(1));
    // Alone it made nineteen calls of twenty; as a twentieth it cannot be the median, nor more than
    // the slowest twentieth of all.
    assert!(median_then < median * 2, "{median_then:?} for {median:?}");
    assert!(
        threshold_then < threshold * 20,
        "{threshold_then:?} for {threshold:?}"
    );
}

#[test]
fn b67_a_refused_report_leaves_nothing_and_a_lost_agent_is_lost_not_left() {
    let mut world = World::new();
    world.join(Agent::new(1));
    world.event(Event::Undecodable {
        connection: ConnectionId(1),
        problem: "report.routes[3].totals.started: missing".into(),
    });
    world.leave(ConnectionId(1), hedgerow_core::event::Departure::Lost);
    world.tick();
    let snapshot = world.snapshot();
    assert!(snapshot.routes.is_empty());
    assert_eq!(snapshot.controller.undecodable, 1);
    assert_eq!(
        snapshot.agents[0].state,
        hedgerow_core::view::AgentState::Lost
    );
    assert!(
        snapshot.agents[0]
            .last_refusal
            .as_ref()
            .unwrap()
            .contains("totals.started")
    );
}

#[test]
fn b42_no_traffic_is_no_value_and_the_last_good_threshold_stays() {
    let mut world = World::hedging();
    let threshold = world.agent(1).held[&route()].live.threshold;
    assert!(threshold.is_some());
    let silent = Traffic { calls: 0, ..CALLS };
    world.seconds(90, &[(route(), silent)]);
    let view = world.view(&route());
    assert_eq!(view.figures, None);
    assert_eq!(view.no_data, Some(NoData::NoTraffic));
    assert_eq!(view.mode, Mode::On);
    assert_eq!(world.agent(1).held[&route()].live.threshold, threshold);
}

#[test]
fn p16_agents_that_fall_silent_turn_nothing_on() {
    let mut world = World::new();
    world.join(Agent::new(1));
    world.ordered(set(policy())).unwrap();
    world.second(&[(route(), Traffic { calls: 50, ..CALLS })]);
    world.silence();
    for _ in 0..90 {
        world.now = world.now.plus(Duration::from_secs(1));
        world.tick();
        assert_eq!(world.agent(1).mode(&route()), Mode::Observing);
    }
    assert_eq!(world.view(&route()).no_data, Some(NoData::AgentsStale));
}

#[test]
fn p11_routes_beyond_the_cap_are_counted_together() {
    let settings = Settings {
        routes_max: 10,
        ..Settings::default()
    };
    let mut world = World::with(Store::default(), settings, START);
    world.join(Agent::new(1));
    let routes: Vec<_> = (0..30)
        .map(|number| {
            (
                RouteKey::new("many", &format!("op{number:02}")).unwrap(),
                CALLS,
            )
        })
        .collect();
    world.second(&routes);
    world.second(&routes);
    let snapshot = world.snapshot();
    assert_eq!(snapshot.routes.len(), 11);
    let other = RouteKey::new("__other__", "__other__").unwrap();
    assert_eq!(snapshot.routes[&other].totals.started, 20 * 2 * 400);
    assert_eq!(snapshot.controller.routes_beyond_cap, 20);
    assert_eq!(world.agent(1).held.len(), 10);
}

#[test]
fn p11_an_agent_that_makes_up_names_is_refused() {
    let mut world = World::new();
    world.join(Agent::new(1));
    for batch in 0..3 {
        let routes: Vec<_> = (0..40)
            .map(|number| {
                (
                    RouteKey::new("many", &format!("op{batch}-{number}")).unwrap(),
                    CALLS,
                )
            })
            .collect();
        world.second(&routes);
    }
    assert_eq!(world.snapshot().routes.len(), 40);
    assert!(
        world
            .last_ack()
            .2
            .as_ref()
            .unwrap()
            .contains("at most 64 are kept")
    );
}

#[test]
fn p11_replicas_are_bounded_whatever_agents_name() {
    let mut world = World::new();
    for number in 1..=40 {
        world.join(Agent::new(number));
    }
    for second in 0..3 {
        for number in 1..=40 {
            let mut report = next(&mut world, number);
            for replica in &mut report.routes[0].replicas {
                let name = format!("{second}-{number}-{}", replica.replica);
                replica.replica = ReplicaName::new(&name).unwrap();
            }
            send(&mut world, number, report);
        }
        world.now = world.now.plus(Duration::from_secs(2));
        world.tick();
    }
    assert!(world.view(&route()).replicas.len() <= 480);
}

#[test]
fn s03_a_flood_of_reports_is_refused_beyond_five_a_tick() {
    let mut world = World::new();
    world.join(Agent::new(1));
    for _ in 0..8 {
        let report = next(&mut world, 1);
        send(&mut world, 1, report);
    }
    world.tick();
    assert_eq!(started(&world), 2_000);
    assert_eq!(world.snapshot().controller.reports_refused, 3);
    // The next second counts all of it: totals are cumulative.
    world.second(&[(route(), CALLS)]);
    assert_eq!(started(&world), 3_600);
}
