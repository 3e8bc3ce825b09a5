//! The newest slices of a route, added up as they are asked for.

use std::collections::BTreeMap;
use std::time::Duration;

use hedgerow_protocol::ids::{ReplicaName, ZoneName};
use hedgerow_protocol::latency::{Histogram, SurvivalCurve};
use hedgerow_protocol::report::Totals;

use super::slice::{ReplicaSlice, Slice};
use super::tally::Tally;

/// Attempts of one role, each on its own clock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attempts {
    /// Answered.
    pub done: Histogram,
    /// Stopped, failed, or still in flight.
    pub censored: Histogram,
}

impl Attempts {
    /// The survival curve of both.
    pub fn curve(&self) -> SurvivalCurve {
        SurvivalCurve::estimate(&self.done, &self.censored)
    }

    /// Attempts in all.
    pub fn count(&self) -> u64 {
        self.done.count() + self.censored.count()
    }
}

/// A replica's counters over a lookback.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplicaCounts {
    /// Where it is.
    pub zone: Option<ZoneName>,
    /// Primaries started on it.
    pub started: u64,
    /// Of these, those that crossed.
    pub crossed: u64,
    /// Primaries that ended by themselves.
    pub finished: u64,
    /// Of these, those that failed.
    pub errors: u64,
    /// Hedges sent to it.
    pub hedged: u64,
    /// Of these, those that answered first.
    pub won: u64,
}

/// The newest slices, oldest first.
#[derive(Debug, Clone)]
pub struct Lookback<'a> {
    parts: Vec<&'a Slice>,
}

impl<'a> Lookback<'a> {
    pub(super) fn new(parts: Vec<&'a Slice>) -> Self {
        Self { parts }
    }

    /// Ticks in it. A tick is a second unless the controller was held up.
    pub fn slices(&self) -> usize {
        self.parts.iter().map(|part| part.ticks).sum()
    }

    /// The time it covers.
    pub fn span(&self) -> Duration {
        self.parts.iter().map(|part| part.span).sum()
    }

    /// Reports in it.
    pub fn reports(&self) -> u64 {
        self.parts.iter().map(|part| part.reports).sum()
    }

    /// Eligible calls started.
    pub fn calls(&self) -> u64 {
        self.sum(|totals| totals.started)
    }

    /// One counter.
    pub fn sum(&self, counter: impl Fn(&Totals) -> u64) -> u64 {
        self.parts.iter().map(|part| counter(&part.totals)).sum()
    }

    /// All counters.
    pub fn totals(&self) -> Totals {
        let mut sum = Totals::default();
        for part in &self.parts {
            sum.add(&part.totals);
        }
        sum
    }

    /// Primaries of all replicas.
    pub fn primary(&self) -> Attempts {
        Attempts {
            done: self.dense(|part| &part.primary_done),
            censored: self.dense(|part| &part.primary_censored),
        }
    }

    /// Primaries of one replica.
    pub fn primary_of(&self, replica: &ReplicaName) -> Attempts {
        let mut sum = Attempts::default();
        for part in self
            .parts
            .iter()
            .filter_map(|part| part.replicas.get(replica))
        {
            part.primary_done.add_to(&mut sum.done);
            part.primary_censored.add_to(&mut sum.censored);
        }
        sum
    }

    /// Hedges.
    pub fn hedge(&self) -> Attempts {
        Attempts {
            done: self.dense(|part| &part.hedge_done),
            censored: self.dense(|part| &part.hedge_censored),
        }
    }

    /// What callers waited, where a hedge was allowed.
    pub fn treated(&self) -> Histogram {
        self.dense(|part| &part.treated)
    }

    /// What callers waited, held out.
    pub fn holdout(&self) -> Histogram {
        self.dense(|part| &part.holdout)
    }

    /// Counters by replica.
    pub fn replicas(&self) -> BTreeMap<&'a ReplicaName, ReplicaCounts> {
        let mut sums: BTreeMap<&ReplicaName, ReplicaCounts> = BTreeMap::new();
        for part in &self.parts {
            for (name, replica) in &part.replicas {
                sums.entry(name).or_default().add(replica);
            }
        }
        sums
    }

    /// The slices themselves.
    pub fn parts(&self) -> impl Iterator<Item = &'a Slice> + '_ {
        self.parts.iter().copied()
    }

    fn dense(&self, tally: impl Fn(&Slice) -> &Tally) -> Histogram {
        let mut sum = Histogram::new();
        for part in &self.parts {
            tally(part).add_to(&mut sum);
        }
        sum
    }
}

impl ReplicaCounts {
    fn add(&mut self, part: &ReplicaSlice) {
        if part.zone.is_some() {
            self.zone.clone_from(&part.zone);
        }
        self.started = self.started.saturating_add(part.started);
        self.crossed = self.crossed.saturating_add(part.crossed);
        self.finished = self.finished.saturating_add(part.finished);
        self.errors = self.errors.saturating_add(part.errors);
        self.hedged = self.hedged.saturating_add(part.hedged);
        self.won = self.won.saturating_add(part.won);
    }
}
