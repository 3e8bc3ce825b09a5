//! A route's replicas over time: what a heatmap shows.

use std::sync::Arc;
use std::time::Duration;

use hedgerow_protocol::ids::ReplicaName;
use serde::Serialize;

use super::millis;
use crate::moment::Moment;

/// The last 15 minutes of a route's replicas, and what stands out in them.
///
/// Ninety columns of at most 256 replicas, 20 bytes each: 460 kB a route at most, 18 kB with ten
/// replicas. Names are kept once where they stay the same.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ReplicaCourse {
    /// Each 10 s one, oldest first.
    pub columns: Vec<Arc<ReplicaColumn>>,
    /// Replicas and times whose p95 is unlike the rest's; None: too little is known.
    pub slow: Option<Unlike>,
    /// The same for the share of hedges that answered first.
    pub losing: Option<Unlike>,
}

/// What the replicas did in a short time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplicaColumn {
    /// Its end.
    pub at: Moment,
    /// How long it is.
    #[serde(rename = "span_ms", with = "millis")]
    pub span: Duration,
    /// Those that were called in it, by name.
    pub replicas: Arc<Vec<ReplicaName>>,
    /// One for each of them.
    pub cells: Vec<ReplicaCell>,
}

/// A replica in a column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ReplicaCell {
    /// Primaries started on it.
    pub calls: u32,
    /// Their own p95; None: too few of them, or not known so far.
    pub p95_ms: Option<f32>,
    /// Hedges sent to it.
    pub hedged: u32,
    /// Of these, those that answered first.
    pub won: u32,
}

impl ReplicaColumn {
    /// A replica's cell; None: it was not called.
    pub fn cell(&self, replica: &ReplicaName) -> Option<&ReplicaCell> {
        let at = self.replicas.binary_search(replica).ok()?;
        self.cells.get(at)
    }
}

impl ReplicaCell {
    /// Share of the hedges sent to it that answered first; None: none was sent.
    pub fn win_rate(&self) -> Option<f64> {
        (self.hedged > 0).then(|| f64::from(self.won.min(self.hedged)) / f64::from(self.hedged))
    }
}

/// What is unlike the rest: rows are replicas, columns are causes they share.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Unlike {
    /// What most cells are like: milliseconds, or a share.
    pub usual: f64,
    /// Beyond it a cell is bad.
    pub limit: f64,
    /// Replicas that are bad by themselves, in the last minute, the worst first.
    pub rows: Vec<BadReplica>,
    /// Times in which most replicas were bad together, oldest first.
    pub columns: Vec<Together>,
}

impl Unlike {
    /// The newest time, where it has not ended.
    pub fn lasting(&self) -> Option<&Together> {
        self.columns.last().filter(|it| it.lasts)
    }
}

/// A replica that is bad by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BadReplica {
    /// Which.
    pub replica: ReplicaName,
    /// Its bad cells, over the whole course.
    pub bad: u32,
    /// Of so many that are known, without those in which all were.
    pub known: u32,
}

/// A time in which most replicas were bad at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Together {
    /// Its beginning.
    pub from: Moment,
    /// Its end.
    pub until: Moment,
    /// The most replicas that were bad at once.
    pub bad: u32,
    /// Of so many known then.
    pub known: u32,
    /// Whether it was so in the newest column.
    pub lasts: bool,
}
