//! The form of a histogram that travels: only what is not zero, ascending, checked once.
//!
//! # Bytes
//! For each bucket with samples, ascending:
//!
//! ```text
//! varint( gap * 2 + more )     gap: buckets skipped since the previous one (since -1 for the first)
//!                              more: 1 where the bucket holds more than one sample
//! varint( count - 2 )          only where more = 1
//! ```
//!
//! Varints are those of protobuf: seven bits a byte, lowest first. Nothing is written twice or in
//! two ways: descending buckets, empty buckets and zero counts cannot be expressed, padded varints
//! are refused, so equal histograms are equal bytes. A bucket with one sample is one byte, which is
//! what most are in one second of one agent: some 12 bytes for 10 samples, 86 for 100 and 206 for
//! 1,000.

use super::histogram::{COUNT_MAX, Counts};
use super::layout::BUCKETS;

/// Most bytes a packed histogram can have: two for a gap and seven for a count below 2^48 in each
/// bucket. Longer input is refused unread.
pub const PACKED_BYTES_MAX: usize = BUCKETS * 9;

/// Why something is not a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SparseError {
    /// Parallel arrays that are not parallel.
    #[error("{buckets} buckets and {counts} counts: expected as many of the one as of the other")]
    Lengths {
        /// Buckets given.
        buckets: usize,
        /// Counts given.
        counts: usize,
    },
    /// A bucket beyond the layout.
    #[error("{0} is not a bucket: expected less than {BUCKETS}")]
    NoSuchBucket(u64),
    /// A bucket twice, or one that is before its predecessor.
    #[error("bucket {bucket} after {previous}: expected strictly ascending buckets")]
    Order {
        /// The one before.
        previous: u16,
        /// The one that should have been larger.
        bucket: u16,
    },
    /// A bucket without samples.
    #[error("no samples in bucket {0}: expected at least one, or to leave the bucket out")]
    ZeroCount(u16),
    /// More samples than anybody can have counted.
    #[error("the counts up to bucket {0} are too large: expected at most {COUNT_MAX} together")]
    TooMany(u16),
    /// More bytes than any histogram has.
    #[error("{0} bytes: expected at most {PACKED_BYTES_MAX}")]
    TooLong(usize),
    /// The bytes end within a bucket.
    #[error("the bytes end at {0}, in the middle of a bucket: expected the rest of it")]
    Truncated(usize),
    /// A varint with trailing zeros or of more than 64 bits.
    #[error(
        "the varint that ends at byte {0} is not in its shortest form: expected that, within 64 bits"
    )]
    Varint(usize),
}

/// Counts as strictly ascending pairs of bucket and count, none of them zero, at most
/// [`COUNT_MAX`] together. A value of this type is always valid.
///
/// ```
/// use hedgerow_protocol::latency::{SparseError, SparseHistogram};
///
/// let sparse = SparseHistogram::try_from_pairs([(17, 3), (18, 1)])?;
/// assert_eq!(sparse.count(), 4);
/// assert_eq!(SparseHistogram::from_bytes(&sparse.to_bytes())?, sparse);
///
/// let refused = SparseHistogram::try_from_pairs([(18, 1), (17, 3)]).unwrap_err();
/// assert_eq!(refused.to_string(), "bucket 17 after 18: expected strictly ascending buckets");
/// # Ok::<(), SparseError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SparseHistogram {
    pairs: Vec<(u16, u64)>,
    /// Invariant: the sum of the counts in `pairs`.
    count: u64,
}

impl SparseHistogram {
    /// Checks pairs of bucket and count. Stops at the first that is wrong, so that it never holds
    /// more than [`BUCKETS`] of them, whatever the iterator yields.
    pub fn try_from_pairs(
        pairs: impl IntoIterator<Item = (u16, u64)>,
    ) -> Result<Self, SparseError> {
        let mut checked = Self::default();
        for (bucket, count) in pairs {
            checked.push(u64::from(bucket), count)?;
        }
        Ok(checked)
    }

    /// Checks parallel arrays, as protobuf carries them.
    pub fn try_from_arrays(buckets: &[u32], counts: &[u64]) -> Result<Self, SparseError> {
        if buckets.len() != counts.len() {
            return Err(SparseError::Lengths {
                buckets: buckets.len(),
                counts: counts.len(),
            });
        }
        let mut checked = Self::default();
        for (&bucket, &count) in buckets.iter().zip(counts) {
            checked.push(u64::from(bucket), count)?;
        }
        Ok(checked)
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote, and nothing else: whatever is accepted is
    /// written again as the same bytes. No input panics or allocates more than a valid one.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SparseError> {
        if bytes.len() > PACKED_BYTES_MAX {
            return Err(SparseError::TooLong(bytes.len()));
        }
        let mut checked = Self::default();
        let mut at = 0;
        let mut next = 0_u64;
        while at < bytes.len() {
            let token = read_varint(bytes, &mut at)?;
            let count = if token & 1 == 0 {
                1
            } else {
                read_varint(bytes, &mut at)?.saturating_add(2)
            };
            let bucket = next.saturating_add(token >> 1);
            checked.push(bucket, count)?;
            next = bucket + 1;
        }
        Ok(checked)
    }

