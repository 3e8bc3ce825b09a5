//! A fleet and its replicas in discrete events: enough of an agent to close the loop.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use hedgerow_protocol::directive::{Mode, Stamp};
use hedgerow_protocol::ids::{DependencyName, ReplicaName, RouteKey};
use hedgerow_protocol::latency::{SparseHistogram, bucket_of};
use hedgerow_protocol::policy::{Intent, Policy, PolicyDraft};
use hedgerow_protocol::report::{
    Attempts, Effective, Refusal, ReplicaReport, RouteReport, Totals,
};
use hedgerow_protocol::units::{Budget, Ratio};

use crate::decide::{Decision, Situation, decide};
use crate::memory::Memory;
use crate::moment::Moment;
use crate::window::{Slice, Windows};

/// SplitMix64: small, seeded, good enough for arrivals and latencies.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
    pub(super) fn chance(&mut self, share: f64) -> bool {
        self.unit() < share
    }
    fn below(&mut self, n: usize) -> usize {
        ((self.unit() * n as f64) as usize).min(n - 1)
    }
    /// Median 1.
    pub(super) fn lognormal(&mut self, sigma: f64) -> f64 {
        let (u, v) = (self.unit().max(1e-300), self.unit());
        (sigma * (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()).exp()
    }
}

/// What one attempt meets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fate {
    pub(super) ms: f64,
    pub(super) fails: bool,
}

/// What decides it: seconds since the start, the replica, whether the call itself is expensive.
pub(super) type Service = Box<dyn Fn(f64, usize, bool, &mut Random) -> Fate>;

/// 10 ms in the median, and 2 % stalls of 300 ms, independent of everything.
pub(super) fn healthy_fate(random: &mut Random) -> Fate {
    let ms = 10.0 * random.lognormal(0.5) + if random.chance(0.02) { 300.0 } else { 0.0 };
    Fate { ms, fails: false }
}

pub(super) struct Setup {
    pub(super) seed: u64,
    pub(super) calls_per_s: f64,
    pub(super) agents: usize,
    pub(super) replicas: usize,
    /// Share of calls that are expensive whoever answers them.
    pub(super) expensive: fn(f64) -> f64,
    pub(super) service: Service,
    pub(super) draft: PolicyDraft,
    /// Whether and when calls are made at all.
    pub(super) traffic: fn(f64) -> f64,
    /// What happens beside the traffic, each second before the decision.
    pub(super) script: fn(u64, &mut Script),
}

/// What a script may change.
pub(super) struct Script {
    pub(super) killed_by: Option<&'static str>,
    pub(super) policy: Option<Policy>,
    pub(super) agents: u64,
    pub(super) replicas_per_agent_max: u32,
}

impl Setup {
    pub(super) fn new(seed: u64, service: Service) -> Self {
        let mut draft: PolicyDraft =
            Policy::observing(DependencyName::new("catalog").unwrap()).into();
        draft.intent = Intent::Hedge;
        draft.probation = false;
        Self {
            seed,
            calls_per_s: 600.0,
            agents: 5,
            replicas: 5,
            expensive: |_| 0.0,
            service,
            draft,
            traffic: |_| 1.0,
            script: |_, _| (),
        }
    }
}

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

#[derive(Default)]
struct Counts(BTreeMap<u16, u64>);

impl Counts {
    fn add(&mut self, us: u64) {
        *self.0.entry(bucket_of(Duration::from_micros(us)) as u16).or_default() += 1;
    }
    fn take(&mut self) -> SparseHistogram {
        SparseHistogram::try_from_pairs(std::mem::take(&mut self.0)).unwrap()
    }
}

#[derive(Default)]
struct Own {
    counters: [u64; 6],
    done: Counts,
    censored: Counts,
}

#[derive(Default)]
struct Agent {
    tokens: f64,
    delta: Totals,
    /// Primary done, primary censored, hedge done, hedge censored, treated, holdout.
    counts: [Counts; 6],
    replicas: BTreeMap<usize, Own>,
}

/// A second of the run.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) second: u64,
    pub(super) decision: Decision,
    pub(super) totals: Totals,
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
    script: Script,
    pub(super) rows: Vec<Row>,
}

