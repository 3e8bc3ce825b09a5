//! Which replicas stand out from the others, so that the rest can be judged without them: one rule
//! for slow ones and failing ones, and for both sides.
//!
//! Neither a threshold nor a switch-off may hang on one bad replica: an honest p95 of the mix hands
//! the threshold to it (ALGORITHMS, section 1), and its errors are not the dependency's.

/// Calls a replica must have had to stand out: under that, chance makes worse ones.
pub const CALLS_MIN: u64 = 100;
/// Of these, those that were slow or failed.
pub const EVENTS_MIN: u64 = 10;
/// Calls that make a replica one of those the others are compared with.
pub const CALLS_TO_COMPARE: u64 = 20;
/// Times the others' share that stand out.
pub const TIMES: f64 = 2.0;
/// Standard errors above the others' share that stand out: with 256 replicas, each looked at every
/// second, chance does it less than once a week.
pub const ERRORS_ABOVE: f64 = 4.0;

/// What one replica did, of what it could.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Calls that crossed, or primaries that failed.
    pub events: u64,
    /// Calls started, or primaries finished.
    pub calls: u64,
}

impl Count {
    /// Events as a share of calls, 0 to 1; 0 without calls.
    pub fn share(self) -> f64 {
        if self.calls == 0 {
            0.0
        } else {
            (self.events as f64 / self.calls as f64).min(1.0)
        }
    }
}

/// What a replica is compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reference {
    /// The lower median of the others' shares, at least the floor.
    pub share: f64,
    /// The calls that median rests on: it is known no better than they tell.
    pub calls: u64,
}

impl Reference {
    /// Of the others, those with [`CALLS_TO_COMPARE`] calls; None where there are none. `floor`: the
    /// share below which nobody stands out, whatever the others do.
    pub fn of(others: impl IntoIterator<Item = Count>, floor: f64) -> Option<Self> {
        let mut others: Vec<_> = others
            .into_iter()
            .filter(|other| other.calls >= CALLS_TO_COMPARE)
            .collect();
        others.sort_by(|a, b| a.share().total_cmp(&b.share()));
        let median = others.get(others.len().checked_sub(1)? / 2)?;
        Some(Self {
            share: median.share().max(floor),
            calls: median.calls,
        })
    }

    /// How many times the others' share it is, where it stands out.
    pub fn stands_out(&self, own: Count) -> Option<f64> {
        if own.calls < CALLS_MIN || own.events < EVENTS_MIN {
            return None;
        }
        let share = own.share();
        // The larger of the two variances: few events make their own look smaller than it is.
        let theirs = self.share * (1.0 - self.share);
        let variance =
            (share * (1.0 - share)).max(theirs) / own.calls as f64 + theirs / self.calls as f64;
        (share > TIMES * self.share && share - self.share > ERRORS_ABOVE * variance.sqrt())
            .then(|| share / self.share)
    }
}

/// Indices of those that stand out, worst first, at most half of those that get calls: where a
/// majority is slow or fails, it is the dependency that is or does.
///
/// ```
/// use hedgerow_protocol::majority::{Count, standing_out};
///
/// let replica = |events| Count { events, calls: 300 };
/// assert_eq!(standing_out(&[replica(15), replica(300), replica(12)], 0.025), [1]);
/// assert!(standing_out(&[replica(300), replica(300)], 0.025).is_empty());
/// ```
pub fn standing_out(counts: &[Count], floor: f64) -> Vec<usize> {
    let others = |own: usize| {
        let others = counts.iter().enumerate().filter(move |(i, _)| *i != own);
        others.map(|(_, other)| *other)
    };
    let mut found: Vec<(usize, f64)> = counts
        .iter()
        .enumerate()
        .filter_map(|(i, own)| Some((i, Reference::of(others(i), floor)?.stands_out(*own)?)))
        .collect();
    // Stable: of two alike the first, so that the same figures give the same answer.
    found.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    found.truncate(counts.iter().filter(|count| count.calls > 0).count() / 2);
    found.into_iter().map(|(i, _)| i).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(events: &[u64], calls: u64) -> Vec<Count> {
        let count = |&events| Count { events, calls };
        events.iter().map(count).collect()
    }

    #[test]
    fn who_stands_out() {
        let rows: [(&[u64], u64, &[usize]); 9] = [
            (&[], 300, &[]),
            (&[300], 300, &[]),
            (&[15, 15, 15], 300, &[]),
            (&[15, 300, 15], 300, &[1]),
            // Worst first, and at most half.
            (&[150, 300, 15, 15], 300, &[1, 0]),
            (&[300, 300, 300, 15], 300, &[]),
            (&[290, 300, 15], 300, &[1]),
            // Twice the others, but within chance; and too few calls to tell.
            (&[6, 14, 6], 100, &[]),
            (&[1, 99, 1], 99, &[]),
        ];
        for (events, calls, expected) in rows {
            let found = standing_out(&counts(events, calls), 0.025);
            assert_eq!(found, expected, "{events:?} of {calls}");
        }
    }

    #[test]
    fn b32_a_slower_replica_never_ranks_better() {
        let mut rank = None;
        for events in 0..=300 {
            let found = standing_out(&counts(&[events, 40, 15, 15], 300), 0.025);
            let now = found.iter().position(|i| *i == 0);
            assert!(now.is_some() >= rank.is_some(), "{events}: {found:?}");
            if let (Some(now), Some(before)) = (now, rank) {
                assert!(now <= before, "{events}: {found:?}");
            }
            rank = now.or(rank);
        }
        assert_eq!(rank, Some(0));
    }
}