    /// The packed form; see the [module](self) for what is in it.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Most buckets of a short report hold one sample and lie close together.
        let mut bytes = Vec::with_capacity(self.pairs.len() * 2 + 2);
        let mut next = 0;
        for (bucket, count) in self.iter() {
            let gap = u64::from(bucket - next);
            write_varint(&mut bytes, gap * 2 + u64::from(count > 1));
            if count > 1 {
                write_varint(&mut bytes, count - 2);
            }
            next = bucket + 1;
        }
        bytes
    }

    /// Pairs that the caller knows to be valid, with their sum.
    pub(super) fn from_valid(pairs: Vec<(u16, u64)>, count: u64) -> Self {
        debug_assert_eq!(
            Self::try_from_pairs(pairs.iter().copied()).map(|it| it.count),
            Ok(count)
        );
        Self { pairs, count }
    }

    fn push(&mut self, bucket: u64, count: u64) -> Result<(), SparseError> {
        let bucket = u16::try_from(bucket)
            .ok()
            .filter(|&bucket| usize::from(bucket) < BUCKETS)
            .ok_or(SparseError::NoSuchBucket(bucket))?;
        if let Some(&(previous, _)) = self.pairs.last()
            && previous >= bucket
        {
            return Err(SparseError::Order { previous, bucket });
        }
        if count == 0 {
            return Err(SparseError::ZeroCount(bucket));
        }
        self.count = self
            .count
            .checked_add(count)
            .filter(|&sum| sum <= COUNT_MAX)
            .ok_or(SparseError::TooMany(bucket))?;
        self.pairs.push((bucket, count));
        Ok(())
    }

    /// Bucket and count, ascending.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u16, u64)> + '_ {
        self.pairs.iter().copied()
    }

    /// Samples in all buckets together.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Buckets with samples.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}

impl Counts for SparseHistogram {
    fn count(&self) -> u64 {
        self.count
    }

    fn pairs(&self) -> impl Iterator<Item = (usize, u64)> {
        self.iter()
            .map(|(bucket, count)| (usize::from(bucket), count))
    }
}

