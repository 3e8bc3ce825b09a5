//! The world: calls, replicas, agents and a controller in discrete events, on a clock of its own.

mod arrivals;
mod calls;
mod clock;
mod fleet;
mod meter;
mod pauses;
mod queues;
mod race;
mod second;
mod weather;

use std::collections::VecDeque;
use std::time::Duration;

use hedgerow_core::event::ConnectionId;
use hedgerow_protocol::directive::DirectiveSet;
use hedgerow_protocol::ids::ReplicaName;

use self::calls::{CallId, Calls, Role};
use self::clock::Clock;
use self::meter::Meter;
use self::queues::{JobId, Queues};
use self::weather::Weather;
use crate::agent::{Agent, Liar, Log, Setting};
use crate::chance::{Random, Stream};
use crate::client::Client;
use crate::controller::Driver;
use crate::outcome::{Outcome, Second};
use crate::scenario::{FaultKind, Scenario};
use crate::variation::Variation;

/// Microseconds in a second.
const SECOND: u64 = 1_000_000;
/// How long a push is on its way.
const PUSH_TAKES: u64 = 10_000;

/// What happens.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// The next call.
    Arrival,
    /// Calls come more or less often than before.
    OtherTraffic,
    /// A call has lasted as long as the threshold.
    Timer(CallId),
    /// A copy has ended by itself.
    Ended(CallId, Role),
    /// A copy has failed.
    Failed(CallId, Role),
    Deadline(CallId),
    /// A replica's worker is done.
    Served(JobId, bool),
    /// An agent's second is over.
    AgentSecond(u32),
    /// An agent opens a stream.
    Join(u32),
    /// The next push arrives.
    Delivery,
    /// The controller's second is over.
    Tick,
    /// A fault of this number begins, or ends.
    Fault(usize, bool),
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct World<'a> {
    scenario: &'a Scenario,
    variation: &'a Variation,
    clock: Clock<Event>,
    weather: Weather,
    queues: Option<Queues>,
    calls: Calls,
    calls_made: u64,
    arrivals: Random,
    agents: Vec<Agent>,
    names: Vec<ReplicaName>,
    deadline: u64,
    driver: Option<Driver>,
    /// The agent of each stream, by the stream's number.
    streams: Vec<u32>,
    /// Faults by which agents cannot reach the controller now.
    cuts: u32,
    /// Faults by which the controller is gone now.
    deaths: u32,
    deliveries: VecDeque<(u64, ConnectionId, DirectiveSet)>,
    meter: Meter,
}

impl<'a> World<'a> {
    pub(crate) fn new(scenario: &'a Scenario, variation: &'a Variation) -> Self {
        let fleet = &scenario.fleet;
        let name = |replica| {
            ReplicaName::new(&format!("replica-{replica}")).expect("letters and digits are a name")
        };
        let mut world = Self {
            scenario,
            variation,
            clock: Clock::default(),
            weather: Weather::of(scenario, variation.seed),
            queues: (scenario.service.workers > 0).then(|| {
                let service = &scenario.service;
                Queues::new(fleet.replicas, service.workers, service.cancellation)
            }),
            calls: Calls::default(),
            calls_made: 0,
            arrivals: Random::of(variation.seed, Stream::Arrivals, 0),
            agents: (0..fleet.agents)
                .map(|number| Agent::new(number, 0, 1, fleet.replicas))
                .collect(),
            names: (0..fleet.replicas).map(name).collect(),
            deadline: (fleet.deadline_ms * 1e3) as u64,
            driver: (variation.client == Client::Hedgerow).then(|| Driver::new(scenario.policy())),
            streams: Vec::new(),
            cuts: 0,
            deaths: 0,
            deliveries: VecDeque::new(),
            meter: Meter::default(),
        };
        world.begin();
        world
    }

    /// What is known to happen.
    fn begin(&mut self) {
        self.clock.at(0, Event::Arrival);
        self.clock.at(SECOND, Event::Tick);
        for agent in 0..self.agents.len() as u32 {
            match self.variation.client {
                Client::Hedgerow => self.join_at(agent, 0),
                Client::PlainP95 => {
                    let agent = &mut self.agents[agent as usize];
                    (agent.plain, agent.log) = (Some(Box::default()), Log::nothing());
                }
                Client::Bare => {
                    self.agents[agent as usize].log = Log::nothing();
                    continue;
                }
            }
            let phase = self.phase(agent);
            self.clock.at(SECOND + phase, Event::AgentSecond(agent));
        }
        let seconds = |s: f64| (s * 1e6) as u64;
        for (number, fault) in self.scenario.faults.iter().enumerate() {
            self.clock
                .at(seconds(fault.from_s), Event::Fault(number, true));
            if let Some(to) = fault.to_s {
                self.clock.at(seconds(to), Event::Fault(number, false));
            }
            if let FaultKind::Liars { count, .. } = fault.kind {
                for agent in &mut self.agents[..count] {
                    agent.liar.get_or_insert_with(Box::<Liar>::default);
                }
            }
        }
    }

    /// Where in a second an agent's seconds end: theirs are spread, and none is a whole one.
    fn phase(&self, agent: u32) -> u64 {
        (u64::from(agent) + 1) * SECOND / (self.agents.len() as u64 + 1)
    }

    /// Runs to the end.
    pub(crate) fn run(mut self, mut progress: impl FnMut(&Second)) -> Outcome {
        let end = self.scenario.seconds * SECOND;
        let mut rows = Vec::with_capacity(self.scenario.seconds as usize);
        while let Some(event) = self.clock.next(end) {
            if let Event::Tick = event {
                let row = self.tick();
                progress(&row);
                rows.push(row);
            } else {
                self.handle(event);
            }
        }
        let store = self.driver.as_ref().map(|driver| &driver.store);
        let refused = self.driver.as_ref().map(|driver| driver.refused.clone());
        let phases = self.meter.phases(self.scenario);
        Outcome::new(self.scenario, self.variation, rows, phases, store, refused)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrival => self.arrive(),
            Event::OtherTraffic => self.next_arrival(),
            Event::Timer(call) => self.timer(call),
            Event::Ended(call, role) => self.ended(call, role, false),
            Event::Failed(call, role) => self.ended(call, role, true),
            Event::Deadline(call) => self.deadline(call),
            Event::Served(job, fails) => self.served(job, fails),
            Event::AgentSecond(agent) => self.agent_second(agent),
            Event::Join(agent) => self.join(agent),
            Event::Delivery => self.deliver(),
            Event::Tick => {}
            Event::Fault(number, begins) => self.fault(number, begins),
        }
    }

    fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Seconds since the beginning.
    fn t(&self) -> f64 {
        self.clock.now() as f64 / SECOND as f64
    }
}

fn setting<'a>(names: &'a [ReplicaName], deadline: u64, variation: &Variation) -> Setting<'a> {
    Setting {
        names,
        deadline: Duration::from_micros(deadline),
        budget: variation.guards.budget,
    }
}
