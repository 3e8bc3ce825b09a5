//! A fleet that is large beside its traffic, and agents that start.

use std::collections::BTreeMap;
use std::time::Duration;

use hedgerow_core::event::{ConnectionId, Departure};
use hedgerow_protocol::arming::Arming;
use hedgerow_protocol::directive::Mode;
use hedgerow_protocol::ids::InstanceId;
use hedgerow_protocol::policy::Intent;

use crate::agent::Agent;
use crate::traffic::Traffic;
use crate::world::{World, policy, policy_with, roll_out, route, set};

/// One call in four is slow.
const QUIET: Traffic = Traffic {
    calls: 4,
    slow: 0.25,
    ..Traffic::HEALTHY
};

fn world(agents: u64, traffic: Traffic) -> World {
    let mut world = World::new();
    for number in 1..=agents {
        world.join(Agent::new(number));
    }
    world.ordered(set(policy())).unwrap();
    world.seconds(20, &[(route(), traffic)]);
    world
}

fn arming_of(world: &World, number: u64) -> Option<Arming> {
    world.agent(number).held[&route()].live.arming
}

#[test]
fn a_fleet_that_is_large_beside_its_calls_is_armed_in_turns_and_the_page_says_so() {
    let mut world = world(40, QUIET);
    let view = world.view(&route());
    assert_eq!(view.mode, Mode::On);
    // 160 calls/s: 16 tokens of 40.
    let words = "; armed: 40 % of agents at a time; steady rate about 2 %";
    assert!(view.words.ends_with(words), "{}", view.words);
    assert!((view.figures.unwrap().target - 0.4 * 0.05 * 0.99).abs() < 1e-9);
    let told = arming_of(&world, 1).unwrap();
    assert!((told.share().get() - 0.4).abs() < 1e-9);

    // The same draw for all, for as long as the store lives; another one for another route.
    let other = hedgerow_protocol::ids::RouteKey::new("search", "query").unwrap();
    world.seconds(15, &[(route(), QUIET), (other.clone(), QUIET)]);
    assert_eq!(arming_of(&world, 1), Some(told));
    assert_eq!(arming_of(&world, 40), Some(told));
    let elsewhere = world.agent(1).held[&other].live.arming.unwrap();
    assert_ne!(elsewhere.seed(), told.seed());

    // Another life of the store is another draw, as soon as there are calls to tell by.
    world.restart(Duration::from_secs(5));
    world.seconds(15, &[(route(), QUIET)]);
    let again = arming_of(&world, 1_001).unwrap();
    assert!((again.share().get() - 0.4).abs() < 1e-9);
    assert_ne!(again.seed(), told.seed());
}

/// Start credits sent from the push `from` on, by agent.
fn credits(world: &World, from: usize) -> BTreeMap<ConnectionId, Vec<f64>> {
    let mut credits: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for (connection, set) in &world.pushes[from..] {
        for directive in &set.directives {
            if directive.start_credit > 0.0 {
                let of = credits.entry(*connection).or_default();
                of.push(directive.start_credit);
            }
        }
    }
    credits
}

fn fresh(number: u64) -> Agent {
    Agent::new(10_000 + number)
}

#[test]
fn a_new_agent_is_lent_its_first_hedges_once_and_a_known_one_nothing() {
    let mut world = World::hedging();
    assert_eq!(credits(&world, 0).len(), 3, "all three were new");
    let from = world.pushes.len();
    world.join(fresh(1));
    world.seconds(30, &[(route(), Traffic::HEALTHY)]);
    let lent = credits(&world, from);
    let new: Vec<_> = lent.keys().collect();
    assert_eq!(new, [&ConnectionId(10_001)]);
    // Up to a bucket's cap: half a second's worth of 400 calls/s at 8 %, once the fourth agent's
    // calls are in all ten seconds that it is taken from.
    let once = lent[&ConnectionId(10_001)].as_slice();
    assert!(
        once.len() == 1 && (1.0..=16.0).contains(&once[0]),
        "{once:?}"
    );

    // A stream that breaks; a controller that starts again: the agent holds a directive.
    let mut agent = world.leave(ConnectionId(10_001), Departure::Lost);
    agent.connection = ConnectionId(20_000);
    let from = world.pushes.len();
    world.join(agent);
    world.seconds(10, &[(route(), Traffic::HEALTHY)]);
    assert!(credits(&world, from).is_empty());
    world.restart(Duration::from_secs(5));
    world.seconds(20, &[(route(), Traffic::HEALTHY)]);
    assert!(credits(&world, 0).is_empty());
}

#[test]
fn who_has_hedged_is_not_new_whatever_else_it_says() {
    let mut world = World::hedging();
    let mut agent = fresh(1);
    let hedging = Traffic {
        hedged: 0.05,
        ..Traffic::HEALTHY
    };
    // Directed by some other controller before, and it lost its directives.
    agent.totals.insert(route(), hedging.totals());
    let from = world.pushes.len();
    world.join(agent);
    world.seconds(10, &[(route(), Traffic::HEALTHY)]);
    assert!(credits(&world, from).is_empty());
}

