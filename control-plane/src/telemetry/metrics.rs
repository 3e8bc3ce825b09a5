//! Counters of the process. Those of the fleet are in [`super::fleet`]; together they are every
//! metric of the crate, as [`super::families`] declares them.

use prometheus::{
    Histogram, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry, TextEncoder,
};

use super::families as f;
use super::fleet::FleetCollector;
use crate::engine::Engine;

/// Upper edges for ticks: the bar is 30 to 100 ms for 10,000 agents.
const TICK_SECONDS: &[f64] = &[
    0.000_1, 0.000_3, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0,
];

/// The metrics. Cheap to clone; all clones count into the same ones.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Registry,
    /// How long a tick took to decide.
    pub(crate) tick_seconds: Histogram,
    /// Sets of directives handed to streams.
    pub(crate) pushes: IntCounter,
    /// Writes to the store, by outcome: stored, failed, no_room.
    pub(crate) writes: IntCounterVec,
    /// Events of agents that send more than the contract allows, dropped while the engine was busy.
    pub(crate) intake_dropped: IntCounter,
    /// Streams and connections refused, by reason.
    pub(crate) streams_refused: IntCounterVec,
    /// Attempts to hand a notice over, by receiver and outcome: delivered, failed, given_up.
    pub(crate) deliveries: IntCounterVec,
    /// Notices that wait for their receiver.
    pub(crate) notices_waiting: IntGaugeVec,
    /// Event streams of pages that are open.
    pub(crate) pages_open: IntGauge,
}

impl Metrics {
    /// New ones, all 0.
    pub fn new() -> Self {
        let metrics = Self {
            tick_seconds: f::TICK.histogram(TICK_SECONDS),
            pushes: f::PUSHES.counter(),
            writes: f::WRITES.counters(),
            intake_dropped: f::INTAKE_DROPPED.counter(),
            streams_refused: f::STREAMS_REFUSED.counters(),
            deliveries: f::DELIVERIES.counters(),
            notices_waiting: f::NOTICES_WAITING.wholes(),
            pages_open: f::PAGES_OPEN.whole(),
            registry: Registry::new(),
        };
        metrics.register(Box::new(metrics.tick_seconds.clone()));
        metrics.register(Box::new(metrics.pushes.clone()));
        metrics.register(Box::new(metrics.writes.clone()));
        metrics.register(Box::new(metrics.intake_dropped.clone()));
        metrics.register(Box::new(metrics.streams_refused.clone()));
        metrics.register(Box::new(metrics.deliveries.clone()));
        metrics.register(Box::new(metrics.notices_waiting.clone()));
        metrics.register(Box::new(metrics.pages_open.clone()));
        // A rate over a counter that appears at 1 would not see the first failure.
        for outcome in ["stored", "failed", "no_room"] {
            metrics.writes.with_label_values(&[outcome]);
        }
        metrics
    }

    /// Shows a receiver before anything was sent to it.
    pub(crate) fn expect_receiver(&self, name: &str) {
        self.notices_waiting.with_label_values(&[name]);
        for outcome in ["delivered", "failed", "given_up"] {
            self.deliveries.with_label_values(&[name, outcome]);
        }
    }

    /// Adds the fleet's figures, read from the newest snapshot at each scrape.
    pub fn add_fleet(&self, engine: Engine) {
        self.register(Box::new(FleetCollector::new(engine)));
    }

    /// Where other parts of the process register theirs.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// In Prometheus' text format.
    pub fn text(&self) -> Result<String, prometheus::Error> {
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }

    fn register(&self, collector: Box<dyn prometheus::core::Collector>) {
        // Twice the same is the only way to fail, and the names are listed here once.
        if let Err(error) = self.registry.register(collector) {
            tracing::error!(error = %error, "a metric could not be registered");
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}
