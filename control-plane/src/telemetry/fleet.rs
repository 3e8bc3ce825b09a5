//! The fleet's figures as metrics, made from the published snapshot when somebody asks: nothing is
//! kept for routes that are gone.

use hedgerow_core::view::{AgentState, AlertPhase, FleetSnapshot, RouteView};
use hedgerow_protocol::report::Refusal;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{GaugeVec, IntCounterVec, IntGaugeVec, Opts};

use crate::engine::Engine;

const ROUTE: &[&str] = &["dependency", "operation"];

/// Collects from the newest snapshot.
#[derive(Debug)]
pub(super) struct FleetCollector {
    engine: Engine,
    desc: Desc,
}

impl FleetCollector {
    pub(super) fn new(engine: Engine) -> Self {
        let desc = Desc::new(
            "hedgerow_controller_agents".into(),
            "Agents, by how they stand.".into(),
            vec!["state".into()],
            std::collections::HashMap::new(),
        )
        .expect("the names in this file are valid");
        Self { engine, desc }
    }
}

impl Collector for FleetCollector {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.desc]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let snapshot = self.engine.snapshot();
        let mut families = controller(&snapshot);
        families.extend(routes(&snapshot));
        families.extend(counted(&snapshot));
        families
    }
}

fn gauges(name: &str, help: &str, labels: &[&str]) -> GaugeVec {
    let name = format!("hedgerow_controller_{name}");
    GaugeVec::new(Opts::new(name, help), labels).expect("the names in this file are valid")
}

fn int_gauges(name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
    let name = format!("hedgerow_controller_{name}");
    IntGaugeVec::new(Opts::new(name, help), labels).expect("the names in this file are valid")
}

fn counters(name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    let name = format!("hedgerow_controller_{name}");
    IntCounterVec::new(Opts::new(name, help), labels).expect("the names in this file are valid")
}

fn controller(snapshot: &FleetSnapshot) -> Vec<MetricFamily> {
    let reports = counters(
        "reports_total",
        "Reports of agents, by outcome.",
        &["outcome"],
    );
    let it = &snapshot.controller;
    for (outcome, count) in [
        ("counted", it.reports),
        ("refused", it.reports_refused),
        ("duplicate", it.reports_duplicate),
        ("undecodable", it.undecodable),
    ] {
        reports.with_label_values(&[outcome]).inc_by(count);
    }
    let agents = int_gauges("agents", "Agents, by how they stand.", &["state"]);
    for (state, name) in [
        (AgentState::Live, "live"),
        (AgentState::Stale, "stale"),
        (AgentState::Lost, "lost"),
        (AgentState::Left, "left"),
    ] {
        let count = snapshot
            .agents
            .iter()
            .filter(|agent| agent.state == state)
            .count();
        agents.with_label_values(&[name]).set(whole(count as u64));
    }
    let firing = int_gauges("alerts_firing", "Alerts that fire, by rule.", &["rule"]);
    for alert in snapshot
        .alerts
        .iter()
        .filter(|it| it.phase == AlertPhase::Firing)
    {
        firing.with_label_values(&[alert.state.rule.as_str()]).inc();
    }
    let pending = int_gauges("writes_pending", "Writes that are not durable yet.", &[]);
    pending
        .with_label_values::<&str>(&[])
        .set(whole(it.writes_pending));
    let epoch = int_gauges("epoch", "The life of the store.", &[]);
    epoch
        .with_label_values::<&str>(&[])
        .set(whole(snapshot.epoch.0));
    [
        reports.collect(),
        agents.collect(),
        firing.collect(),
        pending.collect(),
        epoch.collect(),
    ]
    .concat()
}

fn routes(snapshot: &FleetSnapshot) -> Vec<MetricFamily> {
    let hedge_rate = gauges("hedge_rate", "Hedges sent / eligible calls started.", ROUTE);
    let demand = gauges(
        "demand",
        "Calls that crossed on replicas not named, times the share hedged / eligible calls started.",
        ROUTE,
    );
    let win_rate = gauges(
        "win_rate",
        "Hedges that answered first / hedges sent.",
        ROUTE,
    );
    let error_rate = gauges("error_rate", "Primary errors / primaries finished.", ROUTE);
    let threshold = gauges("threshold_seconds", "When a call may be hedged.", ROUTE);
    let budget = gauges(
        "budget",
        "Hedges allowed as a share of finished calls.",
        ROUTE,
    );
    let calls = gauges("calls_per_second", "Eligible calls a second.", ROUTE);
    let mode = int_gauges(
        "mode",
        "1 for the mode in force.",
        &["dependency", "operation", "mode", "reason"],
    );
    for route in snapshot.routes.values() {
        let labels = labels(route);
        let reason = route
            .mode
            .reason()
            .map_or("", hedgerow_protocol::directive::OffReason::as_str);
        mode.with_label_values(&[labels[0], labels[1], route.mode.as_str(), reason])
            .set(1);
        // What cannot be known has no sample: 0 would be a lie.
        let Some(figures) = &route.figures else {
            continue;
        };
        for (gauge, value) in [
            (&hedge_rate, figures.hedge_rate),
            (&demand, figures.demand),
            (&win_rate, figures.win_rate),
            (&error_rate, figures.error_rate),
            (&threshold, figures.threshold.map(|it| it.as_secs_f64())),
            (&budget, Some(figures.budget)),
            (&calls, Some(figures.calls_per_s)),
        ] {
            if let Some(value) = value {
                gauge.with_label_values(&labels).set(value);
            }
        }
    }
    [
        hedge_rate.collect(),
        demand.collect(),
        win_rate.collect(),
        error_rate.collect(),
        threshold.collect(),
        budget.collect(),
        calls.collect(),
        mode.collect(),
    ]
    .concat()
}

/// What agents have counted since this controller started (B86).
fn counted(snapshot: &FleetSnapshot) -> Vec<MetricFamily> {
    let started = counters("calls_total", "Eligible calls started.", ROUTE);
    let crossed = counters("crossed_total", "Calls unanswered at the threshold.", ROUTE);
    let hedged = counters("hedges_total", "Hedges sent.", ROUTE);
    let won = counters("hedges_won_total", "Hedges that answered first.", ROUTE);
    let over = counters(
        "over_budget_seconds_total",
        "Seconds with more hedges than the budget allows.",
        ROUTE,
    );
    let refused = counters(
        "hedges_refused_total",
        "Crossed calls that were not hedged, by reason.",
        &["dependency", "operation", "reason"],
    );
    for route in snapshot.routes.values() {
        let (labels, totals) = (labels(route), &route.totals);
        for (counter, count) in [
            (&started, totals.started),
            (&crossed, totals.crossed),
            (&hedged, totals.hedges()),
            (&won, totals.won + totals.won_on_error),
            (&over, route.seconds_over_budget),
        ] {
            counter.with_label_values(&labels).inc_by(count);
        }
        for reason in Refusal::ALL {
            let count = totals.refused_for(reason);
            if count > 0 {
                refused
                    .with_label_values(&[labels[0], labels[1], reason.as_str()])
                    .inc_by(count);
            }
        }
    }
    [&started, &crossed, &hedged, &won, &over, &refused]
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

/// As a gauge has it; far beyond what any of these reaches.
fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
