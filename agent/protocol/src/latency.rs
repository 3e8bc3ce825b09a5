//! Latencies: one set of bucket bounds and one idea of a percentile, for agent and controller.
//!
//! | module | what it is |
//! |---|---|
//! | [`layout`] | the bucket bounds every histogram here has, and the id that names them on the wire |
//! | [`histogram`] | exact counts, dense: what is added up, subtracted and read |
//! | [`sparse`] | the same counts as ascending pairs and as bytes: what travels |
//! | [`weighted`] | real-valued weights: what is left when an agent may not weigh more than its share |
//! | [`flat`] | where a curve is flat, the earlier end: the threshold for a share that is to cross |
//! | [`survival`] | the Kaplan-Meier curve from answered and stopped attempts, and the log-rank test |
//!
//! "No value" is a value: whatever cannot be known from the counts is `None`, never zero.
//!
//! ```
//! use std::time::Duration;
//! use hedgerow_protocol::latency::{Histogram, SurvivalCurve};
//!
//! // Ninety attempts answered after 10 ms; ten were cancelled at 30 ms, so nobody knows how long
//! // they would have taken.
//! let mut done = Histogram::new();
//! let mut cens = Histogram::new();
//! for _ in 0..90 { done.record(Duration::from_millis(10)); }
//! for _ in 0..10 { cens.record(Duration::from_millis(30)); }
//!
//! // What completed says "p95 is 10 ms". The curve says that it is not known.
//! assert!(done.quantile(0.95).unwrap() < Duration::from_millis(11));
//! let curve = SurvivalCurve::estimate(&done, &cens);
//! assert_eq!(curve.quantile(0.95), None);
//! assert_eq!(curve.survival_at(Duration::from_millis(20)).map(|s| (s * 100.0).round()), Some(10.0));
//! ```

pub mod flat;
pub mod histogram;
pub mod layout;
pub mod sparse;
pub mod survival;
pub mod weighted;

pub use histogram::{COUNT_MAX, CountError, Counts, Histogram};
pub use layout::{
    BUCKETS, BUCKETS_PER_OCTAVE, ForeignLayout, LATENCY_MAX, LATENCY_MIN, LAYOUT_ID, SCALE,
    accept_layout, bucket_index, bucket_of, lower_edge_us, upper_edge_us,
};
pub use sparse::{PACKED_BYTES_MAX, SparseError, SparseHistogram};
pub use survival::{LogRank, Step, SurvivalCurve, log_rank};
pub use weighted::{WeightedHistogram, Weights};
