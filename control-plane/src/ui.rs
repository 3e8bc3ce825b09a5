//! The controller as its pages see it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use hedgerow_core::effect::{AlertState, AuditRow, SilenceDraft, SilenceId, Transition};
use hedgerow_core::event::{KillScope, Via};
use hedgerow_core::moment::Moment;
use hedgerow_core::rollout::RolloutPlan;
use hedgerow_core::view::{FleetSnapshot, Point};
use hedgerow_core::whatif::{Latencies, Replay, replay};
use hedgerow_dashboard::backend::{
    AccessChange, AccessChanged, AccessView, ActError, Backend, Delivery, Operator, PolicyRevision,
    ProcessView, ReceiverView, RecordQuery, RolloutStep, Saved, Session, SignInError, SignOnBegun,
    SignOnEnded, StoreError, TestOutcome,
};
use hedgerow_protocol::ids::{Revision, RouteKey};
use hedgerow_protocol::policy::{Policy, PolicyScope};
use tokio_stream::wrappers::WatchStream;

use crate::acts::Acting;
use crate::alerts::Receivers;
use crate::auth::Auth;
use crate::engine::Engine;
use crate::process;
use crate::store::{self, Store};
use crate::telemetry::{Metrics, OpenPage};

/// Most rows a page gets at once, whatever it asks for.
const ROWS_MAX: u32 = 1000;

/// What the dashboard is served from. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Ui {
    engine: Engine,
    store: Store,
    auth: Auth,
    metrics: Metrics,
    receivers: Receivers,
}

impl Ui {
    /// Over a running controller.
    pub fn new(engine: Engine, store: Store, auth: Auth, metrics: Metrics) -> Self {
        Self {
            engine,
            store,
            auth,
            metrics,
            receivers: Receivers::default(),
        }
    }

    /// With these receivers of alerts.
    #[must_use]
    pub fn with_receivers(mut self, receivers: Receivers) -> Self {
        self.receivers = receivers;
        self
    }

    fn acting<'a>(&'a self, operator: &'a Operator) -> Acting<'a> {
        Acting {
            engine: &self.engine,
            operator,
            via: Via::Page,
        }
    }
}

impl Backend for Ui {
    fn snapshot(&self) -> Arc<FleetSnapshot> {
        self.engine.snapshot()
    }

