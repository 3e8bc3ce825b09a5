//! P12: one liar among 21 agents, that calls once a second and says what it likes.

use std::time::Duration;

use hedgerow_core::event::{ConnectionId, Event};
use hedgerow_protocol::directive::Mode;
use hedgerow_protocol::ids::Sequence;
use hedgerow_protocol::latency::SparseHistogram;
use hedgerow_protocol::report::{ReplicaReport, Report, RouteReport};

use crate::agent::Agent;
use crate::traffic::{Traffic, histogram};
use crate::world::{World, policy, route, set};

const HONEST: Traffic = Traffic {
    calls: 40,
    ..Traffic::HEALTHY
};
const LIAR: u64 = 21;

/// Makes a report of one call a second a lie. Counters are cumulative: `n` is the report's number.
type Lie = fn(&mut RouteReport, n: u64);

fn fleet() -> World {
    let mut world = World::new();
    for number in 1..=LIAR {
        world.join(Agent::new(number));
    }
    world.ordered(set(policy())).unwrap();
    world.seconds(30, &[(route(), HONEST)]);
    assert_eq!(world.agent(1).mode(&route()), Mode::On);
    world
}

fn send(world: &mut World, report: Report) {
    let connection = ConnectionId(LIAR);
    let held_hash = world.agent(LIAR).hash();
    world.event(Event::Reported {
        connection,
        report: Box::new(report),
        held_hash,
    });
}

/// The honest report, the liar lies, for so many seconds. Returns why its last report was refused.
fn seconds(world: &mut World, seconds: u64, lie: Lie) -> Option<String> {
    let mut refused = None;
    for n in 1..=seconds {
        world.now = world.now.plus(Duration::from_secs(1));
        for number in 1..LIAR {
            world.report(ConnectionId(number), &[(route(), HONEST)]);
        }
        let liar = world.agents.get_mut(&ConnectionId(LIAR)).unwrap();
        let mut report = liar.report(&[(route(), Traffic { calls: 1, ..HONEST })], 0);
        lie(&mut report.routes[0], n);
        send(world, report);
        refused.clone_from(&world.last_ack().2);
        world.tick();
    }
    refused
}

fn replica(route: &mut RouteReport) -> &mut ReplicaReport {
    &mut route.replicas[0]
}

fn samples(millis: u64, count: u64) -> SparseHistogram {
    histogram(&[(millis, count)])
}

#[test]
fn p12_figures_beyond_the_calls_started_are_refused_and_change_nothing() {
    let lies: [(&str, Lie); 12] = [
        ("primary_finished", |it, n| {
            it.totals.primary_finished = n << 44;
            it.totals.primary_errors = n << 44;
        }),
        ("push_back", |it, n| it.totals.push_back = n << 44),
        ("treated_finished", |it, n| {
            it.totals.treated_finished = n << 46;
        }),
        ("hedges in histograms", |it, _| {
            it.hedge.censored = samples(60_000, 1 << 40);
        }),
        ("primaries in histograms", |it, _| {
            it.primary.censored = samples(60_000, 1 << 40);
        }),
        ("treated calls in histograms", |it, _| {
            it.treated = samples(60_000, 1 << 40);
        }),
        ("held out calls in histograms", |it, _| {
            it.holdout = samples(60_000, 1 << 40);
        }),
        ("calls in flight", |it, _| {
            it.in_flight = samples(60_000, 1 << 47);
        }),
        ("replicas: ", |it, _| {
            replica(it).started = 1 << 40;
            replica(it).crossed = 1 << 40;
        }),
        ("replicas: ", |it, _| {
            replica(it).finished = 1 << 40;
            replica(it).errors = 1 << 40;
        }),
        ("replicas: ", |it, _| {
            replica(it).primary.done = samples(60_000, 1 << 40);
        }),
        ("calls started and not finished", |it, n| {
            it.totals.started = n << 44;
        }),
    ];
    let before = fleet();
    let threshold = before.view(&route()).figures.unwrap().threshold.unwrap();
    for (expected, lie) in lies {
        let mut world = before.clone();
        let refused = seconds(&mut world, 12, lie).unwrap();
        assert!(refused.contains(expected), "{expected}: {refused}");
        let view = world.view(&route());
        assert_eq!(view.mode, Mode::On, "{expected}");
        assert!(view.replicas.iter().all(|it| it.named.is_none()));
        let figures = view.figures.unwrap();
        assert!(figures.threshold.unwrap() <= threshold * 2, "{expected}");
        assert_eq!(world.snapshot().controller.reports_refused, 12);
        // What it says honestly is counted again, with the calls of the refused reports.
        assert_eq!(seconds(&mut world, 1, |_, _| ()), None, "{expected}");
    }
}

