//! Every metric of the agent, by name, in the host's registry.
//!
//! | metric | kind | labels beside `dependency`, `operation` |
//! |---|---|---|
//! | `hedgerow_calls_total` | counter | `arm` (treated, holdout: `outcome` answered, failed; eligible: started, abandoned; not_eligible: started) |
//! | `hedgerow_crossed_total` | counter | |
//! | `hedgerow_attempts_total` | counter | `kind` (primary, hedge), `outcome` (sent, finished, failed, won) |
//! | `hedgerow_refused_total` | counter | `reason` |
//! | `hedgerow_threshold_past_deadline_total` | counter | |
//! | `hedgerow_push_back_total` | counter | |
//! | `hedgerow_probation_skipped_total` | counter | |
//! | `hedgerow_call_seconds` | histogram | `arm` |
//! | `hedgerow_threshold_seconds` | gauge; absent where there is none | |
//! | `hedgerow_budget_ratio`, `hedgerow_tokens` | gauge | |
//! | `hedgerow_mode` | gauge, 1 for the mode in force | `mode`, `reason` |
//! | `hedgerow_no_effect` | gauge, 1 where hedging is on and can do nothing | `because` |
//! | `hedgerow_replica_named` | gauge, 1 for a replica named by the agent's own figures | `replica`, `why` |
//! | `hedgerow_attempts_in_flight`, `hedgerow_watched_losers` | gauge | |
//! | `hedgerow_link_state` | gauge, 1 for the state | `state`; without a route |
//! | `hedgerow_unreported_routes` | gauge | without a route |
//! | `hedgerow_directives_refused_total` | counter | by the agent; `scope` (directive, set); without a route |
//! | `hedgerow_reports_refused_total` | counter | by the controller; without a route |
//! | `hedgerow_policy_file_policies` | gauge | policies that hold; without a route; absent without a file |
//! | `hedgerow_policy_file_refused_total` | counter | contents refused, the last good one kept; as above |
//!
//! Read from the route's own counters when scraped: calls pay nothing for them.

use std::sync::{Arc, Weak};

use hedgerow_protocol::latency::{BUCKETS, Histogram, upper_edge_us};
use hedgerow_protocol::report::{LinkState, Refusal};
use prometheus::core::{Collector, Desc};
use prometheus::proto::{self, MetricFamily, MetricType};

use crate::agent::Shared;
use crate::host::NotTaken;
use crate::route::RouteState;

/// Buckets of ours to one of a classic histogram: a quarter of an octave, 128 bounds in all.
const BUCKETS_PER_BOUND: usize = 8;

/// Registers the agent's metrics. They end with the agent.
pub(crate) fn register(
    registry: &prometheus::Registry,
    shared: &Arc<Shared>,
) -> Result<(), prometheus::Error> {
    let descs = FAMILIES
        .iter()
        .map(Family::desc)
        .collect::<Result<_, _>>()?;
    registry.register(Box::new(AgentCollector {
        shared: Arc::downgrade(shared),
        descs,
    }))
}

struct Family {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    labels: &'static [&'static str],
    read: fn(&RouteState, &mut Samples<'_>),
}

impl Family {
    fn desc(&self) -> Result<Desc, prometheus::Error> {
        let labels = self.labels.iter().map(ToString::to_string).collect();
        Desc::new(
            self.name.into(),
            self.help.into(),
            labels,
            std::collections::HashMap::new(),
        )
    }
}

const ROUTE: &[&str] = &["dependency", "operation"];

