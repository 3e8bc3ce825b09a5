//! An agent without a network, directed by the test.

use std::time::Duration;

use hedgerow_protocol::directive::{Directive, LiveValues, Mode, Stamp, Standing};
use hedgerow_protocol::ids::{Epoch, ModeSequence, Revision, Sequence, Tick};
use hedgerow_protocol::policy::{Intent, Policy, PolicyDraft};
use hedgerow_protocol::report::{Refusal, RouteReport, Totals};
use hedgerow_protocol::units::{AttemptLimit, Budget, Quantile, Ratio, Threshold};
use tokio::time::{Instant, sleep};

use crate::agent::Agent;
use crate::attempt::{Attempt, AttemptKind};
use crate::eligibility::{Call, Verdict};
use crate::error::CallError;
use crate::host::Host;
use crate::replicas::Replicas;
use crate::route::{Route, RouteBuilder};

pub(super) const MS: Duration = Duration::from_millis(1);
/// The threshold unless a test says otherwise.
pub(super) const D: Duration = Duration::from_millis(100);

/// What an attempt does: after so many milliseconds, this.
#[derive(Debug, Clone, Copy)]
pub(super) enum Does {
    Answers(u32),
    Fails(u32, Verdict),
    Never,
}

/// An attempt's error, or the verdict on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) of: AttemptKind,
    pub(super) verdict: Verdict,
}

pub(super) type Outcome = Result<AttemptKind, CallError<Failure>>;

/// Carries `does` out.
pub(super) async fn carry_out(attempt: Attempt, does: Does) -> Result<AttemptKind, Failure> {
    let of = attempt.kind();
    match does {
        Does::Answers(0) => Ok(of),
        Does::Answers(ms) => {
            sleep(ms * MS).await;
            Ok(of)
        }
        Does::Fails(ms, verdict) => {
            sleep(ms * MS).await;
            Err(Failure { of, verdict })
        }
        Does::Never => std::future::pending().await,
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "a classifier sees a reference"
)]
pub(super) fn classify(result: &Result<AttemptKind, Failure>) -> Verdict {
    result.map_or_else(|failure| failure.verdict, |_| Verdict::Good)
}

/// The default policy, hedging.
pub(super) fn hedging_policy() -> Policy {
    let observing = Policy::observing("catalog".parse().unwrap());
    Policy::try_from(PolicyDraft {
        intent: Intent::Hedge,
        ..observing.into()
    })
    .unwrap()
}

pub(super) struct Rig {
    pub(super) agent: Agent,
    pub(super) route: Route,
    directive: Directive,
    reports: u64,
}

impl Rig {
    /// Two replicas, hedging on, threshold [`D`], a full bucket.
    pub(super) async fn hedging() -> Self {
        let mut rig = Self::with(|route| route).await;
        rig.direct(|_| {});
        rig.earn(1000);
        rig
    }

    /// Undirected.
    pub(super) async fn with(settings: impl FnOnce(RouteBuilder) -> RouteBuilder) -> Self {
        crate::chance::seed(11);
        let agent = Agent::builder().service("shop").connect().await.unwrap();
        let replicas = Replicas::new([("a:1", None), ("b:1", None)]).unwrap();
        let route = settings(agent.route("catalog", "get").replicas(replicas))
            .build()
            .unwrap();
        let threshold = Threshold::new(D).unwrap();
        let budget = Budget::new(0.08).unwrap();
        let directive = Directive {
            route: route.key().clone(),
            stamp: Stamp {
                epoch: Epoch(1),
                revision: Revision(1),
                mode_sequence: ModeSequence(1),
            },
            mode: Mode::On,
            live: LiveValues::new(Tick(1), Some(threshold), Ratio::ONE, budget, 40.0).unwrap(),
            standing: Standing {
                percentile: Quantile::new(0.95).unwrap(),
                holdout: Ratio::ZERO,
                error_limit: Ratio::new(0.05).unwrap(),
                threshold_min: None,
                threshold_max: None,
                lease: Duration::from_hours(1),
                attempts: AttemptLimit::default(),
                hedge_on_error: false,
            },
            probation: vec![],
            start_credit: 0.0,
        };
        Self {
            agent,
            route,
            directive,
            reports: 0,
        }
    }

