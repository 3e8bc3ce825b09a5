//! A minute of what each replica did, and what can be said of it.

use std::collections::VecDeque;

use hedgerow_protocol::ids::ReplicaName;
use hedgerow_protocol::majority::Count;

use super::{Judged, NamedFor, NamedReplica, judged};

/// Seconds kept.
const SECONDS_MAX: usize = 60;
/// Times the others' share above which one that is on probation is not yet well: the gap to what
/// names it keeps a name from flapping, as in the controller.
const TIMES_TO_RELEASE: f64 = 1.5;

/// What one replica did in a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Primaries started while there was a threshold they could cross.
    pub(crate) started: u64,
    pub(crate) crossed: u64,
    /// Primaries that ended by themselves, and those of them that failed.
    pub(crate) finished: u64,
    pub(crate) errors: u64,
}

impl Tally {
    fn count(self, why: NamedFor) -> Count {
        let (events, calls) = match why {
            NamedFor::Failing => (self.errors, self.finished),
            NamedFor::Slow => (self.crossed, self.started),
        };
        Count { events, calls }
    }
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
    fn of(self, why: NamedFor) -> f64 {
        match why {
            NamedFor::Failing => self.errors,
            NamedFor::Slow => self.crossed,
        }
    }
}

/// What can be said of one replica.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Finding {
    /// It stands out.
    Named(NamedReplica),
    /// It does not, but is not far from it.
    Between,
    /// It does as the others do.
    Well,
    /// No data, no verdict (P16).
    TooFew,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    seconds: VecDeque<Vec<(ReplicaName, Tally)>>,
}

impl Ledger {
    /// A second is over.
    pub(crate) fn push(&mut self, second: Vec<(ReplicaName, Tally)>) {
        self.seconds.push_front(second);
        self.seconds.truncate(SECONDS_MAX);
    }

    /// What this replica did until now says nothing about it any more: it gets another share of the
    /// calls from now on.
    pub(crate) fn forget(&mut self, replica: &ReplicaName) {
        for second in &mut self.seconds {
            second.retain(|(name, _)| name != replica);
        }
    }

    /// Looks at the minute. Dear with many replicas: once for all that is asked of one second.
    pub(crate) fn look(&self, floors: Floors) -> Look<'_> {
        Look(NamedFor::ALL.map(|why| {
            let counts = self.seconds.iter().map(|second| {
                let tallies = second.iter();
                tallies.map(|(name, tally)| (name, tally.count(why)))
            });
            (why, judged(counts, floors.of(why)))
        }))
    }
}

/// What the last minute says of each replica, of each thing it may be named for.
pub(crate) struct Look<'a>([(NamedFor, Judged<'a>); NamedFor::ALL.len()]);

