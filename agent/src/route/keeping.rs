//! What a route keeps from second to second. Calls never come here.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hedgerow_protocol::ids::ReplicaName;
use hedgerow_protocol::latency::Histogram;
use hedgerow_protocol::limits::REPLICAS_PER_REPORT_MAX;
use hedgerow_protocol::report::{Attempts, Effective, RouteReport};
use hedgerow_protocol::units::{Budget, Quantile, Threshold};

use super::RouteState;
use super::no_effect::{Means, NoEffect, no_effect};
use crate::local::{Ended, OwnSwitch, ReplicaErrors};
use crate::mode::{InForce, LinkClock, OwnFigures, ProbationRule, RouteMode};
use crate::naming::{Floors, Ledger, NamedReplica, Tally};
use crate::pool::Replica;
use crate::probation::{Change, Probation, Situation};
use crate::stats::recorder::{Recorder, Series};
use crate::stats::replica::{self, ReplicaSecond};
use crate::stats::{Books, Second};
use crate::threshold::{self, Room, Trim, Windows};

/// How long a replica's share of hedges is judged on.
const STRETCH: Duration = Duration::from_secs(10);

/// Seconds between two looks at each replica's samples, where crossing tells nobody apart.
const BY_SAMPLES_EVERY: u64 = 5;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Keeping {
    pub(crate) mode: RouteMode,
    books: Books,
    windows: Windows,
    trim: Trim,
    room: Room,
    /// Those that are slow by their samples, as far as that was looked at last.
    by_samples: BTreeSet<ReplicaName>,
    ticks: u64,
    /// Replicas that are in none of the agent's own figures, as they are what is slow.
    left_out: BTreeSet<ReplicaName>,
    ledger: Ledger,
    named: Vec<NamedReplica>,
    probation: Probation,
    /// Whether probation is by own figures, not as a controller said.
    own_probation: bool,
    switch: OwnSwitch,
    own: OwnFigures,
    in_force: Option<InForce>,
    /// The largest budget and cap in force since the last second ended: what that second is held to.
    allowed: (f64, f64),
    /// Seconds over the budget since the last acknowledged report, and those of them it said.
    over_budget: u64,
    over_budget_reported: u64,
    stretch_began: Duration,
    /// Replicas in the report under way.
    reported: Vec<Arc<Replica>>,
}

impl Keeping {
    pub(crate) fn new(mode: RouteMode) -> Self {
        Self {
            mode,
            books: Books::new(),
            windows: Windows::default(),
            trim: Trim::default(),
            room: Room::default(),
            by_samples: BTreeSet::new(),
            ticks: 0,
            left_out: BTreeSet::new(),
            ledger: Ledger::default(),
            named: Vec::new(),
            probation: Probation::default(),
            own_probation: false,
            switch: OwnSwitch::default(),
            own: OwnFigures::default(),
            in_force: None,
            allowed: (0.0, 0.0),
            over_budget: 0,
            over_budget_reported: 0,
            stretch_began: Duration::ZERO,
            reported: Vec::new(),
        }
    }

    /// Works out what holds now and puts it where calls read it.
    pub(crate) fn put_in_force(&mut self, route: &RouteState, now: Duration, link: &LinkClock) {
        self.put_on_probation(route, now, link);
        let in_force = self.mode.in_force(now, link, self.own);
        if self.in_force == Some(in_force) {
            return;
        }
        self.in_force = Some(in_force);
        route.bucket.set(in_force.budget, in_force.cap);
        route.gate.set_threshold(in_force.threshold);
        route.gate.set(
            in_force.mode.hedges(),
            in_force.probability,
            in_force.holdout,
        );
        self.allowed.0 = self.allowed.0.max(in_force.budget.get());
        self.allowed.1 = self.allowed.1.max(in_force.cap);
    }

    /// A second is over.
    pub(crate) fn tick(&mut self, route: &RouteState, now: Duration, link: &LinkClock) {
        let second = self.books.end_second(&route.recorder);
        self.check_budget(&second);
        let known = route.pool.known();
        let mut replicas: Vec<_> = known.iter().map(|r| replica::end_second(r)).collect();
        if replicas.len() < 2 {
            // One alone is the dependency: there is nothing to tell apart.
            replicas.clear();
        }
        self.turn_trim(route, &second, &replicas);
        self.judge_replicas(route, now, link, &replicas);
        let ended = ended(route, &second, &replicas);
        self.switch.tick(now, ended, self.mode.error_limit());
        let [done, censored, ..] = second.samples;
        self.windows.push(threshold::Second {
            done,
            censored,
            replicas,
        });
        self.leave_out(route);
        let threshold = self.own_threshold(route, now);
        self.own = OwnFigures {
            // Too few calls now is no reason to forget what was known.
            threshold: threshold.or(self.own.threshold),
            off: self.switch.off(),
            calls_per_second: second.growth.finished as f64,
        };
        if let Some(typical) = self.windows.typical(&self.left_out) {
            route.gate.set_typical(typical);
        }
        if now.saturating_sub(self.stretch_began) >= STRETCH {
            self.stretch_began = now;
            for replica in &known {
                replica.begin_stretch();
            }
        }
        self.put_in_force(route, now, link);
    }

