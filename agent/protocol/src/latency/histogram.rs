//! Exact counts in the buckets of [`layout`](super::layout).

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use super::layout::{BUCKETS, bucket_of};
use super::sparse::SparseHistogram;
use super::weighted::{Weights, quantile_of, share_above_of};

/// Most samples one histogram holds: sums stay exact in an `f64`, no bucket can overflow, and a
/// hundred thousand agents that lie together cannot wrap a `u64`. A million calls a second reach it
/// after nine years.
pub const COUNT_MAX: u64 = 1 << 48;

/// Counts that cannot be added or taken away. What was to be changed is as it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CountError {
    /// The sum would be beyond [`COUNT_MAX`].
    #[error("{held} and {added} more samples: expected at most {COUNT_MAX} together")]
    TooMany {
        /// Samples in the histogram.
        held: u64,
        /// Samples that were to come.
        added: u64,
    },
    /// More is to be taken away from a bucket than is in it: not a part of this histogram.
    #[error("{taken} samples taken from bucket {bucket}: expected at most the {held} in it")]
    NotContained {
        /// The first such bucket.
        bucket: usize,
        /// Samples in it.
        held: u64,
        /// Samples that were to be taken.
        taken: u64,
    },
    /// There is no such bucket.
    #[error("{0} is not a bucket: expected less than {BUCKETS}")]
    NoSuchBucket(usize),
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Histogram {}
    impl Sealed for super::SparseHistogram {}
}

/// Counts in our buckets, dense or sparse. Sealed: adding relies on the pairs summing up to the
/// count.
pub trait Counts: sealed::Sealed {
    /// The sum of all counts, at most [`COUNT_MAX`].
    fn count(&self) -> u64;
    /// Bucket and count of what is not zero, buckets strictly ascending and below [`BUCKETS`].
    fn pairs(&self) -> impl Iterator<Item = (usize, u64)>;
}

