//! Counts that can be added to, small where few buckets are used.

use hedgerow_protocol::latency::{BUCKETS, Histogram, SparseHistogram};

/// Buckets in a row: half an octave.
const ROW: usize = 16;

/// Counts by bucket, in rows of sixteen, only those rows in which there is any: 68 bytes each.
///
/// What travels cannot be added to, and what is dense takes 8 KiB; a route keeps some thousand of
/// these. Latencies lie close together, so that ten rows hold what most routes see; within a row
/// counts are added side by side, without looking at buckets one by one. A count saturates at
/// `u32::MAX`, which a fleet of 10,000 agents reaches in one bucket and block at 40 million calls a
/// second.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally(Vec<Row>);

/// Sixteen buckets, not all of them empty.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    /// The first bucket / 16.
    number: u16,
    counts: [u32; ROW],
}

impl Tally {
    /// Adds what an agent reported.
    pub fn add_sparse(&mut self, other: &SparseHistogram) {
        let mut at = 0;
        let mut pairs = other.iter().peekable();
        while let Some(&(bucket, _)) = pairs.peek() {
            let number = bucket / ROW as u16;
            at = self.row(at, number);
            let counts = &mut self.0[at].counts;
            while let Some((bucket, count)) = pairs.next_if(|it| it.0 / ROW as u16 == number) {
                let held = &mut counts[usize::from(bucket) % ROW];
                *held = held.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
            }
        }
    }

    /// Adds another one.
    pub fn add(&mut self, other: &Self) {
        let mut at = 0;
        for row in &other.0 {
            at = self.row(at, row.number);
            for (held, more) in self.0[at].counts.iter_mut().zip(row.counts) {
                *held = held.saturating_add(more);
            }
        }
    }

    /// Takes away what was added before. Where a sum was saturated, at least nothing is left.
    pub fn subtract(&mut self, other: &Self) {
        let mut from = 0;
        for taken in &other.0 {
            let rest = self.0[from..].iter();
            from += rest.take_while(|row| row.number < taken.number).count();
            let Some(row) = self.0.get_mut(from) else {
                break;
            };
            if row.number == taken.number {
                for (held, less) in row.counts.iter_mut().zip(taken.counts) {
                    *held = held.saturating_sub(less);
                }
            }
        }
        self.0.retain(|row| row.counts != [0; ROW]);
    }

    /// Adds all of it to a dense histogram.
    pub fn add_to(&self, sum: &mut Histogram) {
        for row in &self.0 {
            let first = usize::from(row.number) * ROW;
            // Fails only after 2^48 samples in five minutes.
            let _ = if first + ROW <= BUCKETS {
                sum.add_to_buckets(first, &row.counts)
            } else {
                // The last buckets are not a whole row.
                sum.add_to_buckets(first, &row.counts[..BUCKETS - first])
            };
        }
    }

    /// As it is stored. Holds what was added: ascending and without zeros.
    pub fn to_sparse(&self) -> SparseHistogram {
        let counts = self
            .0
            .iter()
            .flat_map(|row| (row.number * ROW as u16..).zip(row.counts));
        let pairs = counts.filter(|&(_, count)| count > 0);
        // Fails for a bucket no report can name only, and none was taken in.
        SparseHistogram::try_from_pairs(pairs.map(|(bucket, count)| (bucket, count.into())))
            .unwrap_or_default()
    }

    /// All samples together.
    pub fn count(&self) -> u64 {
        let counts = self.0.iter().flat_map(|row| row.counts);
        counts.map(u64::from).sum()
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where the row of this number is, made where there is none. It is not before `from`: rows are
    /// asked for in their order, so that the next one is a step or two on.
    fn row(&mut self, from: usize, number: u16) -> usize {
        let before = self.0[from..].iter().take_while(|row| row.number < number);
        let at = from + before.count();
        if self.0.get(at).is_none_or(|row| row.number != number) {
            let counts = [0; ROW];
            self.0.insert(at, Row { number, counts });
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn b39_a_tally_adds_like_a_dense_histogram(
            parts in prop::collection::vec(
                prop::collection::btree_map(0_u16..1017, 1_u64..1_000_000, 0..40),
                0..6,
            ),
        ) {
            let mut tally = Tally::default();
            let mut dense = Histogram::new();
            for part in parts {
                let sparse = SparseHistogram::try_from_pairs(part).unwrap();
                tally.add_sparse(&sparse);
                dense.add(&sparse).unwrap();
            }
            let mut sum = Histogram::new();
            tally.add_to(&mut sum);
            prop_assert_eq!(tally.count(), dense.count());
            prop_assert_eq!(sum, dense);
        }

        #[test]
        fn what_was_added_can_be_taken_away(
            kept in prop::collection::btree_map(0_u16..1017, 1_u64..1_000_000, 0..40),
            taken in prop::collection::btree_map(0_u16..1017, 1_u64..1_000_000, 0..40),
        ) {
            let of = |pairs| {
                let mut tally = Tally::default();
                tally.add_sparse(&SparseHistogram::try_from_pairs(pairs).unwrap());
                tally
            };
            let (kept, taken) = (of(kept), of(taken));
            let mut both = kept.clone();
            both.add(&taken);
            both.subtract(&taken);
            prop_assert_eq!(both, kept);
        }
    }

    #[test]
    fn p12_a_count_beyond_all_bounds_saturates() {
        let lie = SparseHistogram::try_from_pairs([(7, 1 << 40)]).unwrap();
        let mut tally = Tally::default();
        tally.add_sparse(&lie);
        tally.add_sparse(&lie);
        assert_eq!(tally.count(), u64::from(u32::MAX));
    }
}
