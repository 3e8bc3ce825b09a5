//! What the controller tells agents now.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::arming::Arming;
use crate::ids::{Epoch, ModeSequence, ReplicaName, Revision, RouteKey, Tick};
use crate::limits::{
    ARMING_EPOCH_MAX, ARMING_EPOCH_MIN, CAP_MAX, LEASE_MAX, LEASE_MIN, REPLICAS_PER_ROUTE_MAX,
    ROUTES_PER_AGENT_MAX,
};
use crate::units::{AttemptLimit, Budget, Quantile, Ratio, Threshold};

/// Why hedging is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OffReason {
    /// Too many primaries fail: more requests would not help them.
    Errors,
    /// Slow together: a second replica is as slow as the first.
    SharedSlowdown,
    /// The dependency says it is overloaded.
    PushBack,
    /// Hedges cost load and gain nothing.
    WinsNothing,
    /// A person's order.
    KillSwitch,
    /// The policy says off.
    Policy,
    /// More automatic changes in an hour than are allowed: off until a person looks.
    TooManyChanges,
    /// A reason of a newer version: off, whatever it is.
    Unknown,
}

impl OffReason {
    /// Its name on the wire, in the API, in metrics and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Errors => "errors",
            Self::SharedSlowdown => "shared_slowdown",
            Self::PushBack => "push_back",
            Self::WinsNothing => "wins_nothing",
            Self::KillSwitch => "kill_switch",
            Self::Policy => "policy",
            Self::TooManyChanges => "too_many_changes",
            Self::Unknown => "unknown",
        }
    }
}

/// What may be hedged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "mode", content = "reason")]
pub enum Mode {
    /// Nothing.
    Off(OffReason),
    /// Nothing yet: calls are measured. Where every dependency starts.
    Observing,
    /// Off, but for the few crossed calls that find out whether hedging helps again.
    Probing(OffReason),
    /// Crossed calls, within the budget.
    On,
}

impl Mode {
    /// `off`, `observing`, `probing` or `on`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off(_) => "off",
            Self::Observing => "observing",
            Self::Probing(_) => "probing",
            Self::On => "on",
        }
    }

    /// Why it is off, where it is off or probing.
    pub const fn reason(self) -> Option<OffReason> {
        match self {
            Self::Off(reason) | Self::Probing(reason) => Some(reason),
            Self::Observing | Self::On => None,
        }
    }

    /// Whether any hedge may be sent.
    pub const fn hedges(self) -> bool {
        matches!(self, Self::Probing(_) | Self::On)
    }
}

/// The order of directives for one route: by epoch, then policy revision, then mode sequence. An
/// agent never goes back to a lower one.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Stamp {
    /// The store's life.
    pub epoch: Epoch,
    /// The dependency's policy.
    pub revision: Revision,
    /// The route's mode.
    pub mode_sequence: ModeSequence,
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.epoch, self.revision, self.mode_sequence)
    }
}

/// What changes with every decision; neither persisted nor acknowledged. Within an epoch a lower
/// tick is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LiveValues {
    /// The decision they come from.
    pub tick: Tick,
    /// When a call may be hedged. None: the controller has no value; keep the one held.
    pub threshold: Option<Threshold>,
    /// Share of crossed calls that is hedged.
    pub probability: Ratio,
    /// Tokens earned by each eligible finished call; the mean over all turns, where there is
    /// arming.
    pub budget: Budget,
    /// Most tokens kept, in hedges: see [`LiveValues::new`].
    pub cap: f64,
    /// A share of the agents hedges at a time; None: all of them.
    #[serde(default)]
    pub arming: Option<Arming>,
}

impl LiveValues {
    /// Every agent is armed. Refuses a cap that is not a number from 0 to [`CAP_MAX`].
    pub fn new(
        tick: Tick,
        threshold: Option<Threshold>,
        probability: Ratio,
        budget: Budget,
        cap: f64,
    ) -> Result<Self, DirectiveError> {
        if (0.0..=CAP_MAX).contains(&cap) {
            Ok(Self {
                tick,
                threshold,
                probability,
                budget,
                cap,
                arming: None,
            })
        } else {
            Err(DirectiveError::Cap(cap))
        }
    }

    /// The same, a share of the agents armed at a time.
    #[must_use]
    pub const fn with_arming(mut self, arming: Option<Arming>) -> Self {
        self.arming = arming;
        self
    }
}

