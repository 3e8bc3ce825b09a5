//! How busy a dependency is, told from outside.

use std::time::Duration;

use hedgerow_core::effect::{Done, OrderError};
use hedgerow_core::event::Order;
use hedgerow_protocol::directive::Mode;
use hedgerow_protocol::ids::DependencyName;
use hedgerow_protocol::units::Ratio;

use crate::traffic::Traffic;
use crate::world::{World, route};

const CALLS: Traffic = Traffic::HEALTHY;

fn told(value: Option<f64>, seconds: u64) -> Order {
    Order::SetUtilisation {
        dependency: DependencyName::new("catalog").unwrap(),
        utilisation: value.map(|value| Ratio::new(value).unwrap()),
        valid_for: Duration::from_secs(seconds),
    }
}

/// The budget agents hold.
fn budget(world: &World) -> f64 {
    world.agent(1).held[&route()].live.budget.get()
}

#[test]
fn the_busier_it_is_the_less_is_lent_and_at_80_percent_nothing_is_hedged() {
    for (utilisation, expected) in [
        (Some(0.3), 0.08),
        (Some(0.6), 0.08),
        (Some(0.72), 0.032),
        (Some(0.79), 0.004),
        (Some(0.8), 0.0),
        (Some(1.0), 0.0),
        (None, 0.08),
    ] {
        let mut world = World::hedging();
        assert!((budget(&world) - 0.08).abs() < 1e-9);
        let records = world.store.audit.len();
        assert_eq!(world.ordered(told(utilisation, 60)), Ok(Done::Utilisation));
        world.second(&[(route(), CALLS)]);
        assert!(
            (budget(&world) - expected).abs() < 1e-9,
            "{utilisation:?}: {}",
            budget(&world)
        );
        assert_eq!(
            world.agent(1).may_hedge(&route()),
            expected > 0.0,
            "{utilisation:?}"
        );
        let view = world.view(&route());
        assert_eq!(view.mode, Mode::On, "{utilisation:?}");
        let figures = view.figures.unwrap();
        assert_eq!(figures.utilisation, utilisation);
        assert!((figures.budget - expected).abs() < 1e-9);
        assert_eq!(view.utilisation.map(|it| it.value), utilisation);
        if expected == 0.0 {
            assert!(
                view.words.contains("nothing is hedged: utilisation "),
                "{}",
                view.words
            );
        } else if expected < 0.08 {
            assert!(
                view.words.contains(" of 8 %: utilisation 0.7"),
                "{}",
                view.words
            );
        }
        assert_eq!(
            world.store.audit.len(),
            records,
            "a reading is nobody's decision"
        );
    }
}

#[test]
fn a_reading_that_is_too_old_limits_nothing_and_is_said_to_be_so() {
    let mut world = World::hedging();
    world.ordered(told(Some(0.9), 5)).unwrap();
    for second in 1..=4 {
        world.second(&[(route(), CALLS)]);
        assert_eq!(budget(&world), 0.0, "second {second}");
    }
    world.second(&[(route(), CALLS)]);
    assert!((budget(&world) - 0.08).abs() < 1e-9);
    let view = world.view(&route());
    assert!(
        view.words.contains("; utilisation unknown since "),
        "{}",
        view.words
    );
    assert_eq!(view.figures.unwrap().utilisation, None);
    // A new one is taken; taken back, there is nothing to say.
    world.ordered(told(Some(0.7), 5)).unwrap();
    world.second(&[(route(), CALLS)]);
    assert!((budget(&world) - 0.04).abs() < 1e-9);
    world.ordered(told(None, 5)).unwrap();
    world.second(&[(route(), CALLS)]);
    let view = world.view(&route());
    assert!(!view.words.contains("utilisation"), "{}", view.words);
    assert_eq!(view.utilisation, None);
    // And a controller that starts anew knows of none.
    world.ordered(told(Some(0.9), 3_600)).unwrap();
    world.restart(Duration::from_secs(2));
    world.second(&[(route(), CALLS)]);
    assert_eq!(world.view(&route()).utilisation, None);
}

#[test]
fn a_reading_of_nothing_known_or_for_no_time_is_refused() {
    let mut world = World::new();
    let catalog = DependencyName::new("catalog").unwrap();
    assert_eq!(
        world.ordered(told(Some(0.5), 60)),
        Err(OrderError::UnknownDependency(catalog))
    );
    let mut world = World::hedging();
    for seconds in [0, 3_601] {
        let refused = world
            .ordered(told(Some(0.5), seconds))
            .unwrap_err()
            .to_string();
        assert!(refused.contains("expected 1 to 3600"), "{refused}");
    }
}
