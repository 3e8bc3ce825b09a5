//! The bucket bounds, fixed for ever under [`LAYOUT_ID`].
//!
//! Base-2 exponential, 32 buckets to the octave, counted in microseconds: bucket 0 is
//! `[0, 1 us]`, bucket `b` is `(2^((b-1)/32), 2^(b/32)] us`, and the last one ends at 1 h. A bucket
//! is 2.2 % wide, so that what is read from it is never further off than that, and within a
//! fraction of a percent where latencies are spread smoothly.
//!
//! Why one layout and not adaptive ones: counts are then merged by adding them, a window loses a
//! second by subtracting it, and neither ever moves a sample to another bucket.
//!
//! For OpenTelemetry and Prometheus: bucket `b >= 1` is index `b - 1` of a scale 5 exponential
//! histogram in microseconds; bucket 0 is the zero bucket with a zero threshold of 1 us.

use std::time::Duration;

/// Names this layout on the wire: base 2, scale 5, upper edges inclusive, unit 1 us, bucket 0 up to
/// and including 1 us, bucket 1016 the last, ending at 1 h with everything longer in it.
///
/// Any change to any of that is a new id. Histograms of another id are refused by
/// [`accept_layout`], never converted: a conversion moves samples, and a threshold with them.
pub const LAYOUT_ID: u32 = 1;

/// Number of buckets, and one more than the largest bucket index.
pub const BUCKETS: usize = 1017;

/// Buckets between a latency and its double.
pub const BUCKETS_PER_OCTAVE: usize = 32;

/// The scale in OpenTelemetry's sense: 2^5 buckets to the octave.
pub const SCALE: u32 = 5;

/// Shortest latency told from shorter ones: all up to this share bucket 0.
pub const LATENCY_MIN: Duration = Duration::from_micros(1);

/// Longest latency told from longer ones: longer ones are counted as this.
pub const LATENCY_MAX: Duration = Duration::from_hours(1);

const LAST: usize = BUCKETS - 1;
const MIN_NS: u64 = 1_000;
const MAX_NS: u64 = 3_600_000_000_000;
const MAX_US: f64 = 3.6e9;

/// What bucket index `octave * 32 + edges passed` has to lose for 1000 ns to be bucket 0: 1000 lies
/// in the octave that begins at 2^9 ns, with 30 edges of that octave below it.
const ORIGIN: usize = 9 * BUCKETS_PER_OCTAVE + 30;

/// `2^(j/32)` times 2^63, from integer square roots: the standard library's `exp2` is neither
/// const nor the same to the last bit everywhere, and a replay has to be.
const ROOTS: [u64; BUCKETS_PER_OCTAVE] = {
    // 2^(1/2), 2^(1/4), ..., 2^(1/32).
    let mut halvings = [0_u64; SCALE as usize];
    let mut previous: u128 = 1 << 64;
    let mut i = 0;
    while i < halvings.len() {
        previous = (previous << 63).isqrt();
        halvings[i] = previous as u64;
        i += 1;
    }
    let mut roots = [0_u64; BUCKETS_PER_OCTAVE];
    let mut j = 0;
    while j < roots.len() {
        let mut root: u128 = 1 << 63;
        let mut bit = 0;
        while bit < halvings.len() {
            if j & (BUCKETS_PER_OCTAVE >> (bit + 1)) != 0 {
                root = (root * halvings[bit] as u128) >> 63;
            }
            bit += 1;
        }
        roots[j] = root as u64;
        j += 1;
    }
    roots
};

/// `2^(j/32)`.
static ROOTS_F64: [f64; BUCKETS_PER_OCTAVE] = {
    let mut roots = [0.0; BUCKETS_PER_OCTAVE];
    let mut j = 0;
    while j < roots.len() {
        roots[j] = ROOTS[j] as f64 / (1_u64 << 63) as f64;
        j += 1;
    }
    roots
};

/// The 32 edges that lie in each octave of nanoseconds, as mantissas with the top bit set. Edges
/// repeat with every octave, so one octave's are enough. The last entry is a sentinel that no
/// mantissa passes.
static EDGES: [u64; BUCKETS_PER_OCTAVE + 1] = EDGES_CONST;
const EDGES_CONST: [u64; BUCKETS_PER_OCTAVE + 1] = {
    let mut edges = [u64::MAX; BUCKETS_PER_OCTAVE + 1];
    let mut j = 0;
    while j < BUCKETS_PER_OCTAVE {
        // 1000 ns = 1000/512 octaves' starts is edge 30; the 30 before it belong to the us below.
        edges[j] = if j >= 30 {
            ((1000 * ROOTS[j - 30] as u128) >> 9) as u64
        } else {
            ((1000 * ROOTS[j + 2] as u128) >> 10) as u64
        };
        j += 1;
    }
    edges
};

