//! What a route keeps from second to second. Calls never come here.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hedgerow_protocol::ids::InstanceId;
use hedgerow_protocol::latency::Histogram;
use hedgerow_protocol::limits::REPLICAS_PER_REPORT_MAX;
use hedgerow_protocol::report::{Attempts, Effective, RouteReport};
use hedgerow_protocol::units::Threshold;

use super::RouteState;
use super::estimate::{Aim, Calls, Estimate};
use super::judging::Judging;
use super::news::{News, Told};
use super::no_effect::{Means, NoEffect, no_effect};
use super::turns::{Turn, Turns};
use crate::local::{Ended, OwnSwitch};
use crate::mode::{InForce, LinkClock, OwnFigures, RouteMode};
use crate::naming::NamedReplica;
use crate::pool::Replica;
use crate::probation::Change;
use crate::stats::recorder::{Recorder, Series};
use crate::stats::replica::{self, ReplicaSecond};
use crate::stats::{Books, Second};
use crate::threshold;

/// How long a replica's share of hedges is judged on.
const STRETCH: Duration = Duration::from_secs(10);

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Keeping {
    pub(crate) mode: RouteMode,
    books: Books,
    estimate: Estimate,
    judging: Judging,
    told: Told,
    switch: OwnSwitch,
    own: OwnFigures,
    in_force: Option<InForce>,
    turns: Turns,
    turn: Turn,
    /// A start credit was taken: there is one in a route's life.
    lent: bool,
    /// The threshold came within the second under way, from so many calls.
    came_early: Option<u64>,
    /// The most that a call earned, and the largest cap, since the last second ended: what that
    /// second is held to.
    allowed: (f64, f64),
    /// Seconds over the budget since the last acknowledged report, and those of them it said.
    over_budget: u64,
    over_budget_reported: u64,
    second_began: Duration,
    stretch_began: Duration,
    /// Replicas in the report under way.
    reported: Vec<Arc<Replica>>,
}

impl Keeping {
    pub(crate) fn new(mode: RouteMode, agent: InstanceId) -> Self {
        Self {
            mode,
            books: Books::new(),
            estimate: Estimate::default(),
            judging: Judging::default(),
            told: Told::default(),
            switch: OwnSwitch::default(),
            own: OwnFigures::default(),
            in_force: None,
            turns: Turns::new(agent),
            turn: Turn::Everyone,
            lent: false,
            came_early: None,
            allowed: (0.0, 0.0),
            over_budget: 0,
            over_budget_reported: 0,
            second_began: Duration::ZERO,
            stretch_began: Duration::ZERO,
            reported: Vec::new(),
        }
    }

    /// Works out what holds now and puts it where calls read it.
    pub(crate) fn put_in_force(&mut self, route: &RouteState, now: Duration, link: &LinkClock) {
        self.judging.follow(route, &self.mode, now, link);
        let in_force = self.mode.in_force(now, link, self.own);
        let turn = self.turns.at(in_force.arming.as_ref(), now);
        if self.in_force == Some(in_force) && self.turn == turn {
            return;
        }
        self.in_force = Some(in_force);
        let before = std::mem::replace(&mut self.turn, turn);
        let (earned, cap) = turn.begin(before, &in_force, &route.bucket);
        route.gate.set_threshold(in_force.threshold);
        route.gate.set(
            in_force.mode.hedges(),
            turn != Turn::Unarmed,
            in_force.probability,
            in_force.holdout,
            in_force.further,
        );
        self.allowed.0 = self.allowed.0.max(earned);
        self.allowed.1 = self.allowed.1.max(cap);
    }

    /// A controller lends hedges to start with. Once, before any hedge and up to the cap: so there
    /// is no run of calls in which hedges are more than what was earned in it + the cap. Not where
    /// agents are armed in turns: it would be gone before it could be used, or arm those that are not.
    pub(crate) fn lend(&mut self, route: &RouteState, credit: f64) {
        let Some(in_force) = self.in_force else {
            return;
        };
        let credit = credit.min(in_force.cap);
        if self.lent || credit <= 0.0 || in_force.arming.is_some() {
            return;
        }
        if route.recorder.totals().hedges() == 0 {
            self.lent = true;
            route.bucket.lend(credit);
        }
    }

