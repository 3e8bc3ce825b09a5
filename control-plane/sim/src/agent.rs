//! A simulated agent: the real parts that decide, with books of its own.
//!
//! Real are the token bucket, what holds of the controller's orders and for how long, and all that
//! the agent finds out by itself (`hedgerow_agent::sim`). Modelled are its books and its race, by the
//! rules of the agent they stand for.

mod books;
mod counts;
mod liar;
mod log;
mod pick;

use std::sync::Arc;
use std::time::Duration;

use hedgerow_agent::sim::{Bucket, InForce, Orders, Own};
use hedgerow_core::event::ConnectionId;
use hedgerow_protocol::directive::{DirectiveSet, Stamp};
use hedgerow_protocol::ids::{InstanceId, ReplicaName};
use hedgerow_protocol::latency::Histogram;
use hedgerow_protocol::report::Refusal;
use hedgerow_protocol::units::Threshold;

pub(crate) use self::books::{Books, Series};
pub(crate) use self::counts::{Counts, bucket};
pub(crate) use self::liar::Liar;
pub(crate) use self::log::{Log, What};
pub(crate) use self::pick::{Draws, Load, Places};
use crate::client::PlainP95;

/// Attempts alive at once on a route, and hedges among them: an agent's defaults.
const ATTEMPTS_ALIVE: u32 = 1024;
const HEDGES_ALIVE: u32 = ATTEMPTS_ALIVE / 4;
/// Losers watched at once.
const WATCHED_MAX: u32 = 64;
/// How long a replica's share of hedges is judged on, in seconds.
const STRETCH_S: u32 = 10;

/// What does not change in an agent's life.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting<'a> {
    pub(crate) names: &'a [ReplicaName],
    pub(crate) deadline: Duration,
    /// Whether hedges are paid for.
    pub(crate) budget: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Agent {
    /// Its first moment, in microseconds.
    pub(crate) born: u64,
    /// Which life of its counters.
    pub(crate) incarnation: u64,
    /// Its stream.
    pub(crate) connection: Option<ConnectionId>,
    /// The stream it opens next, where it has none.
    pub(crate) joining: bool,
    pub(crate) orders: Orders,
    pub(crate) bucket: Bucket,
    own: Own,
    pub(crate) in_force: InForce,
    pub(crate) books: Books,
    pub(crate) log: Log,
    places: Places,
    pub(crate) loads: Box<[Load]>,
    /// Slots of the calls whose primaries are unanswered.
    pub(crate) alive: Vec<u32>,
    pub(crate) attempts_alive: u32,
    pub(crate) hedges_alive: u32,
    pub(crate) watched: u32,
    /// Those on probation, as it does.
    on_probation: Vec<ReplicaName>,
    seconds: u32,
    pub(crate) liar: Option<Box<Liar>>,
    pub(crate) plain: Option<Box<PlainP95>>,
}

/// Who an agent is, in all its lives.
pub(crate) fn instance(number: usize) -> InstanceId {
    InstanceId::from_u128(number as u128 + 1)
}

impl Agent {
    pub(crate) fn new(number: usize, born: u64, incarnation: u64, replicas: usize) -> Self {
        let (orders, own) = (Orders::default(), Own::default());
        Self {
            born,
            incarnation,
            connection: None,
            joining: false,
            in_force: orders.in_force(Duration::ZERO, &own),
            orders,
            bucket: Bucket::new(instance(number)),
            own,
            books: Books::new(born, replicas),
            log: Log::default(),
            places: Places::new(replicas),
            loads: vec![Load::default(); replicas].into(),
            alive: Vec::new(),
            attempts_alive: 0,
            hedges_alive: 0,
            watched: 0,
            on_probation: Vec::new(),
            seconds: 0,
            liar: None,
            plain: None,
        }
    }

    /// Time since it was born.
    pub(crate) fn age(&self, now: u64) -> Duration {
        Duration::from_micros(now.saturating_sub(self.born))
    }

    /// A set of directives came: what it answers, as stamps it holds now, or its refusals.
    pub(crate) fn take(
        &mut self,
        now: u64,
        set: DirectiveSet,
        setting: Setting<'_>,
    ) -> Vec<Result<Stamp, (Stamp, String)>> {
        let age = self.age(now);
        self.orders.heard(age);
        let route = crate::route();
        let mut answers = Vec::new();
        let mut named = false;
        let mut lent = 0.0_f64;
        for directive in set.directives {
            named |= directive.route == route;
            let (stamp, credit) = (directive.stamp, directive.start_credit);
            answers.push(match self.orders.apply(Arc::unwrap_or_clone(directive)) {
                Ok(()) => {
                    lent = lent.max(credit);
                    Ok(stamp)
                }
                Err(reason) => Err((stamp, reason)),
            });
        }
        self.orders.delivered(age, named);
        self.put_in_force(now, setting);
        let hedges = self.books.totals.hedges();
        self.bucket.lend(&self.in_force, lent, hedges);
        answers
    }

