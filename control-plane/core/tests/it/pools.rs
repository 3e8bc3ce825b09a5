//! Policies that name the same pool.

use hedgerow_core::event::Order;
use hedgerow_core::view::PoolView;
use hedgerow_protocol::directive::Mode;
use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::policy::PolicyDraft;

use crate::agent::Agent;
use crate::traffic::Traffic;
use crate::world::{World, policy_with, set};

/// 300 ms where it stalls.
const STALLING: Traffic = Traffic {
    calls: 400,
    usual_ms: 30,
    slow: 0.08,
    ..Traffic::HEALTHY
};
/// Nothing takes longer than 50 ms.
const FINE: Traffic = Traffic {
    usual_ms: 5,
    ..Traffic::HEALTHY
};

fn in_pool(dependency: &str, budget: f64) -> impl FnOnce(&mut PolicyDraft) {
    move |draft| {
        draft.dependency = dependency.into();
        draft.budget = budget;
        draft.pool = Some("checkout".into());
        draft.objective_ms = Some(120.0);
    }
}

fn key(dependency: &str) -> RouteKey {
    RouteKey::new(dependency, "get").unwrap()
}

fn order(change: impl FnOnce(&mut PolicyDraft)) -> Order {
    set(policy_with(change))
}

/// Both in the pool with 4 % each, for so many seconds.
fn pooled(seconds: u64) -> World {
    let mut world = World::new();
    for number in 1..=3 {
        world.join(Agent::new(number));
    }
    for dependency in ["catalog", "search"] {
        world.ordered(order(in_pool(dependency, 0.04))).unwrap();
    }
    go_on(&mut world, seconds);
    world
}

fn go_on(world: &mut World, seconds: u64) {
    let traffic = [(key("catalog"), STALLING), (key("search"), FINE)];
    world.seconds(seconds, &traffic);
}

fn pool(world: &World, dependency: &str) -> PoolView {
    world.view(&key(dependency)).pool.unwrap()
}

/// What agents were told last.
fn told(world: &World, dependency: &str) -> f64 {
    let set = &world.pushes.last().unwrap().1;
    let mut directives = set.directives.iter();
    let of = directives.find(|it| it.route == key(dependency)).unwrap();
    of.live.budget.get()
}

#[test]
fn a_pool_lends_what_one_route_does_not_need_to_the_one_that_does() {
    let world = pooled(300);
    let (catalog, search) = (pool(&world, "catalog"), pool(&world, "search"));
    assert!((0.07..=0.08).contains(&catalog.budget), "{catalog:?}");
    assert!(search.budget < 0.02, "{search:?}");
    assert!(catalog.budget + search.budget <= 0.08 + 1e-9);
    assert_eq!((catalog.own, search.own), (0.04, 0.04));
    assert_eq!(catalog.pool.as_str(), "checkout");
    let words = world.view(&key("catalog")).words;
    assert!(
        words.contains(" of its own 4 %, lent by pool checkout"),
        "{words}"
    );
    // Delay and probability follow, and agents are told.
    let figures = world.view(&key("catalog")).figures.unwrap();
    let threshold = figures.threshold.unwrap().as_millis();
    assert!((30..35).contains(&threshold), "{threshold} ms");
    assert!((told(&world, "catalog") - catalog.budget).abs() < 0.001);
    assert!((told(&world, "search") - search.budget).abs() < 0.001);
}

#[test]
fn moves_are_small_and_a_route_that_leaves_has_its_own_budget_at_once() {
    let mut world = pooled(70);
    let mut before = pool(&world, "catalog").budget;
    for _ in 0..6 {
        go_on(&mut world, 10);
        let now = pool(&world, "catalog").budget;
        assert!(now >= before && now < before * 1.05, "{before} to {now}");
        before = now;
    }
    assert!(before > 0.05, "{before}");
    world.ordered(order(|draft| draft.budget = 0.03)).unwrap();
    assert_eq!(world.view(&key("catalog")).pool, None);
    go_on(&mut world, 1);
    assert!((told(&world, "catalog") - 0.03).abs() < 1e-9);
    go_on(&mut world, 20);
    assert_eq!(world.view(&key("catalog")).pool, None);
    let search = pool(&world, "search");
    assert!(search.budget <= 0.04 + 1e-9, "{search:?}");
}

#[test]
fn what_a_route_that_is_off_does_not_spend_is_not_lent() {
    let mut world = pooled(300);
    let lent = pool(&world, "catalog").budget;
    let failing = Traffic {
        errors: 0.5,
        ..FINE
    };
    let traffic = [(key("catalog"), STALLING), (key("search"), failing)];
    world.seconds(20, &traffic);
    assert!(!world.view(&key("search")).mode.hedges());
    let now = pool(&world, "catalog").budget;
    assert!(now <= 0.04 + 1e-9, "{now} after {lent}");
}

#[test]
fn x79_a_route_that_is_on_again_takes_no_more_than_the_pool_has() {
    let mut world = pooled(300);
    assert!(pool(&world, "catalog").budget > 0.07);
    let failing = Traffic {
        errors: 0.5,
        ..STALLING
    };
    // What search needs while catalog is off, it gets: its own.
    let off = [(key("catalog"), failing), (key("search"), STALLING)];
    world.seconds(600, &off);
    assert!(!world.view(&key("catalog")).mode.hedges());
    assert!(
        pool(&world, "search").budget > 0.015,
        "{:?}",
        pool(&world, "search")
    );
    let on = [(key("catalog"), STALLING), (key("search"), STALLING)];
    let mut back = 0;
    for second in 0..120 {
        world.seconds(1, &on);
        let hedging = ["catalog", "search"].into_iter();
        let hedging = hedging.filter(|it| world.view(&key(it)).mode == Mode::On);
        let told: Vec<_> = hedging.map(|it| told(&world, it)).collect();
        back += u64::from(told.len() == 2);
        let told: f64 = told.iter().sum();
        assert!(told <= 0.08 + 1e-6, "{second}: {told}");
    }
    assert!(back > 60, "{back}");
}
