//! A fleet that calls, hedges as it is told, and reports each second what it saw.

use std::sync::Arc;
use std::time::Duration;

use hedgerow_core::effect::RestoredPolicy;
use hedgerow_core::event::{ConnectionId, Event, Joined};
use hedgerow_core::moment::Moment;
use hedgerow_protocol::directive::{Directive, DirectiveSet, Mode, Stamp};
use hedgerow_protocol::ids::{
    Incarnation, InstanceId, NameError, ReplicaName, Revision, RouteKey, Sequence, ServiceName,
};
use hedgerow_protocol::latency::{SparseHistogram, bucket_of};
use hedgerow_protocol::policy::{Intent, Policy, PolicyDraft, PolicyErrors};
use hedgerow_protocol::report::{Attempts, Effective, Refusal, ReplicaReport, Report};
use hedgerow_protocol::report::{RouteReport, Totals};
use hedgerow_protocol::session::held_hash;
use hedgerow_protocol::units::{Budget, Ratio, Threshold};

/// Replicas of each dependency.
pub(crate) const REPLICAS: usize = 4;
/// Calls of an agent to one dependency in a second.
pub(crate) const CALLS: usize = 20;
/// Seconds in which an agent has a call in flight beyond the threshold when it reports: one of so
/// many.
const IN_FLIGHT_ONE_OF: u64 = 50;

/// A fixed seed gives the same fleet each time (xorshift64*).
#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// 0 to `end`, without it.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Above 0, at most 1.
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// A latency about `median`: log-normal with sigma 0.6, so that p99 is four times the median.
    fn latency(&mut self, median: Duration) -> Duration {
        let (radius, angle) = ((-2.0 * self.unit().ln()).sqrt(), self.unit());
        let normal = radius * (std::f64::consts::TAU * angle).cos();
        median.mul_f64((0.6 * normal).exp())
    }
}

/// One dependency and its one operation.
#[derive(Debug, Clone)]
pub(crate) struct Called {
    pub(crate) route: RouteKey,
    median: Duration,
    replicas: Vec<ReplicaName>,
}

impl Called {
    pub(crate) fn new(number: usize) -> Result<Self, NameError> {
        let replicas = (0..REPLICAS)
            .map(|replica| ReplicaName::new(&format!("10.{}.{replica}.1:8080", number % 256)));
        Ok(Self {
            route: RouteKey::new(&format!("team-{}/service-{number}", number % 50), "get")?,
            median: Duration::from_millis(3 + (number as u64 * 7) % 40),
            replicas: replicas.collect::<Result<_, _>>()?,
        })
    }
}

/// What an agent keeps for a route.
#[derive(Debug)]
struct Kept {
    called: usize,
    totals: Totals,
    tokens: f64,
    held: Option<Arc<Directive>>,
}

#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) connection: ConnectionId,
    sequence: u64,
    routes: Vec<Kept>,
    hash: u64,
    chance: Chance,
}

