//! Agents and their controller: seconds, reports, streams, pushes, and what befalls them.

use std::time::Duration;

use hedgerow_core::event::{ConnectionId, Departure, Event as Told, Joined};
use hedgerow_protocol::ids::{Incarnation, ServiceName};
use hedgerow_protocol::latency::{Histogram, SparseHistogram};
use hedgerow_protocol::report::Effective;
use hedgerow_protocol::session::held_hash;
use hedgerow_protocol::units::Threshold;

use super::calls::Calls;
use super::{Event, PUSH_TAKES, SECOND, World, setting};
use crate::agent::{Agent, Liar, instance};
use crate::chance::{Random, Stream};
use crate::client::Client;
use crate::scenario::{FaultKind, Lie};

/// Agents that lost their controller come back within so long, evenly: a reconnect's full jitter.
const BACK_WITHIN: u64 = 5 * SECOND;
/// A process that starts has its stream within so long.
const STARTS_WITHIN: u64 = SECOND;

/// Ages of unanswered primaries beyond a threshold; `alive`: the slots of their calls.
fn in_flight(alive: &[u32], beyond: Option<Threshold>, calls: &Calls, now: u64) -> Histogram {
    let beyond = beyond.map_or(Duration::ZERO, Threshold::get);
    let mut ages = Histogram::new();
    for call in alive.iter().filter_map(|slot| calls.in_slot(*slot)) {
        let age = Duration::from_micros(now - call.primary.began);
        if age >= beyond {
            ages.record(age);
        }
    }
    ages
}