const FAMILIES: &[Family] = &[
    Family {
        name: "hedgerow_calls_total",
        help: "Calls, by arm and how they ended.",
        kind: MetricType::COUNTER,
        labels: &["dependency", "operation", "arm", "outcome"],
        read: calls,
    },
    Family {
        name: "hedgerow_crossed_total",
        help: "Eligible calls still unanswered at the threshold, hedged or not.",
        kind: MetricType::COUNTER,
        labels: ROUTE,
        read: |route, out| out.counter(&[], route.recorder.totals().crossed),
    },
    Family {
        name: "hedgerow_attempts_total",
        help: "Attempts of eligible calls, by kind and outcome.",
        kind: MetricType::COUNTER,
        labels: &["dependency", "operation", "kind", "outcome"],
        read: attempts,
    },
    Family {
        name: "hedgerow_refused_total",
        help: "Crossed calls that were not hedged, by reason.",
        kind: MetricType::COUNTER,
        labels: &["dependency", "operation", "reason"],
        read: refused,
    },
    Family {
        name: "hedgerow_threshold_past_deadline_total",
        help: "Eligible calls whose deadline came no later than the threshold: never hedged.",
        kind: MetricType::COUNTER,
        labels: ROUTE,
        read: |route, out| out.counter(&[], route.recorder.totals().threshold_past_deadline),
    },
    Family {
        name: "hedgerow_push_back_total",
        help: "Attempts answered with push-back.",
        kind: MetricType::COUNTER,
        labels: ROUTE,
        read: |route, out| out.counter(&[], route.recorder.totals().push_back),
    },
    Family {
        name: "hedgerow_probation_skipped_total",
        help: "Picks of a replica that its probation turned away.",
        kind: MetricType::COUNTER,
        labels: ROUTE,
        read: |route, out| out.counter(&[], route.recorder.totals().probation_skipped),
    },
    Family {
        name: "hedgerow_call_seconds",
        help: "What callers waited for eligible calls, by arm.",
        kind: MetricType::HISTOGRAM,
        labels: &["dependency", "operation", "arm"],
        read: latencies,
    },
    Family {
        name: "hedgerow_threshold_seconds",
        help: "How long a call may stay unanswered before it may be hedged.",
        kind: MetricType::GAUGE,
        labels: ROUTE,
        read: |route, out| {
            if let Some(threshold) = route.gate.threshold() {
                out.gauge(&[], threshold.as_secs_f64());
            }
        },
    },
    Family {
        name: "hedgerow_budget_ratio",
        help: "Hedges earned by each eligible finished call.",
        kind: MetricType::GAUGE,
        labels: ROUTE,
        read: |route, out| out.gauge(&[], route.bucket.budget()),
    },
    Family {
        name: "hedgerow_tokens",
        help: "Hedges the budget has saved up.",
        kind: MetricType::GAUGE,
        labels: ROUTE,
        read: |route, out| out.gauge(&[], route.bucket.tokens()),
    },
    Family {
        name: "hedgerow_mode",
        help: "1 for the mode in force, with its reason.",
        kind: MetricType::GAUGE,
        labels: &["dependency", "operation", "mode", "reason"],
        read: |route, out| {
            let mode = route.effective().mode;
            let reason = mode.reason().map_or("", |reason| reason.as_str());
            out.gauge(&[("mode", mode.as_str()), ("reason", reason)], 1.0);
        },
    },
    Family {
        name: "hedgerow_no_effect",
        help: "1 where hedging is on and can do nothing, with the reason.",
        kind: MetricType::GAUGE,
        labels: &["dependency", "operation", "because"],
        read: |route, out| {
            if let (_, Some(because)) = route.findings() {
                out.gauge(&[("because", because.as_str())], 1.0);
            }
        },
    },
    Family {
        name: "hedgerow_replica_named",
        help: "1 for each replica that is what is slow or failing, by the agent's own figures.",
        kind: MetricType::GAUGE,
        labels: &["dependency", "operation", "replica", "why"],
        read: |route, out| {
            for named in route.findings().0 {
                let labels = [
                    ("replica", named.replica.as_str()),
                    ("why", named.why.as_str()),
                ];
                out.gauge(&labels, 1.0);
            }
        },
    },
    Family {
        name: "hedgerow_attempts_in_flight",
        help: "Attempts alive, held permits among them.",
        kind: MetricType::GAUGE,
        labels: ROUTE,
        read: |route, out| out.gauge(&[], route.attempts_alive() as f64),
    },
    Family {
        name: "hedgerow_watched_losers",
        help: "Losers let finish, to know the joint tail.",
        kind: MetricType::GAUGE,
        labels: ROUTE,
        read: |route, out| {
            let watched = route.watched.load(std::sync::atomic::Ordering::Relaxed);
            out.gauge(&[], f64::from(watched));
        },
    },
    // These are the agent's, not a route's: see `of_the_agent`.
    Family {
        name: LINK_STATE,
        help: "1 for how the agent stands towards its controller.",
        kind: MetricType::GAUGE,
        labels: &["state"],
        read: |_, _| {},
    },
    Family {
        name: UNREPORTED_ROUTES,
        help: "Routes beyond the most that an agent reports.",
        kind: MetricType::GAUGE,
        labels: &[],
        read: |_, _| {},
    },
    Family {
        name: DIRECTIVES_REFUSED,
        help: "Directives, and sets of them, that the agent did not take; what was held stays.",
        kind: MetricType::COUNTER,
        labels: &["scope"],
        read: |_, _| {},
    },
    Family {
        name: REPORTS_REFUSED,
        help: "Reports the controller did not take.",
        kind: MetricType::COUNTER,
        labels: &[],
        read: |_, _| {},
    },
    Family {
        name: POLICY_FILE_POLICIES,
        help: "Policies of the policy file that hold.",
        kind: MetricType::GAUGE,
        labels: &[],
        read: |_, _| {},
    },
    Family {
        name: POLICY_FILE_REFUSED,
        help: "Contents of the policy file that were refused; the last good one holds.",
        kind: MetricType::COUNTER,
        labels: &[],
        read: |_, _| {},
    },
];

