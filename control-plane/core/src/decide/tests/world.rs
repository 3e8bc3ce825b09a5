//! A fleet and its replicas in discrete events: enough of an agent to close the loop.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use hedgerow_protocol::policy::Policy;
use hedgerow_protocol::report::{Refusal, Totals};
use hedgerow_protocol::units::Threshold;

use super::agent::{Agent, Counts, name, route};
use super::setup::{Random, Script, Setup};
use crate::decide::{Decision, Situation, decide};
use crate::memory::Memory;
use crate::moment::Moment;
use crate::window::{Slice, Tally, Windows};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival,
    Timer(usize),
    Ended { call: usize, hedge: bool },
    Deadline(usize),
    Report(usize),
    Tick,
}

const DEADLINE_US: u64 = 2_000_000;
const SECOND_US: u64 = 1_000_000;

struct Attempt {
    replica: usize,
    from: u64,
    fails: bool,
    open: bool,
}

struct Call {
    agent: usize,
    expensive: bool,
    held_out: bool,
    from: u64,
    threshold: Option<u64>,
    primary: Attempt,
    hedge: Option<Attempt>,
    open: bool,
    crossed: bool,
}

/// A second of the run.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) second: u64,
    pub(super) decision: Decision,
    pub(super) totals: Totals,
    /// What callers waited where a hedge was allowed.
    pub(super) treated: Tally,
}

pub(super) struct World {
    setup: Setup,
    random: Random,
    now: u64,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    calls: Vec<Call>,
    live: Vec<usize>,
    agents: Vec<Agent>,
    slice: Slice,
    windows: Windows,
    memory: Memory,
    decision: Option<Decision>,
    /// The threshold agents hold: no word on it changes nothing.
    held: Option<Threshold>,
    script: Script,
    pub(super) rows: Vec<Row>,
}

impl World {
    pub(super) fn run(setup: Setup, seconds: u64) -> Self {
        let policy = Policy::try_from(setup.draft.clone()).unwrap();
        let agents = setup.agents;
        let mut world = Self {
            random: Random::new(setup.seed),
            now: 0,
            events: BinaryHeap::new(),
            calls: Vec::new(),
            live: Vec::new(),
            agents: (0..agents).map(|_| Agent::default()).collect(),
            slice: Slice::default(),
            windows: Windows::new(),
            memory: Memory::new(Moment::from_millis(0)),
            decision: None,
            held: None,
            script: Script {
                killed_by: None,
                policy: Some(policy),
                replicas_per_agent_max: setup.replicas as u32,
                order: None,
                restart: false,
                base_lost: false,
                utilisation: None,
            },
            rows: Vec::new(),
            setup,
        };
        world.at(0, Event::Arrival);
        world.at(SECOND_US, Event::Tick);
        for agent in 0..agents {
            let phase = (agent as u64 + 1) * SECOND_US / (agents as u64 + 1);
            world.at(phase, Event::Report(agent));
        }
        while let Some(Reverse((at, event))) = world.events.pop() {
            if at > seconds * SECOND_US {
                break;
            }
            world.now = at;
            world.handle(event);
        }
        world
    }

    fn at(&mut self, at: u64, event: Event) {
        self.events.push(Reverse((at, event)));
    }

