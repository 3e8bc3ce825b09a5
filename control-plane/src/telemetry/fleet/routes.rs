//! What is shown of each route.

use std::collections::HashMap;
use std::time::Duration;

use hedgerow_core::view::{Figures, FleetSnapshot, Named, RouteView};
use hedgerow_protocol::directive::OffReason;
use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::report::{Refusal, Totals};
use prometheus::core::Collector;
use prometheus::proto::MetricFamily;

use super::super::families as f;
use super::whole;

/// The present figures. What cannot be known has no sample: 0 would be a lie.
pub(super) fn figures(snapshot: &FleetSnapshot) -> Vec<MetricFamily> {
    let [hedge_rate, demand, win_rate, win_rate_expected] = [
        f::HEDGE_RATE.levels(),
        f::DEMAND.levels(),
        f::WIN_RATE.levels(),
        f::WIN_RATE_EXPECTED.levels(),
    ];
    let [error_rate, threshold, budget, calls] = [
        f::ERROR_RATE.levels(),
        f::THRESHOLD.levels(),
        f::BUDGET.levels(),
        f::CALLS_PER_SECOND.levels(),
    ];
    let latency = f::LATENCY.levels();
    for route in snapshot.routes.values() {
        let Some(figures) = &route.figures else {
            continue;
        };
        let labels = labels(route);
        for (gauge, value) in [
            (&hedge_rate, figures.hedge_rate),
            (&demand, figures.demand),
            (&win_rate, figures.win_rate),
            (&win_rate_expected, figures.win_rate_expected),
            (&error_rate, figures.error_rate),
            (&threshold, figures.threshold.map(|it| it.as_secs_f64())),
            (&budget, Some(figures.budget)),
            (&calls, Some(figures.calls_per_s)),
        ] {
            if let Some(value) = value {
                gauge.with_label_values(&labels).set(value);
            }
        }
        for (of, quantile, value) in latencies(figures) {
            if let Some(value) = value {
                latency
                    .with_label_values(&[labels[0], labels[1], of, quantile])
                    .set(value.as_secs_f64());
            }
        }
    }
    [
        &hedge_rate,
        &demand,
        &win_rate,
        &win_rate_expected,
        &error_rate,
        &threshold,
        &budget,
        &calls,
        &latency,
    ]
    .into_iter()
    .flat_map(Collector::collect)
    .collect()
}

fn latencies(figures: &Figures) -> [(&'static str, &'static str, Option<Duration>); 5] {
    [
        ("primaries", "0.5", figures.p50),
        ("primaries", "0.95", figures.p95),
        ("primaries", "0.99", figures.p99),
        ("treated", "0.99", figures.treated_p99),
        ("holdout", "0.99", figures.holdout_p99),
    ]
}

/// What agents are told, and how far that has got.
pub(super) fn told(snapshot: &FleetSnapshot) -> Vec<MetricFamily> {
    let mode = f::MODE.wholes();
    let named = f::REPLICA_NAMED.wholes();
    let [reporting, holding, refusing] = [
        f::AGENTS_REPORTING.wholes(),
        f::AGENTS_HOLDING.wholes(),
        f::AGENTS_REFUSING.wholes(),
    ];
    for route in snapshot.routes.values() {
        let labels = labels(route);
        let reason = route.mode.reason().map_or("", OffReason::as_str);
        mode.with_label_values(&[labels[0], labels[1], route.mode.as_str(), reason])
            .set(1);
        for (gauge, count) in [
            (&reporting, route.acked.m),
            (&holding, route.acked.n),
            (&refusing, route.refusals.len() as u64),
        ] {
            gauge.with_label_values(&labels).set(whole(count));
        }
        for replica in &route.replicas {
            let Some(why) = replica.named else { continue };
            let why = match why {
                Named::Slow => "slow",
                Named::Failing => "failing",
            };
            named
                .with_label_values(&[labels[0], labels[1], replica.replica.as_str(), why])
                .set(1);
        }
    }
    [&mode, &named, &reporting, &holding, &refusing]
        .into_iter()
        .flat_map(Collector::collect)
        .collect()
}

/// Hedges that had not answered first, by route, as they were shown last. A hedge under way counts
/// among them until it wins, and a counter must not fall: what was shown stays until it is exceeded.
pub(super) type Wasted = HashMap<RouteKey, u64>;

