//! Which replicas are on probation by this agent's own figures. Pure.
//!
//! A replica on probation gets a tenth of its share of primaries and no hedges, and is judged on
//! what it still gets: nothing it did with its full share counts, nor, once it is back, what it did
//! on probation.
//!
//! ```text
//!            named, a place free                 well on 100 calls, 10 s at least
//! full share ───────────────────► on probation ─────────────────────────────────► full share
//!                                     │   ▲ still named
//!                                     └───┘
//!                                  too few calls to say for a minute: tried again,
//!                                  after twice as long each time within an hour
//! ```
//! At most a third of the replicas, so that the others can carry what these do not get; put on
//! at most twelve times an hour each, then it stays until the first of these is an hour ago (P14).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use hedgerow_protocol::ids::ReplicaName;

use crate::naming::{Finding, Floors, Ledger, Look, NamedReplica};

/// One on probation of so many.
const PART: usize = 3;
/// Least time on probation.
const LEAST_STAY: Duration = Duration::from_secs(10);
/// How long one that gets too few calls to be judged stays before it is tried again; twice as long
/// after each time it was put on probation within the hour.
const TRIAL_AFTER: Duration = Duration::from_mins(1);
/// Longest wait for a trial: whatever is thought of a replica, it is looked at again.
const TRIAL_AFTER_MAX: Duration = Duration::from_mins(10);
/// Most times on probation within [`CHANGES_WINDOW`].
const CHANGES_MAX: usize = 12;
const CHANGES_WINDOW: Duration = Duration::from_hours(1);

/// One on probation.
#[derive(Debug, Clone)]
struct Held {
    replica: ReplicaName,
    /// Why, by the last figures that said so. None: a controller put it there, and was not asked.
    named: Option<NamedReplica>,
    since: Duration,
    /// When there was last enough to judge it on.
    judged: Duration,
}

/// A change, for the log: each has its reason (P14).
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    Put(NamedReplica),
    /// On its own calls.
    Well(ReplicaName),
    /// For want of calls.
    Tried(ReplicaName),
    /// There are fewer replicas than there were.
    NoPlace(ReplicaName),
}

/// What is to be known of a route for this.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Situation<'a> {
    pub(crate) now: Duration,
    pub(crate) floors: Floors,
    /// Replicas to pick from.
    pub(crate) places: usize,
    /// All that are known.
    pub(crate) known: &'a [ReplicaName],
    /// Those that may be put on probation; None: all.
    pub(crate) only: Option<&'a [ReplicaName]>,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Probation {
    /// In the order in which they came.
    held: Vec<Held>,
    /// Those tried again of whose calls there are too few yet: not yet known to be well.
    on_trial: BTreeSet<ReplicaName>,
    /// When each was put on probation, within the last hour.
    puts: BTreeMap<ReplicaName, VecDeque<Duration>>,
}

impl Probation {
    /// Those on probation.
    pub(crate) fn replicas(&self) -> Vec<ReplicaName> {
        self.held.iter().map(|held| held.replica.clone()).collect()
    }

    /// Those whose last word was that they are bad: on probation, and tried without a verdict yet.
    pub(crate) fn suspects(&self) -> Vec<ReplicaName> {
        let mut suspects = self.replicas();
        suspects.extend(self.on_trial.iter().cloned());
        suspects
    }

    /// Why they are, where that is known.
    pub(crate) fn reasons(&self) -> impl Iterator<Item = &NamedReplica> {
        self.held.iter().filter_map(|held| held.named.as_ref())
    }

    /// Takes over those that a controller put on probation, as if they came now.
    pub(crate) fn adopt(&mut self, now: Duration, replicas: &[ReplicaName], ledger: &mut Ledger) {
        self.clear();
        for replica in replicas {
            ledger.forget(replica);
            self.put(now, replica.clone(), None);
        }
    }

    /// Nobody is on probation any more.
    pub(crate) fn clear(&mut self) {
        self.held.clear();
        self.on_trial.clear();
    }

    fn put(&mut self, now: Duration, replica: ReplicaName, named: Option<NamedReplica>) {
        self.puts.entry(replica.clone()).or_default().push_back(now);
        self.held.push(Held {
            replica,
            named,
            since: now,
            judged: now,
        });
    }

    fn puts(&self, replica: &ReplicaName) -> usize {
        self.puts.get(replica).map_or(0, VecDeque::len)
    }

    /// A second is over; `named`: who is, worst first.
    pub(crate) fn tick(
        &mut self,
        ledger: &mut Ledger,
        named: &[NamedReplica],
        situation: &Situation<'_>,
    ) -> Vec<Change> {
        let Situation { now, known, .. } = *situation;
        // What left the list is forgotten with it: names cannot fill memory.
        self.held.retain(|held| known.contains(&held.replica));
        self.puts.retain(|replica, puts| {
            puts.retain(|at| now.saturating_sub(*at) < CHANGES_WINDOW);
            !puts.is_empty() && known.contains(replica)
        });
        self.on_trial.retain(|replica| known.contains(replica));
        let mut changes = Vec::new();
        if !self.held.is_empty() || !self.on_trial.is_empty() {
            let look = ledger.look(situation.floors);
            self.on_trial
                .retain(|replica| look.finding(replica) == Finding::TooFew);
            changes = self.release(&look, situation);
        }
        let places = situation.places / PART;
        for named in named {
            let held = self.held.iter().any(|held| held.replica == named.replica);
            let may = situation
                .only
                .is_none_or(|only| only.contains(&named.replica));
            if self.held.len() < places && may && !held {
                self.put(now, named.replica.clone(), Some(named.clone()));
                changes.push(Change::Put(named.clone()));
            }
        }
        for change in &changes {
            ledger.forget(change.replica());
            if let Change::Tried(replica) = change {
                self.on_trial.insert(replica.clone());
            }
        }
        changes
    }

    /// Lets go of those that are well, of those nothing can be said of, and of those that are too
    /// many.
    fn release(&mut self, look: &Look<'_>, situation: &Situation<'_>) -> Vec<Change> {
        let now = situation.now;
        let mut changes = Vec::new();
        let mut stay = Vec::new();
        for mut held in std::mem::take(&mut self.held) {
            let finding = look.finding(&held.replica);
            if finding != Finding::TooFew {
                held.judged = now;
            }
            let puts = self.puts(&held.replica);
            let may = puts < CHANGES_MAX && now.saturating_sub(held.since) >= LEAST_STAY;
            let unjudged = now.saturating_sub(held.judged);
            match finding {
                Finding::Well if may => changes.push(Change::Well(held.replica)),
                Finding::TooFew if may && unjudged >= trial_after(puts) => {
                    changes.push(Change::Tried(held.replica));
                }
                Finding::Named(named) => {
                    held.named = Some(named);
                    stay.push(held);
                }
                _ => stay.push(held),
            }
        }
        let places = situation.places / PART;
        for held in stay.drain(places.min(stay.len())..) {
            changes.push(Change::NoPlace(held.replica));
        }
        self.held = stay;
        changes
    }
}

impl Change {
    pub(crate) fn replica(&self) -> &ReplicaName {
        match self {
            Self::Put(named) => &named.replica,
            Self::Well(replica) | Self::Tried(replica) | Self::NoPlace(replica) => replica,
        }
    }
}

/// How long one that was put on probation so often within the hour waits for its trial.
fn trial_after(puts: usize) -> Duration {
    let doublings = puts.saturating_sub(1).min(CHANGES_MAX) as u32;
    (TRIAL_AFTER * 2u32.pow(doublings)).min(TRIAL_AFTER_MAX)
}

#[cfg(test)]
mod tests;
