//! What an OpenTelemetry collection shows, by the SDK that hosts use.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hedgerow_agent::{Agent, Call, Policy, PolicyDraft, Route, RouteSnapshot};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Meter, MeterProvider};
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, Metric, MetricData, ScopeMetrics};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use prometheus::{Registry, TextEncoder};
use tokio::task::yield_now;

use crate::catalog::hedging_policy;
use crate::paused::{Does, MS, call, warm};

/// Name, labels and value.
type Series = BTreeMap<(String, BTreeSet<(String, String)>), f64>;

const INSTANCE: &str = "hedgerow.agent.instance";

struct Host {
    exporter: InMemoryMetricExporter,
    provider: SdkMeterProvider,
}

impl Host {
    fn new() -> Self {
        let exporter = InMemoryMetricExporter::default();
        let reader = PeriodicReader::builder(exporter.clone()).build();
        let provider = SdkMeterProvider::builder().with_reader(reader).build();
        Self { exporter, provider }
    }

    fn meter(&self) -> Meter {
        self.provider.meter("hedgerow")
    }

    /// What one collection shows.
    fn collect(&self) -> Series {
        self.exporter.reset();
        self.provider.force_flush().unwrap();
        let mut series = Series::new();
        for collected in self.exporter.get_finished_metrics().unwrap() {
            for metric in collected.scope_metrics().flat_map(ScopeMetrics::metrics) {
                read(metric, &mut series);
            }
        }
        series
    }
}

fn read(metric: &Metric, into: &mut Series) {
    let mut add = |attributes: BTreeSet<(String, String)>, value| {
        let before = into.insert((metric.name().to_owned(), attributes), value);
        assert_eq!(before, None, "{} is there once", metric.name());
    };
    match metric.data() {
        AggregatedMetrics::U64(MetricData::Sum(sum)) => {
            assert!(sum.is_monotonic());
            for point in sum.data_points() {
                add(named(point.attributes()), point.value() as f64);
            }
        }
        AggregatedMetrics::F64(MetricData::Sum(sum)) => {
            assert!(sum.is_monotonic());
            for point in sum.data_points() {
                add(named(point.attributes()), point.value());
            }
        }
        AggregatedMetrics::F64(MetricData::Gauge(gauge)) => {
            for point in gauge.data_points() {
                add(named(point.attributes()), point.value());
            }
        }
        other => panic!("{}: {other:?}", metric.name()),
    }
}

fn named<'a>(attributes: impl Iterator<Item = &'a KeyValue>) -> BTreeSet<(String, String)> {
    attributes
        .map(|attribute| (attribute.key.to_string(), attribute.value.to_string()))
        .collect()
}

/// Prometheus' text, its histograms under the names that a meter has for their parts. (That
/// leaves the count out: it is the bucket of all.)
fn scraped(registry: &Registry) -> Series {
    let text = TextEncoder::new()
        .encode_to_string(&registry.gather())
        .unwrap();
    let mut series = Series::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (key, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = key.split_once('{').unwrap_or((key, "}"));
        let labels = labels.trim_end_matches('}').split_terminator(',');
        let labels = labels.map(|label| {
            let (name, value) = label.split_once('=').unwrap();
            (name.to_owned(), value.trim_matches('"').to_owned())
        });
        let name = match name {
            "hedgerow_call_seconds_count" => continue,
            "hedgerow_call_seconds_bucket" => "hedgerow_call_seconds_bucket_total",
            "hedgerow_call_seconds_sum" => "hedgerow_call_seconds_sum_total",
            name => name,
        };
        series.insert((name.to_owned(), labels.collect()), value.parse().unwrap());
    }
    series
}

/// Calls of every kind: answered, hedged and won, refused, failed, not eligible.
async fn traffic(route: &Route) {
    let soon = Does::Answers(MS);
    let slow = Does::Answers(200 * MS);
    let hedged = call(route, Call::idempotent(), Does::Never, soon).await;
    assert_eq!(hedged.unwrap().as_str(), "hedge");
    let marked = Call::idempotent().already_hedge(true);
    call(route, marked, slow, soon).await.unwrap();
    call(route, Call::idempotent(), Does::Fails, soon)
        .await
        .unwrap_err();
    call(route, Call::not_idempotent(), soon, soon)
        .await
        .unwrap();
}