impl Agent {
    /// One that calls `routes` of the dependencies, chosen by chance.
    pub(crate) fn new(number: u64, dependencies: usize, routes: usize) -> Self {
        let mut chance = Chance::new(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..8 {
            chance.next();
        }
        let mut chosen: Vec<usize> = Vec::new();
        while chosen.len() < routes {
            let called = chance.below(dependencies);
            if !chosen.contains(&called) {
                chosen.push(called);
            }
        }
        let routes = chosen.into_iter().map(|called| Kept {
            called,
            totals: Totals::default(),
            tokens: 0.0,
            held: None,
        });
        Self {
            connection: ConnectionId(number),
            sequence: 0,
            routes: routes.collect(),
            hash: held_hash([]),
            chance,
        }
    }

    pub(crate) fn hello(&self) -> Result<Event, NameError> {
        Ok(Event::Joined(Joined {
            connection: self.connection,
            service: ServiceName::new("shop")?,
            instance: InstanceId::from_u128(self.connection.0.into()),
            incarnation: Incarnation(1),
            zone: None,
            version: "0.1.0".into(),
            peer: "10.0.0.1:40000".into(),
            held: Vec::new(),
        }))
    }

    /// Takes a set, and says so.
    pub(crate) fn take(&mut self, dependencies: &[Called], set: DirectiveSet) -> Event {
        let mut stamps = Vec::with_capacity(set.directives.len());
        for directive in set.directives {
            stamps.push((directive.route.clone(), directive.stamp));
            let mut routes = self.routes.iter_mut();
            if let Some(kept) = routes.find(|it| dependencies[it.called].route == directive.route) {
                kept.held = Some(directive);
            }
        }
        let held = self.routes.iter().filter_map(|kept| kept.held.as_ref());
        self.hash = held_hash(held.map(|it| (&it.route, it.stamp)));
        Event::Applied {
            connection: self.connection,
            stamps,
        }
    }

    /// A second of calls, and the report of it.
    pub(crate) fn report(&mut self, dependencies: &[Called], wall_clock_ms: u64) -> Event {
        self.sequence += 1;
        let chance = &mut self.chance;
        let routes = self
            .routes
            .iter_mut()
            .map(|kept| kept.second(&dependencies[kept.called], chance))
            .collect();
        Event::Reported {
            connection: self.connection,
            report: Box::new(Report {
                sequence: Sequence(self.sequence),
                covers: Duration::from_secs(1),
                wall_clock_ms,
                routes,
            }),
            held_hash: self.hash,
        }
    }
}

/// What calls leave behind until the report.
#[derive(Default)]
struct Second {
    primary: Latencies,
    hedge: Latencies,
    treated: Vec<Duration>,
    holdout: Vec<Duration>,
    replicas: [OfReplica; REPLICAS],
}

#[derive(Default)]
struct Latencies {
    done: Vec<Duration>,
    censored: Vec<Duration>,
}

#[derive(Default)]
struct OfReplica {
    started: u64,
    crossed: u64,
    finished: u64,
    hedged: u64,
    won: u64,
    primary: Latencies,
}

impl Kept {
    fn second(&mut self, called: &Called, chance: &mut Chance) -> RouteReport {
        let mut second = Second::default();
        for _ in 0..CALLS {
            self.call(called, chance, &mut second);
        }
        let threshold = self.threshold();
        let in_flight = threshold
            .filter(|_| chance.next().is_multiple_of(IN_FLIGHT_ONE_OF))
            .map(|age| sparse(&[age.mul_f64(1.5)]));
        RouteReport {
            route: called.route.clone(),
            totals: self.totals,
            primary: second.primary.attempts(),
            hedge: second.hedge.attempts(),
            treated: sparse(&second.treated),
            holdout: sparse(&second.holdout),
            in_flight: in_flight.unwrap_or_default(),
            replicas: second
                .replicas
                .iter()
                .zip(&called.replicas)
                .filter(|(it, _)| it.started + it.hedged > 0)
                .map(|(it, name)| it.report(name))
                .collect(),
            effective: self.effective(),
            over_budget_seconds: 0,
        }
    }