/// What an agent needs of the policy, to go on alone when the controller is gone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// For the threshold from the agent's own histogram.
    pub percentile: Quantile,
    /// Share of eligible calls never hedged.
    pub holdout: Ratio,
    /// For the agent's own switch-off.
    pub error_limit: Ratio,
    /// Never hedge earlier.
    pub threshold_min: Option<Threshold>,
    /// Never wait longer.
    pub threshold_max: Option<Threshold>,
    /// How long all this holds without a word from the controller.
    pub lease: Duration,
    /// Copies of one call at most.
    #[serde(default)]
    pub attempts: AttemptLimit,
    /// Whether a retryable failure sends the hedge at once.
    #[serde(default)]
    pub hedge_on_error: bool,
}

/// Everything an agent is to do on one route.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Directive {
    /// The route.
    pub route: RouteKey,
    /// Its place in the order.
    pub stamp: Stamp,
    /// What may be hedged.
    pub mode: Mode,
    /// What changes with every decision.
    pub live: LiveValues,
    /// What changes with the policy.
    pub standing: Standing,
    /// Replicas that get a tenth of their share of primaries, and no hedges.
    pub probation: Vec<ReplicaName>,
    /// Hedges lent to an agent that starts with an empty bucket, from 0 to [`CAP_MAX`]. Taken once
    /// in a route's life, up to its cap, and only before its first hedge.
    #[serde(default)]
    pub start_credit: f64,
}

impl Directive {
    /// Refuses what the field types alone cannot: a lease or a start credit outside its
    /// limits, too many replicas.
    pub fn check(&self) -> Result<(), DirectiveError> {
        if !(LEASE_MIN..=LEASE_MAX).contains(&self.standing.lease) {
            return Err(DirectiveError::Lease(self.standing.lease));
        }
        if !(0.0..=CAP_MAX).contains(&self.start_credit) {
            return Err(DirectiveError::StartCredit(self.start_credit));
        }
        if self.probation.len() > REPLICAS_PER_ROUTE_MAX {
            return Err(DirectiveError::TooManyReplicas(self.probation.len()));
        }
        Ok(())
    }
}

/// A full snapshot for one agent: never a delta.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectiveSet {
    /// Counts what was delivered on this stream; apart from the order of the directives in it.
    pub nonce: u64,
    /// One for each route the agent reported and the controller knows; shared with the other agents
    /// that are told the same.
    pub directives: Vec<Arc<Directive>>,
    /// Whether an empty set is meant: an empty one that does not say so is refused.
    pub empty_is_meant: bool,
}

impl DirectiveSet {
    /// Refuses an empty set that is not meant, duplicates, and more routes than an agent has.
    pub fn check(&self) -> Result<(), DirectiveError> {
        if self.directives.is_empty() && !self.empty_is_meant {
            return Err(DirectiveError::Empty);
        }
        if self.directives.len() > ROUTES_PER_AGENT_MAX {
            return Err(DirectiveError::TooManyRoutes(self.directives.len()));
        }
        let mut seen = std::collections::BTreeSet::new();
        for directive in &self.directives {
            if !seen.insert(&directive.route) {
                return Err(DirectiveError::Duplicate(directive.route.clone()));
            }
        }
        Ok(())
    }
}

/// Why a directive, or a whole set, cannot stand.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DirectiveError {
    /// A bucket's cap out of range.
    #[error("cap: {0} is out of range: expected a number from 0 to {CAP_MAX}")]
    Cap(f64),
    /// A share of armed agents that is nobody, or everybody.
    #[error("arming.share: {0} is out of range: expected above 0 and below 1")]
    ArmingShare(f64),
    /// A turn too short or too long.
    #[error(
        "arming.epoch: {0:?} is out of range: expected from {ARMING_EPOCH_MIN:?} to \
         {ARMING_EPOCH_MAX:?}"
    )]
    ArmingEpoch(Duration),
    /// A start credit out of range.
    #[error("start_credit: {0} is out of range: expected a number from 0 to {CAP_MAX}")]
    StartCredit(f64),
    /// A lease out of range.
    #[error("lease: {0:?} is out of range: expected from {LEASE_MIN:?} to {LEASE_MAX:?}")]
    Lease(Duration),
    /// More replicas than are kept.
    #[error("probation: {0} replicas; at most {REPLICAS_PER_ROUTE_MAX} are allowed")]
    TooManyReplicas(usize),
    /// More routes than an agent has.
    #[error("directives: {0} routes; at most {ROUTES_PER_AGENT_MAX} are allowed")]
    TooManyRoutes(usize),
    /// The same route twice.
    #[error("directives: {0} is there twice; expected each route once")]
    Duplicate(RouteKey),
    /// An empty set that is not said to be meant.
    #[error("directives: the set is empty without empty_is_meant; the last good one is kept")]
    Empty,
}
