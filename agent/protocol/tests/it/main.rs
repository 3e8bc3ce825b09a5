//! What travels between agent and controller: every message there and back, every refusal by name.

#![allow(
    clippy::unwrap_used,
    reason = "a test says what failed by its line; helpers are tests too"
)]

mod arbitrary;
mod bounds;
mod generated;
mod good;
mod refused;
mod roundtrip;
mod sets;
mod size;
mod stream;
