//! Whatever happens in whatever order, with a store that answers now, late or not at all: nothing
//! is told that is not stored, and no agent goes back.
//!
//! The assertions are in the parts: [`crate::store::Store::check`] looks at every directive that is
//! pushed, [`crate::agent::Agent::take`] at the order, and [`hedgerow_core::check`] at the
//! controller after every event.

use std::time::Duration;

use hedgerow_core::effect::SilenceDraft;
use hedgerow_core::event::{ConnectionId, Departure, Event, KillScope, Order};
use hedgerow_protocol::directive::Mode;
use hedgerow_protocol::ids::{DependencyName, Incarnation, RouteKey};
use hedgerow_protocol::policy::{Intent, Policy, PolicyScope};
use hedgerow_protocol::units::Ratio;
use proptest::prelude::*;

use crate::agent::Agent;
use crate::store::Answers;
use crate::traffic::Traffic;
use crate::world::{World, policy_with, roll_out, route, set};

#[derive(Debug, Clone, Copy)]
enum Step {
    Second(Load),
    Join(u64),
    Leave(u64, bool),
    Clone(u64),
    Deaf(u64, bool),
    Refuses(u64, bool),
    Heartbeat(u64),
    Policy(Intent, u8),
    RollOut(Intent, u8),
    Advance,
    Abort,
    Kill(bool, bool),
    Release,
    AcceptBase,
    Switchback(bool),
    /// Of everything, for so many minutes.
    Silence(u64),
    /// The oldest there is.
    EndSilence,
    /// The first alert there is, for so many minutes.
    Acknowledge(u64),
    /// In percent; None: taken back.
    Busy(Option<u8>),
    Store(Answers),
    Answer(bool),
    Pause(u64),
    Restart,
}

#[derive(Debug, Clone, Copy)]
enum Load {
    Healthy,
    Failing,
    Slow,
    Storm,
    OneSlow,
    Nothing,
}

impl Load {
    fn traffic(self) -> Traffic {
        let calls = Traffic::HEALTHY;
        match self {
            Self::Healthy => calls,
            Self::Failing => Traffic {
                errors: 0.5,
                ..calls
            },
            Self::Slow => Traffic {
                usual_ms: 80,
                ..calls
            },
            Self::Storm => Traffic {
                hedged: 0.3,
                ..calls
            },
            Self::OneSlow => Traffic {
                slow: 0.2,
                one_replica: true,
                ..calls
            },
            Self::Nothing => Traffic { calls: 0, ..calls },
        }
    }
}

