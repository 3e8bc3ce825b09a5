//! The families in the host's OpenTelemetry meter, as observable instruments: read when the host
//! collects, and nothing to calls.
//!
//! **Latencies.** OpenTelemetry has no histogram that is observed, and recording each call a second
//! time would be paid by calls. So a histogram becomes two counters: `.._bucket_total` with the
//! attribute `le`, cumulative over bounds as Prometheus has them, and `.._sum_total`, in seconds.
//! Both are exact sums of what the agent counted, they add up over processes, and
//! `histogram_quantile` reads them as they are. Bounds are an octave apart, as in Prometheus: an SDK
//! keeps 2,000 sets of attributes an instrument unless told otherwise, which is 47 routes, and puts
//! the rest together where nobody can tell them apart.
//!
//! **Several agents.** Instruments of the same name are one instrument to a meter. The attribute
//! `hedgerow.agent.instance` keeps agents apart.
//!
//! **One reading a collection.** An instrument is asked by itself, and nobody says when a collection
//! begins. An instrument that is asked a second time is taken for the next one's beginning.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use hedgerow_protocol::latency::Histogram;
use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;
use parking_lot::Mutex;

use super::families::{AGENT_INSTANCE, FAMILIES, Family, Kind, LE, Value};
use super::figures::{Cumulative, Figures};
use crate::agent::Shared;

/// A reading is for one collection. Where a view drops instruments, a collection may end without
/// anybody noticing: what is older than this is not taken for it.
const READING_MAX: Duration = Duration::from_secs(1);

/// Has the meter observe the agent, until the agent ends.
pub(crate) fn observe(meter: &Meter, shared: &Arc<Shared>) {
    let readings = Arc::new(Readings {
        shared: Arc::downgrade(shared),
        instance: KeyValue::new(AGENT_INSTANCE, shared.instance.to_string()),
        last: Mutex::new(None),
    });
    for family in &FAMILIES {
        let source = |name| Source {
            name,
            family,
            readings: readings.clone(),
        };
        match family.kind {
            Kind::Counter => counter(meter, source(family.name.to_owned())),
            Kind::Gauge => gauge(meter, source(family.name.to_owned())),
            Kind::Histogram => {
                buckets(meter, source(format!("{}_bucket_total", family.name)));
                sum(meter, source(format!("{}_sum_total", family.name)));
            }
        }
    }
}

// An instrument's callback lives as long as its provider, the instrument itself need not.

fn counter(meter: &Meter, source: Source) {
    meter
        .u64_observable_counter(source.name.clone())
        .with_description(source.family.help)
        .with_unit(source.family.unit)
        .with_callback(move |instrument| {
            source.show(|attributes, value| {
                if let Value::Count(count) = value {
                    instrument.observe(count, &attributes);
                }
            });
        })
        .build();
}

fn gauge(meter: &Meter, source: Source) {
    meter
        .f64_observable_gauge(source.name.clone())
        .with_description(source.family.help)
        .with_unit(source.family.unit)
        .with_callback(move |instrument| {
            source.show(|attributes, value| {
                if let Value::Level(level) = value {
                    instrument.observe(level, &attributes);
                }
            });
        })
        .build();
}

fn buckets(meter: &Meter, source: Source) {
    meter
        .u64_observable_counter(source.name.clone())
        .with_description(source.family.help)
        .with_unit("{call}")
        .with_callback(move |instrument| {
            source.show(|attributes, value| {
                if let Value::Latencies(histogram) = value {
                    for (le, count) in by_octave(histogram) {
                        let mut attributes = attributes.clone();
                        attributes.push(KeyValue::new(LE, le));
                        instrument.observe(count, &attributes);
                    }
                }
            });
        })
        .build();
}

fn sum(meter: &Meter, source: Source) {
    meter
        .f64_observable_counter(source.name.clone())
        .with_description(source.family.help)
        .with_unit(source.family.unit)
        .with_callback(move |instrument| {
            source.show(|attributes, value| {
                if let Value::Latencies(histogram) = value {
                    let all = Cumulative::of(histogram);
                    instrument.observe(all.sum_seconds, &attributes);
                }
            });
        })
        .build();
}

/// Bounds as `le` spells them, and the samples at or below each.
fn by_octave(histogram: &Histogram) -> impl Iterator<Item = (String, u64)> {
    let cumulative = Cumulative::of(histogram);
    let all = ("+Inf".to_owned(), cumulative.count);
    let bounds = cumulative.bounds.into_iter();
    bounds
        .map(|(bound, count)| (bound.to_string(), count))
        .chain([all])
}

