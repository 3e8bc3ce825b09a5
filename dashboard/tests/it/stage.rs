//! A controller over values: keeps what it is told, refuses what a real one would.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt as _};
use hedgerow_core::effect::{
    AlertState, AuditRow, KillState, OrderError, SilenceDraft, SilenceId, Transition,
};
use hedgerow_core::event::{Actor, KillScope, Via};
use hedgerow_core::moment::Moment;
use hedgerow_core::rollout::RolloutPlan;
use hedgerow_core::view::{
    Acked, Acknowledgement, AlertView, FleetSnapshot, KillView, Point, PolicyView, RolloutView,
    SilenceView,
};
use hedgerow_core::whatif::{Latencies, Replay};
use hedgerow_dashboard::backend::{
    AccessChange, AccessChanged, AccessView, ActError, Backend, Delivery, Operator, PolicyRevision,
    ProcessView, ReceiverView, RecordQuery, Role, RolloutStep, Saved, Session, SignInError,
    SignOnBegun, SignOnEnded, StoreError, TestOutcome,
};
use hedgerow_protocol::ids::{Revision, RouteKey};
use hedgerow_protocol::policy::{Policy, PolicyScope};
use tokio::sync::watch;

use crate::{doors, fleet, lately, told};

#[path = "stage/policies.rs"]
mod policies;

/// Cookies of the people on the stage, each with the role it is named after.
pub(crate) const VIEWER: &str = "viewer-session";
pub(crate) const EDITOR: &str = "editor-session";
pub(crate) const ADMIN: &str = "admin-session";
/// Signs in once.
pub(crate) const LINK: &str = "one-time-token";
pub(crate) const PASSWORD: &str = "correct horse";

