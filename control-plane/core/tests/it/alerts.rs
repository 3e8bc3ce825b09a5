//! Who is told what, and how often.

mod agents;
mod duplicates;
mod hedging;
mod silences;

use std::time::Duration;

use hedgerow_core::effect::{AlertState, Record};
use hedgerow_core::moment::Moment;
use hedgerow_core::view::{AlertPhase, AlertRule};
use hedgerow_protocol::directive::Mode;
use hedgerow_protocol::ids::ReplicaName;

use crate::traffic::Traffic;
use crate::world::{World, policy_with, route, set};

const CALLS: Traffic = Traffic::HEALTHY;
/// A fifth of all calls hedged: an agent or a policy is broken.
const STORM: Traffic = Traffic {
    hedged: 0.2,
    ..CALLS
};
const FAILING: Traffic = Traffic {
    errors: 0.4,
    ..CALLS
};
const ALL_SLOW: Traffic = Traffic {
    usual_ms: 60,
    slow: 1.0,
    ..CALLS
};

fn of(world: &World, rule: AlertRule) -> Vec<AlertState> {
    world
        .store
        .notices
        .iter()
        .filter(|it| it.rule == rule)
        .cloned()
        .collect()
}

/// Firing and resolved notices, in order, as the ids of their episodes.
fn told(world: &World, rule: AlertRule) -> Vec<(String, bool)> {
    of(world, rule)
        .into_iter()
        .map(|it| (it.id, it.resolved.is_some()))
        .collect()
}

fn assert_one_each(told: &[(String, bool)], episodes: usize) {
    assert_eq!(told.len(), episodes * 2, "{told:?}");
    for pair in told.chunks(2) {
        assert_eq!(
            (&pair[0].0, pair[0].1, pair[1].1),
            (&pair[1].0, false, true)
        );
    }
    let ids: std::collections::BTreeSet<_> = told.iter().map(|(id, _)| id).collect();
    assert_eq!(ids.len(), episodes, "an episode has an id of its own");
}

#[test]
fn b76_a_rate_that_comes_and_goes_is_one_firing_and_one_resolved_an_episode() {
    let mut world = World::hedging();
    for _ in 0..3 {
        world.seconds(300, &[(route(), STORM)]);
        world.seconds(300, &[(route(), CALLS)]);
    }
    assert_one_each(&told(&world, AlertRule::HedgeRateHigh), 3);
}

#[test]
fn b76_a_rate_that_wavers_about_the_line_is_one_episode() {
    let mut world = World::hedging();
    for _ in 0..30 {
        world.seconds(
            10,
            &[(
                route(),
                Traffic {
                    hedged: 0.12,
                    ..CALLS
                },
            )],
        );
        world.seconds(
            10,
            &[(
                route(),
                Traffic {
                    hedged: 0.09,
                    ..CALLS
                },
            )],
        );
    }
    assert_eq!(told(&world, AlertRule::HedgeRateHigh).len(), 1);
    world.seconds(30, &[(route(), CALLS)]);
    assert_one_each(&told(&world, AlertRule::HedgeRateHigh), 1);
}

#[test]
fn a_high_rate_is_pending_for_ten_seconds() {
    let mut world = World::hedging();
    world.seconds(8, &[(route(), STORM)]);
    let alerts = world.snapshot().alerts;
    assert_eq!((alerts[0].phase, alerts.len()), (AlertPhase::Pending, 1));
    assert!(world.store.notices.is_empty());
    world.seconds(6, &[(route(), STORM)]);
    let alerts = world.snapshot().alerts;
    assert_eq!(alerts[0].phase, AlertPhase::Firing);
    assert!(
        alerts[0].state.summary.contains("over 10.0 %"),
        "{}",
        alerts[0].state.summary
    );
    // A short one is nobody's business.
    let mut world = World::hedging();
    world.seconds(6, &[(route(), STORM)]);
    world.seconds(60, &[(route(), CALLS)]);
    assert!(world.store.notices.is_empty());
}

#[test]
fn demand_beyond_the_budget_is_told_though_no_more_is_sent() {
    let mut world = World::hedging();
    // The threshold follows within seconds, so the demand has to be made of calls that cross it.
    world.seconds(
        20,
        &[(
            route(),
            Traffic {
                slow: 0.2,
                hedged: 0.08,
                ..CALLS
            },
        )],
    );
    let fired = of(&world, AlertRule::HedgeRateHigh);
    assert_eq!(fired.len(), 1);
    assert!(
        fired[0].summary.contains("calls beyond the threshold"),
        "{}",
        fired[0].summary
    );
}

