//! What a client process says each second: its callers' view, and what its agent counted. Everything
//! is cumulative, so that a phase is the difference of two lines.

use hedgerow_protocol::latency::{Histogram, SparseHistogram};
use hedgerow_protocol::report::Totals;
use serde::{Deserialize, Serialize};

/// One line of a client, cumulative since it started.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Line {
    /// Which client.
    pub(crate) client: usize,
    /// What its callers saw.
    pub(crate) caller: Caller,
    /// What its agent counted.
    pub(crate) totals: Totals,
    /// What callers of treated calls waited: bucket and count.
    pub(crate) treated: Vec<(u16, u64)>,
    /// What callers of held-out calls waited.
    pub(crate) holdout: Vec<(u16, u64)>,
    /// Tokens earned by each eligible finished call, now.
    pub(crate) budget: f64,
    /// Most tokens kept, now.
    pub(crate) cap: f64,
    /// The revision the agent holds.
    pub(crate) revision: u64,
    /// The epoch the agent holds.
    pub(crate) epoch: u64,
}

/// Counted by the client around `Route::call`, not by the agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Caller {
    pub(crate) calls: u64,
    pub(crate) failed: u64,
    /// Calls that failed although their primary had answered well.
    pub(crate) failed_despite_primary: u64,
    /// Copies sent beyond the first.
    pub(crate) extra_attempts: u64,
}

impl Caller {
    pub(crate) fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.failed += other.failed;
        self.failed_despite_primary += other.failed_despite_primary;
        self.extra_attempts += other.extra_attempts;
    }

    fn since(&self, earlier: &Self) -> Self {
        Self {
            calls: self.calls - earlier.calls,
            failed: self.failed - earlier.failed,
            failed_despite_primary: self.failed_despite_primary - earlier.failed_despite_primary,
            extra_attempts: self.extra_attempts - earlier.extra_attempts,
        }
    }
}

/// A phase, or a second of one, over all clients.
#[derive(Debug, Clone, Default)]
pub(crate) struct Course {
    pub(crate) caller: Caller,
    pub(crate) totals: Totals,
    pub(crate) treated: Histogram,
    pub(crate) holdout: Histogram,
}

impl Course {
    /// Adds what one client did between two of its lines.
    pub(crate) fn add(&mut self, from: &Line, to: &Line) {
        self.caller.add(&to.caller.since(&from.caller));
        if let Some(totals) = to.totals.since(&from.totals) {
            self.totals.add(&totals);
        }
        add_difference(&mut self.treated, &from.treated, &to.treated);
        add_difference(&mut self.holdout, &from.holdout, &to.holdout);
    }

    /// A quantile of what callers of treated calls waited, milliseconds.
    pub(crate) fn treated_ms(&self, quantile: f64) -> Option<f64> {
        self.treated
            .quantile(quantile)
            .map(|d| d.as_secs_f64() * 1e3)
    }

    /// The same for held-out calls.
    pub(crate) fn holdout_ms(&self, quantile: f64) -> Option<f64> {
        self.holdout
            .quantile(quantile)
            .map(|d| d.as_secs_f64() * 1e3)
    }
}

fn add_difference(sum: &mut Histogram, from: &[(u16, u64)], to: &[(u16, u64)]) {
    let earlier: std::collections::BTreeMap<u16, u64> = from.iter().copied().collect();
    let pairs = to
        .iter()
        .map(|(bucket, n)| (*bucket, n - earlier.get(bucket).copied().unwrap_or(0)))
        .filter(|(_, n)| *n > 0);
    if let Ok(sparse) = SparseHistogram::try_from_pairs(pairs) {
        let _ = sum.add(&sparse);
    }
}

/// a / b, where there is a b.
pub(crate) fn share(a: u64, b: u64) -> Option<f64> {
    (b > 0).then(|| a as f64 / b as f64)
}