    fn snapshots(&self) -> BoxStream<'static, Arc<FleetSnapshot>> {
        let page = OpenPage::count(&self.metrics);
        WatchStream::from_changes(self.engine.watch())
            .inspect(move |_| {
                // Held for as long as the stream is.
                let _ = &page;
            })
            .boxed()
    }

    async fn operator(&self, session: &str) -> Option<Operator> {
        match self.auth.session(session).await {
            Ok(operator) => operator,
            // Nobody is let in while it cannot be known who they are.
            Err(error) => {
                tracing::error!(error = error.in_full(), "a session could not be looked up");
                None
            }
        }
    }

    async fn sign_in(
        &self,
        name: &str,
        password: &str,
        peer: Option<IpAddr>,
    ) -> Result<Session, SignInError> {
        self.auth.sign_in(name, password, peer).await
    }

    async fn sign_in_by_link(
        &self,
        token: &str,
        peer: Option<IpAddr>,
    ) -> Result<Session, SignInError> {
        self.auth.sign_in_by_link(token, peer).await
    }

    async fn sign_out(&self, session: &str) {
        if let Err(error) = self.auth.sign_out(session).await {
            tracing::error!(error = error.in_full(), "a session could not be ended");
        }
    }

    async fn set_policy(
        &self,
        operator: &Operator,
        policy: Policy,
        expected: Option<Revision>,
        rollout: Option<RolloutPlan>,
        reason: &str,
    ) -> Result<Saved, ActError> {
        self.acting(operator)
            .set_policy(policy, expected, rollout, reason)
            .await
    }

    async fn step_rollout(
        &self,
        operator: &Operator,
        scope: PolicyScope,
        expected: Option<Revision>,
        step: RolloutStep,
        reason: &str,
    ) -> Result<Saved, ActError> {
        self.acting(operator)
            .step_rollout(scope, expected, step, reason)
            .await
    }

    async fn kill(
        &self,
        operator: &Operator,
        scope: KillScope,
        engaged: bool,
        reason: &str,
    ) -> Result<(), ActError> {
        self.acting(operator)
            .kill(scope, engaged, reason)
            .await
            .map(|_| ())
    }

    async fn release(
        &self,
        operator: &Operator,
        route: RouteKey,
        reason: &str,
    ) -> Result<(), ActError> {
        self.acting(operator).release(route, reason).await
    }

    async fn accept_base(
        &self,
        operator: &Operator,
        route: RouteKey,
        reason: &str,
    ) -> Result<(), ActError> {
        self.acting(operator).accept_base(route, reason).await
    }

    async fn start_switchback(
        &self,
        operator: &Operator,
        route: RouteKey,
        rounds: u32,
        reason: &str,
    ) -> Result<(), ActError> {
        self.acting(operator)
            .start_switchback(route, rounds, reason)
            .await
    }

    async fn stop_switchback(
        &self,
        operator: &Operator,
        route: RouteKey,
        reason: &str,
    ) -> Result<(), ActError> {
        self.acting(operator).stop_switchback(route, reason).await
    }

    async fn policy_history(&self, scope: &PolicyScope) -> Result<Vec<PolicyRevision>, StoreError> {
        self.store
            .policy_history(scope)
            .await
            .map_err(|e| unreadable(&e))
    }

    async fn remove_policy(
        &self,
        operator: &Operator,
        scope: PolicyScope,
        expected: Option<Revision>,
        reason: &str,
    ) -> Result<Saved, ActError> {
        self.acting(operator)
            .remove_policy(scope, expected, reason)
            .await
    }

    async fn latencies(&self, route: RouteKey) -> Result<Option<Latencies>, StoreError> {
        let latencies = self.engine.latencies(route).await;
        latencies.map_err(|gone| StoreError(gone.to_string()))
    }

    async fn replay(
        &self,
        route: RouteKey,
        policy: Policy,
        last: Duration,
    ) -> Result<Replay, StoreError> {
        let since = self.engine.clock().now().as_millis();
        let last = u64::try_from(last.as_millis()).unwrap_or(u64::MAX);
        let since = Moment::from_millis(since.saturating_sub(last));
        let minutes = self.store.minutes(&route, since).await;
        let minutes = minutes.map_err(|e| unreadable(&e))?;
        // A day of minutes: not on a thread that serves others.
        tokio::task::spawn_blocking(move || replay(&minutes, &policy))
            .await
            .map_err(|error| StoreError(error.to_string()))
    }

    async fn history(
        &self,
        route: &RouteKey,
        since: Moment,
        points: u32,
    ) -> Result<Vec<Point>, StoreError> {
        let until = self.engine.clock().now();
        let course = self.store.history(route, since, until, points).await;
        course.map_err(|e| unreadable(&e))
    }

    async fn past_alerts(
        &self,
        route: &RouteKey,
        since: Moment,
        limit: u32,
    ) -> Result<Vec<AlertState>, StoreError> {
        self.store
            .past_alerts(route, since, limit.min(ROWS_MAX))
            .await
            .map_err(|e| unreadable(&e))
    }

    async fn silence(
        &self,
        operator: &Operator,
        silence: SilenceDraft,
        reason: &str,
    ) -> Result<SilenceId, ActError> {
        self.acting(operator).silence(silence, reason).await
    }

    async fn end_silence(
        &self,
        operator: &Operator,
        silence: SilenceId,
        reason: &str,
    ) -> Result<(), ActError> {
        self.acting(operator).end_silence(silence, reason).await
    }

    async fn acknowledge(
        &self,
        operator: &Operator,
        alert: &str,
        lasts: Option<Duration>,
        comment: &str,
    ) -> Result<(), ActError> {
        let acting = self.acting(operator);
        acting.acknowledge(alert, lasts, comment).await
    }

    async fn receivers(&self) -> Result<Vec<ReceiverView>, StoreError> {
        let views = self.receivers.views(&self.store).await;
        views.map_err(|e| unreadable(&e))
    }

    async fn test_receiver(
        &self,
        operator: &Operator,
        receiver: &str,
    ) -> Result<TestOutcome, ActError> {
        self.acting(operator)
            .test_receiver(&self.receivers, &self.store, receiver)
            .await
    }

    async fn process(&self) -> ProcessView {
        let open_pages = self.metrics.pages_open.get().unsigned_abs();
        process::view(&self.engine, &self.store, open_pages).await
    }

    async fn access(&self, operator: &Operator) -> Result<AccessView, ActError> {
        self.acting(operator).access(&self.auth).await
    }

    async fn change_access(
        &self,
        operator: &Operator,
        change: AccessChange,
        reason: &str,
    ) -> Result<AccessChanged, ActError> {
        self.acting(operator)
            .change_access(&self.auth, change, reason)
            .await
    }

    fn single_sign_on(&self) -> Option<String> {
        self.auth.single_sign_on()
    }

    async fn begin_single_sign_on(&self, next: &str) -> Result<SignOnBegun, SignInError> {
        self.auth.begin_single_sign_on(next).await
    }

    async fn end_single_sign_on(
        &self,
        code: &str,
        state: &str,
        kept: &str,
        peer: Option<IpAddr>,
    ) -> Result<SignOnEnded, SignInError> {
        self.auth.end_single_sign_on(code, state, kept, peer).await
    }

    async fn record(&self, query: RecordQuery) -> Result<Vec<(i64, AuditRow)>, StoreError> {
        let query = RecordQuery {
            limit: query.limit.min(ROWS_MAX),
            ..query
        };
        self.store.record(&query).await.map_err(|e| unreadable(&e))
    }

    async fn transitions(
        &self,
        route: &RouteKey,
        limit: u32,
    ) -> Result<Vec<Transition>, StoreError> {
        self.store
            .transitions(route, limit.min(ROWS_MAX))
            .await
            .map_err(|e| unreadable(&e))
    }

    async fn deliveries(&self, limit: u32) -> Result<Vec<Delivery>, StoreError> {
        self.store
            .deliveries(limit.min(ROWS_MAX))
            .await
            .map_err(|e| unreadable(&e))
    }

    async fn deliveries_of(&self, alerts: &[&str]) -> Result<Vec<Delivery>, StoreError> {
        let of_them = self.store.deliveries_of(alerts).await;
        of_them.map_err(|e| unreadable(&e))
    }
}

fn unreadable(error: &store::StoreError) -> StoreError {
    StoreError(error.in_full())
}
