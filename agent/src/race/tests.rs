//! The race under tokio's paused clock: times are exact, an hour takes a moment.

mod alone;
mod armed;
mod drops;
mod figures;
mod further;
mod load;
mod odd;
mod order;
mod panics;
mod permits;
mod rig;
mod script;
mod seeds;
mod threads;
