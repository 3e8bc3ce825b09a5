//! Which replicas are what is slow or failing, so that the rest can be judged without them.

use std::collections::BTreeMap;

use hedgerow_protocol::ids::ReplicaName;

use super::latch::LEAST_STAY;
use crate::moment::Moment;
use crate::view::Named;
use crate::window::{Lookback, ReplicaCounts, WINDOW_CALLS, WINDOW_MAX, WINDOW_MIN, Windows};

/// Calls that a route must have had for anybody to be judged, and a named replica to be let go.
const CALLS_MIN: u64 = 100;
/// Calls a replica must have had to be named. A dead one gets hardly any from agents that take the
/// less loaded of two: of two hundred calls a second on ten replicas, three or four.
const CALLS_TO_NAME: u64 = 20;
/// Of these, those that crossed or failed: this, and the standard errors below, are what keeps chance
/// away. Ten of twenty, where one is expected, it does once in ten million times.
const EVENTS_MIN: u64 = 10;
/// Times the others' share to be named.
const TIMES_TO_NAME: f64 = 2.0;
/// Times the others' share under which it is let go: the gap keeps a name from flapping.
const TIMES_TO_RELEASE: f64 = 1.5;
/// Standard errors above the others' to be named: with 256 replicas, each looked at every second,
/// chance does it less than once a week.
const ERRORS_ABOVE: f64 = 4.0;
/// Calls that make a replica one of those the others are compared with, and that a named one must
/// have had to be let go: under probation it gets a tenth of its share.
const CALLS_TO_COMPARE: u64 = 20;
/// Shortest window on which one is let go, in slices.
const RELEASE_WINDOW_MIN: usize = 10;
/// Longest, for those that hardly get calls any more.
const RELEASE_WINDOW_MAX: usize = 300;

/// A replica that is named.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Entry {
    /// For what.
    pub(crate) named: Named,
    /// Since when.
    pub(crate) since: Moment,
    /// How many times the others' share, when last judged.
    pub(crate) times: f64,
}

/// Shares below which nobody is named, whatever the others do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Floors {
    /// Of crossed calls: half the target.
    pub(crate) crossed: f64,
    /// Of failed primaries: half the limit that switches hedging off.
    pub(crate) errors: f64,
}

impl Floors {
    const fn of(self, kind: Named) -> f64 {
        match kind {
            Named::Slow => self.crossed,
            Named::Failing => self.errors,
        }
    }
}

type Names = BTreeMap<ReplicaName, Entry>;

/// Who is named now, from who was. Worst first, at most half of the replicas that get calls.
pub(crate) fn judge(windows: &Windows, before: &Names, floors: Floors, now: Moment) -> Names {
    let minute = windows.over(WINDOW_MAX);
    if minute.calls() < CALLS_MIN {
        // Silence is no acquittal (P16).
        return before.clone();
    }
    let active = minute.replicas();
    let active: BTreeMap<_, _> = active.into_iter().filter(|(_, c)| c.started > 0).collect();
    // Who gets no call at all while others do is no replica any more.
    let mut named: Vec<(ReplicaName, Entry)> = before
        .iter()
        .filter(|(name, _)| active.contains_key(name))
        .filter(|(name, entry)| !is_well(windows, name, entry, floors, now))
        .map(|(name, entry)| (name.clone(), *entry))
        .collect();

    let window = windows.grown(WINDOW_MIN, WINDOW_MAX, |w| w.calls() >= WINDOW_CALLS);
    let counts = window.replicas();
    for (kind, replica, times) in [Named::Failing, Named::Slow]
        .into_iter()
        .flat_map(|kind| over(&counts, kind, floors.of(kind)))
    {
        match named.iter_mut().find(|(name, _)| *name == replica) {
            Some((_, entry)) if entry.named == kind => entry.times = times,
            // Failing comes first and says more than slow: who fails by time-outs is both.
            Some(_) => {}
            None => named.push((
                replica,
                Entry {
                    named: kind,
                    since: now,
                    times,
                },
            )),
        }
    }
    // Names as the last resort of the order: the same figures give the same answer.
    named.sort_by(|(a, x), (b, y)| y.times.total_cmp(&x.times).then_with(|| a.cmp(b)));
    named.truncate(active.len() / 2);
    named.into_iter().collect()
}