/// Linear cells of a mantissa: narrow enough to hold one edge at most, so that one comparison ends
/// the search.
const CELLS: usize = 64;

/// Edges below the start of each cell.
static BELOW: [u8; CELLS] = {
    let mut below = [0_u8; CELLS];
    let mut cell = 0;
    while cell < CELLS {
        let start = (1_u64 << 63) + ((cell as u64) << 57);
        let mut edge = 0;
        while edge < BUCKETS_PER_OCTAVE && EDGES_CONST[edge] < start {
            edge += 1;
        }
        below[cell] = edge as u8;
        cell += 1;
    }
    below
};

/// The bucket of a latency in nanoseconds. Up to 1 us it is bucket 0, from 1 h on the last one; it
/// cannot fail.
///
/// Two table look-ups and a comparison, because every attempt pays for it.
///
/// ```
/// use hedgerow_protocol::latency::{BUCKETS, bucket_index};
/// assert_eq!(bucket_index(0), 0);
/// assert_eq!(bucket_index(1_000), 0); // edges are inclusive
/// assert_eq!(bucket_index(1_001), 1);
/// assert_eq!(bucket_index(2_000), 32); // an octave up
/// assert_eq!(bucket_index(u64::MAX), BUCKETS - 1);
/// ```
#[inline]
pub const fn bucket_index(ns: u64) -> usize {
    if ns <= MIN_NS {
        return 0;
    }
    if ns >= MAX_NS {
        return LAST;
    }
    let mantissa = ns << ns.leading_zeros();
    let cell = (mantissa >> 57) as usize & (CELLS - 1);
    let below = BELOW[cell] as usize;
    let passed = below + (mantissa > EDGES[below]) as usize;
    ns.ilog2() as usize * BUCKETS_PER_OCTAVE + passed - ORIGIN
}

/// The bucket of a latency; see [`bucket_index`].
#[inline]
pub fn bucket_of(latency: Duration) -> usize {
    // Not `as_nanos`, which multiplies in 128 bits.
    let ns = latency.as_secs().saturating_mul(1_000_000_000);
    bucket_index(ns.saturating_add(u64::from(latency.subsec_nanos())))
}

/// The longest latency in a bucket, in microseconds: `2^(bucket/32)`, and one hour for the last
/// bucket and beyond.
///
/// ```
/// use hedgerow_protocol::latency::{lower_edge_us, upper_edge_us};
/// assert_eq!(upper_edge_us(0), 1.0);
/// assert_eq!(upper_edge_us(320), 1024.0);
/// assert_eq!(upper_edge_us(1016), 3.6e9);
/// assert_eq!(lower_edge_us(321), 1024.0);
/// ```
pub const fn upper_edge_us(bucket: usize) -> f64 {
    if bucket >= LAST {
        return MAX_US;
    }
    ROOTS_F64[bucket % BUCKETS_PER_OCTAVE] * (1_u64 << (bucket / BUCKETS_PER_OCTAVE)) as f64
}

/// What every latency in a bucket is longer than, in microseconds: the upper edge of the bucket
/// before, and 0 for bucket 0.
pub const fn lower_edge_us(bucket: usize) -> f64 {
    if bucket == 0 {
        0.0
    } else {
        upper_edge_us(bucket - 1)
    }
}

/// The point at `share` (0 to 1) of the way through a bucket.
///
/// Linear, not geometric: inside 2.2 % the two differ by less than 0.007 % of the value, while
/// linear needs no logarithm (the same bits on every machine) and also works in bucket 0, which
/// begins at zero.
pub(super) fn point_in(bucket: usize, share: f64) -> Duration {
    let lower = lower_edge_us(bucket);
    let upper = upper_edge_us(bucket);
    let us = (lower + share.clamp(0.0, 1.0) * (upper - lower)).min(upper);
    Duration::from_nanos((us * 1e3).round() as u64)
}

