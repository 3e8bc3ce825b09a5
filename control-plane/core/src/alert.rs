//! Alerts: what people are told without looking.
//!
//! Each rule turns a decision into one of four signals; a [`Track`] for each subject turns signals
//! into episodes: one begin and one end each, however often the signal wavers in between (P15,
//! B76, B78). No data is a signal of its own that neither raises nor clears (P16).
//!
//! | rule | raised | cleared | waits |
//! |---|---|---|---|
//! | HedgeRateHigh | hedge rate or demand above the line | both under 0.8 of it | 10 s, 10 s |
//! | SharedSlowdown | off or probing for that reason | hedging again, or observing | |
//! | HedgingDisabled | off or probing by the controller for another reason | the same | |
//! | ReplicaSlow, ReplicaFailing | the replica is named | it is not | 5 s, 10 s |
//! | RolloutReverted | the controller took a rollout back | 10 min later, or at the next policy | |
//!
//! The line is 10 %, or 1.25 of a budget above 10 %, or 1.25 of what a pool lends where that is more.
//! A person's own off (kill switch, policy) raises nothing, and ends nothing: what was wrong before
//! may still be.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::ids::{DependencyName, ReplicaName, RouteKey};

use crate::decide::Decision;
use crate::effect::AlertState;
use crate::moment::Moment;
use crate::view::{AlertPhase, AlertRule, AlertView, Named, ReplicaView};

/// Hedge rate and demand above which a person is called, as a share of eligible calls.
const RATE_LINE: f64 = 0.10;
/// A policy whose budget is above the line moves it to this many times the budget.
const RATE_LINE_PER_BUDGET: f64 = 1.25;
/// Cleared under this share of the line, so that a rate beside it is one episode.
const RATE_CLEAR: f64 = 0.8;
/// How long a rate must be high: a healthy drift is over after 2 to 3 s.
const RATE_PENDING: Duration = Duration::from_secs(10);
/// How long it must be low again.
const RATE_KEPT: Duration = Duration::from_secs(10);
/// How long a replica must be named.
const NAMED_PENDING: Duration = Duration::from_secs(5);
/// How long it must not be.
const NAMED_KEPT: Duration = Duration::from_secs(10);
/// How long a rollout that was taken back is an alert, unless a person sets a policy before.
pub(crate) const REVERTED_FIRES: Duration = Duration::from_mins(10);
/// How long what is over is shown.
const RESOLVED_SHOWN: Duration = Duration::from_hours(1);
/// Most of it that is.
const RESOLVED_MAX: usize = 1_000;

/// What the rules look at, for one route.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Observed<'a> {
    pub(crate) route: &'a RouteKey,
    pub(crate) decision: &'a Decision,
    /// The policy's budget; None: no policy.
    pub(crate) budget: Option<f64>,
    /// What a pool lends it; None: its own budget holds.
    pub(crate) lent: Option<f64>,
    pub(crate) replicas: &'a [ReplicaView],
    /// Why the controller took a rollout back of late.
    pub(crate) reverted: Option<&'a str>,
}

/// What an alert is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Subject {
    route: RouteKey,
    rule: AlertRule,
    replica: Option<ReplicaName>,
}

/// What a rule says at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    Raise,
    Clear,
    /// Neither: between the two lines, or nothing can be known. What fires goes on firing; what
    /// does not begins to wait anew.
    Neither,
}

/// How long a rule waits before it fires, and before it ends.
#[derive(Debug, Clone, Copy)]
struct Waits {
    pending: Duration,
    kept: Duration,
}

/// One subject's way through its episodes.
#[derive(Debug, Clone, Default)]
struct Track {
    raised: Option<Moment>,
    cleared: Option<Moment>,
    summary: String,
    firing: Option<AlertState>,
}

/// Every alert that fires, waits, or is just over.
#[derive(Debug, Clone, Default)]
pub(crate) struct AlertBook {
    tracks: BTreeMap<Subject, Track>,
    resolved: VecDeque<AlertState>,
}

