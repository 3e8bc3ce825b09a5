//! What agents are told, and in which order.

use std::time::Duration;

use hedgerow_core::event::{ConnectionId, Event};
use hedgerow_core::view::Sync;
use hedgerow_protocol::directive::{Mode, Stamp};
use hedgerow_protocol::ids::{Epoch, ModeSequence, Revision, RouteKey};

use crate::agent::Agent;
use crate::store::Answers;
use crate::traffic::Traffic;
use crate::world::{World, policy, policy_with, route, set};

const CALLS: Traffic = Traffic::HEALTHY;

fn other() -> RouteKey {
    RouteKey::new("search", "query").unwrap()
}

fn sets_of(world: &World, number: u64) -> usize {
    world.agent(number).sets.len()
}

#[test]
fn p06_a_full_snapshot_comes_at_every_connect() {
    let mut world = World::new();
    world.join(Agent::new(1));
    world.second(&[(route(), CALLS), (other(), CALLS)]);
    let agent = world.leave(ConnectionId(1), hedgerow_core::event::Departure::Lost);
    let mut again = agent.clone();
    again.connection = ConnectionId(2);
    again.sets.clear();
    world.join(again);
    let set = &world.agent(2).sets[0];
    let routes: Vec<_> = set.directives.iter().map(|it| it.route.clone()).collect();
    assert_eq!(routes, [route(), other()]);
    assert_eq!(set.nonce, 1);
}

#[test]
fn a_new_route_is_answered_with_its_first_report() {
    let mut world = World::new();
    world.join(Agent::new(1));
    // It holds and reports nothing yet: an empty set would tell it to let go of everything.
    assert_eq!(sets_of(&world, 1), 0);
    world.report(ConnectionId(1), &[(route(), CALLS)]);
    assert_eq!(world.agent(1).mode(&route()), Mode::Observing);
    assert!(world.agent(1).held.contains_key(&route()));
}

#[test]
fn p03_a_refusal_is_for_one_directive_the_rest_stands_and_it_is_shown() {
    let mut world = World::new();
    world.join(Agent::new(1));
    world.second(&[(route(), CALLS), (other(), CALLS)]);
    let held = world.agent(1).held[&route()].clone();
    world
        .agents
        .get_mut(&ConnectionId(1))
        .unwrap()
        .refuses
        .insert(route());
    world.ordered(set(policy())).unwrap();
    world.second(&[(route(), CALLS), (other(), CALLS)]);
    assert_eq!(world.agent(1).held[&route()].stamp, held.stamp);
    let view = world.view(&route());
    assert_eq!((view.acked.n, view.acked.m), (0, 1));
    assert_eq!(view.refusals[0].1, "live.budget: 0.3 is out of range");
    let agents = world.snapshot().agents;
    let synced: Vec<_> = agents[0].routes.iter().map(|it| it.sync.clone()).collect();
    let refused = Sync::Refused("live.budget: 0.3 is out of range".into());
    assert_eq!(synced, [refused, Sync::Applied]);
}

#[test]
fn b47_a_refused_directive_is_not_sent_again_until_it_changes() {
    let mut world = World::new();
    world.join(Agent::new(1));
    world.second(&[(route(), CALLS), (other(), CALLS)]);
    world
        .agents
        .get_mut(&ConnectionId(1))
        .unwrap()
        .refuses
        .insert(route());
    world
        .ordered(set(policy_with(|it| {
            it.intent = hedgerow_protocol::policy::Intent::Observe;
        })))
        .unwrap();
    let sent = |world: &World| {
        let sets = world.agent(1).sets.iter();
        sets.filter(|set| set.directives.iter().any(|it| it.route == route()))
            .count()
    };
    let (refused, all) = (sent(&world), sets_of(&world, 1));
    world.seconds(60, &[(route(), CALLS), (other(), CALLS)]);
    assert_eq!(sent(&world), refused);
    // What it did not refuse goes on.
    assert!(sets_of(&world, 1) > all);
    world
        .agents
        .get_mut(&ConnectionId(1))
        .unwrap()
        .refuses
        .clear();
    world
        .ordered(set(policy_with(|it| it.budget = 0.1)))
        .unwrap();
    assert_eq!(world.agent(1).held[&route()].stamp.revision, Revision(2));
}

#[test]
fn p04_a_set_refused_whole_is_not_sent_again_until_a_stamp_changes() {
    let mut world = World::new();
    world.join(Agent::new(1));
    world.second(&[(route(), CALLS)]);
    let connection = ConnectionId(1);
    world.agents.get_mut(&connection).unwrap().deaf = true;
    world.agents.get_mut(&connection).unwrap().held.clear();
    world.event(Event::Refused {
        connection,
        route: None,
        stamp: None,
        reason: "directives: 65 routes; at most 64 are allowed".into(),
    });
    let before = sets_of(&world, 1);
    world.seconds(40, &[(route(), CALLS)]);
    assert_eq!(sets_of(&world, 1), before);
    world.ordered(set(policy())).unwrap();
    assert_eq!(sets_of(&world, 1), before + 1);
}