impl World<'_> {
    /// An agent's second is over.
    pub(super) fn agent_second(&mut self, number: u32) {
        let now = self.now();
        self.clock.at(now + SECOND, Event::AgentSecond(number));
        let agent = &mut self.agents[number as usize];
        if let Some(plain) = &mut agent.plain {
            plain.second();
        }
        if self.variation.client != Client::Hedgerow {
            return;
        }
        let calls = &self.calls;
        let setting = setting(&self.names, self.deadline, self.variation);
        agent.second(now, setting, |alive, beyond| {
            in_flight(alive, beyond, calls, now)
        });
        let every = self.scenario.fleet.report_every_s;
        // Theirs are spread over the seconds, too.
        if (now / SECOND + u64::from(number)).is_multiple_of(every) {
            self.report(number);
        }
    }

    fn report(&mut self, number: u32) {
        let now = self.now();
        let lie = self.lie(number);
        let agent = &mut self.agents[number as usize];
        let Some(connection) = agent.connection else {
            return;
        };
        let ages = in_flight(&agent.alive, agent.in_force.threshold, &self.calls, now);
        let ages = if ages.is_empty() {
            SparseHistogram::default()
        } else {
            ages.to_sparse()
        };
        let effective = Effective {
            stamp: agent.in_force.stamp,
            mode: agent.in_force.mode,
            own_off: agent.in_force.own_off,
            threshold: agent.in_force.threshold,
            probability: agent.in_force.probability,
            budget: agent.in_force.budget,
            cap: agent.in_force.cap,
            tokens: agent.bucket.tokens(),
            replicas: self.names.len() as u32,
            watched_losers: agent.watched,
        };
        let mut report = agent.books.report(now, &self.names, ages, effective);
        if let Some(liar) = &mut agent.liar {
            let said = report.routes.into_iter().map(|it| liar.says(it, lie));
            report.routes = said.collect();
        }
        let route = crate::route();
        let held = agent.orders.stamp().map(|stamp| (&route, stamp));
        let told = Told::Reported {
            connection,
            report: Box::new(report),
            held_hash: held_hash(held),
        };
        self.tell(told);
    }

    fn lie(&self, number: u32) -> Option<Lie> {
        let t = self.t();
        let faults = self.scenario.faults.iter();
        let mut lies = faults.filter_map(|fault| match fault.kind {
            FaultKind::Liars { count, says } if (number as usize) < count && fault.is_on(t) => {
                Some(says)
            }
            _ => None,
        });
        lies.next()
    }

    /// The controller hears something; what it wants done is done, or on its way.
    pub(super) fn tell(&mut self, told: Told) {
        let now = self.now();
        if let Some(driver) = &mut self.driver {
            driver.event(now, told);
        }
        self.follow_driver();
    }

    /// Takes over what the controller has pushed and answered.
    pub(super) fn follow_driver(&mut self) {
        let now = self.now();
        let Some(driver) = &mut self.driver else {
            return;
        };
        for (connection, set) in driver.pushes.drain(..) {
            self.deliveries.push_back((now, connection, set));
            self.clock.at(now + PUSH_TAKES, Event::Delivery);
        }
        let heard = std::mem::take(&mut driver.heard);
        for connection in &heard {
            if let Some(number) = self.agent_on(*connection) {
                let agent = &mut self.agents[number as usize];
                let age = agent.age(now);
                agent.orders.heard(age);
            }
        }
        if let Some(driver) = &mut self.driver {
            driver.heard = heard;
            driver.heard.clear();
        }
    }

    fn agent_on(&self, connection: ConnectionId) -> Option<u32> {
        let number = *self.streams.get(connection.0 as usize)?;
        let agent = &self.agents[number as usize];
        (agent.connection == Some(connection)).then_some(number)
    }

    pub(super) fn deliver(&mut self) {
        let now = self.now();
        let Some((_, connection, set)) = self.deliveries.pop_front() else {
            return;
        };
        let Some(number) = self.agent_on(connection) else {
            return;
        };
        let setting = setting(&self.names, self.deadline, self.variation);
        let answers = self.agents[number as usize].take(now, set, setting);
        let mut stamps = Vec::new();
        for answer in answers {
            match answer {
                Ok(stamp) => stamps.push((crate::route(), stamp)),
                Err((stamp, reason)) => self.tell(Told::Refused {
                    connection,
                    route: Some(crate::route()),
                    stamp: Some(stamp),
                    reason,
                }),
            }
        }
        if !stamps.is_empty() {
            self.tell(Told::Applied { connection, stamps });
        }
    }

    pub(super) fn join_at(&mut self, number: u32, from: u64) {
        let agent = &mut self.agents[number as usize];
        if !std::mem::replace(&mut agent.joining, true) {
            let key = u64::from(number) + agent.incarnation * 1_000_003 + from;
            let mut random = Random::of(self.variation.seed, Stream::Agents, key);
            let within = if from == 0 || agent.orders.stamp().is_none() {
                STARTS_WITHIN
            } else {
                BACK_WITHIN
            };
            let at = from + (random.unit() * within as f64) as u64;
            self.clock.at(at, Event::Join(number));
        }
    }

    pub(super) fn join(&mut self, number: u32) {
        let now = self.now();
        let Some(driver) = self.driver.as_ref().filter(|it| it.is_running()) else {
            self.agents[number as usize].joining = false;
            return;
        };
        let (lease, heartbeat) = driver.lease();
        let agent = &mut self.agents[number as usize];
        agent.joining = false;
        if self.cuts > 0 || agent.connection.is_some() {
            return;
        }
        let connection = ConnectionId(self.streams.len() as u64);
        self.streams.push(number);
        agent.connection = Some(connection);
        let age = agent.age(now);
        agent.orders.welcomed(age, lease, heartbeat);
        let joined = Joined {
            connection,
            service: service(),
            instance: instance(number as usize),
            incarnation: Incarnation(agent.incarnation),
            zone: None,
            version: env!("CARGO_PKG_VERSION").into(),
            peer: String::new(),
            held: agent.orders.held(&crate::route()).into_iter().collect(),
        };
        self.tell(Told::Joined(joined));
    }

    /// A fault begins or ends that is more than weather.
    pub(super) fn fault(&mut self, number: usize, begins: bool) {
        let now = self.now();
        match (&self.scenario.faults[number].kind, begins) {
            (FaultKind::ControllerAway {}, true) => {
                self.cuts += 1;
                self.lose_streams(true);
            }
            (FaultKind::ControllerAway {}, false) => {
                self.cuts -= 1;
                self.come_back(now);
            }
            (FaultKind::ControllerRestart {}, true) => {
                self.deaths += 1;
                if let Some(driver) = &mut self.driver {
                    driver.stop();
                }
                self.lose_streams(false);
            }
            // Of deaths that overlap it comes back once, after the last: a second start would forget
            // the streams that were opened to the first.
            (FaultKind::ControllerRestart {}, false) => {
                self.deaths -= 1;
                if self.deaths > 0 {
                    return;
                }
                if let Some(driver) = &mut self.driver {
                    driver.start(now);
                }
                self.follow_driver();
                self.come_back(now);
            }
            (FaultKind::AgentsRestart { share }, true) => {
                let count = (share * self.agents.len() as f64).round() as u32;
                // Their calls die with them.
                for call in self.calls.of_agents_below(count) {
                    self.forget(call);
                }
                for agent in 0..count {
                    self.restart(agent);
                }
            }
            _ => {}
        }
    }

    fn lose_streams(&mut self, tell: bool) {
        for number in 0..self.agents.len() {
            let Some(connection) = self.agents[number].connection.take() else {
                continue;
            };
            if tell {
                self.tell(Told::Gone {
                    connection,
                    departure: Departure::Lost,
                });
            }
        }
    }

    fn come_back(&mut self, now: u64) {
        if self.driver.is_some() {
            for number in 0..self.agents.len() as u32 {
                self.join_at(number, now);
            }
        }
    }

    /// An agent's process starts anew, without a call.
    fn restart(&mut self, number: u32) {
        let now = self.now();
        let old = &mut self.agents[number as usize];
        let mut new = Agent::new(number as usize, now, old.incarnation + 1, self.names.len());
        new.log = old.log.begun_anew();
        new.plain = old.plain.is_some().then(Box::default);
        new.liar = old.liar.is_some().then(Box::<Liar>::default);
        let connection = std::mem::replace(old, new).connection;
        if let Some(connection) = connection {
            self.tell(Told::Gone {
                connection,
                departure: Departure::Lost,
            });
        }
        if self.variation.client == Client::Hedgerow {
            self.join_at(number, now);
        }
    }
}

fn service() -> ServiceName {
    ServiceName::new("shop").expect("letters are a name")
}
