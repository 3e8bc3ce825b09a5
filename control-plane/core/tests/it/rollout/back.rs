//! Rollouts that do not come to their end: taken back, replaced, or not stored.

use std::time::Duration;

use hedgerow_core::effect::{Done, OrderError};
use hedgerow_core::event::{ConnectionId, KillScope, Order};
use hedgerow_core::view::AlertRule;
use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::ids::{DependencyName, Revision};
use hedgerow_protocol::policy::Intent;

use super::{
    AGENTS, CALLS, actions, begin, catalog, holders, policy_view, rolling, rollout, second, world,
};
use crate::store::Answers;
use crate::traffic::Traffic;
use crate::world::{World, policy_with, roll_out, route, set};

#[test]
fn u07_a_revision_that_an_agent_refuses_is_taken_back() {
    let mut world = world();
    begin(&mut world, 0.1);
    let share = holders(&world, 2);
    let mut world = super::world();
    let refusing = ConnectionId(share[0]);
    world
        .agents
        .get_mut(&refusing)
        .unwrap()
        .refuses
        .insert(route());
    begin(&mut world, 0.1);
    world.second(&[(route(), CALLS)]);
    let view = policy_view(&world);
    assert_eq!((view.revision, view.rollout.is_none()), (Revision(3), true));
    assert!((view.policy.budget().get() - 0.08).abs() < 1e-9);
    assert!(world.agents.values().all(|it| {
        it.connection == refusing || it.held[&route()].stamp.revision == Revision(3)
    }));
    let row = world
        .store
        .audit
        .iter()
        .find(|it| it.action == "rollout.revert");
    let row = row.unwrap();
    assert_eq!(row.actor.name, "controller");
    assert!(
        row.reason.contains("live.budget: 0.3 is out of range"),
        "{}",
        row.reason
    );
}

#[test]
fn u07_a_share_that_fails_or_waits_more_is_taken_back_and_the_rest_never_had_it() {
    for (theirs, said) in [
        (
            Traffic {
                errors: 0.03,
                ..CALLS
            },
            "calls failed with the new policy",
        ),
        (
            Traffic {
                usual_ms: 10,
                slow: 0.2,
                ..CALLS
            },
            "of calls want a hedge",
        ),
        (
            Traffic {
                usual_ms: 14,
                ..CALLS
            },
            "callers' p99 is",
        ),
    ] {
        let mut world = rolling();
        let share = holders(&world, 2);
        for _ in 0..25 {
            second(&mut world, 2, theirs);
        }
        assert!(rollout(&world).is_none(), "{said}");
        let view = policy_view(&world);
        assert_eq!(view.revision, Revision(3));
        assert!((view.policy.budget().get() - 0.08).abs() < 1e-9);
        assert_eq!(holders(&world, 3).len(), AGENTS as usize);
        assert_eq!(actions(&world), ["rollout.begin", "rollout.revert"]);
        let row = world
            .store
            .audit
            .iter()
            .rfind(|it| it.action == "rollout.revert");
        assert!(row.unwrap().reason.contains(said), "{:?}", row.unwrap());
        let notices: Vec<_> = world
            .store
            .notices
            .iter()
            .filter(|it| it.rule == AlertRule::RolloutReverted)
            .collect();
        assert!(
            notices.len() == 1 && notices[0].summary.contains(said),
            "{notices:?}"
        );
        let marks = world.view(&route()).marks;
        assert!(
            marks
                .iter()
                .any(|it| it.words.contains("taken back by controller"))
        );
        for agent in world.agents.values() {
            let had = agent.sets.iter().flat_map(|set| &set.directives);
            let mut had = had.filter(|it| it.stamp.revision == Revision(2));
            assert_eq!(had.next().is_some(), share.contains(&agent.connection.0));
        }
        // Nobody was left out for doing as told.
        assert!(
            world
                .store
                .audit
                .iter()
                .all(|it| it.action != "agent.quarantine")
        );
    }
}