#[test]
fn b53_a_lost_push_heals_within_a_heartbeat() {
    let mut world = World::hedging();
    let connection = ConnectionId(2);
    world.agents.get_mut(&connection).unwrap().deaf = true;
    world.kill(true).unwrap();
    assert_eq!(world.agent(2).mode(&route()), Mode::On);
    world.agents.get_mut(&connection).unwrap().deaf = false;
    // No report, no change of anything: only its heartbeat tells.
    world.now = world.now.plus(Duration::from_secs(9));
    let held_hash = world.agent(2).hash();
    world.event(Event::Heartbeat {
        connection,
        held_hash,
    });
    assert!(matches!(world.agent(2).mode(&route()), Mode::Off(_)));
    assert_eq!(
        world.view(&route()).stamp,
        world.agent(2).held[&route()].stamp
    );
}

#[test]
fn p06_an_agent_that_never_takes_it_is_sent_it_once_a_heartbeat() {
    let mut world = World::new();
    world.join(Agent::new(1));
    world.second(&[(route(), CALLS)]);
    world.agents.get_mut(&ConnectionId(1)).unwrap().deaf = true;
    world.kill(true).unwrap();
    let before = sets_of(&world, 1);
    world.seconds(60, &[(route(), CALLS)]);
    // Once each 10 s because it is behind, and the live values that are repeated as often.
    assert!(
        sets_of(&world, 1) - before <= 14,
        "{}",
        sets_of(&world, 1) - before
    );
}

#[test]
fn live_values_are_sent_when_they_moved_and_each_ten_seconds() {
    let mut world = World::hedging();
    world.seconds(60, &[(route(), CALLS)]);
    let steady = sets_of(&world, 1);
    world.seconds(60, &[(route(), CALLS)]);
    let sent = sets_of(&world, 1) - steady;
    assert!((6..=12).contains(&sent), "{sent} sets in a steady minute");
    let threshold = |world: &World| world.agent(1).held[&route()].live.threshold.unwrap().get();
    let before = threshold(&world);
    world.seconds(
        20,
        &[(
            route(),
            Traffic {
                usual_ms: 15,
                ..CALLS
            },
        )],
    );
    assert!(
        threshold(&world) > before,
        "{before:?} and then {:?}",
        threshold(&world)
    );
}

#[test]
fn p05_a_higher_epoch_in_an_agents_hand_begins_a_new_one_above_it() {
    let mut world = World::hedging();
    let mut stranger = world.agent(1).clone();
    stranger.connection = ConnectionId(9);
    stranger.sets.clear();
    stranger.instance = hedgerow_protocol::ids::InstanceId::from_u128(9);
    for held in stranger.held.values_mut() {
        held.stamp.epoch = Epoch(41);
    }
    world.store.answers = Answers::Later;
    world.join(stranger);
    // Not before it is stored: nothing is sent that it would have to refuse.
    assert_eq!(sets_of(&world, 9), 0);
    world.store_answers(true);
    assert_eq!(world.controller.epoch(), Epoch(42));
    assert_eq!(world.store.epoch, Epoch(42));
    for number in [1, 2, 3, 9] {
        assert_eq!(world.agent(number).held[&route()].stamp.epoch, Epoch(42));
    }
}

#[test]
fn b52_a_store_restored_from_a_copy_begins_a_new_epoch_and_agents_take_its_lower_revisions() {
    let mut world = World::hedging();
    let copy = world.store.clone();
    for number in 1..=5 {
        world
            .ordered(set(policy_with(|it| {
                it.budget = 0.1 + f64::from(number) / 100.0;
            })))
            .unwrap();
    }
    assert_eq!(world.agent(1).held[&route()].stamp.revision, Revision(6));
    // The copy's next epoch is the one the agents hold already.
    world.store = copy;
    world.store.epoch = Epoch(world.store.epoch.0 - 1);
    world.restart(Duration::from_secs(5));
    world.second(&[(route(), CALLS)]);
    for number in 1_001..=1_003 {
        let stamp = world.agent(number).held[&route()].stamp;
        assert_eq!((stamp.epoch, stamp.revision), (Epoch(2), Revision(1)));
    }
    // And then there is peace.
    let epoch = world.controller.epoch();
    world.seconds(60, &[(route(), CALLS)]);
    assert_eq!(world.controller.epoch(), epoch);
}

#[test]
fn b49_an_agent_that_has_been_further_is_never_sent_less() {
    // The other controller of the same epoch was at revision 7.
    let mut world = World::hedging();
    let mut agent = world.leave(ConnectionId(1), hedgerow_core::event::Departure::Lost);
    agent.connection = ConnectionId(11);
    agent.held.get_mut(&route()).unwrap().stamp.revision = Revision(7);
    let stamp = agent.held[&route()].stamp;
    world.join(agent);
    // The agent model itself asserts that nothing lower comes.
    world.seconds(5, &[(route(), CALLS)]);
    assert!(world.agent(11).held[&route()].stamp > stamp);
}

