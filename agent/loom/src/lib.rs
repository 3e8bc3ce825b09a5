//! Models of what the agent's threads share: every interleaving of a few steps of two or three
//! threads, with the memory orderings as they are written.
//!
//! The agent's own files are compiled here with loom's atomics in their `crate::sync`, so that no
//! `cfg` runs through them and nothing else of the agent need be built. `tests/it` runs the models:
//! `cargo test -p hedgerow-agent-loom --release`.

#![expect(dead_code, reason = "a model needs a part of each file")]

#[path = "../../src/budget.rs"]
mod budget;
#[path = "../../src/lanes.rs"]
mod lanes;
#[path = "../../src/load.rs"]
mod load;
#[path = "../../src/permit.rs"]
mod permit;
#[path = "../../src/places.rs"]
mod places;
#[path = "../../src/stats/tally.rs"]
mod tally;

pub mod models;
mod sync;
mod thread;
