//! Policies of operations, dependencies and patterns: which of them holds, and that what agents hold
//! only ever rises.

use std::time::Duration;

use hedgerow_core::effect::{Done, OrderError};
use hedgerow_core::event::Order;
use hedgerow_protocol::ids::{Revision, RouteKey};
use hedgerow_protocol::policy::{Policy, PolicyScope};
use proptest::prelude::*;

use crate::agent::Agent;
use crate::traffic::Traffic;
use crate::world::{World, policy_with, roll_out, route, set};

const CALLS: Traffic = Traffic::HEALTHY;
/// From the widest to the narrowest, as far as they cover `catalog get`.
const SCOPES: [&str; 4] = ["*", "cat*", "catalog", "catalog get"];

fn scope(text: &str) -> PolicyScope {
    text.parse().unwrap()
}

fn with_budget(text: &str, budget: f64) -> Policy {
    policy_with(|draft| draft.budget = budget).for_scope(scope(text))
}

fn remove(text: &str) -> Order {
    Order::RemovePolicy {
        scope: scope(text),
        expected: None,
    }
}

fn other() -> RouteKey {
    RouteKey::new("catalog", "list").unwrap()
}

fn world() -> World {
    let mut world = World::new();
    world.join(Agent::new(1));
    world.second(&[(route(), CALLS), (other(), CALLS)]);
    world
}

fn budget(world: &World, route: &RouteKey) -> Option<f64> {
    let fleet = world.snapshot();
    fleet.policy_for(route).map(|it| it.policy.budget().get())
}

#[test]
fn u07_the_narrowest_policy_holds_and_taking_it_away_leaves_the_next() {
    let mut world = world();
    let budgets = [0.02, 0.03, 0.04, 0.05];
    for (number, (text, budget_of)) in SCOPES.into_iter().zip(budgets).enumerate() {
        world.ordered(set(with_budget(text, budget_of))).unwrap();
        assert_eq!(budget(&world, &route()), Some(budget_of), "{text}");
        let held = world.agent(1).held[&route()].stamp.revision;
        assert_eq!(held, Revision(number as u64 + 1), "{text}");
    }
    // The other operation goes by the dependency, and heard nothing of the last one.
    assert_eq!(budget(&world, &other()), Some(0.04));
    assert_eq!(world.agent(1).held[&other()].stamp.revision, Revision(3));
    for (number, (text, left)) in [
        ("catalog get", Some(0.04)),
        ("catalog", Some(0.03)),
        ("cat*", Some(0.02)),
        ("*", None),
    ]
    .into_iter()
    .enumerate()
    {
        world.ordered(remove(text)).unwrap();
        assert_eq!(budget(&world, &route()), left, "{text} is taken away");
        let held = world.agent(1).held[&route()].stamp.revision;
        assert_eq!(held, Revision(number as u64 + 5), "it rises all the same");
    }
    let gone = world.ordered(remove("catalog"));
    assert_eq!(gone, Err(OrderError::NoPolicy(scope("catalog"))));
}

#[test]
fn a_wider_policy_tells_nothing_to_routes_with_a_narrower_one() {
    let mut world = world();
    world.ordered(set(with_budget("catalog", 0.04))).unwrap();
    let held = world.agent(1).held[&route()].stamp;
    world.ordered(set(with_budget("*", 0.02))).unwrap();
    assert_eq!(world.agent(1).held[&route()].stamp, held);
    // It would matter only once the narrower one is gone.
    world.ordered(remove("catalog")).unwrap();
    assert_eq!(budget(&world, &route()), Some(0.02));
}

#[test]
fn c20_a_removal_or_a_policy_that_changes_nothing_is_no_revision() {
    let mut world = world();
    let first = world.ordered(set(with_budget("cat*", 0.03)));
    let again = world.ordered(set(with_budget("cat*", 0.03)));
    let done = |changed| {
        Ok(Done::Policy {
            revision: Revision(1),
            changed,
        })
    };
    assert_eq!((first, again), (done(true), done(false)));
}

#[test]
fn a_stale_removal_is_refused() {
    let mut world = world();
    world.ordered(set(with_budget("catalog", 0.03))).unwrap();
    world.ordered(set(with_budget("catalog", 0.04))).unwrap();
    let stale = world.ordered(Order::RemovePolicy {
        scope: scope("catalog"),
        expected: Some(Revision(1)),
    });
    let (expected, current) = (Revision(1), Revision(2));
    assert_eq!(stale, Err(OrderError::Stale { expected, current }));
}

