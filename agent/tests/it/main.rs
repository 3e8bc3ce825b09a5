//! The agent as a service sees it, over real sockets.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod catalog;
mod cost;
#[cfg(all(feature = "service-config", feature = "tonic"))]
mod grpc;
mod hedging;
mod layer;
mod link;
#[cfg(feature = "opentelemetry")]
mod meter;
mod metrics;
mod paused;
mod pinned;
mod retries;
mod snapshot;
mod span;
#[cfg(any(feature = "hyper-client", feature = "reqwest", feature = "tonic"))]
mod warm;
mod without_controller;
