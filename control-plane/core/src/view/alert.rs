//! Alerts and silences as people see them.

use serde::{Deserialize, Serialize};

use crate::effect::{AlertState, SilenceDraft, SilenceId};
use crate::event::Actor;
use crate::moment::Moment;

/// Alert rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AlertRule {
    /// More than 10 % of eligible calls hedged, or wanting to be, for 10 s.
    HedgeRateHigh,
    /// Slow together.
    SharedSlowdown,
    /// The controller switched a route off. Inhibited by [`AlertRule::SharedSlowdown`].
    HedgingDisabled,
    /// A replica is what is slow.
    ReplicaSlow,
    /// A replica is what fails.
    ReplicaFailing,
    /// A rollout of a policy was taken back by the controller.
    RolloutReverted,
    /// Hedges answer, and so win, far less often than those of independent replicas would.
    LowWinRate,
    /// Most calls that would be hedged are refused by the budget.
    BudgetExhausted,
    /// Agents are lost, silent, or do not take what they are sent.
    AgentsStale,
    /// Agents refuse a directive.
    PolicyRefused,
    /// A server executes more duplicates than hedges were sent.
    DuplicateEffects,
}

impl AlertRule {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::HedgeRateHigh,
        Self::SharedSlowdown,
        Self::HedgingDisabled,
        Self::ReplicaSlow,
        Self::ReplicaFailing,
        Self::RolloutReverted,
        Self::LowWinRate,
        Self::BudgetExhausted,
        Self::AgentsStale,
        Self::PolicyRefused,
        Self::DuplicateEffects,
    ];

    /// Its name everywhere.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::HedgeRateHigh => "HedgeRateHigh",
            Self::SharedSlowdown => "SharedSlowdown",
            Self::HedgingDisabled => "HedgingDisabled",
            Self::ReplicaSlow => "ReplicaSlow",
            Self::ReplicaFailing => "ReplicaFailing",
            Self::RolloutReverted => "RolloutReverted",
            Self::LowWinRate => "LowWinRate",
            Self::BudgetExhausted => "BudgetExhausted",
            Self::AgentsStale => "AgentsStale",
            Self::PolicyRefused => "PolicyRefused",
            Self::DuplicateEffects => "DuplicateEffects",
        }
    }
}

/// An alert as people see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AlertView {
    /// The episode.
    #[serde(flatten)]
    pub state: AlertState,
    /// Where it stands.
    pub phase: AlertPhase,
    /// The silence that keeps its notices; None: none does.
    pub silenced: Option<SilenceId>,
    /// Who works on it; None: nobody has said so, or the time is over.
    pub acknowledged: Option<Acknowledgement>,
}

/// Somebody works on an alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledgement {
    /// Who.
    pub actor: Actor,
    /// In their words.
    pub comment: String,
    /// Since when.
    pub at: Moment,
    /// Until when; None: until the alert resolves.
    pub until: Option<Moment>,
}

/// A silence in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SilenceView {
    /// Its number.
    pub id: SilenceId,
    /// What it matches.
    #[serde(flatten)]
    pub matches: SilenceDraft,
    /// Who.
    pub actor: Actor,
    /// Why.
    pub reason: String,
    /// Since when.
    pub since: Moment,
    /// Until when.
    pub ends: Moment,
}

/// Where an alert stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertPhase {
    /// Notices are out, unless [`AlertView::silenced`] keeps them.
    Firing,
    /// The condition holds, not yet for long enough.
    Pending,
    /// Over.
    Resolved,
}
