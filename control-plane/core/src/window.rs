//! What reports add up to, for one route of the whole fleet: a [`Slice`] for each tick, and
//! [`Windows`] of the last minutes of them.

mod lookback;
mod rings;
mod slice;
mod tally;

pub use lookback::{Attempts, Lookback, ReplicaCounts};
pub use rings::{WINDOW_CALLS, WINDOW_CALLS_MIN, WINDOW_MAX, WINDOW_MIN, Windows};
pub use slice::{ReplicaSlice, Slice};
pub use tally::Tally;