fn write_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn read_varint(bytes: &[u8], at: &mut usize) -> Result<u64, SparseError> {
    let mut value = 0_u64;
    for shift in (0..u64::BITS).step_by(7) {
        let &byte = bytes.get(*at).ok_or(SparseError::Truncated(*at))?;
        let part = u64::from(byte & 0x7f);
        let padded = byte == 0 && shift > 0;
        // In the tenth byte there is room for one bit.
        if padded || (part << shift) >> shift != part {
            return Err(SparseError::Varint(*at));
        }
        *at += 1;
        value |= part << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(SparseError::Varint(*at - 1))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::super::histogram::Histogram;
    use super::*;

    #[test]
    fn b41_what_is_not_a_histogram_is_refused_and_says_what_was_expected() {
        let last = BUCKETS as u16 - 1;
        let cases: [(&[(u16, u64)], SparseError); 7] = [
            (
                &[(2, 1), (1, 1)],
                SparseError::Order {
                    previous: 2,
                    bucket: 1,
                },
            ),
            (
                &[(2, 1), (2, 1)],
                SparseError::Order {
                    previous: 2,
                    bucket: 2,
                },
            ),
            (&[(last + 1, 1)], SparseError::NoSuchBucket(1017)),
            (&[(0, 1), (u16::MAX, 1)], SparseError::NoSuchBucket(65_535)),
            (&[(4, 0)], SparseError::ZeroCount(4)),
            (&[(4, COUNT_MAX), (5, 1)], SparseError::TooMany(5)),
            (&[(4, 1), (5, u64::MAX)], SparseError::TooMany(5)),
        ];
        for (pairs, expected) in cases {
            let refused = SparseHistogram::try_from_pairs(pairs.iter().copied()).unwrap_err();
            assert_eq!(refused, expected);
            assert!(refused.to_string().contains("expected"), "{refused}");
        }
        assert!(SparseHistogram::try_from_pairs([(0, 1), (last, COUNT_MAX - 1)]).is_ok());
    }

    #[test]
    fn b41_counts_that_were_negative_or_infinite_are_refused() {
        for count in [(-1_i64) as u64, f64::INFINITY as u64, i64::MIN as u64] {
            let refused = SparseHistogram::try_from_arrays(&[7], &[count]);
            assert_eq!(refused, Err(SparseError::TooMany(7)));
        }
        assert_eq!(
            SparseHistogram::try_from_arrays(&[1, 2], &[1]),
            Err(SparseError::Lengths {
                buckets: 2,
                counts: 1
            })
        );
        assert_eq!(
            SparseHistogram::try_from_arrays(&[u32::MAX], &[1]),
            Err(SparseError::NoSuchBucket(u64::from(u32::MAX)))
        );
    }

    #[test]
    fn b41_empty_is_none_not_an_error() {
        for empty in [
            SparseHistogram::from_bytes(&[]).unwrap(),
            SparseHistogram::try_from_arrays(&[], &[]).unwrap(),
        ] {
            assert!(empty.is_empty());
            assert_eq!(empty.len(), 0);
            assert_eq!(Histogram::from(&empty).quantile(0.5), None);
        }
    }

    #[test]
    fn bytes_that_are_no_histogram_are_refused() {
        let cases: [(&[u8], SparseError); 8] = [
            (&[0x80], SparseError::Truncated(1)),
            (&[0x01], SparseError::Truncated(1)),
            (&[0x80, 0x00], SparseError::Varint(1)),
            (&[0xff; 11], SparseError::Varint(9)),
            (&[0xf2, 0x0f], SparseError::NoSuchBucket(1017)),
            (&[0xf0, 0x0f, 0x00], SparseError::NoSuchBucket(1017)),
            (
                &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
                SparseError::NoSuchBucket(u64::MAX >> 1),
            ),
            (
                &[
                    0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
                ],
                SparseError::TooMany(0),
            ),
        ];
        for (bytes, expected) in cases {
            assert_eq!(
                SparseHistogram::from_bytes(bytes),
                Err(expected),
                "{bytes:x?}"
            );
        }
        let long = vec![0; PACKED_BYTES_MAX + 1];
        assert_eq!(
            SparseHistogram::from_bytes(&long),
            Err(SparseError::TooLong(long.len()))
        );
    }

    #[test]
    fn the_bytes_are_what_the_module_says() {
        let sparse = SparseHistogram::try_from_pairs([(3, 1), (4, 2), (100, 300)]).unwrap();
        let bytes = [3 << 1, 1, 0, 0xbf, 0x01, 0xaa, 0x02];
        assert_eq!(sparse.to_bytes(), bytes);
    }

    /// A log-normal service (median 20 ms, sigma 0.5) at evenly spaced quantiles, by the
    /// Box-Muller transform of a fixed sequence.
    fn service(samples: u32) -> SparseHistogram {
        let mut histogram = Histogram::new();
        for i in 0..samples {
            let u = (f64::from(i) + 0.5) / f64::from(samples);
            let v = (f64::from(i) * 0.618_033_988_749_895).fract();
            let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
            histogram.record(Duration::from_secs_f64(0.020 * (0.5 * normal).exp()));
        }
        histogram.to_sparse()
    }

    #[test]
    fn a_report_is_small() {
        for (samples, most) in [(10, 14), (100, 100), (1_000, 230)] {
            let bytes = service(samples).to_bytes().len();
            assert!(bytes <= most, "{samples} samples: {bytes} bytes");
        }
    }

    fn pairs() -> impl Strategy<Value = Vec<(u16, u64)>> {
        let count = prop_oneof![Just(1_u64), 1_u64..1000, 1_u64..1 << 38];
        prop::collection::btree_map(0..BUCKETS as u16, count, 0..200)
            .prop_map(|map| map.into_iter().collect())
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(pairs in pairs()) {
            let sparse = SparseHistogram::try_from_pairs(pairs.iter().copied()).unwrap();
            let bytes = sparse.to_bytes();
            prop_assert!(bytes.len() <= PACKED_BYTES_MAX);
            prop_assert_eq!(SparseHistogram::from_bytes(&bytes).unwrap(), sparse.clone());
            prop_assert_eq!(Histogram::from(&sparse).to_sparse(), sparse.clone());
            prop_assert_eq!(sparse.count(), pairs.iter().map(|pair| pair.1).sum::<u64>());
            prop_assert_eq!(sparse.iter().collect::<Vec<_>>(), pairs);
        }

        #[test]
        fn any_bytes_are_refused_or_are_the_one_form(
            bytes in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            if let Ok(sparse) = SparseHistogram::from_bytes(&bytes) {
                prop_assert_eq!(sparse.to_bytes(), bytes);
            }
        }

        #[test]
        fn small_bytes_too(bytes in prop::collection::vec(0_u8..6, 0..64)) {
            if let Ok(sparse) = SparseHistogram::from_bytes(&bytes) {
                prop_assert_eq!(sparse.to_bytes(), bytes);
            }
        }
    }
}