#[test]
fn a_budget_above_ten_percent_moves_the_line_and_says_so() {
    let mut world = World::hedging();
    world
        .ordered(set(policy_with(|it| it.budget = 0.2)))
        .unwrap();
    world.seconds(
        40,
        &[(
            route(),
            Traffic {
                hedged: 0.2,
                ..CALLS
            },
        )],
    );
    assert!(of(&world, AlertRule::HedgeRateHigh).is_empty());
    world.seconds(
        40,
        &[(
            route(),
            Traffic {
                hedged: 0.27,
                slow: 0.27,
                ..CALLS
            },
        )],
    );
    let fired = of(&world, AlertRule::HedgeRateHigh);
    assert!(
        fired[0].summary.contains("1.25 times its budget"),
        "{}",
        fired[0].summary
    );
}

#[test]
fn p15_the_notice_of_an_off_is_stored_with_the_transition_it_comes_from() {
    let mut world = World::hedging();
    world.store.answers = crate::store::Answers::Later;
    let mut together = false;
    for _ in 0..10 {
        world.second(&[(route(), FAILING)]);
        together |= world.store.waiting.iter().any(|(_, records)| {
            let has = |wanted: fn(&Record) -> bool| records.iter().any(wanted);
            has(|it| matches!(it, Record::Transition(_)))
                && has(|it| matches!(it, Record::Alert(_)))
                && has(|it| matches!(it, Record::Mode(_)))
                && has(|it| matches!(it, Record::Audit(_)))
        });
    }
    assert!(together);
}

#[test]
fn p15_an_off_and_on_is_one_firing_and_one_resolved_also_over_a_restart() {
    for restarts in [0, 3] {
        let mut world = World::hedging();
        world.seconds(15, &[(route(), FAILING)]);
        assert_eq!(told(&world, AlertRule::HedgingDisabled).len(), 1);
        for _ in 0..restarts {
            world.restart(Duration::from_secs(10));
            world.seconds(10, &[(route(), FAILING)]);
        }
        world.seconds(40, &[(route(), CALLS)]);
        assert_one_each(&told(&world, AlertRule::HedgingDisabled), 1);
    }
}

#[test]
fn shared_slowdown_is_told_and_inhibits_hedging_disabled() {
    let mut world = World::hedging();
    world.seconds(15, &[(route(), ALL_SLOW)]);
    let fired = told(&world, AlertRule::SharedSlowdown);
    assert_eq!(fired.len(), 1);
    assert!(world.agent(1).mode(&route()) != Mode::On);
    // The dependency begins to fail as well: one page is enough.
    world.seconds(
        15,
        &[(
            route(),
            Traffic {
                errors: 0.4,
                ..ALL_SLOW
            },
        )],
    );
    assert!(told(&world, AlertRule::HedgingDisabled).is_empty());
    assert_eq!(told(&world, AlertRule::SharedSlowdown), fired);
}

#[test]
fn a_persons_own_off_raises_nothing_and_ends_nothing() {
    let mut world = World::hedging();
    world.kill(true).unwrap();
    world.seconds(20, &[(route(), CALLS)]);
    assert!(world.store.notices.is_empty());
    world.kill(false).unwrap();
    world.seconds(15, &[(route(), FAILING)]);
    world.kill(true).unwrap();
    world.seconds(20, &[(route(), CALLS)]);
    assert_eq!(told(&world, AlertRule::HedgingDisabled).len(), 1);
    world.kill(false).unwrap();
    world.seconds(20, &[(route(), CALLS)]);
    assert_one_each(&told(&world, AlertRule::HedgingDisabled), 1);
}

#[test]
fn a_named_replica_is_told_by_name_with_its_cure() {
    let mut world = World::hedging();
    let one_slow = Traffic {
        slow: 0.2,
        one_replica: true,
        ..CALLS
    };
    world.seconds(4, &[(route(), one_slow)]);
    assert!(of(&world, AlertRule::ReplicaSlow).is_empty());
    world.seconds(10, &[(route(), one_slow)]);
    let fired = of(&world, AlertRule::ReplicaSlow);
    assert_eq!(fired.len(), 1);
    assert_eq!(fired[0].replica.as_deref(), Some("r0"));
    assert!(
        fired[0].summary.contains("ejecting it is the cure"),
        "{}",
        fired[0].summary
    );
    assert_eq!(world.view(&route()).replicas[0].replica.as_str(), "r0");
    world.seconds(120, &[(route(), CALLS)]);
    assert_one_each(&told(&world, AlertRule::ReplicaSlow), 1);
}

#[test]
fn a_failing_replica_is_told_as_failing() {
    let mut world = World::hedging();
    world.seconds(
        15,
        &[(
            route(),
            Traffic {
                errors: 0.1,
                one_replica: true,
                ..CALLS
            },
        )],
    );
    let fired = of(&world, AlertRule::ReplicaFailing);
    assert_eq!(fired[0].replica.as_deref(), Some("r0"));
    assert!(fired[0].summary.contains("failing"), "{}", fired[0].summary);
}

