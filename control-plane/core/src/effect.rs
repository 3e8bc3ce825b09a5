//! What the controller wants done. Nothing here does it.

use std::collections::BTreeSet;
use std::time::Duration;

use hedgerow_protocol::directive::{DirectiveSet, Mode};
use hedgerow_protocol::ids::{
    DependencyName, Epoch, ModeSequence, OperationName, Revision, RouteKey, Sequence,
};
use hedgerow_protocol::policy::{Policy, PolicyScope};
use serde::{Deserialize, Serialize};

use crate::event::{Actor, ConnectionId, KillScope, RequestId, WriteId};
use crate::minute::Minute;
use crate::moment::Moment;
use crate::rollout::RolloutPlan;
use crate::view::{Acknowledgement, AlertRule, Evidence, Point, SilenceView, millis};

/// Everything the controller can want.
#[derive(Debug, Clone)]
pub enum Effect {
    /// Write all of it in one transaction, then answer [`crate::event::Event::Persisted`]. What
    /// depends on it (a push, a reply) comes out only after that answer.
    Persist {
        /// To answer with.
        write: WriteId,
        /// What.
        records: Vec<Record>,
    },
    /// Send a snapshot to an agent; an unsent older one is replaced, never queued behind.
    Push {
        /// To whom.
        connection: ConnectionId,
        /// What.
        set: DirectiveSet,
    },
    /// Tell an agent that a report was counted, or why not.
    Acknowledge {
        /// To whom.
        connection: ConnectionId,
        /// Which report.
        sequence: Sequence,
        /// Why it was refused; it is not to be sent again.
        refused: Option<String>,
    },
    /// Answer an operator.
    Reply {
        /// Whom.
        request: RequestId,
        /// With what.
        result: Result<Done, OrderError>,
    },
}

/// An order that is carried out and durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// The policy is in force with this revision; `changed` is false where it was so already, and
    /// then nothing was written and nothing is pushed (C20).
    Policy {
        /// The revision in force.
        revision: Revision,
        /// Whether this order made it.
        changed: bool,
    },
    /// The kill switch stands as wanted.
    Kill {
        /// Whether this order changed it.
        changed: bool,
    },
    /// The route is free to decide again, or has a new base; its switchback has begun or ended.
    Route,
    /// The reading is taken.
    Utilisation,
    /// The silence is in force, under this number.
    Silenced(SilenceId),
    /// The silence is over.
    SilenceEnded,
    /// The alert says who works on it.
    Acknowledged,
}

/// Why an order was not carried out. Nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// Somebody saved meanwhile.
    #[error(
        "the policy was changed meanwhile: you edited revision {expected}, revision {current} is in force; look at it and save again"
    )]
    Stale {
        /// What the order was made from.
        expected: Revision,
        /// What is in force.
        current: Revision,
    },
    /// Nothing is known of it.
    #[error("no route {0} is known; it appears when an agent reports it")]
    UnknownRoute(RouteKey),
    /// Nothing is known of a dependency.
    #[error("no dependency {0} is known; it appears when an agent reports it, or with its policy")]
    UnknownDependency(DependencyName),
    /// A value is not within its range.
    #[error("{field}: {problem}")]
    OutOfRange {
        /// Which value.
        field: &'static str,
        /// What it is and what was expected.
        problem: String,
    },
    /// It does not go together with how things stand.
    #[error("{0}")]
    NotNow(String),
    /// There is no rollout to be steered.
    #[error("no rollout of {0} is under way; look at its policy, it may just have ended")]
    NoRollout(PolicyScope),
    /// There is no policy to be taken away.
    #[error(
        "no policy is set for {0}; what covers it has another name, such as its dependency's or a pattern"
    )]
    NoPolicy(PolicyScope),
    /// Another scope's rollout has routes in common with it.
    #[error(
        "the policy of {beside} is being put in force in steps; wait for its end or take it back, then change {scope}"
    )]
    RolloutBeside {
        /// What was to be changed.
        scope: PolicyScope,
        /// The other.
        beside: PolicyScope,
    },
    /// A default cannot be put in force in steps.
    #[error(
        "{0} is a pattern: its policy is in force for all agents at once; put a dependency's own policy in force in steps"
    )]
    PatternInSteps(PolicyScope),
    /// No such alert fires, waits, or is just over.
    #[error("no alert {0} is known; look at the list, it may be over for long")]
    UnknownAlert(String),
    /// No such silence is in force.
    #[error("no silence {} is in force; look at the list, it may just have ended", .0.0)]
    UnknownSilence(SilenceId),
    /// A change that can do harm needs a reason.
    #[error("a reason is needed: say in a few words why")]
    NoReason,
    /// The store did not take it.
    #[error("not saved, nothing changed: {0}")]
    NotPersisted(String),
}

