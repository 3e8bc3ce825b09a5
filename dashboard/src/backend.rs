//! What the pages need of a controller. The control plane implements it; tests implement it over
//! values. Nothing here knows of a database, of gRPC or of a runtime.

mod access;
mod process;

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use hedgerow_core::effect::{
    AlertState, AuditRow, OrderError, SilenceDraft, SilenceId, Transition,
};
use hedgerow_core::event::{Actor, KillScope};
use hedgerow_core::moment::Moment;
use hedgerow_core::rollout::RolloutPlan;
use hedgerow_core::view::{FleetSnapshot, Point};
use hedgerow_core::whatif::{Latencies, Replay};
use hedgerow_protocol::ids::{DependencyName, Revision, RouteKey};
use hedgerow_protocol::policy::{Policy, PolicyScope};
use serde::Serialize;

pub use access::{
    AccessChange, AccessChanged, AccessView, AgentTokenView, ApiTokenView, OperatorView,
    SignOnBegun, SignOnEnded,
};
pub use process::{ProcessView, ReceiverView, TestOutcome};

/// A controller, seen from its pages.
pub trait Backend: Clone + Send + Sync + 'static {
    /// The newest published snapshot. Never waits.
    fn snapshot(&self) -> Arc<FleetSnapshot>;

    /// Each new snapshot as it is published; a slow reader gets the latest, never a queue. Ends when
    /// the controller shuts down. One for each open page, and held no longer than that: so they can
    /// be counted.
    fn snapshots(&self) -> BoxStream<'static, Arc<FleetSnapshot>>;

    /// Who a session cookie belongs to; None: nobody, or no longer.
    fn operator(&self, session: &str) -> impl Future<Output = Option<Operator>> + Send;

    /// Signs in by name and password.
    fn sign_in(
        &self,
        name: &str,
        password: &str,
        peer: Option<IpAddr>,
    ) -> impl Future<Output = Result<Session, SignInError>> + Send;

    /// Signs in by a one-time link's token.
    fn sign_in_by_link(
        &self,
        token: &str,
        peer: Option<IpAddr>,
    ) -> impl Future<Output = Result<Session, SignInError>> + Send;

    /// Ends a session.
    fn sign_out(&self, session: &str) -> impl Future<Output = ()> + Send;

    /// Puts a policy in force, for all agents at once or in steps. The role is checked here, not by
    /// the page.
    fn set_policy(
        &self,
        operator: &Operator,
        policy: Policy,
        expected: Option<Revision>,
        rollout: Option<RolloutPlan>,
        reason: &str,
    ) -> impl Future<Output = Result<Saved, ActError>> + Send;

    /// Takes a rollout's next step without waiting for it, or takes it back. `expected`: the revision
    /// that is rolled out.
    fn step_rollout(
        &self,
        operator: &Operator,
        scope: PolicyScope,
        expected: Option<Revision>,
        step: RolloutStep,
        reason: &str,
    ) -> impl Future<Output = Result<Saved, ActError>> + Send;

    /// Throws, or releases, a kill switch.
    fn kill(
        &self,
        operator: &Operator,
        scope: KillScope,
        engaged: bool,
        reason: &str,
    ) -> impl Future<Output = Result<(), ActError>> + Send;

    /// Lets a route that changed too often by itself decide again.
    fn release(
        &self,
        operator: &Operator,
        route: RouteKey,
        reason: &str,
    ) -> impl Future<Output = Result<(), ActError>> + Send;

    /// Makes the present speed the base of the all-slow test.
    fn accept_base(
        &self,
        operator: &Operator,
        route: RouteKey,
        reason: &str,
    ) -> impl Future<Output = Result<(), ActError>> + Send;

    /// Begins a switchback: the fleet hedges on the route and does not, in turns.
    fn start_switchback(
        &self,
        operator: &Operator,
        route: RouteKey,
        rounds: u32,
        reason: &str,
    ) -> impl Future<Output = Result<(), ActError>> + Send;

    /// Ends it before its time.
    fn stop_switchback(
        &self,
        operator: &Operator,
        route: RouteKey,
        reason: &str,
    ) -> impl Future<Output = Result<(), ActError>> + Send;

    /// All revisions of a policy, newest first.
    fn policy_history(
        &self,
        scope: &PolicyScope,
    ) -> impl Future<Output = Result<Vec<PolicyRevision>, StoreError>> + Send;

    /// Takes a policy away: what it was for has the next wider one again, or none. `expected`: the
    /// revision that was looked at.
    fn remove_policy(
        &self,
        operator: &Operator,
        scope: PolicyScope,
        expected: Option<Revision>,
        reason: &str,
    ) -> impl Future<Output = Result<Saved, ActError>> + Send;

    /// A route's latencies over the last minutes; None: nobody reports it, or no call has ended.
    fn latencies(
        &self,
        route: RouteKey,
    ) -> impl Future<Output = Result<Option<Latencies>, StoreError>> + Send;

    /// What a policy would have done with the traffic of the last hours, of which at most a day is
    /// stored.
    fn replay(
        &self,
        route: RouteKey,
        policy: Policy,
        last: Duration,
    ) -> impl Future<Output = Result<Replay, StoreError>> + Send;

    /// The stored course of a route since `since`, oldest first, thinned to at most `points`.
    fn history(
        &self,
        route: &RouteKey,
        since: Moment,
        points: u32,
    ) -> impl Future<Output = Result<Vec<Point>, StoreError>> + Send;

    /// Alerts of a route that fired after a moment, or still do, newest first, at most `limit`.
    fn past_alerts(
        &self,
        route: &RouteKey,
        since: Moment,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<AlertState>, StoreError>> + Send;

    /// Keeps notices of alerts that match from receivers, for a time.
    fn silence(
        &self,
        operator: &Operator,
        silence: SilenceDraft,
        reason: &str,
    ) -> impl Future<Output = Result<SilenceId, ActError>> + Send;

    /// Ends a silence before its time.
    fn end_silence(
        &self,
        operator: &Operator,
        silence: SilenceId,
        reason: &str,
    ) -> impl Future<Output = Result<(), ActError>> + Send;

    /// Says that somebody works on an alert; until it resolves, or for so long.
    fn acknowledge(
        &self,
        operator: &Operator,
        alert: &str,
        lasts: Option<Duration>,
        comment: &str,
    ) -> impl Future<Output = Result<(), ActError>> + Send;

    /// Where notices go, and how that went, by name.
    fn receivers(&self) -> impl Future<Output = Result<Vec<ReceiverView>, StoreError>> + Send;

    /// Sends a test notice the real way and says what came of it.
    fn test_receiver(
        &self,
        operator: &Operator,
        receiver: &str,
    ) -> impl Future<Output = Result<TestOutcome, ActError>> + Send;

    /// The controller's own state, as far as the snapshot does not tell it.
    fn process(&self) -> impl Future<Output = ProcessView> + Send;

    /// People, programs and agents' services that may come in. Needs an administrator.
    fn access(
        &self,
        operator: &Operator,
    ) -> impl Future<Output = Result<AccessView, ActError>> + Send;

    /// Changes who may come in. Needs an administrator. The answer holds what is shown once.
    fn change_access(
        &self,
        operator: &Operator,
        change: AccessChange,
        reason: &str,
    ) -> impl Future<Output = Result<AccessChanged, ActError>> + Send;

    /// What the sign-in page offers besides a password: the provider's name for people; None: nothing.
    fn single_sign_on(&self) -> Option<String>;

    /// Begins a sign-in by the provider: where to send the browser, and what it is to keep meanwhile.
    fn begin_single_sign_on(
        &self,
        next: &str,
    ) -> impl Future<Output = Result<SignOnBegun, SignInError>> + Send;

    /// Ends it with what the provider sent back; `kept`: the cookie of [`SignOnBegun`].
    fn end_single_sign_on(
        &self,
        code: &str,
        state: &str,
        kept: &str,
        peer: Option<IpAddr>,
    ) -> impl Future<Output = Result<SignOnEnded, SignInError>> + Send;

    /// The record, newest first.
    fn record(
        &self,
        query: RecordQuery,
    ) -> impl Future<Output = Result<Vec<(i64, AuditRow)>, StoreError>> + Send;

    /// Automatic changes of a route, newest first, at most `limit`.
    fn transitions(
        &self,
        route: &RouteKey,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<Transition>, StoreError>> + Send;

    /// What has been sent, or is to be sent, to receivers, newest first, at most `limit`.
    fn deliveries(
        &self,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<Delivery>, StoreError>> + Send;

    /// What has been sent, or is to be sent, of these episodes, oldest first, however old.
    fn deliveries_of(
        &self,
        alerts: &[&str],
    ) -> impl Future<Output = Result<Vec<Delivery>, StoreError>> + Send;
}

/// Somebody signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    /// Their name, as the record will say it.
    pub name: String,
    /// What they may do.
    pub role: Role,
}

impl Operator {
    /// As the record names them.
    pub fn actor(&self) -> Actor {
        Actor {
            name: self.name.clone(),
            via: hedgerow_core::event::Via::Page,
        }
    }
}

/// What an operator may do; each may also do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Look.
    Viewer,
    /// Throw and release kill switches.
    Operator,
    /// Set policies.
    Editor,
    /// Manage operators and tokens.
    Administrator,
}

