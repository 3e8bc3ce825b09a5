//! What people and programs may know of the fleet: published whole after each tick, read without a
//! lock. Every figure that cannot be known is `None`, never 0.
//!
//! As JSON (the REST API): a field that ends in `_ms` is a length of time in milliseconds, a number
//! with digits after the point; every [`Moment`] (`at`, `since`, `started`, `tries_again`,
//! `connected`, `heard`, `reported`, `resolved`) is a whole number of milliseconds since 1970, UTC.

mod agent;
mod alert;
mod course;
mod duplicates;
mod gain;
pub(crate) mod millis;
mod quarantine;
mod replicas;
mod rollout;
mod switchback;
mod thin;
mod utilisation;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hedgerow_protocol::directive::{Mode, Stamp};
use hedgerow_protocol::ids::{Epoch, InstanceId, ReplicaName, Revision, RouteKey, ZoneName};
use hedgerow_protocol::policy::{Policy, PolicyScope};
use hedgerow_protocol::report::{Refusal, Totals};
use serde::{Deserialize, Serialize};

use crate::effect::{KillState, Transition};
use crate::moment::Moment;

pub use agent::{AgentRouteView, AgentState, AgentView, Sync};
pub use alert::{Acknowledgement, AlertPhase, AlertRule, AlertView, SilenceView};
pub use course::{Interval, Point};
pub use duplicates::DuplicatesView;
pub use gain::{NoGain, PoolView};
pub use quarantine::QuarantineView;
pub use replicas::{BadReplica, ReplicaCell, ReplicaColumn, ReplicaCourse, Together, Unlike};
pub use rollout::{GuardFigure, RolloutView};
pub use switchback::{ArmView, DifferenceView, RoundView, SwitchbackResult, SwitchbackView};
pub use thin::Thinner;
pub use utilisation::UtilisationView;

/// The fleet at one moment.
#[derive(Debug, Clone, Default, Serialize)]
pub struct FleetSnapshot {
    /// When it was taken.
    pub at: Moment,
    /// When this controller started.
    pub started: Moment,
    /// The store's life.
    pub epoch: Epoch,
    /// Counts decisions.
    pub tick: u64,
    /// Every route known, by name; a list where it is serialised, since each carries its name.
    #[serde(serialize_with = "values")]
    pub routes: BTreeMap<RouteKey, Arc<RouteView>>,
    /// Policies in force, also for what no agent has reported yet. Which of them is for a route:
    /// [`FleetSnapshot::policy_for`].
    #[serde(serialize_with = "values")]
    pub policies: BTreeMap<PolicyScope, PolicyView>,
    /// Kill switches that are engaged.
    pub kills: Vec<KillView>,
    /// Agents attached, or lost in the last minutes.
    pub agents: Vec<AgentView>,
    /// Firing and pending alerts, and those resolved in the last hour.
    pub alerts: Vec<AlertView>,
    /// Silences in force, oldest first.
    pub silences: Vec<SilenceView>,
    /// The controller itself.
    pub controller: ControllerView,
}

impl FleetSnapshot {
    /// The policy that holds for a route, of those that cover it the narrowest; None: nobody set one,
    /// and it is observed.
    pub fn policy_for(&self, route: &RouteKey) -> Option<&PolicyView> {
        let own = PolicyScope::Operation(route.clone());
        let dependency = PolicyScope::Dependency(route.dependency.clone());
        let direct = self.policies.get(&own);
        direct
            .or_else(|| self.policies.get(&dependency))
            .or_else(|| {
                // Patterns are last in the order of scopes.
                let patterns = self.policies.iter().rev();
                let patterns = patterns.take_while(|(scope, _)| scope.pattern().is_some());
                // The first by name is the last here, and of equal ones the last is taken.
                let covering = patterns.filter(|(scope, _)| scope.covers(route));
                covering
                    .max_by_key(|(scope, _)| scope.rank())
                    .map(|(_, view)| view)
            })
    }
}

fn values<K, V: Serialize, S: serde::Serializer>(
    map: &BTreeMap<K, V>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(map.values())
}

/// A policy in force.
#[derive(Debug, Clone, Serialize)]
pub struct PolicyView {
    /// Its number.
    pub revision: Revision,
    /// What.
    pub policy: Policy,
    /// Since when.
    pub since: Moment,
    /// Where it is in force for a share of the agents only: how far it has got. The others hold
    /// [`RolloutView::base`].
    pub rollout: Option<RolloutView>,
}

/// An engaged kill switch and how far it has got.
#[derive(Debug, Clone, Serialize)]
pub struct KillView {
    /// What, who, why, since when.
    pub state: KillState,
    /// How many agents have it in force.
    pub acked: Acked,
}

/// n of m agents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Acked {
    /// Agents that hold what is wanted.
    pub n: u64,
    /// Agents it is for.
    pub m: u64,
}

