//! What hedging would cost and buy: from a distribution of latencies to the [`curve`](Distribution::curve)
//! of delays, and to the best delay and probability for a [`Goal`].
//!
//! With X a primary's latency, Y a hedge's, d the delay and q the share of crossed calls that is
//! hedged, a caller waits longer than t with probability `S(t) (1 - q (1 - phi) F(t - d))`, which for
//! q = 1 and phi = 0 is `P(X > t) P(Y > t - d)`. Y is taken to be distributed as X is, and
//! independent of it but for phi, the measured share of slowness that a call and its hedge have in
//! common. What the load of the hedges does to the latencies is not in it.
//!
//! All comparisons are between integers: a percentile is the first time at which the share beyond
//! it is at most 1 - q, and no rounding decides whether that is so.
//!
//! ```
//! use hedgerow_core::whatif::{Advice, Distribution, Goal, Percentile, latency};
//! use hedgerow_protocol::units::{Budget, Ratio};
//!
//! // Of a hundred calls 95 take 10 ms and five take 200.
//! let sample = Distribution::of_counts([(latency(10.0)?, 95), (latency(200.0)?, 5)])?;
//! let hedged = sample.hedged(latency(10.0)?, Ratio::ZERO);
//! assert_eq!(hedged.extra_load, 0.05);
//! assert_eq!(hedged.at(Percentile::P99), Some(latency(20.0)?));
//!
//! // 84 % of those five are enough for that p99, at a load of 4.2 %.
//! let goal = Goal::new(Percentile::P99, Budget::new(0.05)?);
//! let Advice::Hedge(plan) = sample.best(&goal) else { panic!() };
//! assert_eq!((plan.delay, plan.reached), (latency(10.0)?, latency(20.0)?));
//! assert_eq!((plan.probability * 1e3).round(), 842.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Sources: J. Dean and L. A. Barroso, "The Tail at Scale", 2013, for the deferred hedge; T. Kaler,
//! Y. He and S. Elnikety, "Optimal Reissue Policies for Reducing Tail Latency", 2017, for the single
//! random reissue under a budget.

mod curve;
mod distribution;
mod exact;
mod goal;
mod hedging;
mod live;
mod percentile;
mod planned;
mod replay;

pub use curve::Hedged;
pub use distribution::{Distribution, SAMPLE_MAX, SampleError, VALUES_MAX, latency};
pub use goal::{Advice, GAIN_MIN_PERCENT, Goal, Leave, Plan};
pub use live::Latencies;
pub use percentile::{Percentile, PercentileError};
pub use planned::Planned;
pub use replay::{ASSUMED, Replay, Row, replay};

#[cfg(test)]
mod tests;
