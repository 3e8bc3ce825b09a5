//! The simulator itself: scenarios are read, runs repeat, and the plainest of them come out right.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]

mod alerts;
mod broken;
mod read;
mod runs;
