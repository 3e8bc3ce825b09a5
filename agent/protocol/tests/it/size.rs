//! How large a report is.

use std::time::Duration;

use hedgerow_protocol::latency::{Histogram, SparseHistogram};
use hedgerow_protocol::limits::MESSAGE_BYTES_MAX;
use hedgerow_protocol::report::{Attempts, ReplicaReport, RouteReport};
use hedgerow_protocol::session::SentReport;
use hedgerow_protocol::wire::proto;
use prost::Message as _;

use crate::good;

const KIB: usize = 1024;

/// A log-normal service (median 20 ms, sigma 0.5), from a fixed sequence.
fn service(calls: u32) -> SparseHistogram {
    let mut histogram = Histogram::new();
    for i in 0..calls {
        let u = (f64::from(i) + 0.5) / f64::from(calls);
        let v = (f64::from(i) * 0.618_033_988_749_895).fract();
        let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
        histogram.record(Duration::from_secs_f64(0.020 * (0.5 * normal).exp()));
    }
    histogram.to_sparse()
}

/// A route with `calls` calls since the last report, in the tenth hour of the agent.
fn busy(mut route: RouteReport, calls: u32, replicas: u32) -> RouteReport {
    let since_start = u64::from(calls) * 36_000;
    let totals = &mut route.totals;
    totals.started = since_start;
    totals.finished = since_start - 3;
    totals.holdout_finished = since_start / 100;
    totals.treated_finished = totals.finished - totals.holdout_finished;
    totals.primary_finished = since_start * 96 / 100;
    totals.crossed = since_start / 20;
    totals.hedged = since_start / 22;
    totals.won = since_start / 40;
    totals.hedge_finished = since_start / 40;
    totals.refused[1] = since_start / 2000;
    route.primary = Attempts {
        done: service(calls * 19 / 20),
        censored: service(calls / 20),
    };
    route.hedge = Attempts {
        done: service(calls / 40),
        censored: service(calls / 50),
    };
    route.treated = service(calls * 99 / 100);
    route.holdout = service(calls / 100);
    route.in_flight = service(calls / 300);
    let share = calls / replicas.max(1);
    let replica = route.replicas.remove(0);
    route.replicas = (0..replicas)
        .map(|i| ReplicaReport {
            replica: format!("10.0.0.{i}:8080").parse().unwrap(),
            started: share.into(),
            crossed: u64::from(share / 20),
            finished: u64::from(share * 19 / 20),
            errors: 0,
            hedged: u64::from(share / 22),
            won: u64::from(share / 40),
            primary: Attempts {
                done: service(share * 19 / 20),
                censored: service(share / 20),
            },
            ..replica.clone()
        })
        .collect();
    route
}

fn report(routes: usize, calls: u32, replicas: u32) -> usize {
    let mut sent = good::sent_report(routes);
    let routes = sent
        .report
        .routes
        .drain(..)
        .map(|route| busy(route, calls, replicas))
        .collect();
    sent.report.routes = routes;
    encoded(&sent)
}

fn encoded(sent: &SentReport) -> usize {
    proto::Report::from(sent).encoded_len()
}

#[test]
fn a_report_is_small() {
    for (routes, calls, replicas, most) in [
        (1, 1000, 0, 2 * KIB),
        // Eight dependencies in a second of an agent, which is what the bar of 2 KB is about: it
        // holds to some fifty calls a second on each. Beyond, what grows is the histograms.
        (8, 10, 0, 5 * KIB / 4),
        (8, 50, 0, 2 * KIB),
        (8, 1000, 0, 6 * KIB),
        (8, 1000, 16, 20 * KIB),
        // The largest there can be, in the words of limits.rs.
        (64, 1000, 16, MESSAGE_BYTES_MAX / 4),
    ] {
        let bytes = report(routes, calls, replicas);
        assert!(
            bytes <= most,
            "{routes} routes, {calls} calls and {replicas} replicas on each: {bytes} bytes, {most}"
        );
    }
}

#[test]
fn a_route_without_traffic_costs_little_more_than_its_name() {
    let empty = encoded(&good::sent_report(0));
    assert!(empty < 32, "{empty}");
    let mut idle = good::sent_report(1);
    let route = &mut idle.report.routes[0];
    route.primary = Attempts::default();
    route.treated = SparseHistogram::default();
    route.replicas.clear();
    let one = encoded(&idle) - empty;
    assert!(one < 128, "{one}");
}