/// One row, or one change of one, in the store.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// A new revision of a policy. Older ones stay.
    Policy {
        /// Its number.
        revision: Revision,
        /// What.
        policy: Box<Policy>,
        /// Who.
        actor: Actor,
        /// Why.
        reason: String,
        /// When.
        at: Moment,
    },
    /// A policy is taken away: a revision without one.
    PolicyRemoved {
        /// Its number.
        revision: Revision,
        /// What it was for.
        scope: PolicyScope,
        /// Who.
        actor: Actor,
        /// Why.
        reason: String,
        /// When.
        at: Moment,
    },
    /// A kill switch's place.
    Kill(KillState),
    /// A route's mode, kept over a restart.
    Mode(ModeState),
    /// A rollout begun, or a stage further.
    Rollout(RolloutState),
    /// A route's mode for the agents that hold the new policy of a rollout.
    TrialMode {
        /// The revision that is rolled out: what is stored late of an ended one is told from another's.
        revision: Revision,
        /// The mode.
        state: ModeState,
    },
    /// The scope's rollout is over, whichever way.
    RolloutEnded(PolicyScope),
    /// An automatic change, with what led to it.
    Transition(Transition),
    /// A line of the record. Append only.
    Audit(AuditRow),
    /// An alert's episode, begun or ended; the notice for each receiver is written with it.
    Alert(AlertState),
    /// An episode that began under a silence: kept, and no receiver is told.
    AlertSilenced(AlertState),
    /// Nothing silences it any longer, and it still fires: receivers are told now, each once.
    AlertTold {
        /// The episode.
        alert: AlertState,
        /// When the notices are written.
        at: Moment,
    },
    /// A silence begins.
    Silence(SilenceView),
    /// It ends before its time.
    SilenceEnded {
        /// Which.
        id: SilenceId,
        /// When.
        at: Moment,
    },
    /// Somebody works on an alert; takes the place of who said so before.
    Acknowledged {
        /// The episode.
        alert: String,
        /// Who, until when.
        by: Acknowledgement,
    },
    /// A point of a route's course, for the history.
    History {
        /// The route.
        route: RouteKey,
        /// Its figures.
        point: Point,
    },
    /// A minute of a route, to be replayed.
    Minute {
        /// The route.
        route: RouteKey,
        /// What it was like.
        minute: Box<Minute>,
    },
    /// The epoch in force.
    Epoch(Epoch),
}

/// A kill switch's place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KillState {
    /// For what.
    pub scope: KillScope,
    /// Whether hedging is off by it.
    pub engaged: bool,
    /// Who.
    pub actor: Actor,
    /// Why.
    pub reason: String,
    /// Since when.
    pub at: Moment,
}

/// A route's mode, as it must outlive the controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeState {
    /// The route.
    pub route: RouteKey,
    /// What may be hedged.
    pub mode: Mode,
    /// Since when.
    pub since: Moment,
    /// Its number.
    pub sequence: ModeSequence,
}

/// A rollout, as it must outlive the controller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RolloutState {
    /// Of which scope's policy.
    pub scope: PolicyScope,
    /// The revision that is rolled out.
    pub revision: Revision,
    /// The revision that agents outside the share hold; 0: nobody had set a policy.
    pub base: Revision,
    /// In which steps.
    pub plan: RolloutPlan,
    /// The present one, counted from 0.
    pub stage: usize,
    /// Since when.
    pub since: Moment,
    /// Who began it.
    pub actor: Actor,
}