    /// A second is over. What changed with replicas is to be told.
    pub(super) fn tick(
        &mut self,
        route: &RouteState,
        now: Duration,
        link: &LinkClock,
    ) -> Vec<News> {
        let second = self.books.end_second(&route.recorder);
        self.check_budget(&second);
        let known = route.pool.known();
        let mut replicas: Vec<_> = known.iter().map(|r| replica::end_second(r)).collect();
        if replicas.len() < 2 {
            // One alone is the dependency: there is nothing to tell apart.
            replicas.clear();
        }
        let aim = self.aim();
        self.came_early = None;
        let calls = Calls {
            started: second.growth.started,
            crossed: second.growth.crossed,
        };
        let on_probation = route.pool.probation();
        self.estimate.crossed(calls, &replicas, &on_probation, &aim);
        let judging = &mut self.judging;
        let changes = judging.second(route, &self.mode, now, link, &replicas);
        let ended = ended(route, &second, &replicas);
        self.switch.tick(now, ended, self.mode.error_limit());
        let [done, censored, ..] = second.samples;
        let samples = threshold::Second {
            done,
            censored,
            replicas,
        };
        let suspects = self.judging.suspects(route);
        self.estimate.samples(samples, suspects, &aim);
        let in_flight = || self.in_flight(route, now);
        let threshold = self.estimate.threshold(&aim, in_flight);
        self.own = OwnFigures {
            // Too few calls now is no reason to forget what was known.
            threshold: threshold.or(self.own.threshold),
            off: self.switch.off(),
            calls_per_second: self.per_second(second.growth.finished, now),
        };
        if let Some(typical) = self.estimate.typical() {
            route.gate.set_typical(typical);
        }
        if now.saturating_sub(self.stretch_began) >= STRETCH {
            self.stretch_began = now;
            for replica in &known {
                replica.begin_stretch();
            }
        }
        self.put_in_force(route, now, link);
        self.news(route, now, changes)
    }

    /// What the second brought, for the log.
    fn news(&mut self, route: &RouteState, now: Duration, changes: Vec<Change>) -> Vec<News> {
        let mut news: Vec<_> = changes.into_iter().map(News::Probation).collect();
        let named = self.judging.named();
        news.extend(self.told.named(now, &named, &route.pool.probation()));
        if let Some(in_force) = &self.in_force {
            let limit = self.mode.error_limit().get();
            let shares = self.switch.shares();
            news.extend(self.told.switched(in_force, shares, limit));
        }
        news
    }

    /// A runtime that stood still has its second late, with the calls of all that time in it.
    fn per_second(&mut self, calls: u64, now: Duration) -> f64 {
        let took = now.saturating_sub(std::mem::replace(&mut self.second_began, now));
        calls as f64 / took.as_secs_f64().max(1.0)
    }

    /// Where there was no threshold when this second began: one by what it has brought so far, and
    /// another each time that is twice as much, for in two hundred calls there is much chance. True
    /// where nothing is left to look for. Nothing else ends or is judged before the second does.
    pub(crate) fn look_early(
        &mut self,
        route: &RouteState,
        now: Duration,
        link: &LinkClock,
    ) -> bool {
        if self.own.threshold.is_some() && self.came_early.is_none() {
            return true;
        }
        let so_far = self.books.so_far(&route.recorder);
        let finished = so_far.growth.finished;
        if self.came_early.is_some_and(|calls| finished < 2 * calls) {
            return false;
        }
        let [done, censored, ..] = so_far.samples;
        let samples = threshold::Second {
            done,
            censored,
            replicas: Vec::new(),
        };
        let aim = self.aim();
        let found = self
            .estimate
            .early(samples, &aim, || self.in_flight(route, now));
        let Some((found, typical)) = found else {
            return false;
        };
        self.own.threshold = Some(found);
        if let Some(typical) = typical {
            route.gate.set_typical(typical);
        }
        // The second is not over: at least so many.
        self.own.calls_per_second = self.own.calls_per_second.max(finished as f64);
        self.came_early = Some(finished);
        self.put_in_force(route, now, link);
        false
    }

    /// Holds the second to what it was allowed: hedges <= B x finished + cap; in a turn of armed agents
    /// what a call earns in it, instead of B. One more is let pass:
    /// a call that ends just as the second does may be counted on this side of it and its token
    /// earned on the other.
    fn check_budget(&mut self, second: &Second) {
        let (earned, cap) = self.allowed;
        let allowed = earned * second.growth.finished as f64 + cap + 1.0;
        if second.growth.hedges() as f64 > allowed {
            self.over_budget += 1;
        }
        self.allowed = self
            .in_force
            .map_or((0.0, 0.0), |in_force| self.turn.allows(&in_force));
    }