#[test]
fn whoever_saw_no_policy_may_set_one_also_after_one_was_taken_away() {
    let mut world = world();
    let saw_none = |budget| Order::SetPolicy {
        policy: Box::new(with_budget("catalog", budget)),
        expected: Some(Revision(0)),
        rollout: None,
    };
    world.ordered(saw_none(0.03)).unwrap();
    let (expected, current) = (Revision(0), Revision(1));
    let stale = world.ordered(saw_none(0.04));
    assert_eq!(stale, Err(OrderError::Stale { expected, current }));
    world.ordered(remove("catalog")).unwrap();
    world.ordered(saw_none(0.04)).unwrap();
    assert_eq!(budget(&world, &route()), Some(0.04));
}

#[test]
fn what_was_taken_away_stays_away_over_a_restart_and_its_number_is_not_used_again() {
    let mut world = world();
    world.ordered(set(with_budget("catalog", 0.03))).unwrap();
    world.ordered(remove("catalog")).unwrap();
    world.restart(Duration::from_secs(1));
    world.second(&[(route(), CALLS)]);
    assert_eq!(budget(&world, &route()), None);
    let done = world.ordered(set(with_budget("catalog", 0.05)));
    let revision = Revision(3);
    let changed = true;
    assert_eq!(done, Ok(Done::Policy { revision, changed }));
}

#[test]
fn u07_an_operation_is_rolled_out_alone_and_nothing_beside_it_changes_meanwhile() {
    let mut world = world();
    world.ordered(set(with_budget("catalog", 0.04))).unwrap();
    let narrow = with_budget("catalog get", 0.05);
    world.ordered(roll_out(narrow)).unwrap();
    world.seconds(3, &[(route(), CALLS), (other(), CALLS)]);
    let fleet = world.snapshot();
    let view = &fleet.policies[&scope("catalog get")];
    let rollout = view.rollout.as_ref().unwrap();
    assert_eq!(rollout.base, Revision(0));
    assert!((rollout.base_policy.budget().get() - 0.04).abs() < 1e-9);
    for text in ["catalog", "*", "cat*"] {
        let problem = world.ordered(set(with_budget(text, 0.06))).unwrap_err();
        let expected = OrderError::RolloutBeside {
            scope: scope(text),
            beside: scope("catalog get"),
        };
        assert_eq!(problem, expected);
    }
    // Another dependency has nothing to do with it.
    world.ordered(set(with_budget("search", 0.06))).unwrap();
    let back = Order::AbortRollout {
        scope: scope("catalog get"),
        expected: None,
    };
    world.ordered(back).unwrap();
    assert_eq!(budget(&world, &route()), Some(0.04), "the dependency's own");
    world.ordered(set(with_budget("catalog", 0.06))).unwrap();
    assert_eq!(budget(&world, &route()), Some(0.06));
}

#[test]
fn a_pattern_is_not_put_in_force_in_steps() {
    let mut world = world();
    let refused = world.ordered(roll_out(with_budget("cat*", 0.03)));
    assert_eq!(refused, Err(OrderError::PatternInSteps(scope("cat*"))));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// The agents of this world refuse what is older than what they hold, and the store what it has
    /// not been given.
    #[test]
    fn p05_whatever_comes_and_goes_agents_never_go_back(
        steps in prop::collection::vec((0..SCOPES.len(), 0..4_u32, any::<bool>()), 1..24),
    ) {
        let mut world = world();
        let mut newest = Revision(0);
        for (which, what, restart) in steps {
            let text = SCOPES[which];
            let _ = match what {
                0 => world.ordered(remove(text)),
                1 => world.ordered(roll_out(with_budget(text, 0.07))),
                2 => world.ordered(Order::AbortRollout { scope: scope(text), expected: None }),
                n => world.ordered(set(with_budget(text, 0.02 * f64::from(n)))),
            };
            if restart {
                world.restart(Duration::from_secs(1));
            }
            world.second(&[(route(), CALLS), (other(), CALLS)]);
            let agent = world.agents.values().next().unwrap();
            if let Some(held) = agent.held.get(&route()) {
                prop_assert!(held.stamp.revision >= newest, "{text} {what}");
                newest = held.stamp.revision;
            }
        }
    }
}
