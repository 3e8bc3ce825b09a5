//! What came of a run: each second of it, what the controller did, and what that did to callers.

mod phase;
mod summary;

use std::collections::BTreeMap;

use hedgerow_core::view::Named;
use serde::Serialize;

pub use self::phase::{Phase, PhaseName, Waits};
pub use self::summary::{Alerted, Changed, NamedFor, Summary};
use crate::client::Client;
use crate::controller::{Store, seconds};
use crate::scenario::Scenario;
use crate::variation::Variation;

/// A whole run. Lengths of time are in seconds where they end in `_s`, in milliseconds where they
/// end in `_ms`; what cannot be known is None, never 0.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The scenario's title.
    pub title: String,
    /// What it says of itself.
    pub about: String,
    /// Of all chance.
    pub seed: u64,
    /// Who made the calls.
    pub client: Client,
    /// Agents, calls a second and replicas, as they were.
    pub agents: usize,
    /// See `agents`.
    pub calls_per_s: f64,
    /// See `agents`.
    pub replicas: usize,
    /// When things go wrong, and until when.
    pub trouble_s: Option<(f64, f64)>,
    /// What it comes down to.
    pub summary: Summary,
    /// Before, during and after what goes wrong.
    pub phases: Vec<Phase>,
    /// Automatic changes of mode, in order.
    pub changes: Vec<Changed>,
    /// Alerts, in the order in which they began.
    pub alerts: Vec<Alerted>,
    /// Replicas named, each time anew.
    pub named: Vec<NamedFor>,
    /// Agents left out, or let go again: when, and why.
    pub quarantine: Vec<(f64, String)>,
    /// Every second.
    pub seconds: Vec<Second>,
}

/// One second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Second {
    /// When it ended, in seconds from the beginning.
    pub second: u64,
    /// Calls begun.
    pub calls: u64,
    /// Calls ended, answered or not.
    pub finished: u64,
    /// Of these, without an answer.
    pub failed: u64,
    /// Calls whose process died.
    pub abandoned: u64,
    /// Calls that crossed the threshold their agent had.
    pub crossed: u64,
    /// Hedges sent.
    pub hedged: u64,
    /// Hedges that answered first.
    pub won: u64,
    /// Crossed calls not hedged, by reason, those there were.
    pub refused: BTreeMap<&'static str, u64>,
    /// What callers waited.
    pub waited_p50_ms: Option<f64>,
    /// See `waited_p50_ms`.
    pub waited_p99_ms: Option<f64>,
    /// What this second's primaries would have taken, had none been stopped. None where there are
    /// queues: nobody knows then.
    pub true_p99_ms: Option<f64>,
    /// The same over the controller's window, to put beside [`Decided::p95_ms`].
    pub true_p95_window_ms: Option<f64>,
    /// The same, to put beside [`Decided::p99_ms`].
    pub true_p99_window_ms: Option<f64>,
    /// Agents with a stream.
    pub agents_attached: u64,
    /// Agents whose lease is over.
    pub agents_fallback: u64,
    /// Agents that have switched off by themselves.
    pub agents_own_off: u64,
    /// Agents left out; None where there are so many that nobody asks each second.
    pub agents_quarantined: Option<u64>,
    /// The median of the thresholds that agents use.
    pub agents_threshold_ms: Option<f64>,
    /// Each replica's share of its workers that was busy; empty without queues.
    pub utilisation: Vec<f64>,
    /// Attempts that wait in queues.
    pub waiting: Option<u64>,
    /// What the controller thinks; None without one, and while it is gone.
    pub decided: Option<Decided>,
}

/// What the controller thinks at the end of a second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Decided {
    /// `on`, `off`, `probing` or `observing`.
    pub mode: &'static str,
    /// Why it is off.
    pub reason: Option<&'static str>,
    /// In words.
    pub words: String,
    /// What agents are told.
    pub threshold_ms: Option<f64>,
    /// Share of crossed calls to hedge.
    pub probability: f64,
    /// Tokens earned by a finished call.
    pub budget: f64,
    /// Most tokens an agent keeps.
    pub cap: f64,
    /// Replicas that are what is slow or failing.
    pub named: Vec<NamedReplica>,
    /// Replicas on probation.
    pub probation: Vec<String>,
    /// What the figures are over.
    pub window_s: Option<f64>,
    /// Primaries' own latency, of all calls.
    pub p50_ms: Option<f64>,
    /// See `p50_ms`.
    pub p95_ms: Option<f64>,
    /// See `p50_ms`.
    pub p99_ms: Option<f64>,
    /// Calls that want to be hedged, as a share.
    pub demand: Option<f64>,
    /// Share of primaries that fail.
    pub error_rate: Option<f64>,
    /// The shared share of slowness.
    pub phi: Option<f64>,
    /// Hedges answered / expected.
    pub hedges_answered_ratio: Option<f64>,
    /// The log-rank test's Z for it.
    pub log_rank_z: Option<f64>,
    /// The healthy majority's median / its base.
    pub median_ratio: Option<f64>,
    /// More hedges in the newest second than the budget allows.
    pub over_budget: bool,
}

/// A replica that is named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamedReplica {
    /// Which.
    pub replica: String,
    /// For what.
    pub why: Named,
}

impl Outcome {
    pub(crate) fn new(
        scenario: &Scenario,
        variation: &Variation,
        rows: Vec<Second>,
        phases: Vec<Phase>,
        store: Option<&Store>,
        refused: Option<(u64, Option<String>)>,
    ) -> Self {
        let changes: Vec<_> = store
            .iter()
            .flat_map(|it| &it.transitions)
            .map(Changed::of)
            .collect();
        let alerts = store
            .iter()
            .flat_map(|it| &it.alerts)
            .map(Alerted::of)
            .collect();
        let quarantine = store.iter().flat_map(|it| &it.agents);
        let quarantine = quarantine.map(|(at, _, why)| (seconds(*at), why.clone()));
        let named = NamedFor::in_rows(&rows);
        Self {
            title: scenario.title.clone(),
            about: scenario.about.trim().replace('\n', " "),
            seed: variation.seed,
            client: variation.client,
            agents: scenario.fleet.agents,
            calls_per_s: scenario.fleet.calls_per_s,
            replicas: scenario.fleet.replicas,
            trouble_s: scenario.trouble(),
            summary: Summary::of(
                scenario,
                &rows,
                &phases,
                &changes,
                refused.unwrap_or_default(),
            ),
            phases,
            changes,
            alerts,
            named,
            quarantine: quarantine.collect(),
            seconds: rows,
        }
    }

    /// A phase of the run; None where there is none of that name.
    pub fn phase(&self, name: PhaseName) -> Option<&Phase> {
        self.phases.iter().find(|it| it.name == name)
    }

    /// The seconds that ended after `from` and up to `to`.
    pub fn between(&self, from: u64, to: u64) -> impl Iterator<Item = &Second> {
        let within = move |it: &&Second| it.second > from && it.second <= to;
        self.seconds.iter().filter(within)
    }
}
