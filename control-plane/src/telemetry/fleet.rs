//! The fleet's figures as metrics, made from the published snapshot when somebody asks: nothing is
//! kept for routes that are gone.

mod routes;

use hedgerow_core::event::KillScope;
use hedgerow_core::view::{AgentState, AlertPhase, FleetSnapshot};
use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;

use self::routes::Wasted;
use super::families as f;
use crate::engine::Engine;

/// What is collected here.
const FAMILIES: &[f::Family] = &[
    f::CALLS,
    f::FINISHED,
    f::FAILED,
    f::CROSSED,
    f::HEDGES,
    f::WON,
    f::WASTED,
    f::REFUSED,
    f::PUSH_BACK,
    f::OVER_BUDGET,
    f::HEDGE_RATE,
    f::DEMAND,
    f::WIN_RATE,
    f::WIN_RATE_EXPECTED,
    f::ERROR_RATE,
    f::LATENCY,
    f::THRESHOLD,
    f::BUDGET,
    f::CALLS_PER_SECOND,
    f::MODE,
    f::AGENTS_REPORTING,
    f::AGENTS_HOLDING,
    f::AGENTS_REFUSING,
    f::REPLICA_NAMED,
    f::AGENTS,
    f::ALERTS_FIRING,
    f::KILL_SWITCHES,
    f::ROUTES_BEYOND_CAP,
    f::INFO,
    f::STARTED,
    f::EPOCH,
    f::REPORTS,
    f::WRITES_PENDING,
];

/// Collects from the newest snapshot.
#[derive(Debug)]
pub(super) struct FleetCollector {
    engine: Engine,
    descs: Vec<Desc>,
    wasted: Mutex<Wasted>,
}

impl FleetCollector {
    pub(super) fn new(engine: Engine) -> Self {
        Self {
            engine,
            descs: FAMILIES.iter().map(f::Family::desc).collect(),
            wasted: Mutex::default(),
        }
    }
}

impl Collector for FleetCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descs.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let snapshot = self.engine.snapshot();
        let mut families = controller(&snapshot);
        families.extend(fleet(&snapshot));
        families.extend(routes::figures(&snapshot));
        families.extend(routes::told(&snapshot));
        families.extend(routes::counted(&snapshot, &mut self.wasted.lock()));
        families
    }
}

fn controller(snapshot: &FleetSnapshot) -> Vec<MetricFamily> {
    let it = &snapshot.controller;
    let reports = f::REPORTS.counters();
    for (outcome, count) in [
        ("counted", it.reports),
        ("refused", it.reports_refused),
        ("duplicate", it.reports_duplicate),
        ("undecodable", it.undecodable),
    ] {
        reports.with_label_values(&[outcome]).inc_by(count);
    }
    let info = f::INFO.wholes();
    info.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
    let started = f::STARTED.levels();
    started
        .with_label_values::<&str>(&[])
        .set(snapshot.started.as_millis() as f64 / 1e3);
    let singles = [
        (f::WRITES_PENDING, it.writes_pending),
        (f::EPOCH, snapshot.epoch.0),
        (f::ROUTES_BEYOND_CAP, it.routes_beyond_cap),
    ];
    let singles = singles.iter().flat_map(|(family, value)| {
        let gauge = family.whole();
        gauge.set(whole(*value));
        gauge.collect()
    });
    let vectors = [reports.collect(), info.collect(), started.collect()];
    singles.chain(vectors.into_iter().flatten()).collect()
}

fn fleet(snapshot: &FleetSnapshot) -> Vec<MetricFamily> {
    let agents = f::AGENTS.wholes();
    for (state, name) in [
        (AgentState::Live, "live"),
        (AgentState::Stale, "stale"),
        (AgentState::Lost, "lost"),
        (AgentState::Left, "left"),
    ] {
        let such = snapshot.agents.iter().filter(|agent| agent.state == state);
        agents
            .with_label_values(&[name])
            .set(whole(such.count() as u64));
    }
    let firing = f::ALERTS_FIRING.wholes();
    for alert in snapshot
        .alerts
        .iter()
        .filter(|it| it.phase == AlertPhase::Firing)
    {
        firing.with_label_values(&[alert.state.rule.as_str()]).inc();
    }
    let kills = f::KILL_SWITCHES.wholes();
    for scope in ["everything", "dependency"] {
        kills.with_label_values(&[scope]);
    }
    for kill in &snapshot.kills {
        let scope = match kill.state.scope {
            KillScope::Everything => "everything",
            KillScope::Dependency(_) => "dependency",
        };
        kills.with_label_values(&[scope]).inc();
    }
    [agents.collect(), firing.collect(), kills.collect()].concat()
}

/// As a gauge has it; far beyond what any of these reaches.
fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
