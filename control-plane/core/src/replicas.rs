//! The course of a route's replicas: kept a column each 10 s, and read for rows and columns that
//! stand out. A row is a replica, a column is a cause that they share.

use std::sync::Arc;
use std::time::Duration;

use hedgerow_protocol::ids::ReplicaName;
use hedgerow_protocol::units::as_millis;

use crate::moment::Moment;
use crate::route::Route;
use crate::view::{BadReplica, ReplicaCell, ReplicaColumn, ReplicaCourse, Together, Unlike};

/// Time a column covers.
pub(crate) const COLUMN_EACH: Duration = Duration::from_secs(10);
/// Columns kept: 15 minutes.
pub(crate) const COLUMNS_MAX: usize = 90;
/// Primaries whose p95 is more than their slowest one.
const CALLS_MIN: u64 = 20;
/// Primaries whose p95 is more than chance: five of a hundred are beyond it.
const CALLS_JUDGED: u32 = 100;
/// Hedges whose share of wins is more than chance: of ten at 70 %, three or fewer win once in a
/// hundred.
const HEDGES_MIN: u32 = 10;
/// Cells that have to be known before any is called unlike the rest.
const CELLS_MIN: usize = 12;
/// A cell is bad this many times above, or below, what is usual.
const UNLIKE: f64 = 2.0;
/// The newest known cells a replica is judged by: a minute.
const NEWEST: usize = 6;
/// Of these, so many bad make it a bad replica.
const NEWEST_BAD: usize = 4;

/// Adds the column that ends now: the newest `slices`.
pub(crate) fn draw(route: &mut Route, now: Moment, slices: u64) {
    let window = route.windows.over(usize::try_from(slices).unwrap_or(1));
    let counted = window.replicas();
    let old = &route.replica_course.columns;
    let cells = counted.iter().map(|(name, counts)| {
        let curve = (counts.started >= CALLS_MIN).then(|| window.primary_of(name).curve());
        ReplicaCell {
            calls: u32::try_from(counts.started).unwrap_or(u32::MAX),
            p95_ms: curve
                .and_then(|it| it.quantile(0.95))
                .map(|it| as_millis(it) as f32),
            hedged: u32::try_from(counts.hedged).unwrap_or(u32::MAX),
            won: u32::try_from(counts.won).unwrap_or(u32::MAX),
        }
    });
    let names = || counted.keys().copied();
    let kept = old.last().map(|column| &column.replicas);
    let column = ReplicaColumn {
        at: now,
        span: window.span(),
        cells: cells.collect(),
        replicas: match kept.filter(|kept| names().eq(kept.iter())) {
            Some(same) => Arc::clone(same),
            None => Arc::new(names().cloned().collect()),
        },
    };
    let first = (old.len() + 1).saturating_sub(COLUMNS_MAX);
    let mut columns = old[first..].to_vec();
    columns.push(Arc::new(column));
    // A route that was never called, or not for so long, has no replicas to show.
    if columns.iter().all(|column| column.replicas.is_empty()) {
        columns.clear();
    }
    route.replica_course = Arc::new(read(columns));
}

/// What the columns show.
fn read(columns: Vec<Arc<ReplicaColumn>>) -> ReplicaCourse {
    let slow = Measure {
        value: |cell| {
            cell.p95_ms
                .filter(|_| cell.calls >= CALLS_JUDGED)
                .map(f64::from)
        },
        sign: 1.0,
    };
    let losing = Measure {
        value: |cell| cell.win_rate().filter(|_| cell.hedged >= HEDGES_MIN),
        sign: -1.0,
    };
    ReplicaCourse {
        slow: slow.unlike(&columns),
        losing: losing.unlike(&columns),
        columns,
    }
}

/// A figure of a cell, and on which side it is bad.
#[derive(Clone, Copy)]
struct Measure {
    value: fn(&ReplicaCell) -> Option<f64>,
    /// 1: bad above what is usual; -1: below.
    sign: f64,
}