#[derive(Clone)]
pub(crate) struct Stage {
    published: watch::Sender<Arc<FleetSnapshot>>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
pub(crate) struct State {
    /// Of catalog's policy, newest first.
    pub(crate) history: Vec<PolicyRevision>,
    /// Of other policies that were changed here.
    pub(crate) histories: BTreeMap<PolicyScope, Vec<PolicyRevision>>,
    /// The store cannot be read; a route's history once only.
    pub(crate) store_away: bool,
    pub(crate) record: Vec<(i64, AuditRow)>,
    pub(crate) kills: Vec<KillState>,
    /// Of the newest policy.
    pub(crate) rollout: Option<RolloutView>,
    pub(crate) link_spent: bool,
    pub(crate) silences: Vec<SilenceView>,
    /// Episode, and who works on it.
    pub(crate) acknowledged: Vec<(String, Acknowledgement)>,
    /// Names of receivers that were sent a test.
    pub(crate) tested: Vec<String>,
    pub(crate) receivers: Vec<ReceiverView>,
    /// Notices later than those of the realistic fleet, newest first.
    pub(crate) newer_deliveries: Vec<Delivery>,
    /// Who may come in.
    pub(crate) access: AccessView,
    /// Changes of it that were asked for, each with its reason.
    pub(crate) asked: Vec<(AccessChange, String)>,
    /// Sessions whose owners may only look from now on.
    pub(crate) demoted: Vec<String>,
    /// The provider of single sign-on; sign-ins begun there keep the way back.
    pub(crate) sso: Option<String>,
    pub(crate) signed_out: Vec<String>,
}

impl Stage {
    pub(crate) fn new(snapshot: FleetSnapshot) -> Self {
        let mut state = State::default();
        for (i, (percentile, why)) in [
            (0.99, "first try"),
            (0.97, "more of the tail"),
            (0.95, "after the cache change"),
        ]
        .into_iter()
        .enumerate()
        {
            let mut draft = hedgerow_protocol::policy::PolicyDraft::from(fleet::hedging("catalog"));
            draft.percentile = percentile;
            state.history.insert(
                0,
                PolicyRevision {
                    revision: Revision(i as u64 + 1),
                    policy: Some(Policy::try_from(draft).unwrap()),
                    actor: Actor {
                        name: "dana".into(),
                        via: if i == 0 { Via::Seed } else { Via::Page },
                    },
                    reason: why.into(),
                    at: Moment::from_millis(fleet::START.as_millis() - (3 - i as u64) * 8_000_000),
                },
            );
        }
        state.record = told::record();
        state.receivers = told::receivers(fleet::START);
        Self {
            published: watch::Sender::new(Arc::new(snapshot)),
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Publishes a snapshot, with the stage's own policies and kill switches in it.
    pub(crate) fn publish(&self, mut snapshot: FleetSnapshot) {
        {
            let state = self.state.lock().unwrap();
            Self::dress(&state, &mut snapshot);
        }
        self.published.send_replace(Arc::new(snapshot));
    }

    fn dress(state: &State, snapshot: &mut FleetSnapshot) {
        let catalog = catalog();
        let all = state.histories.iter();
        for (scope, history) in all.chain([(&catalog, &state.history)]) {
            let Some(newest) = history.first() else {
                continue;
            };
            let Some(policy) = newest.policy.clone() else {
                snapshot.policies.remove(scope);
                continue;
            };
            let rollout = state.rollout.clone().filter(|_| *scope == catalog);
            let view = PolicyView {
                revision: newest.revision,
                policy,
                since: newest.at,
                rollout,
            };
            snapshot.policies.insert(scope.clone(), view);
        }
        snapshot.silences.clone_from(&state.silences);
        for alert in &mut snapshot.alerts {
            let matching = state.silences.iter().find(|s| matches(s, alert));
            alert.silenced = matching.map(|s| s.id);
            let taken = state.acknowledged.iter().rev();
            alert.acknowledged = taken
                .filter(|(id, _)| *id == alert.state.id)
                .map(|(_, by)| by.clone())
                .next();
        }
        let m = snapshot.agents.len() as u64;
        snapshot.kills = state
            .kills
            .iter()
            .map(|k| KillView {
                state: k.clone(),
                acked: Acked { n: m - 2, m },
            })
            .collect();
    }

    pub(crate) fn state<T>(&self, read: impl FnOnce(&mut State) -> T) -> T {
        read(&mut self.state.lock().unwrap())
    }

    /// Pages that are open: streams of snapshots that somebody holds.
    pub(crate) fn open_pages(&self) -> usize {
        self.published.receiver_count()
    }

    fn allow(operator: &Operator, needed: Role) -> Result<(), ActError> {
        if operator.role >= needed {
            Ok(())
        } else {
            Err(ActError::Forbidden {
                needed,
                have: operator.role,
            })
        }
    }

    fn republish(&self) {
        let snapshot = (*self.snapshot()).clone();
        self.publish(snapshot);
    }

    fn session(role: Role) -> Session {
        let (cookie, name) = match role {
            Role::Viewer => (VIEWER, "vera"),
            Role::Editor | Role::Operator => (EDITOR, "dana"),
            Role::Administrator => (ADMIN, "ada"),
        };
        Session {
            cookie: cookie.into(),
            lasts: Duration::from_hours(1),
            operator: Operator {
                name: name.into(),
                role,
            },
        }
    }
}

fn catalog() -> PolicyScope {
    fleet::dependency("catalog").into()
}

fn matches(silence: &SilenceView, alert: &AlertView) -> bool {
    let (it, state) = (&silence.matches, &alert.state);
    it.rule.is_none_or(|rule| rule == state.rule)
        && it
            .dependency
            .as_ref()
            .is_none_or(|name| *name == state.route.dependency)
        && it
            .operation
            .as_ref()
            .is_none_or(|name| *name == state.route.operation)
        && it
            .replica
            .as_ref()
            .is_none_or(|name| Some(name) == state.replica.as_ref())
}

impl Backend for Stage {
    fn snapshot(&self) -> Arc<FleetSnapshot> {
        self.published.borrow().clone()
    }

    fn snapshots(&self) -> BoxStream<'static, Arc<FleetSnapshot>> {
        stream::unfold(self.published.subscribe(), |mut news| async move {
            news.changed().await.ok()?;
            let snapshot = news.borrow_and_update().clone();
            Some((snapshot, news))
        })
        .boxed()
    }

    async fn operator(&self, session: &str) -> Option<Operator> {
        if self.state(|s| s.signed_out.iter().any(|out| out == session)) {
            return None;
        }
        [Role::Viewer, Role::Editor, Role::Administrator]
            .into_iter()
            .map(Self::session)
            .find(|s| s.cookie == session)
            .map(|s| s.operator)
            .map(|operator| {
                let demoted = self.state(|s| s.demoted.iter().any(|it| it == session));
                let role = if demoted { Role::Viewer } else { operator.role };
                Operator { role, ..operator }
            })
    }

    async fn sign_in(
        &self,
        name: &str,
        password: &str,
        _: Option<IpAddr>,
    ) -> Result<Session, SignInError> {
        match (name, password) {
            ("ada", PASSWORD) => Ok(Self::session(Role::Administrator)),
            ("hasty", _) => Err(SignInError::TooMany {
                again: Duration::from_secs(30),
            }),
            _ => Err(SignInError::Wrong),
        }
    }

    async fn sign_in_by_link(
        &self,
        token: &str,
        _: Option<IpAddr>,
    ) -> Result<Session, SignInError> {
        self.state(|s| {
            if token != LINK || std::mem::replace(&mut s.link_spent, true) {
                return Err(SignInError::LinkSpent);
            }
            Ok(Self::session(Role::Administrator))
        })
    }

    async fn sign_out(&self, session: &str) {
        self.state(|s| s.signed_out.push(session.to_owned()));
    }

    async fn set_policy(
        &self,
        operator: &Operator,
        policy: Policy,
        expected: Option<Revision>,
        rollout: Option<RolloutPlan>,
        reason: &str,
    ) -> Result<Saved, ActError> {
        Self::allow(operator, Role::Editor)?;
        let scope = policy.scope().clone();
        if rollout.is_some() && scope.pattern().is_some() {
            return Err(OrderError::PatternInSteps(scope).into());
        }
        let before = self.revisions(&scope);
        let base = before.first().and_then(|it| it.policy.clone());
        let saved = self.write(operator, &scope, Some(policy), expected, reason)?;
        if saved.changed && scope == catalog() {
            let current = before.first().map(|it| it.revision).unwrap_or_default();
            let rollout = rollout.map(|plan| fleet::rollout(&plan, current, base.unwrap()));
            self.state(|s| s.rollout = rollout);
        }
        self.republish();
        Ok(saved)
    }

    async fn step_rollout(
        &self,
        operator: &Operator,
        scope: PolicyScope,
        expected: Option<Revision>,
        step: RolloutStep,
        reason: &str,
    ) -> Result<Saved, ActError> {
        let needed = match step {
            RolloutStep::On => Role::Editor,
            RolloutStep::Back => Role::Operator,
        };
        Self::allow(operator, needed)?;
        let rollout = self.state(|s| s.rollout.clone());
        let Some(mut view) = rollout else {
            return Err(OrderError::NoRollout(scope).into());
        };
        if step == RolloutStep::Back {
            let base = view.base_policy;
            return self
                .set_policy(operator, base, expected, None, reason)
                .await;
        }
        view.stage += 1;
        self.state(|s| s.rollout = Some(view));
        self.republish();
        let revision = expected.unwrap_or_default();
        Ok(Saved {
            revision,
            changed: true,
        })
    }

    async fn kill(
        &self,
        operator: &Operator,
        scope: KillScope,
        engaged: bool,
        reason: &str,
    ) -> Result<(), ActError> {
        Self::allow(operator, Role::Operator)?;
        if reason.is_empty() {
            return Err(OrderError::NoReason.into());
        }
        self.state(|s| {
            s.kills.retain(|k| k.scope != scope);
            if engaged {
                s.kills.push(KillState {
                    scope,
                    engaged,
                    actor: operator.actor(),
                    reason: reason.into(),
                    at: fleet::START,
                });
            }
        });
        self.republish();
        Ok(())
    }

    async fn release(
        &self,
        operator: &Operator,
        route: RouteKey,
        reason: &str,
    ) -> Result<(), ActError> {
        Self::allow(operator, Role::Operator)?;
        if reason.is_empty() {
            return Err(OrderError::NoReason.into());
        }
        if self.snapshot().routes.contains_key(&route) {
            Ok(())
        } else {
            Err(OrderError::UnknownRoute(route).into())
        }
    }

    async fn accept_base(
        &self,
        operator: &Operator,
        route: RouteKey,
        reason: &str,
    ) -> Result<(), ActError> {
        self.release(operator, route, reason).await
    }

    async fn start_switchback(
        &self,
        operator: &Operator,
        route: RouteKey,
        _rounds: u32,
        reason: &str,
    ) -> Result<(), ActError> {
        self.release(operator, route, reason).await
    }

    async fn stop_switchback(
        &self,
        operator: &Operator,
        route: RouteKey,
        reason: &str,
    ) -> Result<(), ActError> {
        self.release(operator, route, reason).await
    }

    async fn policy_history(&self, scope: &PolicyScope) -> Result<Vec<PolicyRevision>, StoreError> {
        if self.state(|s| s.store_away) {
            return Err(StoreError("the disk is full".into()));
        }
        Ok(self.revisions(scope))
    }

    async fn remove_policy(
        &self,
        operator: &Operator,
        scope: PolicyScope,
        expected: Option<Revision>,
        reason: &str,
    ) -> Result<Saved, ActError> {
        Self::allow(operator, Role::Editor)?;
        let newest = self.revisions(&scope).into_iter().next();
        if newest.is_none_or(|it| it.policy.is_none()) {
            return Err(OrderError::NoPolicy(scope).into());
        }
        let saved = self.write(operator, &scope, None, expected, reason)?;
        self.republish();
        Ok(saved)
    }

    async fn latencies(&self, route: RouteKey) -> Result<Option<Latencies>, StoreError> {
        let snapshot = self.snapshot();
        let view = snapshot.routes.get(&route);
        Ok(view.and_then(|view| lately::latencies(view)))
    }

    async fn replay(
        &self,
        route: RouteKey,
        policy: Policy,
        last: Duration,
    ) -> Result<Replay, StoreError> {
        if self.state(|s| s.store_away) {
            return Err(StoreError("the disk is full".into()));
        }
        let snapshot = self.snapshot();
        let replayed = tokio::task::spawn_blocking(move || {
            let view = snapshot.routes.get(&route);
            let minutes = view.map(|view| lately::minutes(view, snapshot.at, last));
            hedgerow_core::whatif::replay(&minutes.unwrap_or_default(), &policy)
        });
        replayed
            .await
            .map_err(|error| StoreError(error.to_string()))
    }

    async fn history(
        &self,
        route: &RouteKey,
        since: Moment,
        points: u32,
    ) -> Result<Vec<Point>, StoreError> {
        if self.state(|s| s.store_away) {
            return Err(StoreError("no answer within 5 s".into()));
        }
        Ok(fleet::history(route, since, self.snapshot().at, points))
    }

    async fn past_alerts(
        &self,
        route: &RouteKey,
        since: Moment,
        limit: u32,
    ) -> Result<Vec<AlertState>, StoreError> {
        let snapshot = self.snapshot();
        let alerts = snapshot.alerts.iter().map(|alert| alert.state.clone());
        let alerts = alerts.filter(|it| it.route == *route && it.since >= since);
        Ok(alerts.take(limit as usize).collect())
    }

    async fn silence(
        &self,
        operator: &Operator,
        draft: SilenceDraft,
        reason: &str,
    ) -> Result<SilenceId, ActError> {
        Self::allow(operator, Role::Operator)?;
        if reason.is_empty() {
            return Err(OrderError::NoReason.into());
        }
        let since = self.snapshot().at;
        let id = self.state(|s| {
            let id = SilenceId(s.silences.iter().map(|it| it.id.0).max().unwrap_or(0) + 1);
            s.silences.push(SilenceView {
                id,
                ends: since.plus(draft.lasts),
                matches: draft,
                actor: operator.actor(),
                reason: reason.into(),
                since,
            });
            id
        });
        self.republish();
        Ok(id)
    }

    async fn end_silence(
        &self,
        operator: &Operator,
        silence: SilenceId,
        reason: &str,
    ) -> Result<(), ActError> {
        Self::allow(operator, Role::Operator)?;
        if reason.is_empty() {
            return Err(OrderError::NoReason.into());
        }
        let known = self.state(|s| {
            let before = s.silences.len();
            s.silences.retain(|it| it.id != silence);
            s.silences.len() < before
        });
        if !known {
            let problem = format!("no silence {} is in force", silence.0);
            return Err(ActError::Unknown(problem));
        }
        self.republish();
        Ok(())
    }

    async fn acknowledge(
        &self,
        operator: &Operator,
        alert: &str,
        lasts: Option<Duration>,
        comment: &str,
    ) -> Result<(), ActError> {
        Self::allow(operator, Role::Operator)?;
        if comment.is_empty() {
            return Err(OrderError::NoReason.into());
        }
        let snapshot = self.snapshot();
        if !snapshot.alerts.iter().any(|a| a.state.id == alert) {
            return Err(ActError::Unknown(format!("no alert {alert} is known")));
        }
        self.state(|s| {
            let by = Acknowledgement {
                actor: operator.actor(),
                comment: comment.into(),
                at: snapshot.at,
                until: lasts.map(|it| snapshot.at.plus(it)),
            };
            s.acknowledged.push((alert.to_owned(), by));
        });
        self.republish();
        Ok(())
    }

    async fn receivers(&self) -> Result<Vec<ReceiverView>, StoreError> {
        Ok(self.state(|s| s.receivers.clone()))
    }

    async fn test_receiver(
        &self,
        operator: &Operator,
        receiver: &str,
    ) -> Result<TestOutcome, ActError> {
        Self::allow(operator, Role::Operator)?;
        if !self.state(|s| s.receivers.iter().any(|it| it.name == receiver)) {
            let problem = format!("no receiver {receiver:?} is configured");
            return Err(ActError::Unknown(problem));
        }
        self.state(|s| s.tested.push(receiver.to_owned()));
        let took = Duration::from_millis(12);
        Ok(if receiver == "chat" {
            TestOutcome {
                delivered: false,
                status: "connection refused".into(),
                took,
            }
        } else {
            TestOutcome {
                delivered: true,
                status: "204".into(),
                took,
            }
        })
    }

    async fn process(&self) -> ProcessView {
        ProcessView {
            version: "0.1.0".into(),
            name: "hedgerow-1".into(),
            leader: true,
            store_bytes: Some(48_300_032),
            outbox_depth: 1,
            open_pages: 3,
            resident_bytes: Some(212_000_000),
            report_lag_ms: Some(3.4),
        }
    }

    async fn access(&self, operator: &Operator) -> Result<AccessView, ActError> {
        Self::allow(operator, Role::Administrator)?;
        Ok(self.state(|s| s.access.clone()))
    }

    async fn change_access(
        &self,
        operator: &Operator,
        change: AccessChange,
        reason: &str,
    ) -> Result<AccessChanged, ActError> {
        Self::allow(operator, Role::Administrator)?;
        if reason.is_empty() {
            return Err(OrderError::NoReason.into());
        }
        self.state(|s| doors::change(s, change, reason))
    }

    fn single_sign_on(&self) -> Option<String> {
        self.state(|s| s.sso.clone())
    }

    async fn begin_single_sign_on(&self, next: &str) -> Result<SignOnBegun, SignInError> {
        doors::begin(next)
    }

    async fn end_single_sign_on(
        &self,
        code: &str,
        state: &str,
        kept: &str,
        _: Option<IpAddr>,
    ) -> Result<SignOnEnded, SignInError> {
        doors::end(code, state, kept, Self::session(Role::Editor))
    }

    async fn record(&self, query: RecordQuery) -> Result<Vec<(i64, AuditRow)>, StoreError> {
        if self.state(|s| s.store_away) {
            return Err(StoreError("disk I/O error".into()));
        }
        let about = |row: &AuditRow| {
            query.dependency.as_ref().is_none_or(|name| {
                let name = name.as_str();
                row.target == name || row.target.starts_with(&format!("{name} "))
            })
        };
        let acts = |row: &AuditRow| {
            query.action.as_ref().is_none_or(|action| {
                row.action == *action || row.action.starts_with(&format!("{action}."))
            })
        };
        Ok(self.state(|s| {
            s.record
                .iter()
                .filter(|(n, _)| query.before.is_none_or(|before| *n < before))
                .filter(|(_, row)| about(row) && acts(row))
                .filter(|(_, row)| query.actor.as_ref().is_none_or(|it| row.actor.name == *it))
                .filter(|(_, row)| query.since.is_none_or(|since| row.at >= since))
                .filter(|(_, row)| query.until.is_none_or(|until| row.at < until))
                .take(query.limit as usize)
                .cloned()
                .collect()
        }))
    }

    async fn transitions(
        &self,
        route: &RouteKey,
        limit: u32,
    ) -> Result<Vec<Transition>, StoreError> {
        Ok(self
            .snapshot()
            .routes
            .get(route)
            .map_or_else(Vec::new, |view| {
                view.transitions
                    .iter()
                    .rev()
                    .take(limit as usize)
                    .cloned()
                    .collect()
            }))
    }

    async fn deliveries(&self, limit: u32) -> Result<Vec<Delivery>, StoreError> {
        let mut all = self.state(|s| s.newer_deliveries.clone());
        all.extend(told::deliveries(self.snapshot().at));
        all.truncate(limit as usize);
        Ok(all)
    }

    async fn deliveries_of(&self, alerts: &[&str]) -> Result<Vec<Delivery>, StoreError> {
        let mut all = self.deliveries(u32::MAX).await?;
        all.retain(|it| alerts.contains(&it.alert.as_str()));
        all.reverse();
        Ok(all)
    }
}
