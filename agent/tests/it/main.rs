//! The agent as a service sees it, over real sockets.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod catalog;
mod cost;
mod hedging;
mod layer;
mod link;
#[cfg(feature = "opentelemetry")]
mod meter;
mod metrics;
mod paused;
mod pinned;
mod snapshot;
mod span;
mod without_controller;