impl Measure {
    fn unlike(self, columns: &[Arc<ReplicaColumn>]) -> Option<Unlike> {
        let mut known: Vec<f64> = columns
            .iter()
            .flat_map(|column| &column.cells)
            .filter_map(self.value)
            .collect();
        if known.len() < CELLS_MIN {
            return None;
        }
        // The best quarter: what is usual, also where half of the replicas are bad for half of the
        // time.
        let quarter = known.len() / 4;
        let order = |a: &f64, b: &f64| (a * self.sign).total_cmp(&(b * self.sign));
        let usual = *known.select_nth_unstable_by(quarter, order).1;
        let limit = usual * UNLIKE.powf(self.sign);
        let bad = |cell: &ReplicaCell| {
            (self.value)(cell).map(|value| value * self.sign > limit * self.sign)
        };
        let shared: Vec<Option<(u32, u32)>> = columns.iter().map(|it| shared(it, bad)).collect();
        Some(Unlike {
            usual,
            limit,
            rows: rows(columns, &shared, bad),
            columns: stretches(columns, &shared),
        })
    }
}

/// How many of how many known replicas are bad, where that is most of them and no single one.
fn shared(
    column: &ReplicaColumn,
    bad: impl Fn(&ReplicaCell) -> Option<bool>,
) -> Option<(u32, u32)> {
    let (mut wrong, mut known) = (0, 0);
    for is_bad in column.cells.iter().filter_map(bad) {
        known += 1;
        wrong += u32::from(is_bad);
    }
    (wrong >= 2 && 2 * wrong > known).then_some((wrong, known))
}

/// Replicas that are bad by themselves: columns in which most are say nothing of one.
fn rows(
    columns: &[Arc<ReplicaColumn>],
    shared: &[Option<(u32, u32)>],
    bad: impl Fn(&ReplicaCell) -> Option<bool>,
) -> Vec<BadReplica> {
    let Some(newest) = columns.iter().rev().find(|it| !it.replicas.is_empty()) else {
        return Vec::new();
    };
    let own = || columns.iter().zip(shared).rev().filter(|it| it.1.is_none());
    // Names are mostly the very same list, and a place in it saves looking a name up.
    let cell = |column: &ReplicaColumn, place: usize, name: &ReplicaName| {
        let found = if Arc::ptr_eq(&column.replicas, &newest.replicas) {
            column.cells.get(place).copied()
        } else {
            column.cell(name).copied()
        };
        found.as_ref().and_then(&bad)
    };
    let judge = |(place, name): (usize, &ReplicaName)| {
        let cells = || own().filter_map(|(column, _)| cell(column, place, name));
        let now = cells().take(NEWEST).filter(|it| *it).count();
        (now >= NEWEST_BAD).then(|| BadReplica {
            replica: name.clone(),
            bad: cells().filter(|it| *it).count() as u32,
            known: cells().count() as u32,
        })
    };
    let places = newest.replicas.iter().enumerate();
    let mut found: Vec<BadReplica> = places.filter_map(judge).collect();
    found.sort_by_key(|it| std::cmp::Reverse(it.bad));
    found
}

/// When a column begins.
fn before_it(column: &ReplicaColumn) -> Moment {
    let span = u64::try_from(column.span.as_millis()).unwrap_or(u64::MAX);
    Moment::from_millis(column.at.as_millis().saturating_sub(span))
}

/// Runs of columns in which most replicas were bad.
fn stretches(columns: &[Arc<ReplicaColumn>], shared: &[Option<(u32, u32)>]) -> Vec<Together> {
    let mut found: Vec<Together> = Vec::new();
    let mut before = false;
    for (column, counts) in columns.iter().zip(shared) {
        if let Some((bad, known)) = *counts {
            match found.last_mut().filter(|_| before) {
                Some(open) => {
                    open.until = column.at;
                    if bad > open.bad {
                        (open.bad, open.known) = (bad, known);
                    }
                }
                None => found.push(Together {
                    from: before_it(column),
                    until: column.at,
                    bad,
                    known,
                    lasts: false,
                }),
            }
        }
        before = counts.is_some();
    }
    if let Some(last) = found.last_mut() {
        last.lasts = before;
    }
    found
}

#[cfg(test)]
mod tests;