#[test]
fn p12_epochs_nobody_can_have_reached_are_not_believed() {
    let before = World::hedging();
    let joined = |epoch: u64| {
        let mut world = before.clone();
        let mut other = world.agent(1).clone();
        other.connection = ConnectionId(9);
        for held in other.held.values_mut() {
            held.stamp.epoch = Epoch(epoch);
        }
        world.join(other);
        world
    };
    let most = 1 + (1 << 20);
    for epoch in [u64::MAX, 1 << 48, most + 1] {
        let mut world = joined(epoch);
        assert_eq!(world.controller.epoch(), Epoch(1));
        // Who holds it is shown with the reason, is told nothing, and goes on as it is.
        world.seconds(20, &[(route(), CALLS)]);
        let agents = world.snapshot().agents;
        let agent = agents.iter().find(|it| it.connection == ConnectionId(9));
        let reason = agent.unwrap().last_refusal.clone().unwrap();
        let expected = format!(
            "catalog get: holds epoch {epoch}, but this controller is at 1; expected at most {most}"
        );
        assert!(reason.starts_with(&expected), "{reason}");
        assert_eq!(world.agent(9).held[&route()].stamp.epoch, Epoch(epoch));
        assert_eq!(world.controller.epoch(), Epoch(1));
    }
    assert_eq!(joined(most).controller.epoch(), Epoch(most + 1));
}

#[test]
fn p12_agents_cannot_make_the_fleet_begin_again_and_again() {
    let mut world = World::hedging();
    for number in 0..20 {
        let mut liar = world.agent(2).clone();
        liar.connection = ConnectionId(20 + number);
        for held in liar.held.values_mut() {
            held.stamp.epoch = Epoch(100 * (number + 1));
        }
        world.join(liar);
    }
    assert_eq!(world.controller.epoch(), Epoch(101));
}

#[test]
fn p05_nothing_is_sent_before_the_first_epoch_is_stored() {
    let store = crate::store::Store {
        answers: Answers::Later,
        ..Default::default()
    };
    let settings = hedgerow_core::event::Settings::default();
    let mut world = World::with(store, settings, crate::world::START);
    world.join(Agent::new(1));
    world.seconds(3, &[(route(), CALLS)]);
    assert!(world.pushes.is_empty());
    world.store_answers(false);
    world.store.answers = Answers::Now;
    // It is tried again with the next tick.
    world.second(&[(route(), CALLS)]);
    assert_eq!(
        world.agent(1).held[&route()].stamp,
        Stamp {
            epoch: Epoch(1),
            revision: Revision(0),
            mode_sequence: ModeSequence(0)
        }
    );
}

#[test]
fn b61_an_agent_that_holds_too_much_is_sent_64_routes_each_once() {
    let mut world = World::new();
    let mut agent = Agent::new(1);
    world.join(agent.clone());
    let routes: Vec<_> = (0..64)
        .map(|number| {
            (
                RouteKey::new("many", &format!("op{number}")).unwrap(),
                CALLS,
            )
        })
        .collect();
    world.second(&routes);
    agent.held = world.agent(1).held.clone();
    let one = agent.held.values().next().unwrap().clone();
    for number in 0..10 {
        let route = RouteKey::new("more", &format!("op{number}")).unwrap();
        agent.held.insert(
            route.clone(),
            hedgerow_protocol::directive::Directive {
                route,
                ..one.clone()
            },
        );
    }
    agent.connection = ConnectionId(2);
    world.join(agent);
    let set = world.agent(2).sets.last().unwrap();
    set.check().unwrap();
    assert_eq!(set.directives.len(), 64);
}

#[test]
fn b62_no_set_is_ever_empty() {
    let mut world = World::hedging();
    world.join(Agent::new(4));
    world.seconds(20, &[(route(), CALLS)]);
    world.kill(true).unwrap();
    let quiet = world.leave(ConnectionId(1), hedgerow_core::event::Departure::Lost);
    world.join(Agent {
        connection: ConnectionId(5),
        held: [].into(),
        ..quiet
    });
    world.seconds(20, &[]);
    assert!(world.agent(5).sets.iter().all(|set| set.nonce > 0));
    for (_, set) in &world.pushes {
        set.check().unwrap();
        assert!(!set.directives.is_empty() && !set.empty_is_meant);
    }
}

#[test]
fn b56_an_agent_is_sent_one_set_for_one_event_however_much_changed() {
    let mut world = World::new();
    world.join(Agent::new(1));
    let routes: Vec<_> = (0..20)
        .map(|number| {
            (
                RouteKey::new("catalog", &format!("op{number}")).unwrap(),
                CALLS,
            )
        })
        .collect();
    world.seconds(2, &routes);
    let before = sets_of(&world, 1);
    world.ordered(set(policy())).unwrap();
    assert_eq!(sets_of(&world, 1), before + 1);
    let set = world.agent(1).sets.last().unwrap();
    assert!(
        set.directives
            .iter()
            .all(|it| it.stamp.revision == Revision(1))
    );
}
