//! A histogram that one lane writes and whoever reads keeps up with.
//!
//! It is never emptied, which would take a locked instruction on either side: it only grows,
//! wrapping, and a reader subtracts what it has [`Seen`]. The count goes first and the bucket
//! second, so that no reader ever finds more samples than were counted; and where the count is what
//! it has seen already, it need not look at a thousand buckets.

use hedgerow_protocol::latency::{BUCKETS, SparseHistogram};

use crate::lanes::Lane;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// 32 bits to a bucket are enough: four thousand million samples between two readings are a
/// thousand a microsecond.
#[derive(Debug)]
pub(crate) struct Tally<const N: usize = BUCKETS> {
    count: AtomicU64,
    buckets: [AtomicU32; N],
}

impl<const N: usize> Tally<N> {
    pub(crate) fn new() -> Self {
        Self {
            count: AtomicU64::new(0),
            buckets: std::array::from_fn(|_| AtomicU32::new(0)),
        }
    }

    /// Counts one sample. `lane`: that whose tally this is.
    #[inline]
    pub(crate) fn record(&self, lane: Lane, bucket: usize) {
        lane.add(&self.count, 1);
        lane.add_32(&self.buckets[bucket], 1);
    }

    /// Samples ever recorded.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }
}

/// What a reader has read of one [`Tally`].
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The sum of all that was ever given out.
    count: u64,
    /// The buckets as they were; none before there was a sample.
    buckets: Vec<u32>,
}

impl Seen {
    /// What is new: each sample once.
    pub(crate) fn news<const N: usize>(&mut self, tally: &Tally<N>) -> SparseHistogram {
        if tally.count() == self.count {
            return SparseHistogram::default();
        }
        self.buckets.resize(N, 0);
        let buckets = (0_u16..).zip(&tally.buckets).zip(&mut self.buckets);
        let new = buckets.filter_map(|((bucket, now), before)| {
            let now = now.load(Ordering::Acquire);
            let new = now.wrapping_sub(std::mem::replace(before, now));
            (new > 0).then_some((bucket, u64::from(new)))
        });
        let new = SparseHistogram::try_from_pairs(new)
            .expect("buckets ascend, and are no more than a histogram has");
        self.count += new.count();
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(seen: &mut Seen, tally: &Tally) -> Vec<(u16, u64)> {
        let pairs = seen.news(tally);
        pairs.iter().collect()
    }

    #[test]
    fn p13_each_sample_is_given_out_once() {
        let tally = Tally::new();
        let mut seen = Seen::default();
        assert!(news(&mut seen, &tally).is_empty());
        assert!(seen.buckets.is_empty(), "nothing is kept of nothing");
        for bucket in [3, 3, BUCKETS - 1] {
            tally.record(Lane::SHARED, bucket);
        }
        assert_eq!(news(&mut seen, &tally), [(3, 2), (BUCKETS as u16 - 1, 1)]);
        assert!(news(&mut seen, &tally).is_empty());
        assert_eq!(tally.count(), 3);
    }

    #[test]
    fn a_bucket_may_wrap() {
        let tally: Tally = Tally::new();
        let mut seen = Seen::default();
        tally.buckets[5].store(u32::MAX, Ordering::Relaxed);
        tally.count.store(u64::from(u32::MAX), Ordering::Relaxed);
        assert_eq!(news(&mut seen, &tally), [(5, u64::from(u32::MAX))]);
        tally.record(Lane::SHARED, 5);
        tally.record(Lane::SHARED, 5);
        assert_eq!(news(&mut seen, &tally), [(5, 2)]);
    }
}