#[test]
fn p12_more_calls_than_anybody_can_begin_are_refused() {
    let mut world = fleet();
    let refused = seconds(&mut world, 3, |it, n| {
        it.totals.started += n * 100_000_000;
        it.totals.finished += n * 100_000_000;
    });
    assert!(refused.unwrap().contains("calls begun in"));
}

#[test]
fn p12_what_an_older_life_claims_is_no_credit_for_later() {
    let mut world = fleet();
    // It says that it is older than the controller, and has made a great many calls.
    let mut old = Agent::new(77);
    old.connection = ConnectionId(77);
    world.join(old);
    let report = |world: &mut World, number: u64, ends: u64| {
        let agent = world.agents.get_mut(&ConnectionId(77)).unwrap();
        let mut report = agent.report(&[(route(), Traffic { calls: 1, ..HONEST })], 0);
        report.sequence = Sequence(100 + number);
        let totals = &mut report.routes[0].totals;
        totals.started += 1 << 44;
        totals.finished += 1 << 44;
        totals.primary_finished += ends;
        totals.primary_errors += ends;
        world.event(Event::Reported {
            connection: ConnectionId(77),
            report: Box::new(report),
            held_hash: 0,
        });
        world.last_ack().2.clone()
    };
    assert_eq!(report(&mut world, 1, 0), None);
    let refused = report(&mut world, 2, 1 << 44).unwrap();
    assert!(refused.contains("since the last report"), "{refused}");
}

#[test]
fn p12_lies_within_what_is_possible_weigh_no_more_than_a_share() {
    // Each figure as high as it may be without being refused: thousands, where others have 40.
    let lies: [Lie; 4] = [
        |it, n| {
            it.totals.started += n * 9_000;
            it.totals.finished += n * 9_000;
            it.totals.primary_finished += n * 9_000;
            it.totals.primary_errors += n * 9_000;
        },
        |it, n| {
            it.totals.started += n * 9_000;
            it.totals.finished += n * 9_000;
            it.totals.push_back += n * 9_000;
        },
        |it, _| it.hedge.censored = samples(60_000, 9),
        |it, _| {
            replica(it).started = 800;
            replica(it).crossed = 800;
            replica(it).finished = 800;
            replica(it).errors = 800;
        },
    ];
    for (number, lie) in lies.into_iter().enumerate() {
        let mut world = fleet();
        assert_eq!(seconds(&mut world, 10, lie), None, "lie {number}");
        let figures = world.view(&route()).figures.unwrap();
        // 2 of 21 is what an agent may weigh, and errors are a share of primaries.
        assert!(figures.calls <= 45 * LIAR * 60, "lie {number}");
        assert!(figures.error_rate.unwrap_or(0.0) <= 0.12, "lie {number}");
    }
}

#[test]
fn p12_an_agent_with_a_hundred_times_the_calls_is_one_of_many() {
    // Nothing of it stands out but that there is so much of it: it is not quarantined.
    let much = Traffic {
        calls: 4_000,
        usual_ms: 9,
        ..HONEST
    };
    let mut world = fleet();
    for _ in 0..60 {
        world.now = world.now.plus(Duration::from_secs(1));
        for number in 1..LIAR {
            world.report(ConnectionId(number), &[(route(), HONEST)]);
        }
        world.report(ConnectionId(LIAR), &[(route(), much)]);
        world.tick();
    }
    let median = world.view(&route()).figures.unwrap().p50.unwrap();
    // Its own is 9 ms, and it makes five calls of six.
    assert!(median > Duration::from_micros(9_500), "{median:?}");
}