const LINK_STATE: &str = "hedgerow_link_state";
const UNREPORTED_ROUTES: &str = "hedgerow_unreported_routes";
const DIRECTIVES_REFUSED: &str = "hedgerow_directives_refused_total";
const REPORTS_REFUSED: &str = "hedgerow_reports_refused_total";
const POLICY_FILE_POLICIES: &str = "hedgerow_policy_file_policies";
const POLICY_FILE_REFUSED: &str = "hedgerow_policy_file_refused_total";

fn calls(route: &RouteState, out: &mut Samples<'_>) {
    let t = route.recorder.totals();
    let outcomes = |finished: u64, failed: u64| [finished.saturating_sub(failed), failed];
    for (arm, [answered, failed]) in [
        ("treated", outcomes(t.treated_finished, t.treated_failed)),
        ("holdout", outcomes(t.holdout_finished, t.holdout_failed)),
    ] {
        out.counter(&[("arm", arm), ("outcome", "answered")], answered);
        out.counter(&[("arm", arm), ("outcome", "failed")], failed);
    }
    out.counter(&[("arm", "eligible"), ("outcome", "started")], t.started);
    out.counter(
        &[("arm", "eligible"), ("outcome", "abandoned")],
        t.abandoned,
    );
    out.counter(
        &[("arm", "not_eligible"), ("outcome", "started")],
        t.not_eligible,
    );
}

fn attempts(route: &RouteState, out: &mut Samples<'_>) {
    let t = route.recorder.totals();
    for (kind, outcome, count) in [
        ("primary", "sent", t.started),
        ("primary", "finished", t.primary_finished),
        ("primary", "failed", t.primary_errors),
        ("hedge", "sent", t.hedged),
        ("hedge", "finished", t.hedge_finished),
        ("hedge", "failed", t.hedge_errors),
        ("hedge", "won", t.won),
    ] {
        out.counter(&[("kind", kind), ("outcome", outcome)], count);
    }
}

fn refused(route: &RouteState, out: &mut Samples<'_>) {
    let totals = route.recorder.totals();
    for reason in Refusal::ALL {
        out.counter(&[("reason", reason.as_str())], totals.refused_for(reason));
    }
}

fn latencies(route: &RouteState, out: &mut Samples<'_>) {
    for (arm, histogram) in ["treated", "holdout"].into_iter().zip(route.lifetime()) {
        out.histogram(&[("arm", arm)], &histogram);
    }
}

fn label(name: &str, value: &str) -> proto::LabelPair {
    let mut pair = proto::LabelPair::default();
    pair.set_name(name.to_owned());
    pair.set_value(value.to_owned());
    pair
}

/// The samples of one family.
struct Samples<'a> {
    route: Option<&'a RouteState>,
    metrics: Vec<proto::Metric>,
}