#[test]
fn nothing_is_lent_to_whom_a_rollout_tells_to_hedge_nothing() {
    let mut world = World::hedging();
    let observe = policy_with(|it| it.intent = Intent::Observe);
    world.ordered(roll_out(observe)).unwrap();
    let from = world.pushes.len();
    (1..=12).for_each(|number| world.join(fresh(number)));
    world.seconds(5, &[(route(), Traffic::HEALTHY)]);
    let lent = credits(&world, from);
    let hedging = |mode| {
        let new = world.agents.values().filter(|it| it.connection.0 > 10_000);
        new.filter(|it| it.mode(&route()) == mode).count()
    };
    assert!(hedging(Mode::Observing) > 0 && hedging(Mode::On) > 0);
    assert_eq!(lent.len(), hedging(Mode::On));
    for connection in lent.keys() {
        assert_eq!(world.agents[connection].mode(&route()), Mode::On);
    }
}

#[test]
fn nothing_is_lent_where_hedging_is_not_on_nor_in_turns() {
    let observing = |it: &mut hedgerow_protocol::policy::PolicyDraft| {
        it.intent = Intent::Observe;
    };
    let mut world = World::new();
    (1..=3).for_each(|number| world.join(Agent::new(number)));
    world.ordered(set(policy_with(observing))).unwrap();
    world.seconds(10, &[(route(), Traffic::HEALTHY)]);
    assert!(credits(&world, 0).is_empty());
    // Switched on later: by then they have earned their own.
    world.seconds(30, &[(route(), Traffic::HEALTHY)]);
    world.ordered(set(policy())).unwrap();
    world.seconds(10, &[(route(), Traffic::HEALTHY)]);
    assert_eq!(world.view(&route()).mode, Mode::On);
    assert!(credits(&world, 0).is_empty());

    let mut world = self::world(40, QUIET);
    let from = world.pushes.len();
    (1..=10).for_each(|number| world.join(fresh(number)));
    world.seconds(10, &[(route(), QUIET)]);
    assert!(arming_of(&world, 10_001).is_some());
    assert!(credits(&world, from).is_empty());
}

/// A fleet whose agents all restart within one second: what each second lends.
#[test]
fn b28_a_thousand_agents_that_start_at_once_are_lent_a_tenth_of_a_seconds_calls_in_any_second() {
    const AGENTS: u64 = 1_000;
    let busy = Traffic {
        calls: 40,
        slow: 0.05,
        ..Traffic::HEALTHY
    };
    let draft = |it: &mut hedgerow_protocol::policy::PolicyDraft| it.budget = 0.25;
    let mut world = World::new();
    world.checked = false;
    (1..=AGENTS).for_each(|number| world.join(Agent::new(number)));
    world.ordered(set(policy_with(draft))).unwrap();
    world.seconds(12, &[(route(), busy)]);
    assert_eq!(world.view(&route()).mode, Mode::On);
    // 5 hedges, half a second's worth: 5,000 of all, where a tenth of 40,000 calls is 4,000.
    assert!((world.agent(1).held[&route()].live.cap - 5.0).abs() < 0.1);

    for number in 1..=AGENTS {
        let mut agent = world.leave(ConnectionId(number), Departure::Left);
        agent = Agent {
            instance: InstanceId::from_u128(u128::from(50_000 + number)),
            ..Agent::new(agent.connection.0 + 10_000)
        };
        world.join(agent);
    }
    let mut in_all: BTreeMap<ConnectionId, Vec<f64>> = BTreeMap::new();
    for _ in 0..5 {
        let from = world.pushes.len();
        world.second(&[(route(), busy)]);
        let lent = credits(&world, from);
        let sum: f64 = lent.values().flatten().sum();
        let calls = AGENTS * busy.calls;
        assert!(sum <= 0.1 * calls as f64 + 1e-6, "{sum} of {calls} calls");
        for (connection, credit) in lent {
            in_all.entry(connection).or_default().extend(credit);
        }
    }
    assert_eq!(in_all.len() as u64, AGENTS, "nobody went without");
    assert!(in_all.values().all(|credits| credits.len() == 1));
    let each = in_all.values().flatten();
    assert!(each.clone().all(|credit| (1.0..=5.1).contains(credit)));
}

#[test]
fn nothing_is_lent_to_an_agent_whose_words_are_left_out() {
    let mut world = World::new();
    (1..=6).for_each(|number| world.join(Agent::new(number)));
    world
        .ordered(set(policy_with(|it| {
            it.intent = Intent::Observe;
        })))
        .unwrap();
    let lie = Traffic {
        slow: 0.5,
        ..Traffic::HEALTHY
    };
    for second in 0..20 {
        if second == 12 {
            world.ordered(set(policy())).unwrap();
        }
        world.now = world.now.plus(Duration::from_secs(1));
        for number in 1..=6 {
            let says = if number == 6 { lie } else { Traffic::HEALTHY };
            world.report(ConnectionId(number), &[(route(), says)]);
        }
        world.tick();
    }
    let agents = world.snapshot().agents;
    let out = agents.iter().filter(|it| it.routes[0].quarantine.is_some());
    assert_eq!(out.count(), 1);
    let lent = credits(&world, 0);
    let to: Vec<_> = lent.keys().map(|connection| connection.0).collect();
    assert_eq!(to, [1, 2, 3, 4, 5]);
}
