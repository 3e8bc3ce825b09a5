//! What the controller tells about itself: log, traces, metrics, health.

mod fleet;
mod logging;
mod metrics;
mod routes;

pub use logging::{TelemetryError, TelemetryGuard, init};
pub use metrics::Metrics;
pub use routes::{Health, router};
