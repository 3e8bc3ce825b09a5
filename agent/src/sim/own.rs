//! What the agent finds out by itself, second by second: its threshold, its own switch-off, which
//! replicas it would name and put on probation.

use std::time::Duration;

use hedgerow_protocol::directive::OffReason;
use hedgerow_protocol::ids::ReplicaName;
use hedgerow_protocol::latency::{Histogram, SparseHistogram};

use super::Orders;
use crate::local::{Ended, OwnSwitch};
use crate::mode::{OwnFigures, ProbationRule};
use crate::naming::{Floors, Ledger, NamedReplica, Tally};
use crate::probation::{Probation, Situation};
use crate::route::estimate::{Aim, Calls, Estimate};
use crate::stats::replica::{ReplicaSamples, ReplicaSecond, ReplicaTotals};
use crate::threshold;

/// One second of the route.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Eligible calls started.
    pub started: u64,
    /// Of these, those that crossed.
    pub crossed: u64,
    /// Eligible calls that ended.
    pub finished: u64,
    /// Primaries that ended by themselves, and those of them that failed.
    pub primaries: u64,
    /// See `primaries`.
    pub errors: u64,
    /// Hedges that ended by themselves.
    pub hedges: u64,
    /// Primaries' latencies.
    pub done: SparseHistogram,
    /// Those stopped, or failed.
    pub censored: SparseHistogram,
    /// By replica.
    pub replicas: Vec<ReplicaSeen>,
}

/// One second of one replica's primaries.
#[derive(Debug, Clone)]
pub struct ReplicaSeen {
    /// Which.
    pub replica: ReplicaName,
    /// Primaries started.
    pub started: u64,
    /// Of these, those whose calls crossed.
    pub crossed: u64,
    /// Those that answered before their call ended.
    pub answered: u64,
    /// Those that failed.
    pub errors: u64,
    /// Latencies.
    pub done: SparseHistogram,
    /// Those stopped, or failed.
    pub censored: SparseHistogram,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Own {
    estimate: Estimate,
    ledger: Ledger,
    named: Vec<NamedReplica>,
    probation: Probation,
    /// Whether probation is by own figures, not as a controller said.
    directs_itself: bool,
    switch: OwnSwitch,
    figures: OwnFigures,
    typical: Option<Duration>,
}

impl Own {
    /// Why the agent itself switched off.
    pub fn off(&self) -> Option<OffReason> {
        self.figures.off
    }

    /// What an answer typically takes, where a hedge would go.
    pub fn typical(&self) -> Option<Duration> {
        self.typical
    }

    /// Those it has put on probation by itself.
    pub fn probation(&self) -> Vec<ReplicaName> {
        self.probation.replicas()
    }

    pub(super) fn figures(&self) -> OwnFigures {
        self.figures
    }

    /// A second is over. `places`: replicas to pick from; `deadline`: a call's; `in_flight`: ages of
    /// unanswered primaries beyond the threshold in use.
    pub fn second(
        &mut self,
        now: Duration,
        seen: Seen,
        orders: &Orders,
        places: usize,
        deadline: Duration,
        in_flight: impl FnOnce() -> Histogram,
    ) {
        let in_force = orders.figures(now, self.figures);
        let aim = Aim {
            percentile: orders.mode.percentile(),
            budget: Some(in_force.budget.get()).filter(|budget| *budget > 0.0),
            own_in_use: in_force.threshold.is_some()
                && in_force.threshold == self.figures.threshold,
        };
        let replicas: Vec<_> = seen.replicas.iter().map(second_of).collect();
        let on_probation = self.on_probation(now, orders);
        let calls = Calls {
            started: seen.started,
            crossed: seen.crossed,
        };
        self.estimate.crossed(calls, &replicas, &on_probation, &aim);
        let can_cross = in_force.threshold.is_some_and(|it| it.get() < deadline);
        self.judge(now, orders, &replicas, places, can_cross);
        let on_probation = self.on_probation(now, orders);
        let ended = ended(&seen, &replicas, &on_probation);
        self.switch.tick(now, ended, orders.mode.error_limit());
        let suspects = if self.directs_itself {
            self.probation.suspects()
        } else {
            on_probation
        };
        let samples = threshold::Second {
            done: seen.done,
            censored: seen.censored,
            replicas,
        };
        self.estimate.samples(samples, suspects, &aim);
        let threshold = self.estimate.threshold(&aim, in_flight);
        self.figures = OwnFigures {
            threshold: threshold.or(self.figures.threshold),
            off: self.switch.off(),
            calls_per_second: seen.finished as f64,
        };
        self.typical = self.estimate.typical().or(self.typical);
    }

    fn on_probation(&self, now: Duration, orders: &Orders) -> Vec<ReplicaName> {
        match orders.directed_probation(now) {
            Some(directed) => directed.to_vec(),
            None => self.probation.replicas(),
        }
    }

    fn judge(
        &mut self,
        now: Duration,
        orders: &Orders,
        replicas: &[ReplicaSecond],
        places: usize,
        can_cross: bool,
    ) {
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
            crossed: orders.mode.percentile().tail() / 2.0,
            errors: orders.mode.error_limit().get() / 2.0,
        };
        self.named = self.ledger.look(floors).named();
        let (directed, only) = match orders.rule(now) {
            ProbationRule::Own => (&[][..], None),
            ProbationRule::OwnAmong(replicas) => (replicas, Some(replicas)),
            ProbationRule::None | ProbationRule::Directed(_) => {
                self.probation.clear();
                self.directs_itself = false;
                return;
            }
        };
        if !std::mem::replace(&mut self.directs_itself, true) {
            self.probation.adopt(now, directed, &mut self.ledger);
        }
        let known: Vec<_> = replicas.iter().map(|own| own.replica.clone()).collect();
        let situation = Situation {
            now,
            floors,
            places,
            known: &known,
            only,
        };
        self.probation
            .tick(&mut self.ledger, &self.named, &situation);
    }
}

fn second_of(seen: &ReplicaSeen) -> ReplicaSecond {
    let some = |histogram: &SparseHistogram| {
        let kept = (!histogram.is_empty()).then(|| histogram.clone());
        kept.into_iter().collect()
    };
    ReplicaSecond {
        replica: seen.replica.clone(),
        growth: ReplicaTotals {
            started: seen.started,
            crossed: seen.crossed,
            answered: seen.answered,
            errors: seen.errors,
            hedged: 0,
            won: 0,
        },
        samples: ReplicaSamples {
            done: some(&seen.done),
            censored: some(&seen.censored),
        },
    }
}

/// What ended, but for primaries of replicas on probation: those were judged already.
fn ended(seen: &Seen, replicas: &[ReplicaSecond], on_probation: &[ReplicaName]) -> Ended {
    let ended = Ended {
        primaries: seen.primaries,
        errors: seen.errors,
        attempts: seen.primaries + seen.hedges,
        push_back: 0,
        replicas: Vec::new(),
    };
    let each = replicas
        .iter()
        .map(|own| (&own.replica, own.growth.finished(), own.growth.errors));
    ended.with_replicas(each, on_probation)
}
