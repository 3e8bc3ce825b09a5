//! What was reported of one replica, so that the next report brings what came since.

use std::sync::atomic::{AtomicU64, Ordering};

use hedgerow_protocol::latency::Histogram;
use hedgerow_protocol::report::{Attempts, ReplicaReport};

use crate::pool::Replica;

/// Cumulative counters of a replica at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ReplicaTotals {
    pub(crate) started: u64,
    pub(crate) crossed: u64,
    pub(crate) finished: u64,
    pub(crate) errors: u64,
    pub(crate) hedged: u64,
    pub(crate) won: u64,
}

impl ReplicaTotals {
    /// The smaller of two ordered counters first, as in the recorder.
    pub(crate) fn read(replica: &Replica) -> Self {
        let load = |counter: &AtomicU64| counter.load(Ordering::Acquire);
        let won = load(&replica.won);
        let hedged = load(&replica.hedged);
        let errors = load(&replica.errors);
        let finished = load(&replica.finished);
        let crossed = load(&replica.crossed);
        let started = load(&replica.started);
        Self {
            started,
            crossed,
            finished,
            errors,
            hedged,
            won,
        }
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            started: self.started.saturating_sub(earlier.started),
            crossed: self.crossed.saturating_sub(earlier.crossed),
            finished: self.finished.saturating_sub(earlier.finished),
            errors: self.errors.saturating_sub(earlier.errors),
            hedged: self.hedged.saturating_sub(earlier.hedged),
            won: self.won.saturating_sub(earlier.won),
        }
    }
}

/// What was acknowledged, and what is under way.
#[derive(Debug, Default)]
pub(crate) struct ReplicaBooks {
    acknowledged: ReplicaTotals,
    under_way: Option<(ReplicaTotals, Attempts)>,
    /// Done and censored. Made with the first report: only the busiest replicas ever need them.
    samples: Option<(Histogram, Histogram)>,
}

/// Primaries since the last acknowledged report: how busy it is.
pub(crate) fn unreported(replica: &Replica) -> u64 {
    let acknowledged = replica.books.lock().acknowledged;
    let since = ReplicaTotals::read(replica).since(acknowledged);
    since.started + since.finished + since.hedged
}

/// What came since the last acknowledged report.
pub(crate) fn collect(replica: &Replica) -> ReplicaReport {
    let books = &mut *replica.books.lock();
    let (done, censored) = books.samples.get_or_insert_default();
    replica.done.drain(done);
    replica.censored.drain(censored);
    let primary = Attempts {
        done: done.to_sparse(),
        censored: censored.to_sparse(),
    };
    let totals = ReplicaTotals::read(replica);
    let since = totals.since(books.acknowledged);
    books.under_way = Some((totals, primary.clone()));
    ReplicaReport {
        replica: replica.name.clone(),
        zone: replica.zone.clone(),
        started: since.started,
        crossed: since.crossed,
        finished: since.finished,
        errors: since.errors,
        hedged: since.hedged,
        won: since.won,
        primary,
    }
}

/// The report under way was acknowledged: what it said is not said again.
pub(crate) fn acknowledged(replica: &Replica) {
    let books = &mut *replica.books.lock();
    if let Some((totals, primary)) = books.under_way.take() {
        books.acknowledged = totals;
        let (done, censored) = books.samples.get_or_insert_default();
        for (all, reported) in [(done, &primary.done), (censored, &primary.censored)] {
            all.subtract(reported)
                .expect("what was reported is a part of what was collected");
        }
    }
}