/// An automatic change of mode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transition {
    /// The route.
    pub route: RouteKey,
    /// When.
    pub at: Moment,
    /// Before.
    pub from: Mode,
    /// After.
    pub to: Mode,
    /// The figures that led to it.
    pub evidence: Vec<Evidence>,
    /// The same in one line of words.
    pub words: String,
}

/// A line of the record: who did what, when, from where, why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRow {
    /// When.
    pub at: Moment,
    /// Who.
    pub actor: Actor,
    /// What, as `policy.set`, `kill.on`, `mode.off`, ...
    pub action: String,
    /// On what: a dependency, a route, `everything`.
    pub target: String,
    /// Before, as text or JSON.
    pub before: String,
    /// After.
    pub after: String,
    /// Why: a person's words, or the evidence.
    pub reason: String,
}

/// An alert's episode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertState {
    /// Its identity: one for each episode, made of rule, subject and beginning.
    pub id: String,
    /// Which rule.
    pub rule: AlertRule,
    /// What it is about.
    pub route: RouteKey,
    /// The replica, where the rule names one.
    pub replica: Option<String>,
    /// In words: value, limit, what to do.
    pub summary: String,
    /// When it began to fire.
    pub since: Moment,
    /// When it ended.
    pub resolved: Option<Moment>,
}

/// A silence's number.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct SilenceId(pub u64);

/// A silence as it is wanted: alerts that match all of what is named send no notices meanwhile. Names
/// nothing: every alert.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SilenceDraft {
    /// Only this rule.
    pub rule: Option<AlertRule>,
    /// Only this dependency.
    pub dependency: Option<DependencyName>,
    /// Only this operation; needs a dependency.
    pub operation: Option<OperationName>,
    /// Only this replica.
    pub replica: Option<String>,
    /// For so long, a minute to 30 days.
    #[serde(rename = "lasts_ms", with = "millis")]
    pub lasts: Duration,
}

/// What the store holds when a controller starts.
#[derive(Debug, Clone, Default)]
pub struct Restored {
    /// The last epoch used; the controller begins the next.
    pub epoch: Epoch,
    /// What stands for each scope that ever had a policy.
    pub policies: Vec<RestoredPolicy>,
    /// Kill switches, also released ones.
    pub kills: Vec<KillState>,
    /// Modes of the routes.
    pub modes: Vec<ModeState>,
    /// Alerts that were firing.
    pub alerts: Vec<AlertState>,
    /// Of these, the ids of those no receiver was told of: they began under a silence.
    pub untold: BTreeSet<String>,
    /// Who said that they work on which of them, the newest word on each.
    pub acknowledgements: Vec<(String, Acknowledgement)>,
    /// Silences that nobody ended, also those whose time is over.
    pub silences: Vec<SilenceView>,
    /// The last number a silence ever had.
    pub last_silence: SilenceId,
    /// The newest stored point of each of those routes, where there is one.
    pub points: Vec<(RouteKey, Point)>,
    /// Routes whose switchback began and, by the record, has not ended.
    pub switchbacks: Vec<RouteKey>,
    /// Rollouts under way. One whose revision is not its dependency's newest is over.
    pub rollouts: Vec<RestoredRollout>,
}

/// What stands for a scope when a controller starts.
#[derive(Debug, Clone, PartialEq)]
pub struct RestoredPolicy {
    /// For what.
    pub scope: PolicyScope,
    /// The newest revision.
    pub revision: Revision,
    /// What it is; None: it was taken away.
    pub policy: Option<Policy>,
    /// Since when.
    pub since: Moment,
}

/// A rollout under way when a controller starts.
#[derive(Debug, Clone)]
pub struct RestoredRollout {
    /// Where it was.
    pub state: RolloutState,
    /// The policy of [`RolloutState::base`], and since when it was in force; no policy where that
    /// revision took one away. None for revision 0.
    pub base: Option<(Option<Policy>, Moment)>,
    /// Modes of the routes for the agents in the share.
    pub modes: Vec<ModeState>,
}