#[test]
fn p15_a_rollout_taken_back_is_one_alert_until_a_person_sets_a_policy_or_ten_minutes_are_over() {
    for waits in [false, true] {
        let mut world = rolling();
        let failing = Traffic {
            errors: 0.03,
            ..CALLS
        };
        for _ in 0..20 {
            second(&mut world, 2, failing);
        }
        assert!(rollout(&world).is_none());
        if waits {
            world.seconds(600, &[(route(), CALLS)]);
        } else {
            let another = policy_with(|it| it.budget = 0.07);
            world.ordered(set(another)).unwrap();
            world.second(&[(route(), CALLS)]);
        }
        let notices = world.store.notices.iter();
        let ends: Vec<_> = notices
            .filter(|it| it.rule == AlertRule::RolloutReverted)
            .map(|it| it.resolved.is_some())
            .collect();
        assert_eq!(ends, [false, true]);
    }
    // What fires goes on firing over a restart, for the same time.
    let mut world = rolling();
    let failing = Traffic {
        errors: 0.03,
        ..CALLS
    };
    for _ in 0..20 {
        second(&mut world, 2, failing);
    }
    world.restart(Duration::from_secs(7));
    let ends = |world: &World| {
        let notices = world.store.notices.iter();
        let mut ends = notices.filter(|it| it.rule == AlertRule::RolloutReverted);
        (ends.clone().count(), ends.any(|it| it.resolved.is_some()))
    };
    world.seconds(30, &[(route(), CALLS)]);
    assert_eq!(ends(&world), (1, false));
    world.seconds(570, &[(route(), CALLS)]);
    assert_eq!(ends(&world), (2, true));
    // A person who takes it back knows.
    let mut world = rolling();
    let order = Order::AbortRollout {
        scope: catalog().into(),
        expected: None,
    };
    world.ordered(order).unwrap();
    world.second(&[(route(), CALLS)]);
    assert!(world.store.notices.is_empty());
}

#[test]
fn u07_what_happens_to_all_alike_takes_nothing_back() {
    let mut world = rolling();
    let fault = Traffic {
        errors: 0.03,
        usual_ms: 14,
        ..CALLS
    };
    world.seconds(29, &[(route(), fault)]);
    assert_eq!(rollout(&world).unwrap().stage, 1);
    assert_eq!(actions(&world), ["rollout.begin"]);
}

#[test]
fn u07_what_all_alike_wait_for_takes_nothing_back_where_the_rest_observes() {
    let mut world = world();
    let observe = policy_with(|it| it.intent = Intent::Observe);
    world.ordered(set(observe)).unwrap();
    world.seconds(10, &[(route(), CALLS)]);
    begin(&mut world, 0.08);
    world.seconds(5, &[(route(), CALLS)]);
    let drift = Traffic { slow: 0.2, ..CALLS };
    world.seconds(20, &[(route(), drift)]);
    assert_eq!(rollout(&world).unwrap().stage, 1);
    assert_eq!(actions(&world), ["rollout.begin"]);
}

#[test]
fn u07_a_person_takes_it_back_or_on() {
    let mut world = rolling();
    let step = |back: bool, expected: u64| {
        let (scope, expected) = (catalog().into(), Some(Revision(expected)));
        if back {
            Order::AbortRollout { scope, expected }
        } else {
            Order::AdvanceRollout { scope, expected }
        }
    };
    let stale = OrderError::Stale {
        expected: Revision(1),
        current: Revision(2),
    };
    assert_eq!(world.ordered(step(true, 1)), Err(stale));
    let done = |revision| {
        Ok(Done::Policy {
            revision: Revision(revision),
            changed: true,
        })
    };
    assert_eq!(world.ordered(step(false, 2)), done(2));
    assert_eq!(rollout(&world).unwrap().stage, 2);
    assert_eq!(world.ordered(step(true, 2)), done(3));
    assert_eq!(holders(&world, 3).len(), AGENTS as usize);
    let row = world.store.audit.last().unwrap();
    assert_eq!(
        (row.actor.name.as_str(), row.action.as_str()),
        ("ann", "rollout.revert")
    );
    assert_eq!(
        world.ordered(step(true, 2)),
        Err(OrderError::NoRollout(catalog().into()))
    );
}

#[test]
fn u07_another_policy_takes_a_rollouts_place() {
    let mut world = rolling();
    let stale = world.ordered(Order::SetPolicy {
        policy: Box::new(policy_with(|it| it.budget = 0.05)),
        expected: Some(Revision(1)),
        rollout: None,
    });
    let expected = OrderError::Stale {
        expected: Revision(1),
        current: Revision(2),
    };
    assert_eq!(stale, Err(expected));
    // For everybody at once.
    world
        .ordered(set(policy_with(|it| it.budget = 0.05)))
        .unwrap();
    assert!(rollout(&world).is_none());
    assert_eq!(holders(&world, 3).len(), AGENTS as usize);
    // In steps, twice: the first share goes back before the second one goes on.
    begin(&mut world, 0.1);
    let first = holders(&world, 4);
    world
        .ordered(Order::AdvanceRollout {
            scope: catalog().into(),
            expected: None,
        })
        .unwrap();
    let more = holders(&world, 4);
    assert!(more.len() > first.len());
    begin(&mut world, 0.12);
    let newest = policy_view(&world).revision;
    assert_eq!(holders(&world, newest.0), first);
    let base = rollout(&world).unwrap().base;
    assert_eq!(holders(&world, base.0).len(), AGENTS as usize - first.len());
    // The same policy, for everybody at once, ends it.
    world
        .ordered(set(policy_with(|it| it.budget = 0.12)))
        .unwrap();
    assert!(rollout(&world).is_none());
    assert_eq!(holders(&world, newest.next().0).len(), AGENTS as usize);
}