/// What agents have counted since this controller started (B86).
pub(super) fn counted(snapshot: &FleetSnapshot, wasted: &mut Wasted) -> Vec<MetricFamily> {
    wasted.retain(|route, _| snapshot.routes.contains_key(route));
    let routes = snapshot.routes.iter();
    counters(
        routes.map(|(key, route)| (key, &route.totals, route.seconds_over_budget)),
        wasted,
    )
}

/// Every reason is there from the start: a rate over a counter that appears at 5 would not see
/// these five.
fn counters<'a>(
    routes: impl Iterator<Item = (&'a RouteKey, &'a Totals, u64)>,
    wasted: &mut Wasted,
) -> Vec<MetricFamily> {
    let [started, finished, failed, crossed, push_back] = [
        f::CALLS.counters(),
        f::FINISHED.counters(),
        f::FAILED.counters(),
        f::CROSSED.counters(),
        f::PUSH_BACK.counters(),
    ];
    let [hedged, won, lost, over, refused] = [
        f::HEDGES.counters(),
        f::WON.counters(),
        f::WASTED.counters(),
        f::OVER_BUDGET.counters(),
        f::REFUSED.counters(),
    ];
    for (key, totals, seconds_over_budget) in routes {
        let labels = [key.dependency.as_str(), key.operation.as_str()];
        let not_won = totals.hedges().saturating_sub(totals.hedges_won());
        let shown = wasted.entry(key.clone()).or_default();
        *shown = not_won.max(*shown);
        for (counter, count) in [
            (&started, totals.started),
            (&finished, totals.finished),
            (&failed, totals.failed),
            (&crossed, totals.crossed),
            (&push_back, totals.push_back),
            (&hedged, totals.hedges()),
            (&won, totals.hedges_won()),
            (&lost, *shown),
            (&over, seconds_over_budget),
        ] {
            counter.with_label_values(&labels).inc_by(count);
        }
        for reason in Refusal::ALL {
            refused
                .with_label_values(&[labels[0], labels[1], reason.as_str()])
                .inc_by(totals.refused_for(reason));
        }
    }
    [
        &started, &finished, &failed, &crossed, &push_back, &hedged, &won, &lost, &over, &refused,
    ]
    .into_iter()
    .flat_map(Collector::collect)
    .collect()
}

fn labels(route: &RouteView) -> [&str; 2] {
    [
        route.route.dependency.as_str(),
        route.route.operation.as_str(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(families: &[MetricFamily], name: &str) -> Vec<u64> {
        let name = format!("hedgerow_controller_{name}");
        let family = families.iter().find(|it| it.name() == name).unwrap();
        let metrics = family.get_metric().iter();
        metrics
            .map(|it| it.get_counter().get_value() as u64)
            .collect()
    }

    #[test]
    fn b86_hedges_wins_wasted_and_each_refusal_are_counters_that_never_fall() {
        let route = RouteKey::new("catalog", "get").unwrap();
        let mut wasted = Wasted::new();
        let mut totals = Totals {
            started: 100,
            hedged: 10,
            won: 6,
            ..Totals::default()
        };
        totals.refused[Refusal::Budget as usize] = 3;
        let families = counters([(&route, &totals, 0)].into_iter(), &mut wasted);
        assert_eq!(shown(&families, "hedges_total"), [10]);
        assert_eq!(shown(&families, "hedges_won_total"), [6]);
        assert_eq!(shown(&families, "hedges_wasted_total"), [4]);
        let refused = shown(&families, "hedges_refused_total");
        assert_eq!(refused.len(), Refusal::ALL.len());
        assert_eq!(refused.iter().sum::<u64>(), 3);
        // One of the four was under way, and wins.
        totals.won = 7;
        let families = counters([(&route, &totals, 0)].into_iter(), &mut wasted);
        assert_eq!(shown(&families, "hedges_wasted_total"), [4]);
        totals.hedged = 13;
        let families = counters([(&route, &totals, 0)].into_iter(), &mut wasted);
        assert_eq!(shown(&families, "hedges_wasted_total"), [6]);
        counted(&FleetSnapshot::default(), &mut wasted);
        assert!(
            wasted.is_empty(),
            "nothing is kept for routes that are gone"
        );
    }
}
