//! What people order.

use std::time::Duration;

use hedgerow_core::effect::{Done, OrderError};
use hedgerow_core::event::{KillScope, Order};
use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::ids::{DependencyName, Revision, RouteKey};
use hedgerow_protocol::policy::Intent;

use crate::agent::Agent;
use crate::store::Answers;
use crate::traffic::Traffic;
use crate::world::{World, policy, policy_with, route, set};

const CALLS: Traffic = Traffic::HEALTHY;

#[test]
fn a_policy_is_stored_with_its_line_in_the_record_then_pushed_then_answered() {
    let mut world = World::new();
    world.join(Agent::new(1));
    world.second(&[(route(), CALLS)]);
    let done = world.ordered(set(policy()));
    assert_eq!(
        done,
        Ok(Done::Policy {
            revision: Revision(1),
            changed: true
        })
    );
    assert_eq!(world.agent(1).held[&route()].stamp.revision, Revision(1));
    let row = world.store.audit.last().unwrap();
    assert_eq!(
        (row.action.as_str(), row.target.as_str()),
        ("policy.set", "catalog")
    );
    assert_eq!(
        (row.actor.name.as_str(), row.reason.as_str()),
        ("ann", "a test wants it")
    );
    assert!(row.after.contains("intent=hedge"), "{}", row.after);
    world.seconds(30, &[(route(), CALLS)]);
    assert_eq!(world.agent(1).mode(&route()), Mode::On);
    assert!(world.agent(1).may_hedge(&route()));
}

#[test]
fn p10_a_kill_is_stored_before_it_is_pushed_or_acknowledged() {
    let mut world = World::hedging();
    assert!(world.agent(1).may_hedge(&route()));
    world.store.answers = Answers::Later;
    let request = world.order(Order::Kill {
        scope: KillScope::Everything,
        engaged: true,
    });
    assert_eq!(world.replies.get(&request), None);
    assert_eq!(world.agent(1).mode(&route()), Mode::On);
    world.store_answers(true);
    assert_eq!(world.replies[&request], Ok(Done::Kill { changed: true }));
    for number in 1..=3 {
        // No tick was needed.
        assert_eq!(
            world.agent(number).mode(&route()),
            Mode::Off(OffReason::KillSwitch)
        );
    }
    let kill = &world.snapshot().kills[0];
    assert_eq!((kill.acked.n, kill.acked.m), (3, 3));
    assert!(world.store.kills[&KillScope::Everything].engaged);
    // One write: the switch, the modes it changes, and the line in the record.
    assert_eq!(
        world.store.modes[&route()].mode,
        Mode::Off(OffReason::KillSwitch)
    );
    assert_eq!(world.store.audit.last().unwrap().action, "kill.on");

    world.store.answers = Answers::Now;
    world.kill(false).unwrap();
    assert_eq!(world.agent(1).mode(&route()), Mode::On);
    assert!(world.snapshot().kills.is_empty());
}

#[test]
fn p10_acked_counts_those_that_hold_it() {
    let mut world = World::hedging();
    world.agents.values_mut().next().unwrap().deaf = true;
    world.kill(true).unwrap();
    let kill = &world.snapshot().kills[0];
    assert_eq!((kill.acked.n, kill.acked.m), (2, 3));
}

#[test]
fn p10_hedging_stops_with_the_next_tick_while_a_kill_waits_for_the_store() {
    let mut world = World::hedging();
    world.store.answers = Answers::Later;
    let kill = Order::Kill {
        scope: KillScope::Everything,
        engaged: true,
    };
    let request = world.order(kill.clone());
    world.second(&[(route(), CALLS)]);
    assert_eq!(world.agent(1).mode(&route()), Mode::On);
    assert!(
        !world.agent(1).may_hedge(&route()),
        "{:?}",
        world.agent(1).held
    );
    // The store fails: nothing changed, and the person is told so.
    world.store_answers(false);
    assert!(matches!(
        &world.replies[&request],
        Err(OrderError::NotPersisted(_))
    ));
    world.store.answers = Answers::Now;
    world.second(&[(route(), CALLS)]);
    assert!(world.agent(1).may_hedge(&route()));
    assert!(world.snapshot().kills.is_empty());
    assert_eq!(world.ordered(kill), Ok(Done::Kill { changed: true }));
}

#[test]
fn off_wins_over_on_whatever_the_policy_says() {
    let mut world = World::hedging();
    let scope = KillScope::Dependency(DependencyName::new("catalog").unwrap());
    world
        .ordered(Order::Kill {
            scope,
            engaged: true,
        })
        .unwrap();
    world
        .ordered(set(policy_with(|it| it.budget = 0.2)))
        .unwrap();
    world.seconds(30, &[(route(), CALLS)]);
    assert_eq!(
        world.agent(1).mode(&route()),
        Mode::Off(OffReason::KillSwitch)
    );
    assert_eq!(world.agent(1).held[&route()].stamp.revision, Revision(2));
}

