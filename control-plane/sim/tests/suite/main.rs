//! What the core is to hold, over the scenarios: each test runs at least 20 seeds, in release, and
//! prints the figures it reached, as least / median / most over the seeds:
//!
//! ```text
//! cargo test --release -p hedgerow-sim --test suite -- --nocapture
//! ```
//!
//! Without optimisation a run takes many times as long. A debug build therefore runs **one** seed of
//! each scenario, some of them shortened (where [`runs::PROOF`] is asked for), and checks only what
//! has to hold in every single run: bounds on medians and on counts over seeds say nothing of one. What
//! is only printed, it leaves out. The release build alone is the proof.
//!
//! In every run of all tests the budget holds in each second, by the controller's own check and by
//! the world's count, and where nobody lies no report is refused.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]
#![expect(clippy::unwrap_used, reason = "in a test a panic says where")]

mod fleet;
mod healthy;
mod liars;
mod replicas;
mod runs;
mod shared;
mod steady;
mod surge;
