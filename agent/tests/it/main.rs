//! The agent as a service sees it, over real sockets.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod catalog;
mod cost;
#[cfg(all(feature = "service-config", feature = "tonic"))]
mod grpc;
mod hedging;
#[cfg(feature = "hyper-client")]
mod hyper;
mod layer;
mod link;
#[cfg(feature = "opentelemetry")]
mod meter;
mod metrics;
mod odd;
#[cfg(all(feature = "hyper-client", feature = "tonic"))]
mod odd_wire;
mod paused;
mod pinned;
#[cfg(feature = "reqwest")]
mod reqwest;
mod retries;
#[cfg(all(feature = "service-config", feature = "tonic"))]
mod service_config;
mod snapshot;
mod span;
mod standalone;
#[cfg(any(feature = "hyper-client", feature = "reqwest", feature = "tonic"))]
mod warm;
#[cfg(any(feature = "hyper-client", feature = "reqwest"))]
mod web;
mod without_controller;