/// How far through its bucket a latency lies, 0 to 1; the inverse of [`point_in`].
pub(super) fn share_of(bucket: usize, latency: Duration) -> f64 {
    let lower = lower_edge_us(bucket);
    let us = latency.as_secs_f64() * 1e6;
    ((us - lower) / (upper_edge_us(bucket) - lower)).clamp(0.0, 1.0)
}

/// A histogram in bucket bounds that are not ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a known histogram layout: expected {LAYOUT_ID}")]
pub struct ForeignLayout(pub u32);

/// Refuses every layout but [`LAYOUT_ID`]; also 0, which is what a sender that says nothing sends.
///
/// ```
/// use hedgerow_protocol::latency::{LAYOUT_ID, accept_layout};
/// assert!(accept_layout(LAYOUT_ID).is_ok());
/// assert!(accept_layout(0).is_err());
/// ```
pub const fn accept_layout(id: u32) -> Result<(), ForeignLayout> {
    if id == LAYOUT_ID {
        Ok(())
    } else {
        Err(ForeignLayout(id))
    }
}

const _: () = {
    assert!(bucket_index_is_exact());
    assert!(LATENCY_MIN.as_nanos() as u64 == MIN_NS);
    assert!(LATENCY_MAX.as_nanos() as u64 == MAX_NS);
};

/// That no cell holds two edges, which the single comparison relies on.
const fn bucket_index_is_exact() -> bool {
    let mut edge = 1;
    while edge < BUCKETS_PER_OCTAVE {
        if EDGES_CONST[edge] >> 57 == EDGES_CONST[edge - 1] >> 57 {
            return false;
        }
        edge += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn edges_are_those_of_scale_5() {
        for bucket in 0..LAST {
            let exact = (bucket as f64 / 32.0).exp2();
            let off = (upper_edge_us(bucket) / exact - 1.0).abs();
            assert!(off < 1e-15, "bucket {bucket}: off by {off:e}");
        }
        assert_eq!(upper_edge_us(LAST), MAX_US);
        assert!(upper_edge_us(LAST - 1) < MAX_US);
        assert!(
            2_f64.powf(LAST as f64 / 32.0) > MAX_US,
            "one bucket too few"
        );
    }

    #[test]
    fn upper_edges_are_inclusive_and_the_next_nanosecond_is_the_next_bucket() {
        for bucket in 0..LAST {
            let edge_ns = upper_edge_us(bucket) * 1e3;
            let inside = edge_ns.floor() as u64;
            assert_eq!(bucket_index(inside), bucket);
            assert_eq!(bucket_index(inside + 1), bucket + 1);
        }
    }

    #[test]
    fn c05_from_zero_to_forever_and_1_us_apart() {
        assert_eq!(bucket_of(Duration::ZERO), 0);
        assert_eq!(bucket_of(Duration::from_nanos(1)), 0);
        assert_eq!(bucket_of(LATENCY_MAX), LAST);
        assert_eq!(bucket_index(MAX_NS - 1), LAST);
        assert_eq!(bucket_of(Duration::MAX), LAST);
        for us in 1..=32 {
            let (this, next) = (Duration::from_micros(us), Duration::from_micros(us + 1));
            assert!(bucket_of(this) < bucket_of(next), "{us} us");
        }
    }

    #[test]
    fn b43_another_layout_is_refused_and_named() {
        for id in [0, 2, u32::MAX] {
            let refused = accept_layout(id).unwrap_err();
            assert_eq!(refused, ForeignLayout(id));
            assert!(refused.to_string().contains("expected 1"), "{refused}");
        }
    }

    proptest! {
        #[test]
        fn a_latency_lies_within_its_bucket(bits in 0_u32..64, fill: u64) {
            let ns = fill >> bits;
            let bucket = bucket_index(ns);
            prop_assert!(bucket < BUCKETS);
            let us = ns.min(MAX_NS) as f64 / 1e3;
            prop_assert!(us <= upper_edge_us(bucket));
            prop_assert!(us > lower_edge_us(bucket) || ns == 0);
            prop_assert!(bucket_index(ns.saturating_add(1)) >= bucket);
        }

        #[test]
        fn point_and_share_are_inverse(bucket in 200..BUCKETS, share in 0.0..=1.0_f64) {
            let point = point_in(bucket, share);
            prop_assert!((share_of(bucket, point) - share).abs() < 0.01);
        }
    }
}