#[test]
fn u07_a_kill_switch_takes_it_back() {
    for scope in [KillScope::Everything, KillScope::Dependency(catalog())] {
        let mut world = rolling();
        let order = |engaged| Order::Kill {
            scope: scope.clone(),
            engaged,
        };
        world.ordered(order(true)).unwrap();
        assert!(rollout(&world).is_none());
        assert_eq!(policy_view(&world).revision, Revision(3));
        for agent in world.agents.values() {
            let held = &agent.held[&route()];
            assert_eq!(held.mode, Mode::Off(OffReason::KillSwitch));
            assert_eq!(held.stamp.revision, Revision(3));
        }
        world.ordered(order(false)).unwrap();
        world.seconds(3, &[(route(), CALLS)]);
        assert!((policy_view(&world).policy.budget().get() - 0.08).abs() < 1e-9);
        assert!(world.agents.values().all(|it| it.may_hedge(&route())));
    }
    // One for another dependency does not.
    let mut world = rolling();
    let scope = KillScope::Dependency(DependencyName::new("search").unwrap());
    world
        .ordered(Order::Kill {
            scope,
            engaged: true,
        })
        .unwrap();
    assert!(rollout(&world).is_some());
}

#[test]
fn p10_no_step_is_told_before_it_is_stored_and_a_failed_one_is_tried_again() {
    let mut world = world();
    world.store.answers = Answers::Later;
    let request = world.order(roll_out(policy_with(|it| it.budget = 0.1)));
    assert!(!world.replies.contains_key(&request) && holders(&world, 2).is_empty());
    world.store_answers(true);
    let share = holders(&world, 2);
    assert!(!share.is_empty());
    world.store.answers = Answers::Never;
    let failing = Traffic {
        errors: 0.04,
        ..CALLS
    };
    for _ in 0..10 {
        second(&mut world, 2, failing);
    }
    // The store does not take it; but nobody in the share hedges.
    assert_eq!(holders(&world, 2), share);
    for agent in world.agents.values() {
        let new = share.contains(&agent.connection.0);
        assert_eq!(agent.may_hedge(&route()), !new);
    }
    assert!(rollout(&world).unwrap().words.starts_with("taken back: "));
    world.store.answers = Answers::Now;
    world.seconds(2, &[(route(), CALLS)]);
    assert!(rollout(&world).is_none());
    assert!(world.agents.values().all(|it| it.may_hedge(&route())));
}

#[test]
fn p05_the_numbers_of_a_rollout_that_was_taken_back_are_not_given_again() {
    let mut world = rolling();
    let order = Order::AbortRollout {
        scope: catalog().into(),
        expected: None,
    };
    world.ordered(order).unwrap();
    world.restart(Duration::from_secs(7));
    // The store says so where a number comes twice.
    world.kill(true).unwrap();
    world.second(&[(route(), CALLS)]);
    let sequence = |world: &World| world.view(&route()).stamp.mode_sequence;
    assert!(
        world
            .store
            .sequences
            .keys()
            .all(|(_, it)| *it <= sequence(&world))
    );
}

#[test]
fn u07_a_share_found_worse_while_its_next_step_is_being_stored_goes_back_all_the_same() {
    let mut world = rolling();
    world.store.answers = Answers::Later;
    world.order(Order::AdvanceRollout {
        scope: catalog().into(),
        expected: None,
    });
    let failing = Traffic {
        errors: 0.04,
        ..CALLS
    };
    for _ in 0..10 {
        second(&mut world, 2, failing);
    }
    assert!(rollout(&world).unwrap().words.starts_with("taken back: "));
    world.store.answers = Answers::Now;
    world.store_answers(true);
    assert_eq!(actions(&world), ["rollout.begin", "rollout.advance"]);
    // Nobody with the new policy hedges by it meanwhile.
    for agent in world.agents.values() {
        let new = agent.held[&route()].stamp.revision == Revision(2);
        assert!(!(new && agent.may_hedge(&route())));
    }
    second(&mut world, 2, CALLS);
    assert!(rollout(&world).is_none());
    assert_eq!(actions(&world).last(), Some(&"rollout.revert"));
}
