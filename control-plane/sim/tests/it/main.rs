//! The simulator itself: scenarios are read, runs repeat, and the plainest of them come out right.

mod read;
mod runs;
