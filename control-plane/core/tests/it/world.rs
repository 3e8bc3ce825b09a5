//! A controller with its store, its agents and a clock that stands still until it is moved.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use hedgerow_core::Controller;
use hedgerow_core::check::check;
use hedgerow_core::effect::{Done, Effect, OrderError};
use hedgerow_core::event::{
    Actor, ConnectionId, Departure, Event, KillScope, Order, RequestId, Settings, Via,
};
use hedgerow_core::moment::Moment;
use hedgerow_core::rollout::RolloutPlan;
use hedgerow_core::view::{FleetSnapshot, RouteView};
use hedgerow_protocol::directive::DirectiveSet;
use hedgerow_protocol::ids::{DependencyName, RouteKey, Sequence};
use hedgerow_protocol::policy::{Intent, Policy, PolicyDraft};

use crate::agent::Agent;
use crate::store::{Answers, Store};
use crate::traffic::Traffic;

pub(crate) const START: Moment = Moment::from_millis(1_700_000_000_000);

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) now: Moment,
    pub(crate) controller: Controller,
    pub(crate) store: Store,
    pub(crate) agents: BTreeMap<ConnectionId, Agent>,
    pub(crate) acks: Vec<(ConnectionId, Sequence, Option<String>)>,
    pub(crate) replies: BTreeMap<RequestId, Result<Done, OrderError>>,
    /// Every push, in order.
    pub(crate) pushes: Vec<(ConnectionId, DirectiveSet)>,
    /// Whether the invariants are asked for after each event: for a thousand agents that takes its
    /// time.
    pub(crate) checked: bool,
    requests: u64,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Store::default(), Settings::default(), START)
    }

    pub(crate) fn with(store: Store, settings: Settings, now: Moment) -> Self {
        let controller = Controller::new(settings, store.restored(), now);
        let mut world = Self {
            now,
            controller,
            store,
            agents: BTreeMap::new(),
            acks: Vec::new(),
            replies: BTreeMap::new(),
            pushes: Vec::new(),
            checked: true,
            requests: 0,
        };
        world.drain();
        world
    }

    /// The controller dies and starts again from its store after `away`; agents keep what they
    /// hold, and attach anew on streams with new numbers.
    pub(crate) fn restart(&mut self, away: Duration) {
        let mut agents = std::mem::take(&mut self.agents);
        let mut store = self.store.clone();
        store.waiting.clear();
        store.answers = Answers::Now;
        *self = Self {
            requests: self.requests,
            ..Self::with(store, Settings::default(), self.now.plus(away))
        };
        for agent in agents.values_mut() {
            agent.sets.clear();
            agent.connection = ConnectionId(agent.connection.0 + 1_000);
            self.join(agent.clone());
        }
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.controller.handle_event(self.now, event);
        self.drain();
    }

    pub(crate) fn drain(&mut self) {
        let mut answers = VecDeque::new();
        loop {
            if self.checked {
                check(&self.controller).unwrap();
            }
            while let Some(effect) = self.controller.poll_effect() {
                match effect {
                    Effect::Persist { write, records } => {
                        answers.extend(self.store.persist(write, records));
                    }
                    Effect::Push { connection, set } => {
                        for directive in &set.directives {
                            self.store.check(directive);
                        }
                        self.pushes.push((connection, set.clone()));
                        if let Some(agent) = self.agents.get_mut(&connection) {
                            answers.extend(agent.take(set));
                        }
                    }
                    Effect::Acknowledge {
                        connection,
                        sequence,
                        refused,
                    } => {
                        self.acks.push((connection, sequence, refused));
                    }
                    Effect::Reply { request, result } => {
                        assert!(
                            self.replies.insert(request, result).is_none(),
                            "answered twice"
                        );
                    }
                }
            }
            let Some(answer) = answers.pop_front() else {
                return;
            };
            self.controller.handle_event(self.now, answer);
        }
    }

    /// The store answers everything that waits.
    pub(crate) fn store_answers(&mut self, durable: bool) {
        while let Some(answer) = self.store.answer(durable) {
            self.event(answer);
        }
    }

    pub(crate) fn join(&mut self, agent: Agent) {
        let joined = agent.hello();
        self.agents.insert(agent.connection, agent);
        self.event(Event::Joined(joined));
    }

    pub(crate) fn leave(&mut self, connection: ConnectionId, departure: Departure) -> Agent {
        let agent = self.agents.remove(&connection).unwrap();
        self.event(Event::Gone {
            connection,
            departure,
        });
        agent
    }

    /// A second goes by: every agent reports `traffic`, then the controller decides.
    pub(crate) fn second(&mut self, traffic: &[(RouteKey, Traffic)]) {
        self.now = self.now.plus(Duration::from_secs(1));
        let connections: Vec<_> = self.agents.keys().copied().collect();
        for connection in connections {
            self.report(connection, traffic);
        }
        self.tick();
    }

    pub(crate) fn seconds(&mut self, seconds: u64, traffic: &[(RouteKey, Traffic)]) {
        for _ in 0..seconds {
            self.second(traffic);
        }
    }

    pub(crate) fn report(&mut self, connection: ConnectionId, traffic: &[(RouteKey, Traffic)]) {
        let wall_clock = self.now.as_millis();
        let agent = self.agents.get_mut(&connection).unwrap();
        let reported = agent.reported(traffic, wall_clock);
        self.event(reported);
    }

    /// From now on no agent hears anything, and so answers nothing.
    pub(crate) fn silence(&mut self) {
        for agent in self.agents.values_mut() {
            agent.deaf = true;
        }
    }

    /// The controller decides; the clock stands.
    pub(crate) fn tick(&mut self) {
        self.controller.handle_timeout(self.now);
        self.drain();
    }

    pub(crate) fn order(&mut self, order: Order) -> RequestId {
        self.order_because("a test wants it", order)
    }

    pub(crate) fn order_because(&mut self, reason: &str, order: Order) -> RequestId {
        self.requests += 1;
        let request = RequestId(self.requests);
        let actor = Actor {
            name: "ann".into(),
            via: Via::Page,
        };
        self.event(Event::Ordered {
            request,
            actor,
            reason: reason.into(),
            order,
        });
        request
    }

    pub(crate) fn ordered(&mut self, order: Order) -> Result<Done, OrderError> {
        let request = self.order(order);
        self.replies[&request].clone()
    }

    pub(crate) fn kill(&mut self, engaged: bool) -> Result<Done, OrderError> {
        self.ordered(Order::Kill {
            scope: KillScope::Everything,
            engaged,
        })
    }

    pub(crate) fn snapshot(&self) -> FleetSnapshot {
        self.controller.snapshot(self.now)
    }

    pub(crate) fn view(&self, route: &RouteKey) -> RouteView {
        (*self.snapshot().routes[route]).clone()
    }

    pub(crate) fn agent(&self, number: u64) -> &Agent {
        &self.agents[&ConnectionId(number)]
    }

    pub(crate) fn last_ack(&self) -> &(ConnectionId, Sequence, Option<String>) {
        self.acks.last().unwrap()
    }

    /// Three agents on `catalog get` with a policy that hedges, seen long enough to be on.
    pub(crate) fn hedging() -> Self {
        let mut world = Self::new();
        for number in 1..=3 {
            world.join(Agent::new(number));
        }
        world.ordered(set(policy())).unwrap();
        world.seconds(30, &[(route(), Traffic::HEALTHY)]);
        world
    }
}

pub(crate) fn route() -> RouteKey {
    RouteKey::new("catalog", "get").unwrap()
}

/// A policy that hedges `catalog`.
pub(crate) fn policy() -> Policy {
    policy_with(|_| ())
}

pub(crate) fn policy_with(change: impl FnOnce(&mut PolicyDraft)) -> Policy {
    let mut draft: PolicyDraft =
        Policy::observing(DependencyName::new("catalog").unwrap().into()).into();
    draft.intent = Intent::Hedge;
    change(&mut draft);
    draft.try_into().unwrap()
}

/// In steps: a quarter of the agents, half, all, 30 s each.
pub(crate) fn roll_out(policy: Policy) -> Order {
    let stay = Duration::from_secs(30);
    Order::SetPolicy {
        policy: Box::new(policy),
        expected: None,
        rollout: Some(RolloutPlan::new(vec![0.25, 0.5, 1.0], stay).unwrap()),
    }
}

pub(crate) fn set(policy: Policy) -> Order {
    Order::SetPolicy {
        policy: Box::new(policy),
        expected: None,
        rollout: None,
    }
}
