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
    /// `answered`: all samples ever taken out of `done`. The smaller of two ordered counters first,
    /// as in the recorder.
    fn read(replica: &Replica, answered: impl FnOnce() -> u64) -> Self {
        let load = |counter: &AtomicU64| counter.load(Ordering::Acquire);
        let won = load(&replica.won);
        let hedged = load(&replica.hedged);
        let errors = load(&replica.errors);
        let watched = load(&replica.watched_done);
        let finished = answered().saturating_sub(watched) + errors;
        let crossed = load(&replica.crossed);
        let started = replica.started();
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
    /// Since the last acknowledged report.
    done: Histogram,
    censored: Histogram,
    /// All that was ever in `done`.
    answered: u64,
}

impl ReplicaBooks {
    fn totals(&mut self, replica: &Replica) -> ReplicaTotals {
        ReplicaTotals::read(replica, || {
            let before = self.done.count();
            replica.done.drain(&mut self.done);
            self.answered += self.done.count() - before;
            self.answered
        })
    }
}

/// Its counters now.
pub(crate) fn totals(replica: &Replica) -> ReplicaTotals {
    replica.books.lock().totals(replica)
}

/// Primaries since the last acknowledged report: how busy it is.
pub(crate) fn unreported(replica: &Replica) -> u64 {
    let books = &mut *replica.books.lock();
    let since = books.totals(replica).since(books.acknowledged);
    since.started + since.finished + since.hedged
}

/// What came since the last acknowledged report.
pub(crate) fn collect(replica: &Replica) -> ReplicaReport {
    let books = &mut *replica.books.lock();
    let totals = books.totals(replica);
    replica.censored.drain(&mut books.censored);
    let primary = Attempts {
        done: books.done.to_sparse(),
        censored: books.censored.to_sparse(),
    };
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
        for (all, reported) in [
            (&mut books.done, &primary.done),
            (&mut books.censored, &primary.censored),
        ] {
            all.subtract(reported)
                .expect("what was reported is a part of what was collected");
        }
    }
}