#[test]
fn c20_a_save_that_changes_nothing_makes_no_revision_and_no_push() {
    let mut world = World::hedging();
    let (pushes, rows) = (world.pushes.len(), world.store.audit.len());
    let done = world.ordered(set(policy()));
    assert_eq!(
        done,
        Ok(Done::Policy {
            revision: Revision(1),
            changed: false
        })
    );
    assert_eq!(world.kill(false), Ok(Done::Kill { changed: false }));
    assert_eq!(
        (world.pushes.len(), world.store.audit.len()),
        (pushes, rows)
    );
    assert_eq!(world.store.policies[&"catalog".parse().unwrap()].len(), 1);
}

#[test]
fn b71_two_saves_at_once_are_one_change() {
    let mut world = World::hedging();
    world.store.answers = Answers::Later;
    let wanted = policy_with(|it| it.budget = 0.1);
    let save = |policy: &hedgerow_protocol::policy::Policy| Order::SetPolicy {
        policy: Box::new(policy.clone()),
        expected: Some(Revision(1)),
        rollout: None,
    };
    let first = world.order(save(&wanted));
    let again = world.order(save(&wanted));
    let other = world.order(save(&policy_with(|it| it.budget = 0.12)));
    world.store_answers(true);
    assert_eq!(
        world.replies[&first],
        Ok(Done::Policy {
            revision: Revision(2),
            changed: true
        })
    );
    assert_eq!(
        world.replies[&again],
        Ok(Done::Policy {
            revision: Revision(2),
            changed: false
        })
    );
    assert_eq!(
        world.replies[&other],
        Err(OrderError::Stale {
            expected: Revision(1),
            current: Revision(2)
        })
    );
}

#[test]
fn an_order_that_fails_changes_nothing_and_its_numbers_are_not_used_again() {
    let mut world = World::hedging();
    let before = world.view(&route());
    world.store.answers = Answers::Never;
    let off = policy_with(|it| it.intent = Intent::Off);
    let failed = world.ordered(set(off.clone()));
    assert_eq!(
        failed,
        Err(OrderError::NotPersisted("the disk is full".into()))
    );
    assert_eq!(world.view(&route()).stamp, before.stamp);
    assert_eq!(world.agent(1).mode(&route()), Mode::On);
    assert!(world.snapshot().controller.write_problem.is_some());
    world.store.answers = Answers::Now;
    // The failed write may have been stored all the same.
    let done = world.ordered(set(off));
    assert_eq!(
        done,
        Ok(Done::Policy {
            revision: Revision(3),
            changed: true
        })
    );
    assert_eq!(world.agent(1).mode(&route()), Mode::Off(OffReason::Policy));
}

#[test]
fn an_order_needs_a_reason_and_a_route_that_is_known() {
    let mut world = World::new();
    let request = world.order_because("  ", set(policy()));
    assert_eq!(world.replies[&request], Err(OrderError::NoReason));
    let unknown = RouteKey::new("nobody", "calls").unwrap();
    assert_eq!(
        world.ordered(Order::Release {
            route: unknown.clone()
        }),
        Err(OrderError::UnknownRoute(unknown))
    );
}

#[test]
fn orders_beyond_the_line_are_refused_while_the_store_stands_still() {
    let mut world = World::new();
    world.store.answers = Answers::Later;
    for _ in 0..70 {
        world.order(Order::Kill {
            scope: KillScope::Everything,
            engaged: true,
        });
    }
    assert_eq!(world.replies.len(), 5);
    world.store_answers(true);
    assert_eq!(world.replies.len(), 70);
    let changed = Ok(Done::Kill { changed: true });
    assert_eq!(
        world.replies.values().filter(|it| **it == changed).count(),
        1
    );
}

#[test]
fn a_release_and_a_new_base_are_in_the_record() {
    let mut world = World::hedging();
    for order in [
        Order::Release { route: route() },
        Order::AcceptBase { route: route() },
    ] {
        assert_eq!(world.ordered(order), Ok(Done::Route));
    }
    let actions: Vec<_> = world
        .store
        .audit
        .iter()
        .map(|row| row.action.as_str())
        .collect();
    assert!(
        actions.ends_with(&["route.release", "route.accept_base"]),
        "{actions:?}"
    );
    world.now = world.now.plus(Duration::from_secs(1));
    world.tick();
    assert_eq!(world.agent(1).mode(&route()), Mode::On);
}

/// Others' orders fill their own places only, and a kill switch goes before those that wait.
#[test]
fn p10_a_kill_switch_passes_the_line_and_is_not_crowded_out() {
    let mut world = World::hedging();
    world.store.answers = Answers::Later;
    let budget = |n: u32| set(policy_with(|it| it.budget = 0.05 + f64::from(n) * 1e-4));
    let waiting: Vec<_> = (0..80).map(|n| world.order(budget(n))).collect();
    let refused = |world: &World| {
        let mut replies = waiting.iter().filter_map(|it| world.replies.get(it));
        replies.any(|it| matches!(it, Err(OrderError::NotPersisted(_))))
    };
    assert!(refused(&world), "there is an end to what waits");
    let kill = world.order(Order::Kill {
        scope: KillScope::Everything,
        engaged: true,
    });
    assert_eq!(world.replies.get(&kill), None, "it waits");
    // The order under way, then the kill switch.
    world.store_answers(true);
    world.store_answers(true);
    assert_eq!(
        world.replies.get(&kill),
        Some(&Ok(Done::Kill { changed: true }))
    );
    assert!(!world.agent(1).may_hedge(&route()));
}