/// A route: what it does, what is done about it, and why.
#[derive(Debug, Clone, Serialize)]
pub struct RouteView {
    /// Which.
    pub route: RouteKey,
    /// The directive's order: what agents should hold.
    pub stamp: Stamp,
    /// What may be hedged.
    pub mode: Mode,
    /// Since when.
    pub since: Moment,
    /// Why, in one line: `off: error rate 6.1 % > 5 %`, `observing: no policy yet`, `on: hedging
    /// calls slower than 21 ms`, `no effect: one replica`.
    pub words: String,
    /// The figures behind it at the moment of the decision: value, limit, window.
    pub evidence: Vec<Evidence>,
    /// When it may change again by itself, where it is off.
    pub tries_again: Option<Moment>,
    /// The present figures; None: no traffic in the window, see [`RouteView::no_data`].
    pub figures: Option<Figures>,
    /// Why there are no figures.
    pub no_data: Option<NoData>,
    /// Why a route with a goal hedges nothing, or little, though it is on.
    pub no_gain: Option<NoGain>,
    /// What its pool lends it; None: it is in none, or nothing was shared out yet.
    pub pool: Option<PoolView>,
    /// Agents that hold [`RouteView::stamp`] of those that report this route.
    pub acked: Acked,
    /// Agents that refused the newest directive, with their reason.
    pub refusals: Vec<(InstanceId, String)>,
    /// Its replicas, the named ones first.
    pub replicas: Vec<ReplicaView>,
    /// The last 10 minutes, a point each 2 s, oldest first.
    pub course: Arc<Vec<Point>>,
    /// The last 15 minutes in brief, a point each 15 s that is over, oldest first: of each the highest
    /// p99 and hedge rate, and whether hedging was allowed all the time. Not in the JSON.
    #[serde(skip)]
    pub brief: Arc<Vec<Point>>,
    /// The last 15 minutes of each replica, a column each 10 s.
    pub replica_course: Arc<ReplicaCourse>,
    /// What happened in that time, oldest first.
    pub marks: Vec<Mark>,
    /// Counted by the fleet since this controller started.
    pub totals: Totals,
    /// Seconds in which the fleet sent more hedges than the budget of ALGORITHMS 2 allows.
    pub seconds_over_budget: u64,
    /// Automatic changes since this controller started, newest last, at most 50.
    pub transitions: Vec<Transition>,
    /// How busy the dependency was last told to be; None: never told, or taken back.
    pub utilisation: Option<UtilisationView>,
    /// Duplicates a server last said it executed; None: it never said, or long ago.
    pub duplicates: Option<DuplicatesView>,
    /// The switchback that runs, or the last one since this controller started.
    pub switchback: Option<Arc<SwitchbackView>>,
}

/// A figure that led to a decision: value and limit side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// What was measured, as `error rate`, `hedges answered / expected`, `median / base`.
    pub what: String,
    /// The value.
    pub value: f64,
    /// Above or below what it acts.
    pub limit: f64,
    /// `%`, `ms`, `x`, or nothing.
    pub unit: String,
    /// Over what time.
    #[serde(rename = "window_ms", with = "millis")]
    pub window: Duration,
}

/// Why there is no figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoData {
    /// The controller has just started and has not heard enough.
    JustStarted,
    /// No agent is attached that reports it.
    NoAgents,
    /// Agents that report it have gone silent.
    AgentsStale,
    /// Agents report, but no calls are made.
    NoTraffic,
    /// Calls are made, but too few for a verdict.
    TooFew,
}

impl NoData {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::JustStarted => "the controller has just started",
            Self::NoAgents => "no agents report it",
            Self::AgentsStale => "its agents have gone silent",
            Self::NoTraffic => "no traffic",
            Self::TooFew => "not enough traffic",
        }
    }
}

