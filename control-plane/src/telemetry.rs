//! What the controller tells about itself: log, traces, metrics, health.

mod families;
mod fleet;
mod logging;
mod metrics;
mod pages;
mod routes;

pub use logging::{TelemetryError, TelemetryGuard, init};
pub use metrics::Metrics;
pub(crate) use pages::OpenPage;
pub use routes::{Health, router};
