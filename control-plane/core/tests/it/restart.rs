//! What a controller knows when it starts again.

use std::time::Duration;

use hedgerow_core::event::KillScope;
use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::ids::Epoch;

use crate::store::{Answers, Store};
use crate::traffic::Traffic;
use crate::world::{World, policy_with, route, set};

const CALLS: Traffic = Traffic::HEALTHY;
const AWAY: Duration = Duration::from_secs(20);

#[test]
fn b69_policies_kills_and_modes_are_the_same_after_a_restart() {
    let mut world = World::hedging();
    world
        .ordered(set(policy_with(|it| it.budget = 0.12)))
        .unwrap();
    world.kill(true).unwrap();
    let before = world.snapshot();
    world.restart(AWAY);
    world.second(&[(route(), CALLS)]);
    let after = world.snapshot();
    let policies = |it: &hedgerow_core::view::FleetSnapshot| {
        let each = it.policies.iter();
        each.map(|(name, it)| (name.clone(), it.revision, it.policy.clone(), it.since))
            .collect::<Vec<_>>()
    };
    assert_eq!(policies(&after), policies(&before));
    assert_eq!(after.kills[0].state, before.kills[0].state);
    assert_eq!(after.kills[0].state.scope, KillScope::Everything);
    let (was, is) = (&before.routes[&route()], &after.routes[&route()]);
    assert_eq!((is.mode, is.since), (was.mode, was.since));
    assert_eq!(after.epoch, before.epoch.next());
    assert_eq!(
        world.agent(1_001).mode(&route()),
        Mode::Off(OffReason::KillSwitch)
    );
}

#[test]
fn b69_what_was_on_stays_on_with_the_threshold_agents_hold() {
    let mut world = World::hedging();
    let threshold = world.agent(1).held[&route()].live.threshold;
    world.restart(AWAY);
    // Before anything is reported.
    let held = &world.agent(1_001).held[&route()];
    assert_eq!((held.mode, held.live.threshold), (Mode::On, threshold));
    assert_eq!(held.stamp.epoch, Epoch(2));
    assert!(
        world.store.transitions.iter().all(|it| it.at <= world.now),
        "no new transition"
    );
}

#[test]
fn p02_what_was_off_stays_off_over_a_restart_until_it_is_found_well() {
    let mut world = World::hedging();
    world.seconds(
        8,
        &[(
            route(),
            Traffic {
                errors: 0.4,
                ..CALLS
            },
        )],
    );
    assert_eq!(world.agent(1).mode(&route()), Mode::Off(OffReason::Errors));
    world.restart(AWAY);
    assert_eq!(
        world.agent(1_001).mode(&route()),
        Mode::Off(OffReason::Errors)
    );
    // Silence is not health.
    world.seconds(30, &[(route(), Traffic { calls: 0, ..CALLS })]);
    assert_eq!(
        world.agent(1_001).mode(&route()),
        Mode::Off(OffReason::Errors)
    );
    world.seconds(30, &[(route(), CALLS)]);
    assert_eq!(world.agent(1_001).mode(&route()), Mode::On);
}

#[test]
fn a_controller_with_a_new_store_relearns_from_its_agents() {
    let mut world = World::hedging();
    let threshold = world.agent(1).held[&route()].live.threshold;
    let policies = world.store.policies.clone();
    world.store = Store {
        policies,
        ..Store::default()
    };
    world.restart(AWAY);
    let held = &world.agent(1_001).held[&route()];
    assert_eq!((held.mode, held.live.threshold), (Mode::On, threshold));
    assert!(held.stamp.epoch > Epoch(1));
}

#[test]
fn p19_a_kill_that_was_not_stored_when_the_controller_died_is_not_half_there() {
    let mut world = World::hedging();
    world.store.answers = Answers::Later;
    world.order(hedgerow_core::event::Order::Kill {
        scope: KillScope::Everything,
        engaged: true,
    });
    world.restart(AWAY);
    world.second(&[(route(), CALLS)]);
    assert!(world.snapshot().kills.is_empty());
    assert_eq!(world.agent(1_001).mode(&route()), Mode::On);
    assert!(world.store.audit.iter().all(|row| row.action != "kill.on"));
}

#[test]
fn an_automatic_off_is_told_by_live_values_while_the_store_fails_and_stored_when_it_is_well() {
    let mut world = World::hedging();
    world.store.answers = Answers::Never;
    let failing = Traffic {
        errors: 0.4,
        ..CALLS
    };
    world.seconds(8, &[(route(), failing)]);
    // The mode is not stored, so nobody is told one; but nobody hedges.
    assert_eq!(world.agent(1).mode(&route()), Mode::On);
    assert!(!world.agent(1).may_hedge(&route()));
    assert!(world.store.transitions.iter().all(|it| it.to == Mode::On));
    world.store.answers = Answers::Now;
    world.seconds(2, &[(route(), failing)]);
    assert_eq!(world.agent(1).mode(&route()), Mode::Off(OffReason::Errors));
    let last = world.store.transitions.last().unwrap();
    assert_eq!(
        (last.from, last.to),
        (Mode::On, Mode::Off(OffReason::Errors))
    );
    assert!(
        !last.evidence.is_empty() && last.words.contains("error rate"),
        "{last:?}"
    );
    assert!(last.at < world.now);
    let row = world.store.audit.last().unwrap();
    assert_eq!(
        (row.actor.name.as_str(), row.action.as_str()),
        ("controller", "mode.off")
    );
    // And the notice went with it, once.
    assert_eq!(world.store.notices.len(), 1);
}

#[test]
fn p14_automatic_changes_are_bounded_recorded_and_end_with_a_person() {
    let mut world = World::hedging();
    for _ in 0..10 {
        world.seconds(
            15,
            &[(
                route(),
                Traffic {
                    errors: 0.4,
                    ..CALLS
                },
            )],
        );
        world.seconds(30, &[(route(), CALLS)]);
    }
    assert_eq!(
        world.agent(1).mode(&route()),
        Mode::Off(OffReason::TooManyChanges)
    );
    let hour = world
        .store
        .transitions
        .iter()
        .map(|it| it.to)
        .collect::<Vec<_>>();
    assert!(hour.len() <= 14, "{hour:?}");
    assert!(
        world
            .store
            .transitions
            .iter()
            .all(|it| !it.words.is_empty())
    );
    world
        .ordered(hedgerow_core::event::Order::Release { route: route() })
        .unwrap();
    assert_eq!(world.agent(1).mode(&route()), Mode::On);
}

#[test]
fn the_base_of_a_route_is_known_again_after_a_restart_and_forgotten_after_an_hour_away() {
    let mut world = World::hedging();
    world.seconds(30, &[(route(), CALLS)]);
    let base = |world: &World| {
        let course = &world.view(&route()).course;
        course.last().and_then(|point| point.base_ms)
    };
    let before = base(&world);
    assert!(before.is_some());
    world.restart(AWAY);
    world.second(&[(route(), CALLS)]);
    assert_eq!(base(&world), before);
    world.restart(Duration::from_mins(61));
    world.second(&[(route(), CALLS)]);
    assert_eq!(base(&world), None);
}
