//! Counts by bucket, as few as there are: a hundred thousand agents have a few each.

use std::time::Duration;

use hedgerow_protocol::latency::{SparseHistogram, bucket_of};

/// Ascending buckets, each with a count above 0.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts(Vec<(u16, u32)>);

impl Counts {
    pub(crate) fn add(&mut self, bucket: u16) {
        match self.0.binary_search_by_key(&bucket, |it| it.0) {
            Ok(at) => self.0[at].1 += 1,
            Err(at) => self.0.insert(at, (bucket, 1)),
        }
    }

    /// All of them; none are left.
    pub(crate) fn take(&mut self) -> SparseHistogram {
        let taken = std::mem::take(&mut self.0);
        let pairs = taken.into_iter().map(|(bucket, n)| (bucket, u64::from(n)));
        SparseHistogram::try_from_pairs(pairs)
            .expect("buckets come from `bucket_of`, ascend, and are counted in 32 bits")
    }
}

/// The bucket of a latency in microseconds.
pub(crate) fn bucket(us: u64) -> u16 {
    bucket_of(Duration::from_micros(us)) as u16
}
