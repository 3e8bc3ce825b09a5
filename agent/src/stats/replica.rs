//! What was reported of one replica, so that the next report brings what came since.

use std::sync::atomic::{AtomicU64, Ordering};

use hedgerow_protocol::ids::ReplicaName;
use hedgerow_protocol::latency::{Histogram, SparseHistogram};
use hedgerow_protocol::report::{Attempts, ReplicaReport};

use super::sparse;
use super::tally::Seen;
use crate::pool::Replica;

/// Cumulative counters of a replica at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ReplicaTotals {
    pub(crate) started: u64,
    pub(crate) crossed: u64,
    /// Primaries that answered before their call ended.
    pub(crate) answered: u64,
    pub(crate) errors: u64,
    pub(crate) hedged: u64,
    pub(crate) won: u64,
}

impl ReplicaTotals {
    /// `done`: all samples ever taken out of `done`. The smaller of two ordered counters first, as
    /// in the recorder.
    fn read(replica: &Replica, done: impl FnOnce() -> u64) -> Self {
        let load = |counter: &AtomicU64| counter.load(Ordering::Acquire);
        let won = load(&replica.won);
        let hedged = load(&replica.hedged);
        let errors = load(&replica.errors);
        let watched = load(&replica.watched_done);
        let answered = done().saturating_sub(watched);
        let crossed = load(&replica.crossed);
        let started = replica.started();
        Self {
            started,
            crossed,
            answered,
            errors,
            hedged,
            won,
        }
    }

    /// Primaries that ended by themselves. Added up here and not kept: a watched loser between its
    /// two counters makes `answered` one too many for a moment, and what comes after must not turn
    /// out as more errors than ends.
    pub(crate) fn finished(self) -> u64 {
        self.answered + self.errors
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            started: self.started.saturating_sub(earlier.started),
            crossed: self.crossed.saturating_sub(earlier.crossed),
            answered: self.answered.saturating_sub(earlier.answered),
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
    ever_done: u64,
    /// What was read of it: of each lane's answered ones, and of those that were stopped.
    seen_done: Vec<Seen>,
    seen_censored: Seen,
    /// At the end of the last second, and the samples taken out since.
    second_began: ReplicaTotals,
    second: ReplicaSamples,
}

/// A replica's primaries, as they were taken out: one histogram for each reading.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReplicaSamples {
    pub(crate) done: Vec<SparseHistogram>,
    pub(crate) censored: Vec<SparseHistogram>,
}

/// One second of one replica.
#[derive(Debug, Clone)]
pub(crate) struct ReplicaSecond {
    pub(crate) replica: ReplicaName,
    /// What its counters grew by.
    pub(crate) growth: ReplicaTotals,
    pub(crate) samples: ReplicaSamples,
}

impl ReplicaBooks {
    fn totals(&mut self, replica: &Replica) -> ReplicaTotals {
        ReplicaTotals::read(replica, || {
            for (lane, tally) in replica.done.iter() {
                while self.seen_done.len() <= lane {
                    self.seen_done.push(Seen::default());
                }
                let new = self.seen_done[lane].news(tally);
                self.ever_done += new.count();
                // Full only after nine years at a million a second: then what is new is let go.
                let _ = self.done.add(&new);
                keep(new, &mut self.second.done);
            }
            self.ever_done
        })
    }

    fn take_censored(&mut self, replica: &Replica) {
        let new = self.seen_censored.news(&replica.censored);
        let _ = self.censored.add(&new);
        keep(new, &mut self.second.censored);
    }
}

fn keep(samples: SparseHistogram, parts: &mut Vec<SparseHistogram>) {
    if !samples.is_empty() {
        parts.push(samples);
    }
}

/// Ends a second.
pub(crate) fn end_second(replica: &Replica) -> ReplicaSecond {
    let books = &mut *replica.books.lock();
    let totals = books.totals(replica);
    books.take_censored(replica);
    let growth = totals.since(books.second_began);
    books.second_began = totals;
    ReplicaSecond {
        replica: replica.name.clone(),
        growth,
        samples: std::mem::take(&mut books.second),
    }
}

/// Primaries since the last acknowledged report: how busy it is.
pub(crate) fn unreported(replica: &Replica) -> u64 {
    let books = &mut *replica.books.lock();
    let since = books.totals(replica).since(books.acknowledged);
    since.started + since.finished() + since.hedged
}

/// What came since the last acknowledged report.
pub(crate) fn collect(replica: &Replica) -> ReplicaReport {
    let books = &mut *replica.books.lock();
    let totals = books.totals(replica);
    books.take_censored(replica);
    let primary = Attempts {
        done: sparse(&books.done),
        censored: sparse(&books.censored),
    };
    let since = totals.since(books.acknowledged);
    books.under_way = Some((totals, primary.clone()));
    ReplicaReport {
        replica: replica.name.clone(),
        zone: replica.zone.clone(),
        started: since.started,
        crossed: since.crossed,
        finished: since.finished(),
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use hedgerow_protocol::latency::bucket_of;

    use super::*;
    use crate::permit::Permits;

    const MS: Duration = Duration::from_millis(1);

    fn replica() -> Replica {
        let name = ReplicaName::new("a:1").unwrap();
        Replica::new(name, None, Arc::new(Permits::new()))
    }

    #[test]
    fn p12_errors_are_never_more_than_ends_whatever_moment_a_report_catches() {
        let replica = replica();
        // A watched loser that is in the histogram already, but not yet among the watched.
        replica.record_done(bucket_of(MS));
        collect(&replica);
        acknowledged(&replica);
        replica.watched_done.fetch_add(1, Ordering::Release);
        replica.errors.fetch_add(3, Ordering::Release);
        let report = collect(&replica);
        assert_eq!((report.errors, report.finished), (3, 3));
    }

    #[test]
    fn p13_a_sample_is_in_one_report_and_in_one_second() {
        let replica = replica();
        replica.record_done(bucket_of(MS));
        replica.record_censored(2 * MS);
        assert_eq!(collect(&replica).primary.done.count(), 1);
        replica.record_done(bucket_of(3 * MS));
        let second = end_second(&replica);
        let count = |parts: &[SparseHistogram]| parts.iter().map(SparseHistogram::count).sum();
        let counts: [u64; 2] = [count(&second.samples.done), count(&second.samples.censored)];
        assert_eq!(counts, [2, 1]);
        acknowledged(&replica);
        assert_eq!(collect(&replica).primary.done.count(), 1, "what came since");
        let second = end_second(&replica);
        assert_eq!(count(&second.samples.done), 0_u64);
    }
}