/// A new session: the cookie's value, shown to nobody else.
#[derive(Clone)]
pub struct Session {
    /// The cookie's value.
    pub cookie: String,
    /// How long it lasts.
    pub lasts: Duration,
    /// Whose.
    pub operator: Operator,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("operator", &self.operator)
            .finish_non_exhaustive()
    }
}

/// Why a sign-in did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignInError {
    /// Wrong name or password: which of them is not said.
    #[error("name or password is wrong")]
    Wrong,
    /// The link was used already, or is too old.
    #[error(
        "this link has been used or has expired; `hedgerow login-link` on the controller's machine makes a new one"
    )]
    LinkSpent,
    /// Too many attempts.
    #[error("too many attempts; try again in {} s", .again.as_secs().max(1))]
    TooMany {
        /// When to try again.
        again: Duration,
    },
    /// The provider of single sign-on was not reached, or its answer does not hold.
    #[error("single sign-on did not succeed: {0}")]
    Provider(String),
    /// The provider knows them, this controller does not let them in.
    #[error("{0} may not sign in here: ask an administrator")]
    NotAllowed(String),
    /// The name that the provider gives them belongs to another account here.
    #[error(
        "the name {0} belongs to another account of this controller, so single sign-on does not let you in by it: ask an administrator to remove that account, or for another name at the provider"
    )]
    NameTaken(String),
    /// What came back does not belong to a sign-in that was begun in this browser.
    #[error(
        "this sign-in was not begun in this browser, took too long, or has been used already; begin it again"
    )]
    NotBegun,
    /// The store is away.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why an act was not done. Nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActError {
    /// The role does not allow it.
    #[error("your role does not allow this: it needs {needed:?}, you are {have:?}")]
    Forbidden {
        /// What it needs.
        needed: Role,
        /// What they are.
        have: Role,
    },
    /// The reason does not read as it was written.
    #[error("the reason cannot stand: {0}")]
    Reason(String),
    /// The core refused it.
    #[error(transparent)]
    Refused(#[from] OrderError),
    /// A value cannot stand, or does not go together with how things are: what was expected.
    #[error("{field}: {problem}")]
    Invalid {
        /// Which value.
        field: &'static str,
        /// What is wrong with it, and what was expected.
        problem: String,
    },
    /// There is no such thing.
    #[error("{0}")]
    Unknown(String),
    /// The controller is shutting down, or does not answer.
    #[error(
        "the controller did not answer; nothing is known to have changed, look before you try again"
    )]
    NoAnswer,
}