/// What one instrument is read from.
struct Source {
    name: String,
    family: &'static Family,
    readings: Arc<Readings>,
}

impl Source {
    fn show(&self, mut observe: impl FnMut(Vec<KeyValue>, Value<'_>)) {
        let Some(figures) = self.readings.figures(&self.name) else {
            return;
        };
        self.family.show(&figures, &mut |labels, value| {
            let labels = labels
                .iter()
                .map(|&(name, value)| KeyValue::new(name, value.to_owned()));
            let attributes = labels.chain([self.readings.instance.clone()]);
            observe(attributes.collect(), value);
        });
    }
}

/// Readings of one agent, one a collection.
struct Readings {
    shared: Weak<Shared>,
    instance: KeyValue,
    last: Mutex<Option<Reading>>,
}

struct Reading {
    figures: Arc<Figures>,
    at: Instant,
    /// Instruments it was read for.
    shown: BTreeSet<String>,
}

impl Readings {
    /// None where the agent is gone.
    fn figures(&self, instrument: &str) -> Option<Arc<Figures>> {
        let mut last = self.last.lock();
        let Some(shared) = self.shared.upgrade() else {
            *last = None;
            return None;
        };
        let reading = last
            .take()
            .filter(|last| last.at.elapsed() < READING_MAX && !last.shown.contains(instrument));
        let reading = last.insert(reading.unwrap_or_else(|| Reading {
            figures: Arc::new(Figures::read(&shared)),
            at: Instant::now(),
            shown: BTreeSet::new(),
        }));
        reading.shown.insert(instrument.to_owned());
        Some(reading.figures.clone())
    }
}

#[cfg(test)]
mod tests {
    use hedgerow_protocol::session::Text;

    use super::*;

    fn readings(shared: &Arc<Shared>) -> Readings {
        Readings {
            shared: Arc::downgrade(shared),
            instance: KeyValue::new(AGENT_INSTANCE, "one"),
            last: Mutex::new(None),
        }
    }

    #[tokio::test]
    async fn a_collection_is_one_reading_and_the_next_one_is_another() {
        let shared = Arc::new(Shared::new(None, Text::default(), false, None));
        let readings = readings(&shared);
        let first = readings.figures("hedgerow_tokens").unwrap();
        let same = readings.figures("hedgerow_mode").unwrap();
        assert!(Arc::ptr_eq(&first, &same));
        let next = readings.figures("hedgerow_tokens").unwrap();
        assert!(!Arc::ptr_eq(&first, &next), "asked twice: collected twice");
        let with_it = readings.figures("hedgerow_mode").unwrap();
        assert!(Arc::ptr_eq(&next, &with_it));
    }

    #[tokio::test]
    async fn what_a_collection_left_unasked_is_not_shown_later() {
        let shared = Arc::new(Shared::new(None, Text::default(), false, None));
        let readings = readings(&shared);
        let first = readings.figures("hedgerow_tokens").unwrap();
        if let Some(last) = &mut *readings.last.lock() {
            last.at -= READING_MAX;
        }
        let later = readings.figures("hedgerow_mode").unwrap();
        assert!(!Arc::ptr_eq(&first, &later));
    }

    #[tokio::test]
    async fn readings_do_not_keep_an_agent() {
        let shared = Arc::new(Shared::new(None, Text::default(), false, None));
        let readings = readings(&shared);
        assert!(readings.figures("hedgerow_tokens").is_some());
        drop(shared);
        assert!(readings.figures("hedgerow_mode").is_none());
    }

    #[test]
    fn bounds_are_octaves_and_what_is_beyond_them_is_in_all() {
        let mut histogram = Histogram::new();
        for latency in [
            Duration::from_micros(5),
            Duration::from_micros(256),
            Duration::from_micros(257),
            Duration::from_mins(5),
        ] {
            histogram.record(latency);
        }
        let bounds: Vec<_> = by_octave(&histogram).collect();
        assert_eq!(bounds.len(), 21);
        let below = |le: &str| bounds.iter().find(|bound| bound.0 == le).map(|b| b.1);
        assert_eq!(below("0.000128"), Some(1));
        assert_eq!(below("0.000256"), Some(2), "an upper edge is inclusive");
        assert_eq!(below("0.000512"), Some(3));
        assert_eq!(below("67.108864"), Some(3));
        assert_eq!(below("+Inf"), Some(4));
    }
}
