//! Primaries of the healthy majority.

use std::collections::BTreeMap;

use hedgerow_protocol::ids::ReplicaName;
use hedgerow_protocol::latency::{Histogram, SurvivalCurve};

use super::naming::Entry;
use crate::window::{Attempts, Lookback, Windows};

/// All primaries of a window but those of named replicas, with what is still in flight as censored.
///
/// Taken from the total, not added up from the replicas: an agent names its busiest sixteen only,
/// and callers who pin may name none. In-flight ages are not known by replica. Where one is named,
/// nearly all that stays in flight is its own, so they are left out; the others' slow calls then
/// show when they end.
pub(crate) fn healthy(
    windows: &Windows,
    lookback: &Lookback<'_>,
    named: &BTreeMap<ReplicaName, Entry>,
) -> Attempts {
    among(lookback.primary(), windows, lookback, named)
}

/// The same, of `all` primaries of the window.
fn among(
    mut all: Attempts,
    windows: &Windows,
    lookback: &Lookback<'_>,
    named: &BTreeMap<ReplicaName, Entry>,
) -> Attempts {
    if named.is_empty() {
        for ages in windows.in_flight() {
            // Fails only after 2^48 calls in flight at once.
            let _ = all.censored.add(ages);
        }
        return all;
    }
    for replica in named.keys() {
        let theirs = lookback.primary_of(replica);
        all.done = without(&all.done, &theirs.done);
        all.censored = without(&all.censored, &theirs.censored);
    }
    all
}

/// The present window, its primaries added up once for all that ask.
pub(crate) struct Present<'a> {
    /// The window.
    pub(crate) window: Lookback<'a>,
    /// All that ended in it, of named replicas too.
    pub(crate) primary: Attempts,
}

impl<'a> Present<'a> {
    /// Adds them up.
    pub(crate) fn of(window: Lookback<'a>) -> Self {
        Self {
            primary: window.primary(),
            window,
        }
    }

    /// The healthy majority's.
    pub(crate) fn healthy(
        &self,
        windows: &Windows,
        named: &BTreeMap<ReplicaName, Entry>,
    ) -> Primaries {
        let all = self.primary.clone();
        Primaries::from(&among(all, windows, &self.window, named))
    }
}

/// The healthy majority's primaries of a window, estimated once for all that ask.
pub(crate) struct Primaries {
    /// Attempts in all.
    pub(crate) count: u64,
    /// What is known of their latencies.
    pub(crate) curve: SurvivalCurve,
}

impl Primaries {
    /// See [`healthy`].
    pub(crate) fn of(
        windows: &Windows,
        lookback: &Lookback<'_>,
        named: &BTreeMap<ReplicaName, Entry>,
    ) -> Self {
        Self::from(&healthy(windows, lookback, named))
    }
}

impl From<&Attempts> for Primaries {
    fn from(attempts: &Attempts) -> Self {
        Self {
            count: attempts.count(),
            curve: attempts.curve(),
        }
    }
}

/// `all` less `part`, at least zero: an agent may report a replica's attempts that it left out of
/// its totals.
fn without(all: &Histogram, part: &Histogram) -> Histogram {
    let mut rest = Histogram::new();
    for (bucket, count) in all.iter() {
        // What is left of a valid histogram is one.
        let _ = rest.add_to_bucket(bucket, count.saturating_sub(part.in_bucket(bucket)));
    }
    rest
}

/// Counters of the healthy majority over a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Healthy {
    /// Calls whose primary they got.
    pub(crate) started: u64,
    /// Of these, those that crossed.
    pub(crate) crossed: u64,
    /// Primaries that ended by themselves.
    pub(crate) finished: u64,
    /// Of these, those that failed.
    pub(crate) errors: u64,
}

impl Healthy {
    /// Counts them.
    pub(crate) fn count(lookback: &Lookback<'_>, named: &BTreeMap<ReplicaName, Entry>) -> Self {
        let totals = lookback.totals();
        let mut rest = Self {
            started: totals.started,
            crossed: totals.crossed,
            finished: totals.primary_finished,
            errors: totals.primary_errors,
        };
        if named.is_empty() {
            return rest;
        }
        for (name, own) in lookback.replicas() {
            if named.contains_key(name) {
                rest.started = rest.started.saturating_sub(own.started);
                rest.crossed = rest.crossed.saturating_sub(own.crossed);
                rest.finished = rest.finished.saturating_sub(own.finished);
                rest.errors = rest.errors.saturating_sub(own.errors);
            }
        }
        rest
    }
}

/// `part / whole`; None where there is no whole.
pub(crate) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
