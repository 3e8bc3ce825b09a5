//! Sparse counts that can be added to.

use hedgerow_protocol::latency::{Histogram, SparseHistogram};

/// Counts by bucket, ascending, only what is not zero: 8 bytes for each bucket in use.
///
/// What travels cannot be added to, and what is dense takes 8 KiB; a route keeps some thousand of
/// these. A count saturates at `u32::MAX`, which a fleet of 10,000 agents reaches in one bucket and
/// block at 40 million calls a second.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally(Vec<(u16, u32)>);

impl Tally {
    /// Adds what an agent reported.
    pub fn add_sparse(&mut self, other: &SparseHistogram) {
        self.merge(
            other
                .iter()
                .map(|(bucket, count)| (bucket, u32::try_from(count).unwrap_or(u32::MAX))),
        );
    }

    /// Adds another one.
    pub fn add(&mut self, other: &Self) {
        self.merge(other.0.iter().copied());
    }

    /// Adds all of it to a dense histogram.
    pub fn add_to(&self, sum: &mut Histogram) {
        for &(bucket, count) in &self.0 {
            // Fails only for a bucket no report can name, or after 2^48 samples in five minutes.
            let _ = sum.add_to_bucket(bucket.into(), count.into());
        }
    }

    /// As it is stored. Holds what was added: ascending and without zeros.
    pub fn to_sparse(&self) -> SparseHistogram {
        let pairs = self.0.iter().map(|&(bucket, count)| (bucket, count.into()));
        // Fails for a bucket no report can name only, and none was taken in.
        SparseHistogram::try_from_pairs(pairs).unwrap_or_default()
    }

    /// All samples together.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|&(_, count)| u64::from(count)).sum()
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Merges ascending pairs: in place where every bucket is there already, which is the rule once
    /// a few agents have reported.
    fn merge(&mut self, other: impl Iterator<Item = (u16, u32)>) {
        let mut at = 0;
        for (bucket, count) in other.filter(|&(_, count)| count > 0) {
            // Side by side: latencies lie close together, so that the next bucket is a few steps
            // on, and a search would cost more.
            at += self.0[at..]
                .iter()
                .take_while(|&&(held, _)| held < bucket)
                .count();
            match self.0.get_mut(at) {
                Some((held, sum)) if *held == bucket => *sum = sum.saturating_add(count),
                _ => self.0.insert(at, (bucket, count)),
            }
            at += 1;
        }
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
