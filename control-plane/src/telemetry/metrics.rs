//! Counters of the process. Those of the fleet are in [`super::fleet`]; together they are every
//! metric of the crate.

use prometheus::{
    Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry, TextEncoder,
};

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
}

impl Metrics {
    /// New ones, all 0.
    pub fn new() -> Self {
        let registry = Registry::new();
        let counter = |name: &str, help: &str| {
            IntCounter::new(name, help).expect("the names in this file are valid")
        };
        let by = |name: &str, help: &str, label: &str| {
            IntCounterVec::new(Opts::new(name, help), &[label])
                .expect("the names in this file are valid")
        };
        let ticks = HistogramOpts::new(
            "hedgerow_controller_tick_seconds",
            "How long a tick took to decide.",
        );
        let metrics = Self {
            tick_seconds: Histogram::with_opts(ticks.buckets(TICK_SECONDS.to_vec()))
                .expect("the edges in this file ascend"),
            pushes: counter(
                "hedgerow_controller_pushes_total",
                "Sets of directives handed to agents' streams.",
            ),
            writes: by(
                "hedgerow_controller_writes_total",
                "Writes to the store, by outcome.",
                "outcome",
            ),
            intake_dropped: counter(
                "hedgerow_controller_intake_dropped_total",
                "Messages of agents that sent more than allowed, dropped while the engine was busy.",
            ),
            streams_refused: by(
                "hedgerow_controller_streams_refused_total",
                "Streams and connections of agents refused or ended by the controller, by reason.",
                "reason",
            ),
            deliveries: IntCounterVec::new(
                Opts::new(
                    "hedgerow_controller_deliveries_total",
                    "Attempts to hand a notice to a receiver, by outcome.",
                ),
                &["receiver", "outcome"],
            )
            .expect("the names in this file are valid"),
            notices_waiting: IntGaugeVec::new(
                Opts::new(
                    "hedgerow_controller_notices_waiting",
                    "Notices in the outbox that wait for their receiver.",
                ),
                &["receiver"],
            )
            .expect("the names in this file are valid"),
            registry,
        };
        metrics.register(Box::new(metrics.tick_seconds.clone()));
        metrics.register(Box::new(metrics.pushes.clone()));
        metrics.register(Box::new(metrics.writes.clone()));
        metrics.register(Box::new(metrics.intake_dropped.clone()));
        metrics.register(Box::new(metrics.streams_refused.clone()));
        metrics.register(Box::new(metrics.deliveries.clone()));
        metrics.register(Box::new(metrics.notices_waiting.clone()));
        metrics
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
