//! The controller from outside: events by hand, real protocol types, a store that answers now,
//! later or never, and agents that keep what they were told.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]

mod agent;
mod alerts;
mod arming;
mod broken;
mod crowd;
mod day;
mod delivery;
mod fleet;
mod lies;
mod merged;
mod orders;
mod pools;
mod quarantine;
mod random;
mod replicas;
mod reports;
mod restart;
mod rollout;
mod scopes;
mod store;
mod switchback;
mod traffic;
mod utilisation;
mod world;
