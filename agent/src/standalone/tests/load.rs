//! A service under a seeded load, and what its route did in each second.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use hedgerow_protocol::directive::Mode;
use hedgerow_protocol::ids::ReplicaName;
use hedgerow_protocol::policy::{Intent, Policy, PolicyDraft};
use hedgerow_protocol::report::Totals;
use tokio::time::{Instant, sleep, sleep_until};

use crate::agent::{Agent, AgentBuilder};
use crate::attempt::Attempt;
use crate::chance;
use crate::eligibility::Call;
use crate::error::CallError;
use crate::replicas::Replicas;
use crate::route::{Route, RouteBuilder, RouteSnapshot};

pub(super) const MS: Duration = Duration::from_millis(1);
pub(super) const S: Duration = Duration::from_secs(1);

/// What an attempt does: it takes so long, and then answers or fails.
#[derive(Debug, Clone, Copy)]
pub(super) struct Does {
    pub(super) takes: Duration,
    pub(super) fails: bool,
}

impl From<Duration> for Does {
    fn from(takes: Duration) -> Self {
        let fails = false;
        Self { takes, fails }
    }
}

/// 50 to 150 ms: timers tick in milliseconds, which must not be what is measured.
pub(super) fn usual() -> Duration {
    Duration::from_micros(50_000 + chance::below(100_000) as u64)
}

/// True in so many percent of the draws.
pub(super) fn percent(share: usize) -> bool {
    chance::below(100) < share
}

/// Longer than any deadline.
pub(super) const NEVER: Duration = Duration::from_hours(48);

/// The default policy, hedging, changed.
pub(super) fn policy(change: impl FnOnce(&mut PolicyDraft)) -> Policy {
    let mut draft: PolicyDraft = Policy::observing("catalog".parse().unwrap()).into();
    draft.intent = Intent::Hedge;
    change(&mut draft);
    Policy::try_from(draft).unwrap()
}

pub(super) struct Service {
    pub(super) agent: Agent,
    pub(super) route: Route,
    seconds: Vec<Second>,
}

/// What there was at a second's end.
#[derive(Debug, Clone)]
pub(super) struct Second {
    pub(super) totals: Totals,
    pub(super) threshold: Option<Duration>,
    pub(super) mode: Mode,
    cap: f64,
    budget: f64,
    pub(super) named: Vec<String>,
    pub(super) probation: Vec<ReplicaName>,
}

impl From<RouteSnapshot> for Second {
    fn from(snapshot: RouteSnapshot) -> Self {
        let effective = snapshot.effective;
        Self {
            totals: snapshot.totals,
            threshold: effective
                .threshold
                .map(hedgerow_protocol::units::Threshold::get),
            mode: effective.mode,
            cap: effective.cap,
            budget: effective.budget.get(),
            named: snapshot.named.iter().map(ToString::to_string).collect(),
            probation: snapshot.probation,
        }
    }
}

impl Service {
    /// So many replicas, `r0:1` and so on, hedged by `policy`.
    pub(super) async fn new(replicas: usize, deadline: Duration, policy: Policy) -> Self {
        let agent = Agent::builder().service("shop");
        let route = |route: RouteBuilder| route.deadline(deadline).hedge_standalone(policy);
        Self::build(agent, replicas, route).await
    }

    pub(super) async fn build(
        agent: AgentBuilder,
        replicas: usize,
        settings: impl FnOnce(RouteBuilder) -> RouteBuilder,
    ) -> Self {
        chance::seed(11);
        let agent = agent.connect().await.unwrap();
        let names: Vec<_> = (0..replicas).map(|i| format!("r{i}:1")).collect();
        let list = Replicas::new(names.iter().map(|name| (name.as_str(), None))).unwrap();
        let route = agent.route("catalog", "get").replicas(list);
        let route = settings(route.max_in_flight(10_000)).build().unwrap();
        let seconds = vec![];
        let mut service = Self {
            agent,
            route,
            seconds,
        };
        service.note();
        // Seconds of the test end a little after the agent's own.
        sleep(5 * MS).await;
        service
    }