    /// Works out what holds now.
    pub(crate) fn put_in_force(&mut self, now: u64, setting: Setting<'_>) {
        let age = self.age(now);
        let in_force = self.orders.in_force(age, &self.own);
        if in_force != self.in_force {
            self.in_force = in_force;
        }
        self.bucket.put_in_force(age, &in_force);
        if !setting.budget {
            self.bucket.take_off();
        }
        let wanted = self.orders.directed_probation(age);
        let same = wanted.is_some_and(|directed| directed == self.on_probation);
        if !same {
            let wanted = wanted.map_or_else(|| self.own.probation(), <[_]>::to_vec);
            let same = wanted == self.on_probation;
            self.on_probation = wanted;
            if same {
                return;
            }
            let held_back = |replica: u16| {
                let name = &setting.names[usize::from(replica)];
                self.on_probation.contains(name)
            };
            self.places.set_probation(held_back);
        }
    }

    /// A second is over. `in_flight`: ages of unanswered primaries, by their slots, beyond a
    /// threshold.
    pub(crate) fn second(
        &mut self,
        now: u64,
        setting: Setting<'_>,
        in_flight: impl FnOnce(&[u32], Option<Threshold>) -> Histogram,
    ) {
        self.log.end_second();
        self.seconds += 1;
        if self.seconds.is_multiple_of(STRETCH_S) {
            for load in &mut self.loads {
                (load.hedged, load.started) = (0, 0);
            }
        }
        let age = self.age(now);
        let asked =
            self.orders.on_its_own(age) || self.log.failed_lately() || self.own.off().is_some();
        let mut in_flight = Some(in_flight);
        let (alive, threshold) = (&self.alive, self.in_force.threshold);
        while asked && let Some((seen, ago)) = self.log.take(setting.names) {
            let then = age.saturating_sub(Duration::from_secs(u64::from(ago)));
            let ages = in_flight.take_if(|_| ago == 0);
            let places = setting.names.len();
            let ages = || ages.map_or_else(Histogram::new, |ages| ages(alive, threshold));
            self.own
                .second(then, seen, &self.orders, places, setting.deadline, ages);
        }
        self.put_in_force(now, setting);
    }

    /// Whether the agent itself has switched off.
    pub(crate) fn own_off(&self) -> bool {
        self.own.off().is_some()
    }

    /// Where a primary goes. `loads`: whether they count.
    pub(crate) fn pick_primary(&mut self, draws: Draws, loads: bool) -> usize {
        let load = |replica: usize| self.loads[replica];
        let (replica, skipped) = self.places.primary(draws, loads.then_some(load));
        self.books.totals.probation_skipped += u64::from(skipped);
        replica
    }

    /// Where a hedge goes.
    pub(crate) fn pick_hedge(&self, avoid: usize, unit: impl FnMut() -> f64) -> Option<usize> {
        let load = |replica: usize| self.loads[replica];
        self.places.hedge(avoid, self.bucket.earned(), unit, load)
    }

    /// The replica for a hedge, its token paid; or the first reason why there is none, in the
    /// agent's own order.
    pub(crate) fn admit(
        &self,
        asked: &Asked,
        setting: Setting<'_>,
        unit: impl FnMut() -> f64,
    ) -> Result<usize, Refusal> {
        if !self.in_force.mode.hedges() {
            return Err(Refusal::Mode);
        }
        if asked.held_out {
            return Err(Refusal::Holdout);
        }
        if !self.bucket.armed() {
            return Err(Refusal::Unarmed);
        }
        if asked.drawn >= self.in_force.probability.get() {
            return Err(Refusal::NotDrawn);
        }
        let typical = self.own.typical().unwrap_or_default();
        if Duration::from_micros(asked.age) + typical >= setting.deadline {
            return Err(Refusal::Deadline);
        }
        let replica = self
            .pick_hedge(asked.waits_on, unit)
            .ok_or(Refusal::NoReplica)?;
        if self.hedges_alive >= HEDGES_ALIVE || self.attempts_alive >= ATTEMPTS_ALIVE {
            return Err(Refusal::NoPermit);
        }
        if setting.budget && !self.bucket.take() {
            return Err(Refusal::Budget);
        }
        Ok(replica)
    }

    /// Whether one more loser may be watched.
    pub(crate) fn may_watch(&self) -> bool {
        self.watched < WATCHED_MAX
    }
}

/// What is asked for a crossed call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) held_out: bool,
    /// A draw from 0 to 1.
    pub(crate) drawn: f64,
    /// The call's, microseconds.
    pub(crate) age: u64,
    /// The primary's replica.
    pub(crate) waits_on: usize,
}
