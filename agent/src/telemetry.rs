//! What the host sees: metrics in its registry and in its meter, attributes on its spans.
//!
//! | module | what it is |
//! |---|---|
//! | `families` | the vocabulary: each metric and each attribute, declared once |
//! | `figures` | one reading of an agent, which a whole scrape is made of |
//! | `prometheus` | the families in a Prometheus registry |
//! | `meter` | the same in an OpenTelemetry meter (feature `opentelemetry`) |
//! | `span` | what became of a call, on the span of whoever made it |
//!
//! Metrics are read from the routes' own counters when scraped: calls pay nothing for them. A plain
//! call has nothing to say to a span, either, and pays one word for that.

mod families;
mod figures;
#[cfg(feature = "opentelemetry")]
mod meter;
mod prometheus;
mod span;

#[cfg(feature = "opentelemetry")]
pub(crate) use self::meter::observe;
pub(crate) use self::prometheus::{Registered, register};
pub(crate) use self::span::Told;