fn of<'a>(series: &'a Series, name: &str) -> Vec<(&'a BTreeSet<(String, String)>, f64)> {
    let same = |key: &&(String, BTreeSet<(String, String)>)| key.0 == name;
    series
        .keys()
        .filter(same)
        .map(|key| (&key.1, series[key]))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn meter_and_registry_show_the_same_figures_instrument_by_instrument() {
    let (host, registry) = (Host::new(), Registry::new());
    let agent = Agent::builder()
        .service("shop")
        .registry(registry.clone())
        .meter(host.meter())
        .connect()
        .await
        .unwrap();
    let route = warm(&agent).await;
    traffic(&route).await;

    let (metered, scraped) = (host.collect(), scraped(&registry));
    let bare: Series = metered
        .iter()
        .map(|((name, attributes), &value)| {
            let mut attributes = attributes.clone();
            let instance = (INSTANCE.to_owned(), agent.instance().to_string());
            assert!(attributes.remove(&instance), "{name} says whose it is");
            ((name.clone(), attributes), value)
        })
        .collect();
    for (key, value) in &bare {
        assert_eq!(scraped.get(key), Some(value), "{key:?}");
    }
    assert_eq!(scraped.len(), bare.len(), "and nothing else");
    assert_eq!(
        of(&bare, "hedgerow_call_seconds_bucket_total").len(),
        21,
        "nobody is held out"
    );
    let totals = route.snapshot().totals;
    assert!(totals.won == 1 && totals.failed == 1 && totals.not_eligible == 1);
    let sum: f64 = of(&bare, "hedgerow_crossed_total")
        .iter()
        .map(|s| s.1)
        .sum();
    assert_eq!(sum, totals.crossed as f64);
}

#[tokio::test(start_paused = true)]
async fn two_agents_share_a_meter_and_each_leaves_it_when_it_ends() {
    let host = Host::new();
    let start = || {
        Agent::builder()
            .service("shop")
            .meter(host.meter())
            .connect()
    };
    let (one, other) = (start().await.unwrap(), start().await.unwrap());
    let routes = [
        one.route("catalog", "get").build().unwrap(),
        other.route("catalog", "get").build().unwrap(),
    ];
    let soon = Does::Answers(MS);
    for (route, calls) in routes.iter().zip([3, 5]) {
        for _ in 0..calls {
            call(route, Call::idempotent(), soon, soon).await.unwrap();
        }
    }
    let sent = |series: &Series, agent: &str| {
        let with = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        of(series, "hedgerow_attempts_total")
            .into_iter()
            .find(|(labels, _)| {
                labels.contains(&with(INSTANCE, agent))
                    && labels.contains(&with("kind", "primary"))
                    && labels.contains(&with("outcome", "sent"))
            })
            .map(|(_, value)| value)
    };
    let names = [&one, &other].map(|agent| agent.instance().to_string());
    let both = host.collect();
    assert_eq!(
        names.each_ref().map(|name| sent(&both, name)),
        [Some(3.0), Some(5.0)]
    );

    let [route, other_route] = routes;
    drop((one, route));
    for _ in 0..10 {
        yield_now().await;
    }
    let left = host.collect();
    assert_eq!(
        names.each_ref().map(|name| sent(&left, name)),
        [None, Some(5.0)]
    );
    drop((other, other_route));
    for _ in 0..10 {
        yield_now().await;
    }
    assert_eq!(host.collect(), Series::new());
}

#[tokio::test(start_paused = true)]
async fn a_mode_that_is_over_is_no_longer_shown() {
    let host = Host::new();
    let agent = Agent::builder()
        .service("shop")
        .meter(host.meter())
        .connect()
        .await
        .unwrap();
    let route = warm(&agent).await;
    let mode = || {
        let series = host.collect();
        let [(labels, 1.0)] = of(&series, "hedgerow_mode")[..] else {
            panic!("{series:?}");
        };
        let label = labels.iter().find(|(name, _)| name == "mode");
        label.unwrap().1.clone()
    };
    assert_eq!(mode(), "on");
    for _ in 0..600 {
        let _ = call(&route, Call::idempotent(), Does::Fails, Does::Fails).await;
        tokio::time::sleep(10 * MS).await;
    }
    assert_eq!(mode(), "off");
}

#[tokio::test(start_paused = true)]
async fn forty_seven_routes_keep_within_the_sdks_limit() {
    let host = Host::new();
    let agent = Agent::builder()
        .service("shop")
        .meter(host.meter())
        .connect()
        .await
        .unwrap();
    let held_out = PolicyDraft {
        holdout: 0.2,
        ..hedging_policy().into()
    };
    let held_out = Policy::try_from(held_out).unwrap();
    let build = |nth| {
        let route = agent.route("catalog", &format!("get-{nth}"));
        route.hedge_standalone(held_out.clone()).build()
    };
    let routes: Vec<_> = (0..47).map(|nth| build(nth).unwrap()).collect();
    let soon = Does::Answers(Duration::ZERO);
    for route in &routes {
        let both_arms = |now: RouteSnapshot| !now.treated.is_empty() && !now.holdout.is_empty();
        while !both_arms(route.snapshot()) {
            call(route, Call::idempotent(), soon, soon).await.unwrap();
        }
    }
    let series = host.collect();
    let buckets = of(&series, "hedgerow_call_seconds_bucket_total");
    assert_eq!(buckets.len(), 42 * routes.len());
    let overflow = |labels: &BTreeSet<(String, String)>| {
        labels
            .iter()
            .any(|(name, _)| name == "otel.metric.overflow")
    };
    assert!(!series.keys().any(|(_, labels)| overflow(labels)));
}