    /// Why hedging, where it is on, can do nothing.
    pub(crate) fn no_effect(&self, route: &RouteState) -> Option<NoEffect> {
        let in_force = self.in_force.filter(|in_force| in_force.mode.hedges())?;
        no_effect(&Means {
            replicas: route.pool.len(),
            on_probation: route.pool.probation().len(),
            attempts_alive: route.limits.attempts_alive,
            cap: in_force.cap,
            // As the bucket has it: what is too little for it is nothing. Between turns it has
            // nothing, and will.
            budget: match self.turn {
                Turn::Unarmed => in_force.budget.get(),
                Turn::Everyone | Turn::Armed => route.bucket.earned(),
            },
            threshold: in_force
                .threshold
                .or(self.mode.threshold_min())
                .map(Threshold::get),
            typical: route.gate.typical(),
            deadline: route.limits.deadline,
        })
    }

    /// What the agent's own threshold is held to.
    fn aim(&self) -> Aim {
        let in_force = self.in_force.as_ref();
        let in_use = in_force.and_then(|in_force| in_force.threshold);
        Aim {
            percentile: self.mode.percentile(),
            budget: in_force
                .map(|in_force| in_force.budget.get())
                .filter(|budget| *budget > 0.0),
            // Of a second in which it came late, only some calls could cross.
            own_in_use: in_use.is_some()
                && in_use == self.own.threshold
                && self.came_early.is_none(),
        }
    }

    /// Replicas named now.
    pub(crate) fn named(&self) -> Vec<NamedReplica> {
        self.judging.named()
    }

    /// Ages of unanswered primaries beyond the threshold in use; of all, where there is none.
    fn in_flight(&self, route: &RouteState, now: Duration) -> Histogram {
        let threshold = self.in_force.and_then(|in_force| in_force.threshold);
        route
            .permits
            .slots
            .ages(now, threshold.map_or(Duration::ZERO, Threshold::get))
    }

    pub(crate) fn collect(&mut self, route: &RouteState, now: Duration) -> RouteReport {
        let samples = self.books.report(&route.recorder);
        let [
            primary_done,
            primary_censored,
            hedge_done,
            hedge_censored,
            treated,
            holdout,
        ] = samples;
        const { assert!(Series::PrimaryDone as usize == 0 && Series::Holdout as usize == 5) };
        self.reported = busiest(route.pool.known());
        self.over_budget_reported = self.over_budget;
        RouteReport {
            route: route.key.clone(),
            totals: route.recorder.totals(),
            primary: Attempts {
                done: primary_done,
                censored: primary_censored,
            },
            hedge: Attempts {
                done: hedge_done,
                censored: hedge_censored,
            },
            treated,
            holdout,
            in_flight: self.in_flight(route, now).to_sparse(),
            replicas: self.reported.iter().map(|r| replica::collect(r)).collect(),
            effective: self.effective(route),
            over_budget_seconds: self.over_budget,
        }
    }

    pub(crate) fn acknowledged(&mut self) {
        self.books.acknowledged();
        self.reported
            .drain(..)
            .for_each(|replica| replica::acknowledged(&replica));
        self.over_budget -= std::mem::take(&mut self.over_budget_reported);
    }

    pub(crate) fn effective(&self, route: &RouteState) -> Effective {
        let in_force = self.in_force.expect("put in force when the route was made");
        Effective {
            stamp: in_force.stamp,
            mode: in_force.mode,
            own_off: in_force.own_off.is_some(),
            threshold: in_force.threshold,
            probability: in_force.probability,
            budget: in_force.budget,
            cap: in_force.cap,
            tokens: route.bucket.tokens(),
            replicas: route.pool.len() as u32,
            watched_losers: route.watched.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn lifetime(&mut self, recorder: &Recorder) -> [Histogram; 2] {
        self.books.lifetime(recorder)
    }
}

/// What ended in a second, but for primaries of replicas on probation: those were judged already.
fn ended(route: &RouteState, second: &Second, replicas: &[ReplicaSecond]) -> Ended {
    let growth = &second.growth;
    let ended = Ended {
        primaries: growth.primary_finished,
        errors: growth.primary_errors,
        attempts: growth.primary_finished + growth.hedge_finished,
        push_back: growth.push_back,
        replicas: Vec::new(),
    };
    let each = replicas
        .iter()
        .map(|own| (&own.replica, own.growth.finished(), own.growth.errors));
    ended.with_replicas(each, &route.pool.probation())
}

/// The replicas a report has room for: those with most that is new.
fn busiest(mut replicas: Vec<Arc<Replica>>) -> Vec<Arc<Replica>> {
    replicas.sort_by_cached_key(|replica| std::cmp::Reverse(replica::unreported(replica)));
    replicas.truncate(REPLICAS_PER_REPORT_MAX);
    replicas
}