fn load() -> impl Strategy<Value = Load> {
    prop_oneof![
        4 => Just(Load::Healthy),
        2 => Just(Load::Failing),
        2 => Just(Load::Slow),
        1 => Just(Load::Storm),
        1 => Just(Load::OneSlow),
        1 => Just(Load::Nothing),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let who = || 1..5_u64;
    let intent = || {
        prop_oneof![
            3 => Just(Intent::Hedge),
            1 => Just(Intent::Observe),
            1 => Just(Intent::Off)
        ]
    };
    let answers =
        prop_oneof![2 => Just(Answers::Now), 1 => Just(Answers::Later), 1 => Just(Answers::Never)];
    prop_oneof![
        20 => load().prop_map(Step::Second),
        3 => who().prop_map(Step::Join),
        2 => (who(), any::<bool>()).prop_map(|(it, left)| Step::Leave(it, left)),
        1 => who().prop_map(Step::Clone),
        2 => (who(), any::<bool>()).prop_map(|(it, deaf)| Step::Deaf(it, deaf)),
        1 => (who(), any::<bool>()).prop_map(|(it, refuses)| Step::Refuses(it, refuses)),
        2 => who().prop_map(Step::Heartbeat),
        3 => (intent(), 5..20_u8).prop_map(|(intent, budget)| Step::Policy(intent, budget)),
        3 => (intent(), 5..20_u8).prop_map(|(intent, budget)| Step::RollOut(intent, budget)),
        2 => Just(Step::Advance),
        1 => Just(Step::Abort),
        2 => (any::<bool>(), any::<bool>()).prop_map(|(all, on)| Step::Kill(all, on)),
        1 => Just(Step::Release),
        1 => Just(Step::AcceptBase),
        2 => (1..3_u64).prop_map(Step::Silence),
        1 => Just(Step::EndSilence),
        1 => (1..3_u64).prop_map(Step::Acknowledge),
        2 => any::<bool>().prop_map(Step::Switchback),
        2 => prop::option::of(50..100_u8).prop_map(Step::Busy),
        4 => answers.prop_map(Step::Store),
        6 => any::<bool>().prop_map(Step::Answer),
        1 => (3..60_u64).prop_map(Step::Pause),
        1 => Just(Step::Restart),
    ]
}

/// The agent a step is about, of those that are there.
fn nth(world: &World, which: u64) -> Option<ConnectionId> {
    let count = world.agents.len() as u64;
    let at = which.checked_rem(count)?;
    world.agents.keys().nth(at as usize).copied()
}

fn take(world: &mut World, step: Step, next: &mut u64) {
    match step {
        Step::Second(load) => {
            let search = RouteKey::new("search", "query").unwrap();
            let loads = [(route(), load.traffic()), (search, Traffic::HEALTHY)];
            world.seconds(3, &loads);
            check_tick(world);
        }
        Step::Join(which) => {
            *next += 1;
            let mut agent = Agent::new(which);
            agent.incarnation = Incarnation(*next);
            agent.connection = ConnectionId(*next);
            world.join(agent);
        }
        Step::Leave(which, _)
        | Step::Clone(which)
        | Step::Deaf(which, _)
        | Step::Refuses(which, _)
        | Step::Heartbeat(which) => {
            if let Some(connection) = nth(world, which) {
                take_with(world, step, connection, next);
            }
        }
        Step::Store(answers) => world.store.answers = answers,
        Step::Answer(durable) => {
            if let Some(answer) = world.store.answer(durable) {
                world.event(answer);
            }
        }
        Step::Pause(seconds) => {
            world.now = world.now.plus(Duration::from_secs(seconds));
            world.tick();
        }
        Step::Restart => world.restart(Duration::from_secs(7)),
        Step::Silence(_) | Step::EndSilence | Step::Acknowledge(_) => {
            if let Some(order) = about_alerts(world, step) {
                world.order(order);
            }
        }
        order => {
            world.order(ordered(order));
        }
    }
}

/// A step that is a person's order about alerts or silences, where there are any.
fn about_alerts(world: &World, step: Step) -> Option<Order> {
    let fleet = world.snapshot();
    match step {
        Step::Silence(minutes) => Some(Order::Silence(SilenceDraft {
            lasts: Duration::from_mins(minutes),
            ..SilenceDraft::default()
        })),
        Step::EndSilence => {
            let silence = fleet.silences.first()?.id;
            Some(Order::EndSilence { silence })
        }
        Step::Acknowledge(minutes) => Some(Order::Acknowledge {
            alert: fleet.alerts.first()?.state.id.clone(),
            lasts: Some(Duration::from_mins(minutes)),
        }),
        _ => None,
    }
}

/// A step of one agent.
fn take_with(world: &mut World, step: Step, connection: ConnectionId, next: &mut u64) {
    match step {
        Step::Leave(_, left) => {
            let how = if left {
                Departure::Left
            } else {
                Departure::Lost
            };
            let mut agent = world.leave(connection, how);
            if !left {
                *next += 1;
                agent.connection = ConnectionId(*next);
                agent.deaf = false;
                world.join(agent);
            }
        }
        Step::Clone(_) => {
            *next += 1;
            let mut clone = world.agents[&connection].clone();
            clone.connection = ConnectionId(*next);
            world.join(clone);
        }
        Step::Deaf(_, deaf) => world.agents.get_mut(&connection).unwrap().deaf = deaf,
        Step::Refuses(_, refuses) => {
            let refused = &mut world.agents.get_mut(&connection).unwrap().refuses;
            if refuses {
                refused.insert(route());
            } else {
                refused.clear();
            }
        }
        _ => {
            let held_hash = world.agents[&connection].hash();
            world.event(Event::Heartbeat {
                connection,
                held_hash,
            });
        }
    }
}

/// By a percentile, for a goal, or in a pool.
fn policy_of(intent: Intent, budget: u8) -> Policy {
    policy_with(|it| {
        it.intent = intent;
        it.budget = f64::from(budget) / 100.0;
        match budget % 4 {
            1 => it.goal = Some(0.95),
            2 => {
                it.pool = Some("checkout".into());
                it.objective_ms = Some(50.0);
            }
            _ => {}
        }
    })
}

/// What a tick leaves behind: nobody is told to hedge a dependency that is too busy.
fn check_tick(world: &World) {
    let snapshot = world.snapshot();
    let Some(view) = snapshot.routes.get(&route()) else {
        return;
    };
    let busy = view.utilisation.as_ref().filter(|it| it.until > world.now);
    if busy.is_some_and(|it| it.value >= 0.8) {
        let decision = world.controller.decision(&route()).unwrap();
        assert!(decision.live.probability.get() <= 0.0, "{decision:?}");
        assert!(decision.live.budget.get() <= 0.0, "{decision:?}");
    }
}

/// A step that is a person's order.
fn ordered(step: Step) -> Order {
    let dependency = DependencyName::new("catalog").unwrap();
    let scope = PolicyScope::from(dependency.clone());
    let expected = None;
    match step {
        Step::RollOut(intent, budget) => roll_out(policy_of(intent, budget)),
        Step::Advance => Order::AdvanceRollout { scope, expected },
        Step::Abort => Order::AbortRollout { scope, expected },
        Step::Policy(intent, budget) => set(policy_of(intent, budget)),
        Step::Kill(all, engaged) => {
            let scope = if all {
                KillScope::Everything
            } else {
                KillScope::Dependency(dependency)
            };
            Order::Kill { scope, engaged }
        }
        Step::Busy(percent) => Order::SetUtilisation {
            dependency,
            utilisation: percent.map(|it| Ratio::clamped(f64::from(it) / 100.0)),
            valid_for: Duration::from_secs(20),
        },
        Step::Release => Order::Release { route: route() },
        Step::Switchback(true) => Order::StartSwitchback {
            route: route(),
            rounds: 3,
        },
        Step::Switchback(false) => Order::StopSwitchback { route: route() },
        _ => Order::AcceptBase { route: route() },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_told_before_it_is_stored_and_no_agent_goes_back(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut world = World::hedging();
        let mut next = 100;
        for step in steps {
            take(&mut world, step, &mut next);
            next = next.max(world.agents.keys().map(|it| it.0).max().unwrap_or(0));
        }
        // With a store that is well and agents that listen, everything comes to rest.
        world.store_answers(true);
        world.store.answers = Answers::Now;
        for agent in world.agents.values_mut() {
            agent.deaf = false;
            agent.refuses.clear();
        }
        world.ordered(set(policy_with(|it| it.budget = 0.033))).unwrap();
        world.kill(true).unwrap();
        world.seconds(25, &[(route(), Traffic::HEALTHY)]);
        for agent in world.agents.values() {
            prop_assert!(matches!(agent.mode(&route()), Mode::Off(_)), "{:?}", agent.held);
        }
        let view = world.view(&route());
        prop_assert_eq!(view.acked.n, view.acked.m);
        let mut open = std::collections::BTreeSet::new();
        for notice in &world.store.notices {
            let known = open.contains(&notice.id);
            prop_assert_eq!(known, notice.resolved.is_some(), "{:?}", notice);
            if known { open.remove(&notice.id); } else { open.insert(notice.id.clone()); }
        }
    }
}
