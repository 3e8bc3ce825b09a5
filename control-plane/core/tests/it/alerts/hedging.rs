//! Hedges that win nothing, and a budget that is too small.

use hedgerow_core::view::{AlertPhase, AlertRule};
use hedgerow_protocol::ids::RouteKey;

use super::{ALL_SLOW, CALLS, assert_one_each, of, told};
use crate::traffic::Traffic;
use crate::world::{World, policy_with, route, set};

const WINS: AlertRule = AlertRule::LowWinRate;
const BUDGET: AlertRule = AlertRule::BudgetExhausted;

/// Sixteen hedges an agent each second, of which so many answer. All last as long as most calls do, so
/// that of independent ones half would have answered and half been stopped.
const fn answering(answered: f64) -> Traffic {
    Traffic {
        hedged: 0.04,
        answered,
        ..CALLS
    }
}

/// One call in twenty crosses; of these the budget refuses so many.
const fn refusing(share: f64) -> Traffic {
    Traffic {
        refused: CALLS.slow * share,
        ..CALLS
    }
}

#[test]
fn hedges_that_answer_far_too_little_for_two_minutes_are_told_and_recover() {
    let mut world = World::hedging();
    // Half a minute until it is known, and two until it is told.
    world.seconds(145, &[(route(), answering(0.2))]);
    let ratio = world.view(&route()).figures.unwrap().hedges_answered_ratio;
    assert!(
        ratio.is_some_and(|it| (0.3..0.5).contains(&it)),
        "{ratio:?}"
    );
    assert!(told(&world, WINS).is_empty());
    assert_eq!(world.snapshot().alerts[0].phase, AlertPhase::Pending);
    world.seconds(10, &[(route(), answering(0.2))]);
    let fired = of(&world, WINS);
    assert_eq!(fired.len(), 1);
    let said = &fired[0].summary;
    assert!(said.contains("hedges answer 0.39 times as often"), "{said}");
    // Between the limits is neither.
    world.seconds(400, &[(route(), answering(0.28))]);
    assert_eq!(told(&world, WINS).len(), 1);
    world.seconds(120, &[(route(), answering(0.9))]);
    assert_eq!(told(&world, WINS).len(), 1, "not at once");
    world.seconds(200, &[(route(), answering(0.9))]);
    assert_one_each(&told(&world, WINS), 1);
}

#[test]
fn answers_of_a_few_hedges_say_nothing() {
    let mut world = World::hedging();
    for _ in 0..60 {
        // Three hedges in ten seconds, of which none answers.
        let few = Traffic {
            hedged: 0.0025,
            answered: 0.0,
            ..CALLS
        };
        world.second(&[(route(), few)]);
        world.seconds(9, &[(route(), CALLS)]);
    }
    assert!(told(&world, WINS).is_empty());
    assert!(world.snapshot().alerts.is_empty());
}

#[test]
fn a_budget_that_refuses_most_of_what_is_slow_is_told_after_two_minutes() {
    let mut world = World::hedging();
    world.seconds(115, &[(route(), refusing(0.8))]);
    assert!(told(&world, BUDGET).is_empty());
    world.seconds(15, &[(route(), refusing(0.8))]);
    let fired = of(&world, BUDGET);
    assert_eq!(fired.len(), 1);
    assert!(
        fired[0].summary.contains("refuses 80.0 % of the calls"),
        "{fired:?}"
    );
    world.seconds(300, &[(route(), refusing(0.4))]);
    assert_eq!(told(&world, BUDGET).len(), 1, "between the limits");
    world.seconds(55, &[(route(), refusing(0.0))]);
    assert_eq!(told(&world, BUDGET).len(), 1, "not at once");
    world.seconds(15, &[(route(), refusing(0.0))]);
    assert_one_each(&told(&world, BUDGET), 1);
}

#[test]
fn a_burst_of_refusals_and_refusals_of_a_few_are_nobodys_business() {
    let mut world = World::hedging();
    for _ in 0..5 {
        world.seconds(90, &[(route(), refusing(0.8))]);
        world.seconds(30, &[(route(), refusing(0.0))]);
    }
    // Six crossed calls in ten seconds, all of them refused: under fifty in a minute.
    let calm = Traffic { slow: 0.0, ..CALLS };
    let few = Traffic {
        calls: 40,
        ..refusing(1.0)
    };
    for _ in 0..60 {
        world.second(&[(route(), few)]);
        world.seconds(9, &[(route(), calm)]);
    }
    assert!(told(&world, BUDGET).is_empty());
}

#[test]
fn p16_without_data_neither_rule_raises_or_resolves() {
    for (rule, traffic) in [(WINS, answering(0.2)), (BUDGET, refusing(0.8))] {
        let mut world = World::hedging();
        world.seconds(100, &[(route(), traffic)]);
        // What waits does not go on waiting in silence.
        let quiet = Traffic { calls: 0, ..CALLS };
        world.seconds(300, &[(route(), quiet)]);
        assert!(told(&world, rule).is_empty(), "{rule:?}");
        world.seconds(180, &[(route(), traffic)]);
        assert_eq!(told(&world, rule).len(), 1, "{rule:?}");
        world.seconds(900, &[(route(), quiet)]);
        assert_eq!(told(&world, rule).len(), 1, "{rule:?}");
    }
}

#[test]
fn a_persons_own_off_raises_and_ends_neither() {
    for (rule, traffic) in [(WINS, answering(0.2)), (BUDGET, refusing(0.8))] {
        let mut world = World::hedging();
        world.kill(true).unwrap();
        world.seconds(300, &[(route(), traffic)]);
        assert!(told(&world, rule).is_empty(), "{rule:?}");
        world.kill(false).unwrap();
        world.seconds(200, &[(route(), traffic)]);
        assert_eq!(told(&world, rule).len(), 1, "{rule:?}");
        world.kill(true).unwrap();
        world.seconds(600, &[(route(), CALLS)]);
        assert_eq!(told(&world, rule).len(), 1, "{rule:?}");
    }
}

#[test]
fn what_is_only_observed_has_no_budget_to_run_out_of() {
    let mut world = World::hedging();
    world.seconds(150, &[(route(), refusing(0.8))]);
    let observe = policy_with(|it| it.intent = hedgerow_protocol::policy::Intent::Observe);
    world.ordered(set(observe)).unwrap();
    world.seconds(100, &[(route(), CALLS)]);
    assert_one_each(&told(&world, BUDGET), 1);
}

#[test]
fn a_shared_slowdown_inhibits_what_would_say_the_same_of_its_dependency() {
    let other = RouteKey::new("catalog", "list").unwrap();
    let both = |one: Traffic, two: Traffic| [(route(), one), (other.clone(), two)];
    let mut world = World::hedging();
    world.seconds(30, &both(CALLS, CALLS));
    world.seconds(10, &both(ALL_SLOW, CALLS));
    assert_eq!(told(&world, AlertRule::SharedSlowdown).len(), 1);
    let wants = Traffic {
        slow: 0.3,
        refused: 0.25,
        hedged: 0.04,
        answered: 0.2,
        ..CALLS
    };
    world.seconds(200, &both(ALL_SLOW, wants));
    for rule in [WINS, BUDGET, AlertRule::HedgeRateHigh] {
        assert!(told(&world, rule).is_empty(), "{rule:?}");
    }
    // An agent that sends too many is a fault of its own.
    let storm = Traffic {
        hedged: 0.2,
        ..CALLS
    };
    world.seconds(30, &both(ALL_SLOW, storm));
    assert_eq!(told(&world, AlertRule::HedgeRateHigh).len(), 1);
}
