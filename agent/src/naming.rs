//! Which replicas are named slow or failing, by what this agent alone sees. Pure.
//!
//! The controller pools a fleet and judges all replicas on one window. One agent has few calls, so
//! each replica is judged on the shortest window in which it had enough of its own: a busy one is
//! named within a second, and a quiet one as soon as anything can be said of it. The rule itself is
//! the controller's.

use std::collections::BTreeMap;

use hedgerow_protocol::ids::ReplicaName;
use hedgerow_protocol::majority::{CALLS_MIN, Count, Reference};

/// Those that stand out, worst first, at most half of those that got calls. `seconds`: the newest
/// first; `floor`: the share below which nobody is named.
pub(crate) fn named<'a, S>(seconds: impl IntoIterator<Item = S>, floor: f64) -> Vec<ReplicaName>
where
    S: IntoIterator<Item = (&'a ReplicaName, Count)>,
{
    let mut sums: BTreeMap<&ReplicaName, Count> = BTreeMap::new();
    let mut found: Vec<(&ReplicaName, f64)> = Vec::new();
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
            let times = Reference::of(others.map(|(_, count)| *count), floor)
                .and_then(|reference| reference.stands_out(sums[replica]));
            found.extend(times.map(|times| (replica, times)));
        }
    }
    found.sort_by(|(a, x), (b, y)| y.total_cmp(x).then_with(|| a.cmp(b)));
    found.truncate(sums.values().filter(|sum| sum.calls > 0).count() / 2);
    found.into_iter().map(|(name, _)| name.clone()).collect()
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