impl AlertBook {
    /// Takes up what was firing when the controller stopped: the same episodes go on (P15).
    pub(crate) fn restore(states: Vec<AlertState>) -> Self {
        let mut book = Self::default();
        for state in states.into_iter().filter(|state| state.resolved.is_none()) {
            let subject = Subject {
                route: state.route.clone(),
                rule: state.rule,
                replica: state
                    .replica
                    .as_deref()
                    .and_then(|name| ReplicaName::new(name).ok()),
            };
            let track = Track {
                raised: Some(state.since),
                summary: state.summary.clone(),
                firing: Some(state),
                ..Track::default()
            };
            book.tracks.insert(subject, track);
        }
        book
    }

    /// One look at everything. Returns episodes that began or ended, in the order to store them.
    pub(crate) fn evaluate(&mut self, now: Moment, all: &[Observed<'_>]) -> Vec<AlertState> {
        let mut changed = Vec::new();
        // First what inhibits others.
        for it in all {
            let signal = of_mode(it.decision, |reason| reason == OffReason::SharedSlowdown);
            self.step(
                now,
                it,
                AlertRule::SharedSlowdown,
                None,
                signal,
                &mut changed,
            );
        }
        let slowed: Vec<DependencyName> = self.firing(AlertRule::SharedSlowdown);
        for it in all {
            let signal = match of_mode(it.decision, is_disabling) {
                Signal::Raise if slowed.contains(&it.route.dependency) => Signal::Neither,
                signal => signal,
            };
            self.step(
                now,
                it,
                AlertRule::HedgingDisabled,
                None,
                signal,
                &mut changed,
            );
            self.step(
                now,
                it,
                AlertRule::HedgeRateHigh,
                None,
                of_rates(it),
                &mut changed,
            );
            self.evaluate_replicas(now, it, &mut changed);
            let signal = match it.reverted {
                Some(_) => Signal::Raise,
                None => Signal::Clear,
            };
            let rule = AlertRule::RolloutReverted;
            self.step(now, it, rule, None, signal, &mut changed);
        }
        self.tracks
            .retain(|_, track| track.firing.is_some() || track.raised.is_some());
        while self.resolved.front().is_some_and(|state| {
            self.resolved.len() > RESOLVED_MAX
                || state
                    .resolved
                    .is_none_or(|at| now.since(at) >= RESOLVED_SHOWN)
        }) {
            self.resolved.pop_front();
        }
        changed
    }

    fn evaluate_replicas(&mut self, now: Moment, it: &Observed<'_>, changed: &mut Vec<AlertState>) {
        for (rule, fault) in [
            (AlertRule::ReplicaSlow, Named::Slow),
            (AlertRule::ReplicaFailing, Named::Failing),
        ] {
            let named = it
                .decision
                .named
                .iter()
                .filter(|(_, named)| **named == fault);
            let mut subjects: Vec<_> = named.map(|(replica, _)| replica.clone()).collect();
            subjects.extend(self.replicas_tracked(it.route, rule));
            subjects.sort_unstable();
            subjects.dedup();
            for replica in subjects {
                let signal = match it.decision.named.get(&replica) {
                    Some(named) if *named == fault => Signal::Raise,
                    None if it.decision.figures.is_some() => Signal::Clear,
                    // No data; or named for the other fault: a replica that fails is not well
                    // because it is no longer slow.
                    _ => Signal::Neither,
                };
                self.step(now, it, rule, Some(replica), signal, changed);
            }
        }
    }

    fn step(
        &mut self,
        now: Moment,
        it: &Observed<'_>,
        rule: AlertRule,
        replica: Option<ReplicaName>,
        signal: Signal,
        changed: &mut Vec<AlertState>,
    ) {
        let subject = Subject {
            route: it.route.clone(),
            rule,
            replica,
        };
        if signal != Signal::Raise && !self.tracks.contains_key(&subject) {
            return;
        }
        let track = self.tracks.entry(subject.clone()).or_default();
        let waits = waits(rule);
        match signal {
            Signal::Raise => {
                track.cleared = None;
                let since = *track.raised.get_or_insert(now);
                if track.firing.is_none() {
                    track.summary = summary(&subject, it);
                    if now.since(since) >= waits.pending {
                        let state = begin(&subject, since, now, &track.summary);
                        track.firing = Some(state.clone());
                        changed.push(state);
                    }
                }
            }
            Signal::Neither => {
                track.cleared = None;
                if track.firing.is_none() {
                    track.raised = None;
                }
            }
            Signal::Clear => {
                let since = *track.cleared.get_or_insert(now);
                if track.firing.is_none() || now.since(since) >= waits.kept {
                    track.raised = None;
                    track.cleared = None;
                    if let Some(mut state) = track.firing.take() {
                        state.resolved = Some(now);
                        self.resolved.push_back(state.clone());
                        changed.push(state);
                    }
                }
            }
        }
    }

    fn firing(&self, rule: AlertRule) -> Vec<DependencyName> {
        self.tracks
            .iter()
            .filter(|(subject, track)| subject.rule == rule && track.firing.is_some())
            .map(|(subject, _)| subject.route.dependency.clone())
            .collect()
    }

    fn replicas_tracked(&self, route: &RouteKey, rule: AlertRule) -> Vec<ReplicaName> {
        let from = Subject {
            route: route.clone(),
            rule,
            replica: None,
        };
        self.tracks
            .range(from..)
            .take_while(|(subject, _)| subject.route == *route && subject.rule == rule)
            .filter_map(|(subject, _)| subject.replica.clone())
            .collect()
    }

    /// Whether anything fires or waits about `route`.
    pub(crate) fn concerns(&self, route: &RouteKey) -> bool {
        self.tracks.keys().any(|subject| subject.route == *route)
    }

    /// Everything, for people: what fires, what waits, what is just over.
    pub(crate) fn views(&self) -> Vec<AlertView> {
        let tracks = self.tracks.iter().filter_map(|(subject, track)| {
            if let Some(state) = track.firing.clone() {
                return Some(AlertView {
                    state,
                    phase: AlertPhase::Firing,
                    silenced: None,
                    acknowledged: None,
                });
            }
            let since = track.raised?;
            let state = begin(subject, since, since, &track.summary);
            Some(AlertView {
                state,
                phase: AlertPhase::Pending,
                silenced: None,
                acknowledged: None,
            })
        });
        let resolved = self.resolved.iter().rev();
        let resolved = resolved.map(|state| AlertView {
            state: state.clone(),
            phase: AlertPhase::Resolved,
            silenced: None,
            acknowledged: None,
        });
        let mut views: Vec<_> = tracks.chain(resolved).collect();
        views.sort_by_key(|view| view.phase);
        views
    }
}

fn waits(rule: AlertRule) -> Waits {
    match rule {
        AlertRule::HedgeRateHigh => Waits {
            pending: RATE_PENDING,
            kept: RATE_KEPT,
        },
        AlertRule::ReplicaSlow | AlertRule::ReplicaFailing => Waits {
            pending: NAMED_PENDING,
            kept: NAMED_KEPT,
        },
        // A mode has a least stay of its own, and what is past is past.
        AlertRule::SharedSlowdown | AlertRule::HedgingDisabled | AlertRule::RolloutReverted => {
            Waits {
                pending: Duration::ZERO,
                kept: Duration::ZERO,
            }
        }
    }
}

fn is_disabling(reason: OffReason) -> bool {
    !matches!(
        reason,
        OffReason::SharedSlowdown | OffReason::KillSwitch | OffReason::Policy
    )
}

/// A mode off for one of the reasons `raises`; over only when hedging, or what led to it, is.
fn of_mode(decision: &Decision, raises: impl Fn(OffReason) -> bool) -> Signal {
    match decision.mode {
        Mode::Off(reason) | Mode::Probing(reason) if raises(reason) => Signal::Raise,
        Mode::On | Mode::Observing if decision.figures.is_some() => Signal::Clear,
        _ => Signal::Neither,
    }
}

fn of_rates(it: &Observed<'_>) -> Signal {
    let line = rate_line(it.budget, it.lent);
    let conditions = it.decision.conditions;
    let high = |rate: Option<f64>| rate.is_some_and(|rate| rate > line);
    let low = |rate: Option<f64>| rate.is_some_and(|rate| rate < line * RATE_CLEAR);
    if high(conditions.hedge_rate) || high(conditions.demand) {
        Signal::Raise
    } else if low(conditions.hedge_rate) && low(conditions.demand) {
        Signal::Clear
    } else {
        Signal::Neither
    }
}

/// The line of demand and hedge rate; `lent`: what a pool lends in place of the policy's budget.
pub(crate) fn rate_line(budget: Option<f64>, lent: Option<f64>) -> f64 {
    match budget {
        // Up to the line itself is lent, and spent to the last hedge: chance must not page.
        _ if let Some(lent) = lent => (RATE_LINE_PER_BUDGET * lent).max(RATE_LINE),
        Some(budget) if budget > RATE_LINE => RATE_LINE_PER_BUDGET * budget,
        _ => RATE_LINE,
    }
}

fn begin(subject: &Subject, raised: Moment, now: Moment, summary: &str) -> AlertState {
    AlertState {
        id: episode(subject, raised),
        rule: subject.rule,
        route: subject.route.clone(),
        replica: subject.replica.as_ref().map(ToString::to_string),
        summary: summary.to_owned(),
        since: now,
        resolved: None,
    }
}

/// An episode's name: the rule, when it began to be true, and a hash (FNV-1a) of what it is about;
/// fit for an address.
fn episode(subject: &Subject, raised: Moment) -> String {
    let replica = subject.replica.as_ref().map_or("", ReplicaName::as_str);
    let about = format!(
        "{}\0{}\0{replica}",
        subject.route.dependency, subject.route.operation
    );
    let hash = about.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!(
        "{}-{}-{hash:016x}",
        subject.rule.as_str(),
        raised.as_millis()
    )
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn summary(subject: &Subject, it: &Observed<'_>) -> String {
    let route = &subject.route;
    match subject.rule {
        AlertRule::HedgeRateHigh => {
            let line = rate_line(it.budget, it.lent);
            let conditions = it.decision.conditions;
            let (what, rate, cure) = match (conditions.hedge_rate, conditions.demand) {
                (Some(rate), _) if rate > line => {
                    ("hedges sent are", rate, "an agent or a policy is broken")
                }
                (_, demand) => (
                    "calls beyond the threshold are",
                    demand.unwrap_or_default(),
                    "the dependency is slower than its threshold; the budget holds the load",
                ),
            };
            let moved = match it.lent.or(it.budget) {
                Some(budget) if line > RATE_LINE => {
                    format!(" (1.25 times its budget of {})", percent(budget))
                }
                _ => String::new(),
            };
            format!(
                "{route}: {what} {} of eligible calls, over {}{moved}; {cure}",
                percent(rate),
                percent(line)
            )
        }
        AlertRule::SharedSlowdown => format!(
            "{route}: its replicas are slow together, so that a hedge is as slow as the call it is \
             for; hedging is off until they are well. {}",
            it.decision.words
        ),
        AlertRule::HedgingDisabled => {
            format!(
                "{route}: the controller switched hedging off. {}",
                it.decision.words
            )
        }
        AlertRule::ReplicaSlow | AlertRule::ReplicaFailing => replica_summary(subject, it),
        AlertRule::RolloutReverted => format!(
            "{}: the rollout of its policy was taken back, the old policy is in force for all \
             agents again. {}",
            route.dependency,
            it.reverted.unwrap_or_default()
        ),
    }
}

fn replica_summary(subject: &Subject, it: &Observed<'_>) -> String {
    let name = subject.replica.as_ref().map_or("?", ReplicaName::as_str);
    let slow = subject.rule == AlertRule::ReplicaSlow;
    let seen = it
        .replicas
        .iter()
        .find(|view| view.replica.as_str() == name);
    let share = seen.and_then(|view| if slow { view.crossed } else { view.error_rate });
    let share = share.map_or_else(String::new, |share| {
        let what = if slow {
            "of its calls cross the threshold"
        } else {
            "of its calls fail"
        };
        format!(" ({} {what})", percent(share))
    });
    let fault = if slow { "slow" } else { "failing" };
    let carried = match it.lent.or(it.budget) {
        Some(budget) => format!("hedging can carry at most {} of the calls", percent(budget)),
        None => "nothing is hedged here".to_owned(),
    };
    format!(
        "{}: replica {name} is what is {fault}{share}; ejecting it is the cure, {carried}",
        subject.route
    )
}