#[test]
fn probation_follows_the_named_and_is_a_new_stamp() {
    let mut world = World::hedging();
    let stamp = world.agent(1).held[&route()].stamp;
    world.seconds(
        15,
        &[(
            route(),
            Traffic {
                slow: 0.2,
                one_replica: true,
                ..CALLS
            },
        )],
    );
    let held = &world.agent(1).held[&route()];
    assert_eq!(
        held.probation
            .iter()
            .map(ReplicaName::as_str)
            .collect::<Vec<_>>(),
        ["r0"]
    );
    assert!(held.stamp > stamp);
    assert!(
        world
            .store
            .audit
            .iter()
            .any(|row| row.action == "probation.set")
    );
    world
        .ordered(set(policy_with(|it| it.probation = false)))
        .unwrap();
    world.seconds(
        10,
        &[(
            route(),
            Traffic {
                slow: 0.2,
                one_replica: true,
                ..CALLS
            },
        )],
    );
    assert!(world.agent(1).held[&route()].probation.is_empty());
}

#[test]
fn p16_no_data_resolves_nothing() {
    let mut world = World::hedging();
    world.seconds(
        20,
        &[(
            route(),
            Traffic {
                slow: 0.2,
                one_replica: true,
                ..STORM
            },
        )],
    );
    // That agents are gone is told by a rule of its own.
    let alerts = |world: &World| {
        let alerts = world.snapshot().alerts;
        let others = alerts.iter().map(|it| it.state.rule);
        others.filter(|it| *it != AlertRule::AgentsStale).count()
    };
    let notices = |world: &World| {
        let notices = world.store.notices.iter().map(|it| it.rule);
        notices.filter(|it| *it != AlertRule::AgentsStale).count()
    };
    let (firing, told) = (alerts(&world), notices(&world));
    assert!(firing >= 2, "{:?}", world.snapshot().alerts);
    for quiet in [0, 1] {
        world.seconds(
            400,
            &[(
                route(),
                Traffic {
                    calls: quiet,
                    ..CALLS
                },
            )],
        );
        assert_eq!(notices(&world), told, "{quiet} calls a second");
    }
    let agents: Vec<_> = world.agents.keys().copied().collect();
    for connection in agents {
        world.leave(connection, hedgerow_core::event::Departure::Lost);
    }
    world.seconds(400, &[]);
    assert_eq!(notices(&world), told);
    world.restart(Duration::from_secs(5));
    world.seconds(60, &[]);
    assert_eq!(notices(&world), told);
    assert_eq!(alerts(&world), firing);
}

#[test]
fn b77_notices_come_in_their_order_however_late_the_store_is() {
    let mut world = World::hedging();
    world.store.answers = crate::store::Answers::Never;
    world.seconds(30, &[(route(), STORM)]);
    world.seconds(40, &[(route(), CALLS)]);
    assert!(world.store.notices.is_empty());
    world.store.answers = crate::store::Answers::Now;
    world.seconds(2, &[(route(), CALLS)]);
    assert_one_each(&told(&world, AlertRule::HedgeRateHigh), 1);
    let when = |it: &AlertState| it.resolved.unwrap_or(it.since);
    let times: Vec<Moment> = world.store.notices.iter().map(when).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn b78_a_slow_evaluation_resolves_nothing_that_holds() {
    let mut world = World::hedging();
    for _ in 0..100 {
        world.now = world.now.plus(Duration::from_secs(4));
        world.second(&[(route(), STORM)]);
    }
    assert_eq!(told(&world, AlertRule::HedgeRateHigh).len(), 1);
    assert!(!told(&world, AlertRule::HedgeRateHigh)[0].1);
}

#[test]
fn b79_a_second_episode_of_the_same_fires_again() {
    let mut world = World::hedging();
    for _ in 0..2 {
        world.seconds(15, &[(route(), FAILING)]);
        world.seconds(40, &[(route(), CALLS)]);
    }
    assert_one_each(&told(&world, AlertRule::HedgingDisabled), 2);
}

#[test]
fn what_is_over_is_shown_for_an_hour() {
    let mut world = World::hedging();
    world.seconds(30, &[(route(), STORM)]);
    world.seconds(40, &[(route(), CALLS)]);
    assert_eq!(world.snapshot().alerts[0].phase, AlertPhase::Resolved);
    world.now = world.now.plus(Duration::from_hours(1));
    world.second(&[(route(), CALLS)]);
    assert!(world.snapshot().alerts.is_empty());
}