/// Present figures of a route over the shortest window that holds enough calls (2 to 60 s).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figures {
    /// The window.
    #[serde(rename = "window_ms", with = "millis")]
    pub window: Duration,
    /// Eligible calls started in it.
    pub calls: u64,
    /// Eligible calls a second.
    pub calls_per_s: f64,
    /// Share of ended calls that did not fail.
    pub success: Option<f64>,
    /// Primaries' own latency, of all calls, from the survival curve.
    #[serde(rename = "p50_ms", serialize_with = "millis::option")]
    pub p50: Option<Duration>,
    /// See `p50`.
    #[serde(rename = "p95_ms", serialize_with = "millis::option")]
    pub p95: Option<Duration>,
    /// See `p50`.
    #[serde(rename = "p99_ms", serialize_with = "millis::option")]
    pub p99: Option<Duration>,
    /// What callers of treated calls waited.
    #[serde(rename = "treated_p99_ms", serialize_with = "millis::option")]
    pub treated_p99: Option<Duration>,
    /// What callers of held-out calls waited.
    #[serde(rename = "holdout_p99_ms", serialize_with = "millis::option")]
    pub holdout_p99: Option<Duration>,
    /// How many held-out calls that rests on, over the last minute.
    pub holdout_calls: u64,
    /// How many treated calls `treated_p99` rests on, over the last minute.
    pub treated_calls: u64,
    /// See `treated_p99`.
    #[serde(rename = "treated_p95_ms", serialize_with = "millis::option")]
    pub treated_p95: Option<Duration>,
    /// See `holdout_p99`.
    #[serde(rename = "holdout_p95_ms", serialize_with = "millis::option")]
    pub holdout_p95: Option<Duration>,
    /// Where `treated_p99` lies with 95 % confidence.
    pub treated_p99_within: Option<Interval>,
    /// Where `holdout_p99` lies with 95 % confidence.
    pub holdout_p99_within: Option<Interval>,
    /// Hedges sent / eligible calls started.
    pub hedge_rate: Option<f64>,
    /// Calls that crossed on replicas not named, times q / eligible calls started.
    pub demand: Option<f64>,
    /// Hedges that answered first / hedges sent.
    pub win_rate: Option<f64>,
    /// What independent replicas would give.
    pub win_rate_expected: Option<f64>,
    /// Primary errors / primaries finished.
    pub error_rate: Option<f64>,
    /// Crossed calls refused by the budget / crossed calls.
    pub refused_by_budget: Option<f64>,
    /// Crossed calls not hedged / crossed calls, by [`Refusal`] in the order of [`Refusal::ALL`].
    pub refused: Option<[f32; Refusal::ALL.len()]>,
    /// When a call may be hedged.
    #[serde(rename = "threshold_ms", serialize_with = "millis::option")]
    pub threshold: Option<Duration>,
    /// Share of crossed calls hedged.
    pub probability: f64,
    /// The budget in force.
    pub budget: f64,
    /// The rate aimed at.
    pub target: f64,
    /// Hedges answered / expected from the primaries' curve; 1 is independent, 0 all shared.
    pub hedges_answered_ratio: Option<f64>,
    /// The log-rank test's Z for it.
    pub log_rank_z: Option<f64>,
    /// The shared share of slowness, 0 to 1.
    pub phi: Option<f64>,
    /// The healthy majority's p50 / its base.
    pub median_ratio: Option<f64>,
    /// How busy the dependency is, 0 to 1, where that was told and still holds: `budget` is scaled
    /// by it.
    pub utilisation: Option<f64>,
}

/// Something to mark on a chart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mark {
    /// When.
    pub at: Moment,
    /// What kind.
    pub kind: MarkKind,
    /// In words.
    pub words: String,
}

/// Kinds of marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// A person changed the policy or a kill switch.
    Policy,
    /// The controller changed the mode.
    Mode,
    /// An alert began or ended.
    Alert,
    /// An agent was quarantined, or let go.
    Agent,
}

/// A replica as the fleet sees it, over the last minute at most.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplicaView {
    /// Which.
    pub replica: ReplicaName,
    /// Its failure domain.
    pub zone: Option<ZoneName>,
    /// What it is named for.
    pub named: Option<Named>,
    /// Whether agents are told to keep primaries away from it.
    pub probation: bool,
    /// Primaries a second.
    pub calls_per_s: f64,
    /// Share of its primaries that crossed the threshold.
    pub crossed: Option<f64>,
    /// Share of its primaries that failed.
    pub error_rate: Option<f64>,
    /// Its primaries' own latency.
    #[serde(rename = "p50_ms", serialize_with = "millis::option")]
    pub p50: Option<Duration>,
    /// See `p50`.
    #[serde(rename = "p95_ms", serialize_with = "millis::option")]
    pub p95: Option<Duration>,
    /// Hedges sent to it that answered first / hedges sent to it.
    pub win_rate: Option<f64>,
}

/// What is wrong with a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Named {
    /// It is what is slow.
    Slow,
    /// It is what fails.
    Failing,
}

/// The controller itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ControllerView {
    /// Reports counted since it started.
    pub reports: u64,
    /// Reports refused.
    pub reports_refused: u64,
    /// Reports received twice.
    pub reports_duplicate: u64,
    /// Messages that could not be decoded.
    pub undecodable: u64,
    /// Reports a second, over the last 10 s.
    pub reports_per_s: f64,
    /// How long the last tick took to decide; set by who runs the core.
    #[serde(rename = "tick_took_ms", with = "millis")]
    pub tick_took: Duration,
    /// Writes not yet durable.
    pub writes_pending: u64,
    /// The last write that failed, if none has succeeded since.
    pub write_problem: Option<String>,
    /// Routes counted under `__other__`.
    pub routes_beyond_cap: u64,
}
