//! A controller over values: keeps what it is told, refuses what a real one would.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt as _};
use hedgerow_core::effect::{AuditRow, KillState, OrderError, SilenceDraft, SilenceId, Transition};
use hedgerow_core::event::{Actor, KillScope, Via};
use hedgerow_core::moment::Moment;
use hedgerow_core::rollout::RolloutPlan;
use hedgerow_core::view::{Acked, FleetSnapshot, KillView, Point, PolicyView, RolloutView};
use hedgerow_core::whatif::{Latencies, Replay};
use hedgerow_dashboard::backend::{
    AccessChange, AccessChanged, AccessView, ActError, Backend, Delivery, Operator, PolicyRevision,
    ProcessView, ReceiverView, RecordQuery, Role, RolloutStep, Saved, Session, SignInError,
    SignOnBegun, SignOnEnded, StoreError, TestOutcome,
};
use hedgerow_protocol::ids::{Revision, RouteKey};
use hedgerow_protocol::policy::{Policy, PolicyScope};
use tokio::sync::watch;

use crate::{doors, fleet, told};

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
    pub(crate) history: Vec<PolicyRevision>,
    pub(crate) record: Vec<(i64, AuditRow)>,
    pub(crate) kills: Vec<KillState>,
    /// Of the newest policy.
    pub(crate) rollout: Option<RolloutView>,
    pub(crate) link_spent: bool,
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
        if let Some(newest) = state.history.first()
            && let Some(policy) = newest.policy.clone()
        {
            snapshot.policies.insert(
                policy.scope().clone(),
                PolicyView {
                    revision: newest.revision,
                    policy,
                    since: newest.at,
                    rollout: state.rollout.clone(),
                },
            );
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
        if reason.is_empty() {
            return Err(OrderError::NoReason.into());
        }
        let saved = self.state(|s| {
            let current = s.history.first().map_or(Revision(0), |r| r.revision);
            if let Some(expected) = expected.filter(|e| *e != current) {
                return Err(OrderError::Stale { expected, current });
            }
            if s.history
                .first()
                .is_some_and(|r| r.policy.as_ref() == Some(&policy))
            {
                return Ok(Saved {
                    revision: current,
                    changed: false,
                });
            }
            s.rollout = rollout.map(|plan| {
                let base = s.history.first().and_then(|it| it.policy.clone()).unwrap();
                fleet::rollout(&plan, current, base)
            });
            let revision = PolicyRevision {
                revision: current.next(),
                policy: Some(policy),
                actor: operator.actor(),
                reason: reason.into(),
                at: fleet::START,
            };
            s.history.insert(0, revision);
            Ok(Saved {
                revision: current.next(),
                changed: true,
            })
        })?;
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
        Ok(self.state(|s| {
            s.history
                .iter()
                .filter(|r| r.policy.as_ref().is_none_or(|it| it.scope() == scope))
                .cloned()
                .collect()
        }))
    }

    async fn remove_policy(
        &self,
        operator: &Operator,
        scope: PolicyScope,
        _: Option<Revision>,
        reason: &str,
    ) -> Result<Saved, ActError> {
        Self::allow(operator, Role::Editor)?;
        if reason.is_empty() {
            return Err(OrderError::NoReason.into());
        }
        let revision = self.state(|s| s.history.first().map(|it| it.revision));
        let revision =
            revision.ok_or(ActError::Unknown(format!("no policy is set for {scope}")))?;
        self.state(|s| s.history.clear());
        Ok(Saved {
            revision: Revision(revision.0 + 1),
            changed: true,
        })
    }

    async fn latencies(&self, _: RouteKey) -> Result<Option<Latencies>, StoreError> {
        Ok(None)
    }

    async fn replay(&self, _: RouteKey, policy: Policy, _: Duration) -> Result<Replay, StoreError> {
        Ok(hedgerow_core::whatif::replay(&[], &policy))
    }

    async fn history(&self, route: &RouteKey, _: Moment, _: u32) -> Result<Vec<Point>, StoreError> {
        let snapshot = self.snapshot();
        let view = snapshot.routes.get(route);
        Ok(view.map_or_else(Vec::new, |view| view.course.to_vec()))
    }

    async fn silence(
        &self,
        operator: &Operator,
        _: SilenceDraft,
        reason: &str,
    ) -> Result<SilenceId, ActError> {
        Self::allow(operator, Role::Operator)?;
        if reason.is_empty() {
            return Err(OrderError::NoReason.into());
        }
        Ok(SilenceId(1))
    }

    async fn end_silence(
        &self,
        operator: &Operator,
        _: SilenceId,
        _: &str,
    ) -> Result<(), ActError> {
        Self::allow(operator, Role::Operator)
    }

    async fn acknowledge(
        &self,
        operator: &Operator,
        _: &str,
        _: Option<Duration>,
        _: &str,
    ) -> Result<(), ActError> {
        Self::allow(operator, Role::Operator)
    }

    async fn receivers(&self) -> Result<Vec<ReceiverView>, StoreError> {
        Ok(Vec::new())
    }

    async fn test_receiver(&self, operator: &Operator, _: &str) -> Result<TestOutcome, ActError> {
        Self::allow(operator, Role::Operator)?;
        Ok(TestOutcome {
            delivered: true,
            status: "204".into(),
            took: Duration::from_millis(12),
        })
    }

    async fn process(&self) -> ProcessView {
        ProcessView::default()
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
        Ok(self.state(|s| {
            s.record
                .iter()
                .filter(|(n, _)| query.before.is_none_or(|before| *n < before))
                .filter(|(_, row)| {
                    query
                        .dependency
                        .as_ref()
                        .is_none_or(|d| row.target.starts_with(d.as_str()))
                })
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

    async fn deliveries(&self, _: u32) -> Result<Vec<Delivery>, StoreError> {
        Ok(told::deliveries(self.snapshot().at))
    }
}
