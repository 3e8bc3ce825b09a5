//! What a run is made of: a fleet, a service, and what happens to them.

mod fault;
mod read;
mod shipped;
mod size;

use serde::{Deserialize, Serialize};

use hedgerow_protocol::policy::{Policy, PolicyDraft};

pub use self::fault::{Fault, FaultKind, Lie, Which};
pub use self::read::ScenarioError;
pub use self::shipped::{Shipped, shipped};

/// A scenario, as its file says: see [`Scenario::find`], [`Scenario::parse`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// In a few words.
    pub title: String,
    /// What happens, and what is right.
    pub about: String,
    /// How long it lasts.
    pub seconds: u64,
    /// Seconds at the beginning that belong to no phase: nothing is known yet.
    #[serde(default = "defaults::warm_up_s")]
    pub warm_up_s: u64,
    /// Who calls.
    #[serde(default)]
    pub fleet: Fleet,
    /// What the operator wants.
    #[serde(default = "defaults::policy", deserialize_with = "read::policy")]
    pub policy: PolicyDraft,
    /// Who answers.
    #[serde(default)]
    pub service: Service,
    /// What goes wrong.
    #[serde(default, rename = "fault")]
    pub faults: Vec<Fault>,
}

/// The clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fleet {
    /// Processes, each with an agent.
    pub agents: usize,
    /// Calls a second of all of them together; arrivals are Poisson.
    pub calls_per_s: f64,
    /// Replicas of the service.
    pub replicas: usize,
    /// How an agent picks a primary's replica.
    pub pick: Pick,
    /// When a call ends, answered or not; milliseconds.
    pub deadline_ms: f64,
    /// Seconds between two reports of an agent.
    pub report_every_s: u64,
}

/// How a primary's replica is picked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pick {
    /// The less loaded of two different ones, by the agent's own attempts in flight.
    #[default]
    TwoChoices,
    /// Any.
    Random,
    /// Any, by the caller's will: probation keeps nothing away.
    Pinned,
}

/// What an attempt takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Service {
    /// Median of the lognormal part, milliseconds.
    pub median_ms: f64,
    /// Its sigma: 0.5 makes p99 some three medians.
    pub sigma: f64,
    /// Share of attempts that stall, each by itself.
    pub stall_share: f64,
    /// What a stall adds, milliseconds.
    pub stall_ms: f64,
    /// Workers of each replica; attempts beyond wait in a queue, first come first served. 0: as many
    /// as there are attempts.
    pub workers: usize,
    /// Whether an attempt that its caller has given up gives back its place, queued or not.
    pub cancellation: bool,
}

impl Default for Fleet {
    fn default() -> Self {
        Self {
            agents: 5,
            calls_per_s: 1000.0,
            replicas: 5,
            pick: Pick::default(),
            deadline_ms: 5000.0,
            report_every_s: 1,
        }
    }
}

impl Default for Service {
    fn default() -> Self {
        Self {
            median_ms: 10.0,
            sigma: 0.5,
            stall_share: 0.02,
            stall_ms: 300.0,
            workers: 0,
            cancellation: true,
        }
    }
}

mod defaults {
    use hedgerow_protocol::policy::{Intent, PolicyDraft};

    pub(super) const fn warm_up_s() -> u64 {
        20
    }

    pub(super) fn policy() -> PolicyDraft {
        let mut draft: PolicyDraft = super::observing().into();
        draft.intent = Intent::Hedge;
        draft
    }
}

fn observing() -> Policy {
    Policy::observing(crate::route().dependency.into())
}

impl Scenario {
    /// The policy, checked.
    pub(crate) fn policy(&self) -> Policy {
        Policy::try_from(self.policy.clone()).expect("checked when the scenario was read")
    }

    /// When faults begin and when the last one is over, in seconds; None where nothing goes wrong.
    /// What lasts to the run's end ends with it; what begins later is not met.
    pub fn trouble(&self) -> Option<(f64, f64)> {
        let end = self.seconds as f64;
        let met = || self.faults.iter().filter(|it| it.from_s < end);
        let from = met().map(|it| it.from_s).reduce(f64::min)?;
        let to = |it: &Fault| it.to_s.unwrap_or(end).min(end);
        let to = met().map(to).reduce(f64::max)?;
        Some((from, to))
    }
}