impl World {
    pub(super) fn run(setup: Setup, seconds: u64) -> Self {
        let policy = Policy::try_from(setup.draft.clone()).unwrap();
        let agents = setup.agents;
        let mut world = Self {
            random: Random(setup.seed.wrapping_mul(0x2545_f491_4f6c_dd1d)),
            now: 0,
            events: BinaryHeap::new(),
            calls: Vec::new(),
            live: Vec::new(),
            agents: (0..agents).map(|_| Agent::default()).collect(),
            slice: Slice::default(),
            windows: Windows::new(),
            memory: Memory::new(Moment::from_millis(0)),
            decision: None,
            script: Script {
                killed_by: None,
                policy: Some(policy),
                agents: agents as u64,
                replicas_per_agent_max: setup.replicas as u32,
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
        let threshold = self.decision.as_ref().and_then(|d| d.live.threshold);
        let call = Call {
            agent,
            expensive,
            held_out: self.random.chance(self.setup.draft.holdout),
            from: self.now,
            threshold: threshold.map(|d| d.get().as_micros() as u64),
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
        self.at(self.now + (fate.ms * 1e3) as u64, Event::Ended { call: slot, hedge: false });
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
            let replica = self.random.below(self.setup.replicas);
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
        &mut self.agents[agent].replicas.entry(replica).or_default().counters
    }

    fn timer(&mut self, slot: usize) {
        let call = &mut self.calls[slot];
        if !call.open || !call.primary.open {
            return;
        }
        call.crossed = true;
        let (agent, primary, held_out, expensive) =
            (call.agent, call.primary.replica, call.held_out, call.expensive);
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
        self.at(self.now + (fate.ms * 1e3) as u64, Event::Ended { call: slot, hedge: true });
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
        let Some(attempt) = (if hedge { call.hedge.as_mut() } else { Some(&mut call.primary) })
        else {
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
            let Some(attempt) = (if hedge { call.hedge.as_mut() } else { Some(&mut call.primary) })
            else {
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
            if answered { &mut own.done } else { &mut own.censored }.add(age);
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
        let own = &mut self.agents[agent];
        let delta = std::mem::take(&mut own.delta);
        let [done, censored, hedge_done, hedge_censored, treated, holdout] = &mut own.counts;
        let report = RouteReport {
            route: route(),
            totals: delta,
            primary: Attempts {
                done: done.take(),
                censored: censored.take(),
            },
            hedge: Attempts {
                done: hedge_done.take(),
                censored: hedge_censored.take(),
            },
            treated: treated.take(),
            holdout: holdout.take(),
            in_flight: ages.take(),
            replicas: std::mem::take(&mut own.replicas)
                .into_iter()
                .map(|(replica, own)| replica_report(replica, own))
                .collect(),
            effective: idle(),
            over_budget_seconds: 0,
        };
        self.slice.add_report(&delta, &report);
        self.windows.set_in_flight(agent as u64, report.in_flight);
    }

    fn tick(&mut self) {
        let slice = std::mem::take(&mut self.slice);
        let totals = slice.totals;
        self.windows.push(slice, Duration::from_secs(1));
        let second = self.now / SECOND_US;
        (self.setup.script)(second, &mut self.script);
        let situation = Situation {
            now: Moment::from_millis(self.now / 1_000),
            started: Moment::from_millis(0),
            policy: self.script.policy.as_ref(),
            killed_by: self.script.killed_by,
            agents: self.script.agents,
            agents_stale: 0,
            replicas_per_agent_max: self.script.replicas_per_agent_max,
        };
        let (decision, memory) = decide(&route(), &self.windows, &situation, &self.memory);
        self.memory = memory;
        self.rows.push(Row {
            second,
            decision: decision.clone(),
            totals,
        });
        self.decision = Some(decision);
    }
}

fn replica_report(replica: usize, mut own: Own) -> ReplicaReport {
    let [started, crossed, finished, errors, hedged, won] = own.counters;
    ReplicaReport {
        replica: name(replica),
        zone: None,
        started,
        crossed,
        finished,
        errors,
        hedged,
        won,
        primary: Attempts {
            done: own.done.take(),
            censored: own.censored.take(),
        },
    }
}

fn idle() -> Effective {
    Effective {
        stamp: Stamp::default(),
        mode: Mode::Observing,
        own_off: false,
        threshold: None,
        probability: Ratio::ZERO,
        budget: Budget::ZERO,
        cap: 0.0,
        tokens: 0.0,
        replicas: 0,
        watched_losers: 0,
    }
}

pub(super) fn route() -> RouteKey {
    RouteKey::new("catalog", "get").unwrap()
}

pub(super) fn name(replica: usize) -> ReplicaName {
    ReplicaName::new(&format!("r{replica}")).unwrap()
}

/// Readings of a run.
impl World {
    pub(super) fn between(&self, from: u64, to: u64) -> &[Row] {
        &self.rows[from as usize..(to as usize).min(self.rows.len())]
    }

    pub(super) fn hedge_rate(&self, from: u64, to: u64) -> f64 {
        let rows = self.between(from, to);
        let sum = |of: fn(&Totals) -> u64| rows.iter().map(|row| of(&row.totals)).sum::<u64>() as f64;
        sum(|t| t.hedged) / sum(|t| t.started)
    }

    pub(super) fn threshold_ms(&self, second: u64) -> f64 {
        let live = self.rows[second as usize].decision.live;
        live.threshold.unwrap().get().as_secs_f64() * 1e3
    }

    /// Automatic changes: second, mode, words.
    pub(super) fn changes(&self) -> Vec<(u64, Mode, String)> {
        self.rows
            .iter()
            .filter_map(|row| {
                let change = row.decision.change.as_ref()?;
                Some((row.second, change.transition.to, change.transition.words.clone()))
            })
            .collect()
    }

    /// Changes from hedging on to anything else.
    pub(super) fn offs(&self) -> Vec<u64> {
        let offs = self.rows.iter().filter(|row| {
            let change = row.decision.change.as_ref();
            change.is_some_and(|change| change.transition.from == Mode::On)
        });
        offs.map(|row| row.second).collect()
    }

    /// Changes to on after the first one, which is when enough was learned.
    pub(super) fn ons(&self) -> Vec<u64> {
        let ons = self.rows.iter().filter(|row| {
            let change = row.decision.change.as_ref();
            change.is_some_and(|change| change.transition.to == Mode::On)
        });
        ons.map(|row| row.second).skip(1).collect()
    }

    pub(super) fn seconds_over_budget(&self) -> usize {
        self.rows.iter().filter(|row| row.decision.over_budget).count()
    }
}