impl Look<'_> {
    /// Who is named: the failing ones first, then by how far they stand out; each once, at most
    /// half of the replicas that get calls.
    pub(crate) fn named(&self) -> Vec<NamedReplica> {
        let mut found: Vec<NamedReplica> = Vec::new();
        let mut most = 0;
        for (why, judged) in &self.0 {
            most = most.max(judged.active / 2);
            let mut named = judged.standing_out(*why);
            named.retain(|new| found.iter().all(|named| named.replica != new.replica));
            found.append(&mut named);
        }
        found.truncate(most);
        found
    }

    /// What can be said of `replica`.
    pub(crate) fn finding(&self, replica: &ReplicaName) -> Finding {
        let mut finding = Finding::Well;
        for (why, judged) in &self.0 {
            let Some((own, reference)) = judged.replicas.get(replica) else {
                finding = Finding::TooFew;
                continue;
            };
            if reference.stands_out(*own).is_some() {
                return Finding::Named(NamedReplica::new(replica, *why, *own, reference));
            }
            if own.share() > TIMES_TO_RELEASE * reference.share && finding == Finding::Well {
                finding = Finding::Between;
            }
        }
        finding
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOORS: Floors = Floors {
        crossed: 0.025,
        errors: 0.025,
    };

    fn name(text: &str) -> ReplicaName {
        text.parse().unwrap()
    }

    fn tally(calls: u64, crossed: u64, errors: u64) -> Tally {
        Tally {
            started: calls,
            crossed,
            finished: calls,
            errors,
        }
    }

    /// Four replicas, of which the last did this.
    fn second(last: Tally) -> Vec<(ReplicaName, Tally)> {
        let usual = tally(300, 15, 0);
        let of = |(name, tally)| (self::name(name), tally);
        [
            ("a:1", usual),
            ("b:1", usual),
            ("c:1", usual),
            ("d:1", last),
        ]
        .map(of)
        .to_vec()
    }

    fn ledger(last: Tally) -> Ledger {
        let mut ledger = Ledger::default();
        ledger.push(second(last));
        ledger
    }

    #[test]
    fn what_is_found_of_one_replica() {
        for (last, expected) in [
            (tally(300, 15, 0), "well"),
            (
                tally(300, 300, 0),
                "d:1 is slow: 100.0 % of 300 calls, where the others have 5.0 %",
            ),
            (
                tally(300, 0, 60),
                "d:1 is failing: 20.0 % of 300 calls, where the others have 2.5 %",
            ),
            (
                tally(300, 300, 300),
                "d:1 is failing: 100.0 % of 300 calls, where the others have 2.5 %",
            ),
            // 8 % is not twice the others, nor is it as they do.
            (tally(300, 24, 0), "between"),
            (tally(99, 99, 99), "too few"),
            (tally(0, 0, 0), "too few"),
        ] {
            let ledger = ledger(last);
            let found = match ledger.look(FLOORS).finding(&name("d:1")) {
                Finding::Named(named) => named.to_string(),
                Finding::Between => "between".to_owned(),
                Finding::Well => "well".to_owned(),
                Finding::TooFew => "too few".to_owned(),
            };
            assert_eq!(found, expected, "{last:?}");
            let named = ledger.look(FLOORS).named();
            assert_eq!(
                named.len(),
                usize::from(expected.contains(" is ")),
                "{last:?}"
            );
        }
    }

    #[test]
    fn p16_what_did_not_end_is_no_acquittal() {
        // All of its calls are under way: nothing failed, nothing was answered either.
        let silent = Tally {
            started: 300,
            crossed: 10,
            ..Tally::default()
        };
        assert_eq!(
            ledger(silent).look(FLOORS).finding(&name("d:1")),
            Finding::TooFew
        );
    }

    #[test]
    fn what_is_forgotten_counts_no_more() {
        let mut ledger = ledger(tally(300, 300, 0));
        ledger.forget(&name("d:1"));
        assert_eq!(ledger.look(FLOORS).finding(&name("d:1")), Finding::TooFew);
        assert_eq!(ledger.look(FLOORS).finding(&name("a:1")), Finding::Well);
    }

    #[test]
    fn no_more_than_half_are_named_the_failing_ones_first() {
        let mut ledger = Ledger::default();
        ledger.push(vec![
            (name("a:1"), tally(300, 15, 0)),
            (name("b:1"), tally(300, 15, 0)),
            (name("c:1"), tally(300, 200, 0)),
            (name("d:1"), tally(300, 300, 0)),
            (name("e:1"), tally(300, 15, 90)),
        ]);
        let named: Vec<_> = ledger
            .look(FLOORS)
            .named()
            .into_iter()
            .map(|n| (n.replica, n.why))
            .collect();
        let expected = [
            (name("e:1"), NamedFor::Failing),
            (name("d:1"), NamedFor::Slow),
        ];
        assert_eq!(named, expected);
    }

    #[test]
    fn a_minute_is_kept() {
        let mut ledger = ledger(tally(300, 300, 0));
        for _ in 0..59 {
            ledger.push(second(Tally::default()));
        }
        assert_eq!(ledger.look(FLOORS).named().len(), 1);
        ledger.push(second(Tally::default()));
        assert!(ledger.look(FLOORS).named().is_empty());
    }
}