    fn note(&mut self) {
        self.seconds.push(self.route.snapshot().into());
    }

    /// What there is now.
    pub(super) fn last(&self) -> &Second {
        self.seconds.last().unwrap()
    }

    pub(super) fn threshold(&self) -> Duration {
        self.last().threshold.unwrap()
    }

    /// Seconds gone by.
    pub(super) fn now(&self) -> usize {
        self.seconds.len() - 1
    }

    /// What there was at the end of each second from `from` on.
    pub(super) fn since(&self, from: usize) -> &[Second] {
        &self.seconds[from..]
    }

    /// An open load of `rate` calls a second, each answered as `does` says.
    pub(super) async fn offer<D: Into<Does>>(
        &mut self,
        rate: u32,
        seconds: u32,
        does: impl Fn(&ReplicaName) -> D,
    ) {
        let (began, does) = (Instant::now(), &does);
        let route = self.route.clone();
        let mut calls = FuturesUnordered::new();
        for i in 0..=rate * seconds {
            let at = began + S * i / rate;
            // Calls under way go on while the next one is waited for.
            loop {
                tokio::select! {
                    biased;
                    Some(()) = calls.next(), if !calls.is_empty() => {}
                    () = sleep_until(at) => break,
                }
            }
            if i > 0 && i % rate == 0 {
                self.note();
            }
            if i < rate * seconds {
                let route = &route;
                calls.push(async move {
                    let _ = call(route, does).await;
                });
            }
        }
        // Those still under way are given up: the next load begins at once.
    }

    /// A closed loop of `workers`; calls answered in each second.
    pub(super) async fn work<D: Into<Does>>(
        &mut self,
        workers: usize,
        seconds: u32,
        does: impl Fn(&ReplicaName) -> D,
    ) -> Vec<usize> {
        let (answered, does) = (&std::cell::Cell::new(0), &does);
        let route = self.route.clone();
        let route = &route;
        let mut loops: FuturesUnordered<_> = (0..workers)
            .map(|_| async move {
                loop {
                    if call(route, does).await.is_ok() {
                        answered.set(answered.get() + 1);
                    }
                }
            })
            .collect();
        let mut each = vec![];
        for _ in 0..seconds {
            tokio::select! {
                _ = loops.next() => unreachable!("workers do not end"),
                () = sleep(S) => {}
            }
            each.push(answered.replace(0));
            self.note();
        }
        each
    }

    /// Hedges <= budget x finished + cap, in every second so far, and by the agent's own books.
    pub(super) fn assert_within_budget(&self) {
        for (second, pair) in self.seconds.windows(2).enumerate() {
            let grown = pair[1].totals.since(&pair[0].totals).unwrap();
            let budget = pair[0].budget.max(pair[1].budget);
            let allowed = budget * grown.finished as f64 + pair[0].cap.max(pair[1].cap);
            assert!(
                grown.hedged as f64 <= allowed + 1e-6,
                "second {second}: {} hedges, {allowed} allowed",
                grown.hedged
            );
        }
    }

    /// Hedges sent of eligible calls started since second `from`.
    pub(super) fn hedge_rate(&self, from: usize) -> f64 {
        let grown = self
            .last()
            .totals
            .since(&self.seconds[from].totals)
            .unwrap();
        grown.hedged as f64 / grown.started as f64
    }
}

async fn call<D: Into<Does>>(
    route: &Route,
    does: &impl Fn(&ReplicaName) -> D,
) -> Result<(), CallError<()>> {
    let attempts = |attempt: Attempt| {
        let Does { takes, fails } = does(attempt.replica()).into();
        async move {
            let _permit = attempt;
            sleep(takes).await;
            if fails { Err(()) } else { Ok(()) }
        }
    };
    route.call(Call::idempotent(), attempts).await
}