/// The store could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store could not be read: {0}")]
pub struct StoreError(pub String);

/// A saved policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saved {
    /// In force now.
    pub revision: Revision,
    /// False: it was in force already, and nothing was written.
    pub changed: bool,
}

/// Which way a rollout is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RolloutStep {
    /// To the next share of the agents; after the last the new policy is in force for all.
    On,
    /// Back: the old policy for all agents, as a new revision.
    Back,
}

/// A revision of a policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PolicyRevision {
    /// Its number.
    pub revision: Revision,
    /// What; None: it was taken away.
    pub policy: Option<Policy>,
    /// Who.
    pub actor: Actor,
    /// Why.
    pub reason: String,
    /// When.
    pub at: Moment,
}

/// Which lines of the record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordQuery {
    /// Only lines older than this one's number.
    pub before: Option<i64>,
    /// At most so many.
    pub limit: u32,
    /// Only lines about this dependency.
    pub dependency: Option<DependencyName>,
    /// Only lines whose action is this, or begins with it and a dot: `policy`, `kill.on`.
    pub action: Option<String>,
    /// Only lines by this actor.
    pub actor: Option<String>,
    /// Only lines from then on.
    pub since: Option<Moment>,
    /// Only lines before then.
    pub until: Option<Moment>,
}

/// One notice for one receiver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Delivery {
    /// Its number.
    pub id: i64,
    /// The alert's episode.
    pub alert: String,
    /// `firing` or `resolved`.
    pub kind: String,
    /// The receiver's name.
    pub receiver: String,
    /// `waiting`, `delivered` or `given_up`.
    pub state: String,
    /// Tries so far.
    pub attempts: u32,
    /// The last error, without the receiver's address or answer.
    pub last_error: Option<String>,
    /// When it was written.
    pub at: Moment,
    /// When it was delivered or given up.
    pub done: Option<Moment>,
}