impl Samples<'_> {
    fn labelled(&self, labels: &[(&str, &str)]) -> proto::Metric {
        let route = self.route.iter().flat_map(|route| {
            [
                ("dependency", route.key.dependency.as_str()),
                ("operation", route.key.operation.as_str()),
            ]
        });
        let labels = route.chain(labels.iter().copied());
        proto::Metric::from_label(labels.map(|(name, value)| label(name, value)).collect())
    }

    fn counter(&mut self, labels: &[(&str, &str)], value: u64) {
        let mut metric = self.labelled(labels);
        let mut counter = proto::Counter::default();
        counter.set_value(value as f64);
        metric.set_counter(counter);
        self.metrics.push(metric);
    }

    fn gauge(&mut self, labels: &[(&str, &str)], value: f64) {
        let mut metric = self.labelled(labels);
        let mut gauge = proto::Gauge::default();
        gauge.set_value(value);
        metric.set_gauge(gauge);
        self.metrics.push(metric);
    }

    /// The sum is that of the buckets' middles: within 1.1 %, for a mean on a chart.
    fn histogram(&mut self, labels: &[(&str, &str)], histogram: &Histogram) {
        let mut metric = self.labelled(labels);
        let (mut count, mut sum_us) = (0, 0.0);
        let mut bounds = Vec::with_capacity(BUCKETS / BUCKETS_PER_BOUND + 1);
        for bucket in 0..BUCKETS {
            let here = histogram.in_bucket(bucket);
            let below = bucket.checked_sub(1).map_or(0.0, upper_edge_us);
            count += here;
            sum_us += here as f64 * (below + upper_edge_us(bucket)) / 2.0;
            if bucket % BUCKETS_PER_BOUND == 0 {
                let mut bound = proto::Bucket::default();
                bound.set_upper_bound(upper_edge_us(bucket) / 1e6);
                bound.set_cumulative_count(count);
                bounds.push(bound);
            }
        }
        let mut classic = proto::Histogram::default();
        classic.set_sample_count(count);
        classic.set_sample_sum(sum_us / 1e6);
        classic.set_bucket(bounds);
        metric.set_histogram(classic);
        self.metrics.push(metric);
    }
}

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
        let routes = shared.routes();
        FAMILIES
            .iter()
            .filter_map(|family| {
                let mut out = Samples {
                    route: None,
                    metrics: Vec::new(),
                };
                for route in &routes {
                    out.route = Some(route);
                    (family.read)(route, &mut out);
                }
                out.route = None;
                of_the_agent(family.name, &shared, &mut out);
                (!out.metrics.is_empty()).then(|| {
                    let mut collected = MetricFamily::default();
                    collected.set_name(family.name.to_owned());
                    collected.set_help(family.help.to_owned());
                    collected.set_field_type(family.kind);
                    collected.set_metric(out.metrics);
                    collected
                })
            })
            .collect()
    }
}

fn of_the_agent(name: &str, shared: &Shared, out: &mut Samples<'_>) {
    match name {
        LINK_STATE => {
            let now = shared.link_state();
            for state in [LinkState::Live, LinkState::Stale, LinkState::Fallback] {
                out.gauge(
                    &[("state", state.as_str())],
                    if state == now { 1.0 } else { 0.0 },
                );
            }
        }
        UNREPORTED_ROUTES => out.gauge(&[], shared.unreported_routes() as f64),
        DIRECTIVES_REFUSED => {
            for (scope, what) in [("directive", NotTaken::Directive), ("set", NotTaken::Set)] {
                out.counter(&[("scope", scope)], shared.times_not_taken(what));
            }
        }
        REPORTS_REFUSED => out.counter(&[], shared.times_not_taken(NotTaken::Report)),
        POLICY_FILE_POLICIES => {
            if let Some(file) = &shared.policy_file {
                out.gauge(&[], file.policies().len() as f64);
            }
        }
        POLICY_FILE_REFUSED => {
            if let Some(file) = &shared.policy_file {
                out.counter(&[], file.refused());
            }
        }
        _ => {}
    }
}