/// The named ones worst first, for probation.
pub(crate) fn worst_first(names: &Names) -> Vec<&ReplicaName> {
    let mut worst: Vec<_> = names.iter().collect();
    worst.sort_by(|(a, x), (b, y)| {
        let rank = |entry: &Entry| entry.named == Named::Slow;
        rank(x)
            .cmp(&rank(y))
            .then_with(|| y.times.total_cmp(&x.times))
            .then_with(|| a.cmp(b))
    });
    worst.into_iter().map(|(name, _)| name).collect()
}

type Counts<'a> = BTreeMap<&'a ReplicaName, ReplicaCounts>;

/// Events and calls of one kind.
const fn events(counts: &ReplicaCounts, kind: Named) -> (u64, u64) {
    match kind {
        Named::Slow => (counts.crossed, counts.started),
        Named::Failing => (counts.errors, counts.finished),
    }
}

/// Who stands out in a window.
fn over(counts: &Counts<'_>, kind: Named, floor: f64) -> Vec<(Named, ReplicaName, f64)> {
    let mut found = Vec::new();
    for (replica, own) in counts {
        let (events, calls) = events(own, kind);
        if calls < CALLS_TO_NAME || events < EVENTS_MIN {
            continue;
        }
        let Some(reference) = reference(counts, replica, kind, floor) else {
            continue;
        };
        let share = (events as f64 / calls as f64).min(1.0);
        // The larger of the two variances: few events make their own look smaller than it is.
        let theirs = reference.share * (1.0 - reference.share);
        let variance =
            (share * (1.0 - share)).max(theirs) / calls as f64 + theirs / reference.calls as f64;
        if share > TIMES_TO_NAME * reference.share
            && share - reference.share > ERRORS_ABOVE * variance.sqrt()
        {
            found.push((kind, (*replica).clone(), share / reference.share));
        }
    }
    found
}

/// What a replica is compared with.
struct Reference {
    /// The lower median of the others' shares, at least the floor.
    share: f64,
    /// The calls that median rests on: it is known no better than they tell.
    calls: u64,
}

/// None where there are no others.
fn reference(counts: &Counts<'_>, of: &ReplicaName, kind: Named, floor: f64) -> Option<Reference> {
    let mut others: Vec<Reference> = counts
        .iter()
        .filter(|(name, _)| **name != of)
        .map(|(_, other)| events(other, kind))
        .filter(|&(_, calls)| calls >= CALLS_TO_COMPARE)
        .map(|(events, calls)| Reference {
            share: (events as f64 / calls as f64).min(1.0),
            calls,
        })
        .collect();
    others.sort_by(|a, b| a.share.total_cmp(&b.share));
    let middle = others.len().checked_sub(1)? / 2;
    let median = others.swap_remove(middle);
    Some(Reference {
        share: median.share.max(floor),
        calls: median.calls,
    })
}

/// Whether a named replica is like the others again, on what calls it still gets.
fn is_well(
    windows: &Windows,
    replica: &ReplicaName,
    entry: &Entry,
    floors: Floors,
    now: Moment,
) -> bool {
    if now.since(entry.since) < LEAST_STAY {
        return false;
    }
    let calls_of = |window: &Lookback<'_>| {
        let own = window.parts().filter_map(|part| part.replicas.get(replica));
        own.map(|part| match entry.named {
            Named::Slow => part.started,
            Named::Failing => part.finished,
        })
        .sum::<u64>()
    };
    let window = windows.grown(RELEASE_WINDOW_MIN, RELEASE_WINDOW_MAX, |window| {
        calls_of(window) >= CALLS_MIN
    });
    let counts = window.replicas();
    let Some(own) = counts.get(replica) else {
        return false;
    };
    let (events, calls) = events(own, entry.named);
    let Some(reference) = reference(&counts, replica, entry.named, floors.of(entry.named)) else {
        return true;
    };
    calls >= CALLS_TO_COMPARE
        && (events as f64) <= TIMES_TO_RELEASE * reference.share * calls as f64
}
