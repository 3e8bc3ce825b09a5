//! Which replicas are named slow or failing, by what this agent alone sees. Pure.
//!
//! The controller pools a fleet and judges all replicas on one window. One agent has few calls, so
//! each replica is judged on the shortest window in which it had enough of its own: a busy one is
//! named within a second, and a quiet one as soon as anything can be said of it. The rule itself is
//! the controller's.

mod ledger;

use std::collections::BTreeMap;
use std::fmt;

use hedgerow_protocol::ids::ReplicaName;
use hedgerow_protocol::majority::{CALLS_MIN, Count, Reference};

pub(crate) use self::ledger::{Finding, Floors, Ledger, Look, Tally};

/// What a replica is named for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NamedFor {
    /// Too many of its primaries fail. First, as it says more: who fails by time-outs is both.
    Failing,
    /// Too many of its primaries cross the threshold.
    Slow,
}

impl NamedFor {
    const ALL: [Self; 2] = [Self::Failing, Self::Slow];

    /// `failing` or `slow`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failing => "failing",
            Self::Slow => "slow",
        }
    }
}

impl fmt::Display for NamedFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A replica that is what is slow or failing, with the figures that say so: see
/// [`RouteSnapshot::named`](crate::RouteSnapshot::named).
///
/// Displayed as `10.0.0.3:80 is slow: 97.0 % of 120 calls, where the others have 5.0 %`.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct NamedReplica {
    /// Which.
    pub replica: ReplicaName,
    /// For what.
    pub why: NamedFor,
    /// Share of its primaries that crossed, or failed: 0 to 1.
    pub share: f64,
    /// The share it was compared with: the lower median of the others', or the floor below which
    /// nobody is named.
    pub others: f64,
    /// Primaries it was judged on.
    pub calls: u64,
}

impl NamedReplica {
    fn new(replica: &ReplicaName, why: NamedFor, own: Count, reference: &Reference) -> Self {
        Self {
            replica: replica.clone(),
            why,
            share: own.share(),
            others: reference.share,
            calls: own.calls,
        }
    }
}

impl fmt::Display for NamedReplica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (share, others) = (100.0 * self.share, 100.0 * self.others);
        let (replica, why, calls) = (&self.replica, self.why, self.calls);
        write!(
            f,
            "{replica} is {why}: {share:.1} % of {calls} calls, where the others have {others:.1} %"
        )
    }
}

/// Each replica that had enough calls, on the shortest window in which it had them, beside what the
/// others did in it.
struct Judged<'a> {
    replicas: BTreeMap<&'a ReplicaName, (Count, Reference)>,
    /// How many got calls at all.
    active: usize,
}

impl Judged<'_> {
    /// Those that stand out, worst first, at most half of those that got calls.
    fn standing_out(&self, why: NamedFor) -> Vec<NamedReplica> {
        let mut found: Vec<_> = self
            .replicas
            .iter()
            .filter_map(|(replica, (own, reference))| {
                let times = reference.stands_out(*own)?;
                Some((times, NamedReplica::new(replica, why, *own, reference)))
            })
            .collect();
        // Stable over names that ascend: the same figures give the same answer.
        found.sort_by(|(x, _), (y, _)| y.total_cmp(x));
        found.truncate(self.active / 2);
        found.into_iter().map(|(_, named)| named).collect()
    }
}

/// `seconds`: the newest first; `floor`: the share below which nobody is named.
fn judged<'a, S>(seconds: impl IntoIterator<Item = S>, floor: f64) -> Judged<'a>
where
    S: IntoIterator<Item = (&'a ReplicaName, Count)>,
{
    let mut sums: BTreeMap<&ReplicaName, Count> = BTreeMap::new();
    let mut replicas = BTreeMap::new();
    for second in seconds {
        let mut enough = Vec::new();
        for (replica, count) in second {
            let sum = sums.entry(replica).or_default();
            let had_enough = sum.calls >= CALLS_MIN;
            sum.events += count.events;
            sum.calls += count.calls;
            if !had_enough && sum.calls >= CALLS_MIN {
                enough.push(replica);
            }
        }
        for replica in enough {
            let others = sums.iter().filter(|(name, _)| **name != replica);
            if let Some(reference) = Reference::of(others.map(|(_, count)| *count), floor) {
                replicas.insert(replica, (sums[replica], reference));
            }
        }
    }
    let active = sums.values().filter(|sum| sum.calls > 0).count();
    Judged { replicas, active }
}

/// Those that stand out, worst first, at most half of those that got calls. `seconds`: the newest
/// first; `floor`: the share below which nobody is named.
pub(crate) fn named<'a, S>(seconds: impl IntoIterator<Item = S>, floor: f64) -> Vec<ReplicaName>
where
    S: IntoIterator<Item = (&'a ReplicaName, Count)>,
{
    let named = judged(seconds, floor).standing_out(NamedFor::Slow);
    named.into_iter().map(|named| named.replica).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ReplicaName {
        ReplicaName::new(text).unwrap()
    }

    /// Newest first: events and calls of three replicas.
    fn named_of(seconds: &[[(u64, u64); 3]]) -> Vec<String> {
        let names = ["a:1", "b:1", "c:1"].map(name);
        let second = |counts: &[(u64, u64); 3]| {
            let counts = counts.map(|(events, calls)| Count { events, calls });
            names.iter().zip(counts).collect::<Vec<_>>()
        };
        let found = named(seconds.iter().map(second), 0.025);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_busy_replica_is_named_on_its_last_second() {
        let healthy = [(15, 300); 3];
        let mut seconds = vec![healthy; 30];
        assert!(named_of(&seconds).is_empty());
        seconds.insert(0, [(15, 300), (15, 300), (300, 300)]);
        assert_eq!(named_of(&seconds), ["c:1"]);
        seconds.insert(0, healthy);
        assert!(named_of(&seconds).is_empty(), "and let go as fast");
    }

    #[test]
    fn a_quiet_one_as_soon_as_it_had_enough_calls() {
        let mut seconds = vec![[(0, 10), (1, 10), (0, 10)]; 9];
        seconds.insert(0, [(0, 10), (1, 10), (10, 10)]);
        assert!(
            named_of(&seconds).is_empty(),
            "ten of a hundred are too few"
        );
        seconds.insert(0, [(0, 10), (1, 10), (10, 10)]);
        seconds.insert(0, [(0, 10), (1, 10), (10, 10)]);
        assert_eq!(named_of(&seconds), ["c:1"]);
    }

    #[test]
    fn a_majority_is_never_named_nor_one_alone() {
        let all_slow = [(300, 300); 3];
        assert!(named_of(&[all_slow]).is_empty());
        let two_slow = [(300, 300), (300, 300), (15, 300)];
        assert_eq!(named_of(&[two_slow]).len(), 1);
        let alone = [(0, 0), (0, 0), (300, 300)];
        assert!(named_of(&[alone]).is_empty());
    }
}