    fn seconds(&self) -> f64 {
        self.now as f64 / SECOND_US as f64
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrival => self.arrive(),
            Event::Timer(call) => self.timer(call),
            Event::Ended { call, hedge } => self.ended(call, hedge),
            Event::Deadline(call) => self.deadline(call),
            Event::Report(agent) => {
                self.report(agent);
                self.at(self.now + SECOND_US, Event::Report(agent));
            }
            Event::Tick => {
                self.tick();
                self.at(self.now + SECOND_US, Event::Tick);
            }
        }
    }

    fn arrive(&mut self) {
        let rate = self.setup.calls_per_s * (self.setup.traffic)(self.seconds());
        let gap = -(1.0 - self.random.unit()).ln() / rate.max(1.0);
        self.at(self.now + (gap * 1e6) as u64 + 1, Event::Arrival);
        if rate <= 0.0 {
            return;
        }
        let replica = self.pick();
        let expensive = (self.setup.expensive)(self.seconds());
        let expensive = self.random.chance(expensive);
        let agent = self.random.below(self.agents.len());
        let fate = (self.setup.service)(self.seconds(), replica, expensive, &mut self.random);
        let call = Call {
            agent,
            expensive,
            held_out: self.random.chance(self.setup.draft.holdout),
            from: self.now,
            threshold: self.held.map(|d| d.get().as_micros() as u64),
            primary: Attempt {
                replica,
                from: self.now,
                fails: fate.fails,
                open: true,
            },
            hedge: None,
            open: true,
            crossed: false,
        };
        self.agents[agent].delta.started += 1;
        self.own(agent, replica)[0] += 1;
        let timer = call.threshold;
        let slot = self.keep(call);
        self.live.push(slot);
        self.at(
            self.now + (fate.ms * 1e3) as u64,
            Event::Ended {
                call: slot,
                hedge: false,
            },
        );
        self.at(self.now + DEADLINE_US, Event::Deadline(slot));
        if let Some(d) = timer {
            self.at(self.now + d, Event::Timer(slot));
        }
    }

    /// Slots are never used again: an event may still name a call that is over.
    fn keep(&mut self, call: Call) -> usize {
        self.calls.push(call);
        self.calls.len() - 1
    }

    /// A tenth of its share for one on probation.
    fn pick(&mut self) -> usize {
        loop {
            let replicas = (self.setup.replicas_at)(self.seconds()).min(self.setup.replicas);
            let replica = self.random.below(replicas);
            let avoided = self
                .decision
                .as_ref()
                .is_some_and(|d| d.probation.contains(&name(replica)));
            if !avoided || self.random.chance(0.1) {
                return replica;
            }
        }
    }

    fn own(&mut self, agent: usize, replica: usize) -> &mut [u64; 6] {
        &mut self.agents[agent]
            .replicas
            .entry(replica)
            .or_default()
            .counters
    }

    fn timer(&mut self, slot: usize) {
        let call = &mut self.calls[slot];
        if !call.open || !call.primary.open {
            return;
        }
        call.crossed = true;
        let (agent, primary, held_out, expensive) = (
            call.agent,
            call.primary.replica,
            call.held_out,
            call.expensive,
        );
        self.agents[agent].delta.crossed += 1;
        self.own(agent, primary)[1] += 1;
        if let Some(refusal) = self.refusal(agent, held_out) {
            self.agents[agent].delta.refuse(refusal);
            return;
        }
        self.agents[agent].tokens -= 1.0;
        self.agents[agent].delta.hedged += 1;
        let mut replica = self.random.below(self.setup.replicas - 1);
        replica += usize::from(replica >= primary);
        self.own(agent, replica)[4] += 1;
        let fate = (self.setup.service)(self.seconds(), replica, expensive, &mut self.random);
        self.calls[slot].hedge = Some(Attempt {
            replica,
            from: self.now,
            fails: fate.fails,
            open: true,
        });
        self.at(
            self.now + (fate.ms * 1e3) as u64,
            Event::Ended {
                call: slot,
                hedge: true,
            },
        );
    }

    fn refusal(&mut self, agent: usize, held_out: bool) -> Option<Refusal> {
        let decision = self.decision.as_ref()?;
        let (mode, share) = (decision.mode, decision.live.probability.get());
        if !mode.hedges() {
            Some(Refusal::Mode)
        } else if held_out {
            Some(Refusal::Holdout)
        } else if !self.random.chance(share) {
            Some(Refusal::NotDrawn)
        } else if self.setup.replicas < 2 {
            Some(Refusal::NoReplica)
        } else if self.agents[agent].tokens < 1.0 {
            Some(Refusal::Budget)
        } else {
            None
        }
    }

    fn ended(&mut self, slot: usize, hedge: bool) {
        let call = &mut self.calls[slot];
        let Some(attempt) = (if hedge {
            call.hedge.as_mut()
        } else {
            Some(&mut call.primary)
        }) else {
            return;
        };
        if !std::mem::replace(&mut attempt.open, false) {
            return;
        }
        let (fails, age, replica) = (attempt.fails, self.now - attempt.from, attempt.replica);
        let agent = call.agent;
        self.record(agent, replica, hedge, !fails, age);
        let delta = &mut self.agents[agent].delta;
        if hedge {
            delta.hedge_finished += 1;
            delta.hedge_errors += u64::from(fails);
        } else {
            delta.primary_finished += 1;
            delta.primary_errors += u64::from(fails);
            let own = self.own(agent, replica);
            own[2] += 1;
            own[3] += u64::from(fails);
        }
        let call = &self.calls[slot];
        let other_open = if hedge {
            call.primary.open
        } else {
            call.hedge.as_ref().is_some_and(|hedge| hedge.open)
        };
        if !call.open || (fails && other_open) {
            return;
        }
        if hedge && !fails {
            self.agents[agent].delta.won += 1;
            self.own(agent, replica)[5] += 1;
        }
        self.finish(slot, fails);
    }

    fn deadline(&mut self, slot: usize) {
        if self.calls[slot].open {
            self.finish(slot, true);
        }
        self.stop(slot);
    }

    fn finish(&mut self, slot: usize, failed: bool) {
        let call = &mut self.calls[slot];
        call.open = false;
        let (agent, held_out, waited) = (call.agent, call.held_out, self.now - call.from);
        self.live.retain(|live| *live != slot);
        let budget = self.decision.as_ref().map_or(0.0, |d| d.live.budget.get());
        let cap = self.decision.as_ref().map_or(1.0, |d| d.live.cap);
        let own = &mut self.agents[agent];
        own.tokens = (own.tokens + budget).min(cap);
        own.delta.finished += 1;
        own.delta.failed += u64::from(failed);
        if held_out {
            own.delta.holdout_finished += 1;
        } else {
            own.delta.treated_finished += 1;
        }
        own.counts[4 + usize::from(held_out)].add(waited);
        // One loser in ten is watched to its end.
        if self.calls[slot].hedge.is_none() || !self.random.chance(0.1) {
            self.stop(slot);
        }
    }

    /// Stops what is still open.
    fn stop(&mut self, slot: usize) {
        for hedge in [false, true] {
            let call = &mut self.calls[slot];
            let Some(attempt) = (if hedge {
                call.hedge.as_mut()
            } else {
                Some(&mut call.primary)
            }) else {
                continue;
            };
            if std::mem::replace(&mut attempt.open, false) {
                let (age, replica, agent) = (self.now - attempt.from, attempt.replica, call.agent);
                self.record(agent, replica, hedge, false, age);
            }
        }
    }

    fn record(&mut self, agent: usize, replica: usize, hedge: bool, answered: bool, age: u64) {
        let own = &mut self.agents[agent];
        own.counts[usize::from(hedge) * 2 + usize::from(!answered)].add(age);
        if !hedge {
            let own = own.replicas.entry(replica).or_default();
            if answered {
                &mut own.done
            } else {
                &mut own.censored
            }
            .add(age);
        }
    }

    fn report(&mut self, agent: usize) {
        let mut ages = Counts::default();
        for slot in &self.live {
            let call = &self.calls[*slot];
            let age = self.now - call.from;
            if call.agent == agent && call.primary.open && call.threshold.is_some_and(|d| age > d) {
                ages.add(age);
            }
        }
        let report = self.agents[agent].report(ages);
        self.slice.add_report(&report.totals, &report);
        self.windows.set_in_flight(agent as u64, report.in_flight);
    }

    fn tick(&mut self) {
        let slice = std::mem::take(&mut self.slice);
        let (totals, treated) = (slice.totals, slice.treated.clone());
        self.windows.push(slice, Duration::from_secs(1));
        let second = self.now / SECOND_US;
        (self.setup.script)(second, &mut self.script);
        let now = Moment::from_millis(self.now / 1_000);
        if std::mem::take(&mut self.script.restart) {
            self.windows = Windows::new();
            let base = self.memory.base().filter(|_| !self.script.base_lost);
            self.memory = Memory::restore(self.memory.mode(), self.memory.since(), now);
            if let Some(base) = base {
                self.memory.restore_base(base);
            }
        }
        if let Some(order) = self.script.order.take() {
            order(&mut self.memory);
        }
        let situation = Situation {
            now,
            started: Moment::from_millis(0),
            policy: self.script.policy.as_ref(),
            killed_by: self.script.killed_by,
            agents: self.setup.agents_seen.0,
            agents_stale: self.setup.agents_seen.1,
            replicas_per_agent_max: self.script.replicas_per_agent_max,
            utilisation: self.script.utilisation,
            paused: false,
            lent: None,
        };
        let (decision, memory) = decide(&route(), &self.windows, &situation, &self.memory);
        if self.setup.twice {
            let (again, same) = decide(&route(), &self.windows, &situation, &memory);
            assert_eq!(same, memory);
            assert_eq!(again.change, None);
            assert_eq!(
                (again.mode, again.live, &again.named),
                (decision.mode, decision.live, &decision.named)
            );
        }
        self.memory = memory;
        self.rows.push(Row {
            second,
            decision: decision.clone(),
            totals,
            treated,
        });
        self.held = decision.live.threshold.or(self.held);
        self.decision = Some(decision);
    }
}
