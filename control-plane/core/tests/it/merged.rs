//! What many agents say together: of their histograms, and whatever their clocks show.

use std::time::Duration;

use crate::agent::Agent;
use crate::traffic::Traffic;
use crate::world::{World, route};

const CALLS: Traffic = Traffic::HEALTHY;

#[test]
fn c21_percentiles_are_of_the_merged_histograms_and_no_average_of_percentiles() {
    let mut world = World::new();
    world.join(Agent::new(1));
    world.join(Agent::new(2));
    let connections: Vec<_> = world.agents.keys().copied().collect();
    let few_and_slow = Traffic {
        calls: 40,
        usual_ms: 100,
        slow: 0.0,
        ..CALLS
    };
    let many_and_fast = Traffic { slow: 0.0, ..CALLS };
    for _ in 0..20 {
        world.now = world.now.plus(Duration::from_secs(1));
        world.report(connections[0], &[(route(), many_and_fast)]);
        world.report(connections[1], &[(route(), few_and_slow)]);
        world.tick();
    }
    let figures = world.view(&route()).figures.unwrap();
    let ms = |latency: Option<Duration>| latency.unwrap().as_secs_f64() * 1e3;
    // One call in eleven is slow: it is beyond the median and within the p95, whose means would be 55.
    assert!((9.0..12.0).contains(&ms(figures.p50)), "{figures:?}");
    assert!((90.0..110.0).contains(&ms(figures.p95)), "{figures:?}");
}

#[test]
fn b85_an_agents_clock_that_is_stepped_to_and_fro_changes_no_budget_and_no_decision() {
    let course = |step: bool| {
        let mut world = World::hedging();
        let connection = *world.agents.keys().next().unwrap();
        let mut told = Vec::new();
        for second in 0..60_i64 {
            if step && second % 3 == 0 {
                let agent = world.agents.get_mut(&connection).unwrap();
                agent.skew_ms = if second % 2 == 0 { 11_000 } else { -11_000 };
            }
            world.second(&[(route(), CALLS)]);
            let live = world.agents[&connection].held[&route()].live;
            told.push((live.budget, live.threshold, live.probability, live.cap));
        }
        told
    };
    assert_eq!(course(true), course(false));
}
