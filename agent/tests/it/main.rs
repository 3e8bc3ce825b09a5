//! The agent as a service sees it, over real sockets.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod catalog;
mod cost;
mod hedging;
mod layer;
mod link;
mod metrics;
mod pinned;
mod retries;
mod without_controller;