    /// Holds the second to what it was allowed: hedges <= B x finished + cap. One more is let pass:
    /// a call that ends just as the second does may be counted on this side of it and its token
    /// earned on the other.
    fn check_budget(&mut self, second: &Second) {
        let (budget, cap) = self.allowed;
        let allowed = budget * second.growth.finished as f64 + cap + 1.0;
        if second.growth.hedged as f64 > allowed {
            self.over_budget += 1;
        }
        self.allowed = self
            .in_force
            .map_or((0.0, 0.0), |in_force| (in_force.budget.get(), in_force.cap));
    }

    /// Holds the threshold to what really crossed, where it was the agent's own that was crossed.
    fn turn_trim(&mut self, route: &RouteState, second: &Second, replicas: &[ReplicaSecond]) {
        let probation = route.pool.probation();
        let (mut started, mut crossed) = (second.growth.started, second.growth.crossed);
        let mut on_probation = 0;
        for own in replicas {
            if probation.contains(&own.replica) {
                on_probation += own.growth.crossed;
            }
            if self.left_out.contains(&own.replica) {
                // What ends as the second does may be counted on either side of it.
                started = started.saturating_sub(own.growth.started);
                crossed = crossed.saturating_sub(own.growth.crossed);
            }
        }
        self.room.second(second.growth.started, on_probation);
        let in_use = self.in_force.and_then(|in_force| in_force.threshold);
        let aimed = self.trim.tail(self.mode.percentile().tail());
        if in_use.is_none() || in_use != self.own.threshold || self.tail() < aimed {
            self.trim.pause();
        } else {
            let target = self.mode.percentile().tail();
            self.trim.second(started, crossed, target);
        }
    }

    /// The share of calls that is to cross: the policy's, so that this really comes out, less what
    /// there is no room for.
    fn tail(&self) -> f64 {
        let target = self.mode.percentile().tail();
        let budget = self.in_force.map_or(Budget::ZERO, |it| it.budget);
        let tail = self.trim.tail(target);
        if budget == Budget::ZERO {
            // Nothing is hedged: it is for nobody to make room.
            return tail;
        }
        self.room.within(tail, target, budget.get())
    }

    /// Finds who is what is slow: left out of all that is said about the dependency.
    fn leave_out(&mut self, route: &RouteState) {
        let percentile = self.mode.percentile();
        let mut suspects = if self.own_probation {
            self.probation.suspects()
        } else {
            route.pool.probation()
        };
        suspects.extend(self.by_samples.iter().cloned());
        self.left_out = self.windows.named(percentile.tail(), &suspects);
        self.ticks += 1;
        if self.ticks.is_multiple_of(BY_SAMPLES_EVERY) {
            let named = !self.left_out.is_subset(&self.by_samples);
            self.by_samples = if named {
                BTreeSet::new()
            } else {
                self.windows.slow_by_samples(percentile)
            };
            self.left_out.extend(self.by_samples.iter().cloned());
        }
    }

    /// Names replicas on what each did, and, where that is the agent's to decide, puts them on
    /// probation and takes them off.
    fn judge_replicas(
        &mut self,
        route: &RouteState,
        now: Duration,
        link: &LinkClock,
        replicas: &[ReplicaSecond],
    ) {
        // Calls that could not cross say nothing about who is slow.
        let can_cross = route
            .gate
            .threshold()
            .is_some_and(|threshold| threshold < route.limits.deadline);
        let tally = |own: &ReplicaSecond| {
            let tally = Tally {
                started: if can_cross { own.growth.started } else { 0 },
                crossed: own.growth.crossed,
                finished: own.growth.finished(),
                errors: own.growth.errors,
            };
            (own.replica.clone(), tally)
        };
        self.ledger.push(replicas.iter().map(tally).collect());
        let floors = Floors {
            crossed: self.mode.percentile().tail() / 2.0,
            errors: self.mode.error_limit().get() / 2.0,
        };
        self.named = self.ledger.named(floors);
        self.put_on_probation(route, now, link);
        let only = match self.mode.probation_rule(now, link) {
            ProbationRule::Own => None,
            ProbationRule::OwnAmong(replicas) => Some(replicas),
            ProbationRule::None | ProbationRule::Directed(_) => return,
        };
        let known: Vec<_> = replicas.iter().map(|own| own.replica.clone()).collect();
        let situation = Situation {
            now,
            floors,
            places: route.pool.len(),
            known: &known,
            only,
        };
        for change in self
            .probation
            .tick(&mut self.ledger, &self.named, &situation)
        {
            tell(route, &change);
        }
        route.pool.set_probation(&self.probation.replicas());
    }