    fn call(&mut self, called: &Called, chance: &mut Chance, second: &mut Second) {
        let (primary, on) = (chance.latency(called.median), chance.below(REPLICAS));
        let totals = &mut self.totals;
        totals.started += 1;
        totals.finished += 1;
        second.replicas[on].started += 1;
        let held = self.held.as_ref();
        let held_out = held.is_some_and(|held| chance.unit() <= held.standing.holdout.get());
        if let Some(held) = held {
            let earned = self.tokens + held.live.budget.get();
            self.tokens = earned.min(held.live.cap);
        }
        let mut waited = primary;
        if let Some(threshold) = held
            .and_then(|held| held.live.threshold)
            .map(Threshold::get)
            .filter(|threshold| primary > *threshold)
        {
            totals.crossed += 1;
            second.replicas[on].crossed += 1;
            let hedges = held.is_some_and(|held| held.mode.hedges());
            if !hedges {
                totals.refuse(Refusal::Mode);
            } else if held_out {
                totals.refuse(Refusal::Holdout);
            } else if self.tokens < 1.0 {
                totals.refuse(Refusal::Budget);
            } else {
                self.tokens -= 1.0;
                totals.hedged += 1;
                let (hedge, to) = (chance.latency(called.median), (on + 1) % REPLICAS);
                second.replicas[to].hedged += 1;
                if threshold + hedge < primary {
                    waited = threshold + hedge;
                    totals.won += 1;
                    totals.hedge_finished += 1;
                    second.replicas[to].won += 1;
                    second.hedge.done.push(hedge);
                } else {
                    second
                        .hedge
                        .censored
                        .push(primary.saturating_sub(threshold));
                }
            }
        }
        let own = &mut second.replicas[on];
        if waited < primary {
            second.primary.censored.push(waited);
            own.primary.censored.push(waited);
        } else {
            totals.primary_finished += 1;
            own.finished += 1;
            second.primary.done.push(primary);
            own.primary.done.push(primary);
        }
        if held_out {
            totals.holdout_finished += 1;
            second.holdout.push(waited);
        } else {
            totals.treated_finished += 1;
            second.treated.push(waited);
        }
    }

    fn threshold(&self) -> Option<Duration> {
        Some(self.held.as_ref()?.live.threshold?.get())
    }

    fn effective(&self) -> Effective {
        let live = self.held.as_ref().map(|held| held.live);
        Effective {
            stamp: self.held.as_ref().map_or(Stamp::default(), |it| it.stamp),
            mode: self.held.as_ref().map_or(Mode::Observing, |it| it.mode),
            own_off: false,
            threshold: live.and_then(|live| live.threshold),
            probability: live.map_or(Ratio::ZERO, |live| live.probability),
            budget: live.map_or(Budget::ZERO, |live| live.budget),
            cap: live.map_or(0.0, |live| live.cap),
            tokens: self.tokens,
            replicas: REPLICAS as u32,
            watched_losers: 0,
        }
    }
}

impl Latencies {
    fn attempts(&self) -> Attempts {
        Attempts {
            done: sparse(&self.done),
            censored: sparse(&self.censored),
        }
    }
}

impl OfReplica {
    fn report(&self, name: &ReplicaName) -> ReplicaReport {
        ReplicaReport {
            replica: name.clone(),
            zone: None,
            started: self.started,
            crossed: self.crossed,
            finished: self.finished,
            errors: 0,
            hedged: self.hedged,
            won: self.won,
            primary: self.primary.attempts(),
        }
    }
}

fn sparse(latencies: &[Duration]) -> SparseHistogram {
    let mut buckets: Vec<_> = latencies
        .iter()
        .map(|latency| bucket_of(*latency) as u16)
        .collect();
    buckets.sort_unstable();
    let runs = buckets.chunk_by(|a, b| a == b);
    SparseHistogram::try_from_pairs(runs.map(|run| (run[0], run.len() as u64)))
        .expect("buckets of latencies, ascending, with a few calls each")
}

/// A policy for each dependency that hedges by the defaults.
pub(crate) fn hedging(
    dependencies: &[Called],
    now: Moment,
) -> Result<Vec<RestoredPolicy>, PolicyErrors> {
    let each = dependencies.iter().map(|called| {
        let observing = Policy::observing(called.route.dependency.clone().into());
        let policy = Policy::try_from(PolicyDraft {
            intent: Intent::Hedge,
            ..observing.into()
        })?;
        Ok(RestoredPolicy {
            scope: policy.scope().clone(),
            revision: Revision(1),
            policy: Some(policy),
            since: now,
        })
    });
    each.collect()
}
