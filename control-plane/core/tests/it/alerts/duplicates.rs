//! What a server executes twice.

use std::time::Duration;

use hedgerow_core::effect::OrderError;
use hedgerow_core::event::Order;
use hedgerow_core::view::AlertRule;
use hedgerow_protocol::ids::RouteKey;

use super::{CALLS, assert_one_each, of, told};
use crate::traffic::Traffic;
use crate::world::{World, route};

const DUPLICATES: AlertRule = AlertRule::DuplicateEffects;

/// 24 hedges a second, of three agents.
const HEDGED: Traffic = Traffic {
    hedged: 0.02,
    ..CALLS
};

fn reading(executed: u64, seconds: u64) -> Order {
    Order::SetDuplicates {
        route: route(),
        executed,
        over: Duration::from_secs(seconds),
    }
}

/// Minutes in which a server tells, each half of them, what it executed twice in a minute.
fn minutes(world: &mut World, minutes: u64, executed: u64) {
    for _ in 0..2 * minutes {
        world.seconds(30, &[(route(), HEDGED)]);
        world.ordered(reading(executed, 60)).unwrap();
    }
}

#[test]
fn duplicates_beyond_the_hedges_sent_are_told_and_end() {
    let mut world = World::hedging();
    world.seconds(60, &[(route(), HEDGED)]);
    // As many as hedges, none of them stopped in time.
    minutes(&mut world, 5, 60 * 24);
    assert!(told(&world, DUPLICATES).is_empty());
    let seen = world.view(&route()).duplicates.unwrap();
    assert_eq!((seen.executed, seen.over), (1_440, Duration::from_mins(1)));
    let hedges = seen.hedges.unwrap();
    assert!((1_440..=1_800).contains(&hedges), "{hedges}");
    world.ordered(reading(3_000, 60)).unwrap();
    world.seconds(50, &[(route(), HEDGED)]);
    assert!(told(&world, DUPLICATES).is_empty(), "for a minute first");
    minutes(&mut world, 1, 3_000);
    let fired = of(&world, DUPLICATES);
    assert_eq!(fired.len(), 1);
    assert!(
        fired[0].summary.contains("3000 duplicates in 60 s"),
        "{fired:?}"
    );
    // Between the limits, and then no word: neither ends it.
    minutes(&mut world, 3, 1_800);
    world.seconds(600, &[(route(), HEDGED)]);
    assert_eq!(told(&world, DUPLICATES).len(), 1);
    minutes(&mut world, 2, 100);
    assert_one_each(&told(&world, DUPLICATES), 1);
}

#[test]
fn what_is_not_known_or_hardly_any_is_not_held_against_anybody() {
    // A controller that has not listened for as long as the server counted.
    let mut world = World::hedging();
    world.ordered(reading(100_000, 300)).unwrap();
    world.seconds(120, &[(route(), HEDGED)]);
    assert_eq!(world.view(&route()).duplicates.unwrap().hedges, None);
    assert!(told(&world, DUPLICATES).is_empty());
    // A few more than the hedges, of which there were none.
    let mut world = World::hedging();
    world.seconds(60, &[(route(), CALLS)]);
    for _ in 0..6 {
        world.seconds(30, &[(route(), CALLS)]);
        world.ordered(reading(9, 60)).unwrap();
    }
    assert_eq!(world.view(&route()).duplicates.unwrap().hedges, Some(0));
    assert!(told(&world, DUPLICATES).is_empty());
}

#[test]
fn one_reading_holds_for_twice_its_span() {
    let mut world = World::hedging();
    world.seconds(60, &[(route(), HEDGED)]);
    world.ordered(reading(100_000, 10)).unwrap();
    world.seconds(300, &[(route(), HEDGED)]);
    assert!(told(&world, DUPLICATES).is_empty());
}

#[test]
fn a_reading_that_cannot_be_is_refused_with_what_was_expected() {
    let mut world = World::hedging();
    for seconds in [0, 9, 301] {
        let refused = world.ordered(reading(1, seconds)).unwrap_err();
        assert!(
            matches!(&refused, OrderError::OutOfRange { field: "over", .. }),
            "{refused}"
        );
    }
    let nobody = RouteKey::new("catalog", "put").unwrap();
    let order = Order::SetDuplicates {
        route: nobody.clone(),
        executed: 1,
        over: Duration::from_mins(1),
    };
    assert_eq!(world.ordered(order), Err(OrderError::UnknownRoute(nobody)));
}