    /// Pushes a changed directive.
    pub(super) fn direct(&mut self, change: impl FnOnce(&mut Directive)) {
        change(&mut self.directive);
        self.directive.live.tick = self.directive.live.tick.next();
        self.directive.stamp.mode_sequence = self.directive.stamp.mode_sequence.next();
        let shared = &self.agent.keeper.shared;
        shared.heard(Instant::now());
        shared
            .apply(self.directive.clone(), Instant::now())
            .unwrap();
    }

    /// Any word of the controller.
    pub(super) fn heard(&self) {
        self.agent.keeper.shared.heard(Instant::now());
    }

    /// As if so many calls had finished.
    pub(super) fn earn(&self, calls: u32) {
        (0..calls).for_each(|_| self.route.state.bucket.earn());
    }

    pub(super) fn without_budget(&mut self) {
        self.direct(|directive| directive.live.budget = Budget::ZERO);
        while self.route.state.bucket.take() {}
    }

    /// One call, and how long it took.
    pub(super) async fn call(&self, primary: Does, hedge: Does) -> (Outcome, Duration) {
        self.call_as(Call::idempotent(), primary, hedge).await
    }

    pub(super) async fn call_as(
        &self,
        call: Call,
        primary: Does,
        hedge: Does,
    ) -> (Outcome, Duration) {
        let began = Instant::now();
        let attempts = move |attempt: Attempt| {
            let does = match attempt.kind() {
                AttemptKind::Primary => primary,
                AttemptKind::Hedge => hedge,
            };
            carry_out(attempt, does)
        };
        let outcome = self.route.call_with(call, classify, attempts).await;
        (outcome, began.elapsed())
    }

    pub(super) fn totals(&self) -> Totals {
        self.route.state.recorder.totals()
    }

    pub(super) fn refused(&self, reason: Refusal) -> u64 {
        self.totals().refused_for(reason)
    }

    /// What is reported now, acknowledged.
    pub(super) fn report(&mut self) -> RouteReport {
        self.reports += 1;
        let sequence = Sequence(self.reports);
        let shared = &self.agent.keeper.shared;
        let mut report = shared.collect(sequence, Duration::from_secs(1), Instant::now());
        assert_eq!(report.check(), Ok(()));
        shared.acknowledged(sequence);
        report.routes.remove(0)
    }

    /// Nothing is left of any call: no permit, slot, gauge or task. Every call ended once and in one
    /// way, and every crossed call was hedged or refused for one reason.
    pub(super) async fn assert_at_rest(&mut self) {
        let state = self.route.state.clone();
        let tracker = &state.tasks.tracker;
        tracker.close();
        tracker.wait().await;
        tracker.reopen();
        let ordering = std::sync::atomic::Ordering::Relaxed;
        assert_eq!(state.attempts_alive(), 0, "permits");
        assert_eq!(state.permits.hedges.load(ordering), 0, "hedges");
        assert_eq!(state.watched.load(ordering), 0, "watched losers");
        for replica in state.pool.known() {
            assert_eq!(replica.in_flight(), 0, "{}", replica.name);
        }
        let t = self.totals();
        assert_eq!(t.check(), Ok(()));
        assert_eq!(t.started, t.finished);
        assert_eq!(
            t.finished,
            t.treated_finished + t.holdout_finished + t.abandoned
        );
        assert_eq!(t.failed, t.treated_failed + t.holdout_failed);
        let answered = (t.primary_finished - t.primary_errors) + t.won + t.won_on_error;
        assert_eq!(t.started, answered + t.failed + t.abandoned, "{t:?}");
        assert_eq!(t.crossed, t.hedged + t.refused.iter().sum::<u64>(), "{t:?}");
        assert_eq!(t.failed_despite_primary, 0);
    }
}