/// How many latencies fell into each bucket.
///
/// One allocation of 8 KiB when made, none afterwards.
///
/// ```
/// use std::time::Duration;
/// use hedgerow_protocol::latency::Histogram;
///
/// let mut window = Histogram::new();
/// assert_eq!(window.quantile(0.95), None); // no data is not zero
///
/// for ms in 1..=1000 { window.record(Duration::from_millis(ms)); }
/// let p95 = window.quantile(0.95).unwrap();
/// assert!((p95.as_secs_f64() - 0.950).abs() < 0.0095);
///
/// // A second leaves the window as exactly as it came.
/// let mut second = Histogram::new();
/// second.record(Duration::from_secs(2));
/// window.add(&second)?;
/// window.subtract(&second)?;
/// assert_eq!(window.count(), 1000);
/// # Ok::<(), hedgerow_protocol::latency::CountError>(())
/// ```
#[derive(Clone)]
pub struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    /// Invariant: the sum of `counts`, at most [`COUNT_MAX`].
    count: u64,
    /// Invariant: outside of these buckets all are empty. Latencies lie close together, so that
    /// whoever walks them need not walk a thousand.
    used: Range<usize>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// Nothing in any bucket.
    pub fn new() -> Self {
        Self {
            counts: Box::new([0; BUCKETS]),
            count: 0,
            used: 0..0,
        }
    }

    /// Makes room for samples in a bucket.
    #[inline]
    fn uses(&mut self, bucket: usize) {
        if self.used.is_empty() {
            self.used.start = bucket;
        }
        self.used.start = self.used.start.min(bucket);
        self.used.end = self.used.end.max(bucket + 1);
    }

    /// Counts one latency. Cannot fail: under 1 us and over 1 h are counted as those. (A histogram
    /// that is full, after nine years at a million a second, stays as it is.)
    pub fn record(&mut self, latency: Duration) {
        if self.count < COUNT_MAX {
            let bucket = bucket_of(latency);
            self.counts[bucket] += 1;
            self.count += 1;
            self.uses(bucket);
        }
    }

    /// Adds `count` samples to one bucket: for recorders that keep their own counters.
    pub fn add_to_bucket(&mut self, bucket: usize, count: u64) -> Result<(), CountError> {
        let slot = self
            .counts
            .get_mut(bucket)
            .ok_or(CountError::NoSuchBucket(bucket))?;
        self.count = sum(self.count, count)?;
        *slot += count;
        self.uses(bucket);
        Ok(())
    }

    /// Adds to neighbouring buckets from `first` on, a count to each. All or nothing.
    // Called for each row of each window: where the length is known it is a few additions of four.
    #[inline]
    pub fn add_to_buckets(&mut self, first: usize, counts: &[u32]) -> Result<(), CountError> {
        let until = first + counts.len();
        let slots = self.counts.get_mut(first..until);
        let slots = slots.ok_or(CountError::NoSuchBucket(until.saturating_sub(1)))?;
        let added: u64 = counts.iter().copied().map(u64::from).sum();
        if added == 0 {
            return Ok(());
        }
        self.count = sum(self.count, added)?;
        for (slot, count) in slots.iter_mut().zip(counts) {
            *slot += u64::from(*count);
        }
        self.uses(first);
        self.uses(until - 1);
        Ok(())
    }

    /// Adds all counts of another histogram, dense or sparse. All or nothing.
    pub fn add(&mut self, other: &impl Counts) -> Result<(), CountError> {
        self.count = sum(self.count, other.count())?;
        for (bucket, count) in other.pairs() {
            self.counts[bucket] += count;
            self.uses(bucket);
        }
        Ok(())
    }

    /// Takes away what was added before. All or nothing, and never "as much as there is": a window
    /// that saturates here would be wrong for ever and nobody would know.
    pub fn subtract(&mut self, other: &impl Counts) -> Result<(), CountError> {
        for (bucket, taken) in other.pairs() {
            let held = self.counts[bucket];
            if taken > held {
                return Err(CountError::NotContained {
                    bucket,
                    held,
                    taken,
                });
            }
        }
        for (bucket, taken) in other.pairs() {
            self.counts[bucket] -= taken;
        }
        self.count -= other.count();
        Ok(())
    }

    /// What is left without `part`, at least nothing in each bucket: for a part that was counted by
    /// itself, a moment apart from the whole, so that it may be ahead of it. What was added before
    /// is [`subtract`](Self::subtract)ed.
    #[must_use]
    pub fn without(&self, part: &Self) -> Self {
        let mut rest = self.clone();
        for (bucket, taken) in part.iter() {
            let left = &mut rest.counts[bucket];
            let taken = taken.min(*left);
            *left -= taken;
            rest.count -= taken;
        }
        rest
    }

    /// What came since an earlier state of the same cumulative histogram: `self - earlier`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use hedgerow_protocol::latency::Histogram;
    ///
    /// let mut cumulative = Histogram::new();
    /// cumulative.record(Duration::from_millis(5));
    /// let reported = cumulative.clone();
    /// cumulative.record(Duration::from_millis(7));
    /// assert_eq!(cumulative.since(&reported)?.count(), 1);
    /// assert!(reported.since(&cumulative).is_err()); // it restarted, or it lies
    /// # Ok::<(), hedgerow_protocol::latency::CountError>(())
    /// ```
    pub fn since(&self, earlier: &Self) -> Result<SparseHistogram, CountError> {
        let mut pairs = Vec::new();
        let from = self.used.start.min(earlier.used.start);
        let until = self.used.end.max(earlier.used.end);
        for bucket in from..until {
            let (held, taken) = (self.counts[bucket], earlier.counts[bucket]);
            match held.checked_sub(taken) {
                None => {
                    return Err(CountError::NotContained {
                        bucket,
                        held,
                        taken,
                    });
                }
                Some(0) => {}
                Some(count) => pairs.push((bucket as u16, count)),
            }
        }
        Ok(SparseHistogram::from_valid(
            pairs,
            self.count - earlier.count,
        ))
    }

    /// Forgets everything, keeps the allocation.
    pub fn clear(&mut self) {
        self.counts[self.used.clone()].fill(0);
        self.count = 0;
        self.used = 0..0;
    }

    /// Samples in all buckets together.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Samples in one bucket; none beyond the last.
    pub fn in_bucket(&self, bucket: usize) -> u64 {
        self.counts.get(bucket).copied().unwrap_or(0)
    }

    /// Bucket and count of what is not zero, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.used
            .clone()
            .zip(self.counts[self.used.clone()].iter().copied())
            .filter(|&(_, count)| count > 0)
    }

    /// The latency that a share `q` (0 to 1) of the samples lies at or below, interpolated linearly
    /// inside its bucket (see [`layout`](super::layout) for how exact that is). 0 gives the lower
    /// edge of the first bucket with samples, 1 the upper edge of the last.
    ///
    /// `None` where there are no samples, and for a `q` outside 0 to 1: 95 is not made a 1. What
    /// people write is a [`Quantile`](crate::units::Quantile) before it comes here.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        quantile_of(self, self.count as f64, q)
    }

    /// The share of the samples (0 to 1) that took longer than a latency, interpolated inside its
    /// bucket. `None` where there are no samples. Beyond 1 h it is 0, as samples end there.
    pub fn share_above(&self, latency: Duration) -> Option<f64> {
        share_above_of(self, self.count as f64, latency)
    }

    /// The form that travels.
    pub fn to_sparse(&self) -> SparseHistogram {
        let pairs = self
            .iter()
            .map(|(bucket, count)| (bucket as u16, count))
            .collect();
        SparseHistogram::from_valid(pairs, self.count)
    }
}

#[inline]
fn sum(held: u64, added: u64) -> Result<u64, CountError> {
    held.checked_add(added)
        .filter(|&sum| sum <= COUNT_MAX)
        .ok_or(CountError::TooMany { held, added })
}

impl Counts for Histogram {
    fn count(&self) -> u64 {
        self.count
    }

    fn pairs(&self) -> impl Iterator<Item = (usize, u64)> {
        self.iter()
    }
}

impl Weights for Histogram {
    fn weight(&self, bucket: usize) -> f64 {
        self.in_bucket(bucket) as f64
    }

    fn used(&self) -> Range<usize> {
        self.used.clone()
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count && self.counts == other.counts
    }
}

impl Eq for Histogram {}

impl From<&SparseHistogram> for Histogram {
    fn from(sparse: &SparseHistogram) -> Self {
        let mut dense = Self::new();
        for (bucket, count) in sparse.pairs() {
            dense.counts[bucket] = count;
            dense.uses(bucket);
        }
        dense.count = sparse.count();
        dense
    }
}

/// Only what is not zero: a thousand zeros tell nobody anything.
impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Histogram({}) ", self.count)?;
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests;
