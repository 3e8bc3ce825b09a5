//! What the pages need of a controller. The control plane implements it; tests implement it over
//! values. Nothing here knows of a database, of gRPC or of a runtime.

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use hedgerow_core::effect::{AuditRow, OrderError, Transition};
use hedgerow_core::event::{Actor, KillScope};
use hedgerow_core::moment::Moment;
use hedgerow_core::rollout::RolloutPlan;
use hedgerow_core::view::FleetSnapshot;
use hedgerow_protocol::ids::{DependencyName, Revision, RouteKey};
use hedgerow_protocol::policy::Policy;
use serde::Serialize;

/// A controller, seen from its pages.
pub trait Backend: Clone + Send + Sync + 'static {
    /// The newest published snapshot. Never waits.
    fn snapshot(&self) -> Arc<FleetSnapshot>;

    /// Each new snapshot as it is published; a slow reader gets the latest, never a queue. Ends when
    /// the controller shuts down.
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
        dependency: DependencyName,
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
        dependency: &DependencyName,
    ) -> impl Future<Output = Result<Vec<PolicyRevision>, StoreError>> + Send;

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
    /// What.
    pub policy: Policy,
    /// Who.
    pub actor: Actor,
    /// Why.
    pub reason: String,
    /// When.
    pub at: Moment,
}

/// Which lines of the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordQuery {
    /// Only lines older than this one's number.
    pub before: Option<i64>,
    /// At most so many.
    pub limit: u32,
    /// Only lines about this dependency.
    pub dependency: Option<DependencyName>,
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
