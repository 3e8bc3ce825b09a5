//! The families in the host's Prometheus registry.

use std::sync::{Arc, Weak};

use hedgerow_protocol::latency::Histogram;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{self, MetricFamily, MetricType};

use super::families::{FAMILIES, Family, Kind, Value};
use super::figures::{Cumulative, Figures};
use crate::agent::Shared;

/// The agent's metrics in the host's registry. Dropped, it takes them out again: the host may build
/// another agent.
pub(crate) struct Registered {
    registry: prometheus::Registry,
    collector: AgentCollector,
}

impl Drop for Registered {
    fn drop(&mut self) {
        // Not found: the host took them out itself.
        let _ = self.registry.unregister(Box::new(self.collector.clone()));
    }
}

/// Registers the agent's metrics.
pub(crate) fn register(
    registry: &prometheus::Registry,
    shared: &Arc<Shared>,
) -> Result<Registered, prometheus::Error> {
    let descs = FAMILIES.iter().map(desc).collect::<Result<_, _>>()?;
    let collector = AgentCollector {
        shared: Arc::downgrade(shared),
        descs,
    };
    registry.register(Box::new(collector.clone()))?;
    Ok(Registered {
        registry: registry.clone(),
        collector,
    })
}

fn desc(family: &Family) -> Result<Desc, prometheus::Error> {
    Desc::new(
        family.name.into(),
        family.help.into(),
        family.labels().map(str::to_owned).collect(),
        std::collections::HashMap::new(),
    )
}

#[derive(Clone)]
struct AgentCollector {
    shared: Weak<Shared>,
    descs: Vec<Desc>,
}

impl Collector for AgentCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descs.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Some(shared) = self.shared.upgrade() else {
            return Vec::new();
        };
        let figures = Figures::read(&shared);
        FAMILIES
            .iter()
            .filter_map(|family| collected(family, &figures))
            .collect()
    }
}

/// None where the family has nothing to say: an empty one is an error to some readers.
fn collected(family: &Family, figures: &Figures) -> Option<MetricFamily> {
    let mut metrics = Vec::new();
    family.show(figures, &mut |labels, value| {
        let labels = labels.iter().map(|(name, value)| label(name, value));
        let mut metric = proto::Metric::from_label(labels.collect());
        match value {
            Value::Count(count) => {
                let mut counter = proto::Counter::default();
                counter.set_value(count as f64);
                metric.set_counter(counter);
            }
            Value::Level(level) => {
                let mut gauge = proto::Gauge::default();
                gauge.set_value(level);
                metric.set_gauge(gauge);
            }
            Value::Latencies(histogram) => metric.set_histogram(classic(histogram)),
        }
        metrics.push(metric);
    });
    if metrics.is_empty() {
        return None;
    }
    let mut collected = MetricFamily::default();
    collected.set_name(family.name.to_owned());
    collected.set_help(family.help.to_owned());
    collected.set_field_type(match family.kind {
        Kind::Counter => MetricType::COUNTER,
        Kind::Gauge => MetricType::GAUGE,
        Kind::Histogram => MetricType::HISTOGRAM,
    });
    collected.set_metric(metrics);
    Some(collected)
}

fn label(name: &str, value: &str) -> proto::LabelPair {
    let mut pair = proto::LabelPair::default();
    pair.set_name(name.to_owned());
    pair.set_value(value.to_owned());
    pair
}

fn classic(histogram: &Histogram) -> proto::Histogram {
    let cumulative = Cumulative::of(histogram);
    let bounds = cumulative.bounds.into_iter().map(|(bound, count)| {
        let mut bucket = proto::Bucket::default();
        bucket.set_upper_bound(bound);
        bucket.set_cumulative_count(count);
        bucket
    });
    let mut classic = proto::Histogram::default();
    classic.set_bucket(bounds.collect());
    classic.set_sample_count(cumulative.count);
    classic.set_sample_sum(cumulative.sum_seconds);
    classic
}