    /// Has those on probation whom whoever decides it wants there.
    fn put_on_probation(&mut self, route: &RouteState, now: Duration, link: &LinkClock) {
        let (directed, own) = match self.mode.probation_rule(now, link) {
            ProbationRule::None => (&[][..], false),
            ProbationRule::Directed(replicas) => (replicas, false),
            ProbationRule::Own => (&[][..], true),
            ProbationRule::OwnAmong(replicas) => (replicas, true),
        };
        if own {
            if !self.own_probation {
                self.probation.adopt(now, directed, &mut self.ledger);
            }
        } else {
            self.probation.clear();
            route.pool.set_probation(directed);
        }
        self.own_probation = own;
    }

    /// Replicas named now, and those on probation for what they were named for before: they get too
    /// few calls to be named anew each second.
    pub(crate) fn named(&self) -> Vec<NamedReplica> {
        let mut named = self.named.clone();
        for held in self.probation.reasons() {
            if named.iter().all(|named| named.replica != held.replica) {
                named.push(held.clone());
            }
        }
        named
    }

    /// Why hedging, where it is on, can do nothing.
    pub(crate) fn no_effect(&self, route: &RouteState) -> Option<NoEffect> {
        let in_force = self.in_force.filter(|in_force| in_force.mode.hedges())?;
        no_effect(&Means {
            replicas: route.pool.len(),
            on_probation: route.pool.probation().len(),
            attempts_alive: route.limits.attempts_alive,
            cap: in_force.cap,
            budget: in_force.budget.get(),
            threshold: in_force
                .threshold
                .or(self.mode.threshold_min())
                .map(Threshold::get),
            typical: route.gate.typical(),
            deadline: route.limits.deadline,
        })
    }

    /// The threshold from the agent's own histogram, where there are enough calls. In-flight ages
    /// are not known by replica: where one is left out, nearly all that stays in flight is its own,
    /// so they are left out, too, and the others' slow calls show when they end.
    fn own_threshold(&self, route: &RouteState, now: Duration) -> Option<Threshold> {
        let percentile = Quantile::new(1.0 - self.tail()).unwrap_or(self.mode.percentile());
        let in_flight = if self.left_out.is_empty() {
            self.in_flight(route, now)
        } else {
            Histogram::new()
        };
        self.windows
            .threshold(percentile, &self.left_out, &in_flight)
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

fn tell(route: &RouteState, change: &Change) {
    let (replica, route) = (change.replica(), &route.key);
    match change {
        Change::Put(why) => {
            tracing::warn!(%route, %replica, why = %why, "replica put on probation");
        }
        Change::Well(_) => tracing::info!(%route, %replica, "replica is well, back from probation"),
        Change::Tried(_) => {
            tracing::info!(%route, %replica, "too few calls to judge the replica: tried again");
        }
        Change::NoPlace(_) => {
            tracing::info!(%route, %replica, "too few replicas for probation of this one");
        }
    }
}

/// What ended in a second, but for primaries of replicas on probation: those were judged already.
fn ended(route: &RouteState, second: &Second, replicas: &[ReplicaSecond]) -> Ended {
    let growth = &second.growth;
    let probation = route.pool.probation();
    let mut ended = Ended {
        primaries: growth.primary_finished,
        errors: growth.primary_errors,
        attempts: growth.primary_finished + growth.hedge_finished,
        push_back: growth.push_back,
        replicas: Vec::new(),
    };
    for own in replicas {
        let (finished, errors) = (own.growth.finished(), own.growth.errors);
        if probation.contains(&own.replica) {
            // What ends as the second does may be counted on either side of it.
            ended.primaries = ended.primaries.saturating_sub(finished);
            ended.errors = ended.errors.saturating_sub(errors);
        } else if finished > 0 {
            ended.replicas.push(ReplicaErrors {
                replica: own.replica.clone(),
                finished,
                errors,
            });
        }
    }
    ended
}

/// The replicas a report has room for: those with most that is new.
fn busiest(mut replicas: Vec<Arc<Replica>>) -> Vec<Arc<Replica>> {
    replicas.sort_by_cached_key(|replica| std::cmp::Reverse(replica::unreported(replica)));
    replicas.truncate(REPLICAS_PER_REPORT_MAX);
    replicas
}
