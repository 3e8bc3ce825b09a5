//! A hundred agents with calls drawn at random, some of which lie.

use std::collections::BTreeMap;
use std::time::Duration;

use hedgerow_core::event::{ConnectionId, Event};
use hedgerow_core::view::QuarantineView;
use hedgerow_protocol::ids::{ReplicaName, Sequence};
use hedgerow_protocol::latency::{Histogram, SparseHistogram, bucket_of};
use hedgerow_protocol::report::{Attempts, ReplicaReport, Report, RouteReport, Totals};

use crate::agent::Agent;
use crate::traffic::Traffic;
use crate::world::{World, policy, route, set};

/// Splitmix64: the same calls for the same seed, on any machine.
#[derive(Debug, Clone)]
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to 1, neither of them.
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Milliseconds: median 20, p95 45.
    fn latency(&mut self) -> f64 {
        let (a, b) = (self.unit(), self.unit());
        let normal = (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos();
        20.0 * (0.5 * normal).exp()
    }
}

/// What an agent makes of its second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Says {
    /// What happened.
    Truth,
    /// All calls took so many times as long.
    Times(f64),
    /// All calls were fast, and none crossed.
    NothingCrosses,
    /// So many calls more, all failed.
    Failing(u64),
    /// So many calls more, all pushed back.
    PushedBack(u64),
    /// What happened in its first second, again and again, and each report twice.
    Replay,
    /// The calls on its first replica of four took ten times as long.
    SlowReplica,
    /// Nothing at all.
    Nothing,
}

#[derive(Debug, Clone)]
pub(crate) struct Crowd {
    pub(crate) world: World,
    dice: Dice,
    calls: u64,
    /// Each agent's first second.
    firsts: BTreeMap<u64, Vec<f64>>,
}

impl Crowd {
    /// `agents` with `calls` each a second, hedging for `seconds`.
    pub(crate) fn new(seed: u64, agents: u64, calls: u64, seconds: u64) -> Self {
        let mut world = World::new();
        for number in 1..=agents {
            world.join(Agent::new(number));
        }
        world.ordered(set(policy())).unwrap();
        let mut crowd = Self {
            world,
            dice: Dice(seed),
            calls,
            firsts: BTreeMap::new(),
        };
        crowd.seconds(seconds, |_| Says::Truth);
        // What is pushed is held by the agents; keeping it all would be most of the test's memory.
        crowd.world.pushes.clear();
        crowd
    }

    pub(crate) fn seconds(&mut self, seconds: u64, says: impl Fn(u64) -> Says) {
        for _ in 0..seconds {
            self.second(&says);
        }
    }

    /// A second goes by; agent `number` says `says(number)`.
    pub(crate) fn second(&mut self, says: impl Fn(u64) -> Says) {
        self.world.now = self.world.now.plus(Duration::from_secs(1));
        let numbers: Vec<_> = self.world.agents.keys().map(|it| it.0).collect();
        for number in numbers {
            // Drawn in any case: the others' calls are the same, whatever one of them says.
            let calls: Vec<_> = (0..self.calls).map(|_| self.dice.latency()).collect();
            let first = self.firsts.entry(number).or_insert_with(|| calls.clone());
            let says = says(number);
            let calls = if says == Says::Replay {
                first.clone()
            } else {
                calls
            };
            if says != Says::Nothing {
                self.report(number, &calls, says);
            }
        }
        self.world.tick();
    }

    fn report(&mut self, number: u64, calls: &[f64], says: Says) {
        let agent = self.world.agents.get_mut(&ConnectionId(number)).unwrap();
        let report = told(agent, calls, says);
        let event = Event::Reported {
            connection: agent.connection,
            report: Box::new(report),
            held_hash: agent.hash(),
        };
        if says == Says::Replay {
            self.world.event(event.clone());
        }
        self.world.event(event);
        let refused = &self.world.last_ack().2;
        assert_eq!(refused, &None, "agent {number} says {says:?}");
    }

    /// The fleet's threshold, milliseconds.
    pub(crate) fn threshold(&self) -> f64 {
        let figures = self.world.view(&route()).figures.unwrap();
        figures.threshold.unwrap().as_secs_f64() * 1e3
    }

    /// Who is left out, held or quarantined.
    pub(crate) fn out(&self) -> Vec<(u64, QuarantineView)> {
        let agents = self.world.snapshot().agents.into_iter();
        agents
            .filter_map(|agent| {
                let view = agent.routes.into_iter().find(|it| it.route == route())?;
                Some((agent.connection.0, view.quarantine?))
            })
            .collect()
    }

    pub(crate) fn quarantined(&self) -> Vec<u64> {
        let out = self.out().into_iter();
        out.filter(|(_, view)| !view.held)
            .map(|(number, _)| number)
            .collect()
    }
}

/// An agent's next report.
fn told(agent: &mut Agent, calls: &[f64], says: Says) -> Report {
    let threshold = agent.held.get(&route()).and_then(|it| it.live.threshold);
    let threshold = threshold.map(|it| it.get().as_secs_f64() * 1e3);
    let parts: Vec<Vec<f64>> = (0..4)
        .map(|replica| {
            let own = calls.iter().enumerate().filter(|(n, _)| n % 4 == replica);
            own.map(|(_, latency)| match says {
                Says::Times(times) => latency * times,
                Says::NothingCrosses => 1.0,
                Says::SlowReplica if replica == 0 => latency * 10.0,
                _ => *latency,
            })
            .collect()
        })
        .collect();
    let crossed = |calls: &[f64]| {
        let beyond = |limit| calls.iter().filter(|latency| **latency > limit).count() as u64;
        threshold.map_or(0, beyond)
    };
    let all = parts.concat();
    let started = all.len() as u64;
    let mut totals = Totals {
        started,
        finished: started,
        crossed: crossed(&all),
        primary_finished: started,
        treated_finished: started,
        ..Totals::default()
    };
    let (failed, pushed_back) = match says {
        Says::Failing(calls) => (calls, 0),
        Says::PushedBack(calls) => (0, calls),
        _ => (0, 0),
    };
    totals.started += failed + pushed_back;
    totals.finished += failed + pushed_back;
    totals.primary_finished += failed + pushed_back;
    totals.primary_errors += failed;
    totals.push_back += pushed_back;
    let whole = agent.totals.entry(route()).or_default();
    whole.add(&totals);
    let whole = *whole;
    agent.sequence += 1;
    let mut report: RouteReport = Traffic::HEALTHY.report(&route(), &whole);
    report.effective = agent.effective(&route());
    report.primary = done(&all);
    report.treated = histogram(&all);
    report.replicas = parts
        .iter()
        .enumerate()
        .map(|(number, calls)| ReplicaReport {
            replica: ReplicaName::new(&format!("r{number}")).unwrap(),
            zone: None,
            started: calls.len() as u64,
            crossed: crossed(calls),
            finished: calls.len() as u64,
            errors: 0,
            hedged: 0,
            won: 0,
            primary: done(calls),
        })
        .collect();
    Report {
        sequence: Sequence(agent.sequence),
        covers: Duration::from_secs(1),
        wall_clock_ms: 0,
        routes: vec![report],
    }
}

fn done(calls: &[f64]) -> Attempts {
    Attempts {
        done: histogram(calls),
        censored: SparseHistogram::default(),
    }
}

fn histogram(calls: &[f64]) -> SparseHistogram {
    let mut all = Histogram::new();
    for millis in calls {
        let bucket = bucket_of(Duration::from_secs_f64(millis / 1e3));
        all.add_to_bucket(bucket, 1).unwrap();
    }
    all.to_sparse()
}
