//! What a policy would have done with the traffic of the last hours, minute by minute.
//!
//! For each stored [`Minute`] the policy has the threshold that the minutes before it give, as a
//! controller would have: the larger of the last minute's and the last five's quantile, or what is
//! best for its goal. The
//! minute's own curve then says how many calls cross and, by the [formula](super) of single
//! reissue, what callers would have waited. Minutes are added up by their calls, so that a
//! percentile is one of all calls and not a mean of percentiles.

use std::collections::VecDeque;
use std::time::Duration;

use hedgerow_protocol::directive::OffReason;
use hedgerow_protocol::latency::{BUCKETS, SurvivalCurve, upper_edge_us};
use hedgerow_protocol::limits::THRESHOLD_CALLS_MIN;
use hedgerow_protocol::policy::{Intent, Policy};
use hedgerow_protocol::units::{Ratio, Threshold};

use super::percentile::Percentile;
use crate::alert::rate_line;
use crate::decide::goal::{Aim, look};
use crate::minute::Minute;
use crate::moment::Moment;
use crate::window::Attempts;

/// Minutes of the threshold's slow side.
const SLOW_MINUTES: usize = 5;
/// What is older is of another time, as after hours without the controller: not of the same window.
/// Minutes are a little longer than one.
const SLOW_SPAN: Duration = Duration::from_mins(6);

/// What is assumed, to be said wherever a replay is shown.
pub const ASSUMED: &[&str] = &[
    "each minute is hedged by the threshold that the minutes before it give",
    "a hedge is as slow as any call of its minute, and shares with its own call what was measured \
     to be shared; nothing, where too few hedges were sent to measure it",
    "the load of the hedges makes nothing slower",
    "a policy hedges by its own budget, whatever its pool would lend it",
    "a minute at whose end hedging was off, or too much failed, counts as off whole",
    "where hedging was switched off for a slowness that all replicas shared, it would have been so \
     under this policy",
];

/// One minute as it would have been.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Its end.
    pub at: Moment,
    /// Eligible calls started in it.
    pub calls: u64,
    /// When calls would have been hedged; None: nothing was known yet, or nothing may be hedged.
    pub threshold: Option<Duration>,
    /// Hedges for each call.
    pub hedge_rate: f64,
    /// What was sent in fact, for each call.
    pub hedge_rate_then: f64,
    /// The 99th percentile of primaries alone; None beyond what is known.
    pub unhedged_p99: Option<Duration>,
    /// The same of what callers would have waited.
    pub hedged_p99: Option<Duration>,
    /// Why hedging would have been off.
    pub off: Option<OffReason>,
}

/// All of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// Calls in all.
    pub calls: u64,
    /// Hedges for each call.
    pub hedge_rate: f64,
    /// What was sent in fact, for each call.
    pub hedge_rate_then: f64,
    /// What primaries alone took, as in [`Percentile::SHOWN`]; None beyond what is known.
    pub unhedged: [Option<Duration>; Percentile::SHOWN.len()],
    /// What callers would have waited.
    pub hedged: [Option<Duration>; Percentile::SHOWN.len()],
    /// Minutes in which hedging would have been off.
    pub minutes_off: usize,
    /// Minutes with more hedges than an alert allows.
    pub minutes_alerting: usize,
    /// Every minute, oldest first.
    pub rows: Vec<Row>,
}

/// Replays minutes, oldest first, under a policy; those of other routes must not be among them.
pub fn replay(minutes: &[Minute], policy: &Policy) -> Replay {
    let mut state = State::default();
    let (mut unhedged, mut hedged) = (Mix::default(), Mix::default());
    let mut rows = Vec::with_capacity(minutes.len());
    let (mut sent, mut sent_then) = (0.0, 0.0);
    for minute in minutes {
        let primaries = minute.primaries();
        let curve = primaries.curve();
        let off = state.off(minute, policy);
        let threshold = state
            .threshold
            .filter(|_| policy.intent() == Intent::Hedge && off.is_none());
        let phi = minute.known.phi.unwrap_or(0.0).clamp(0.0, 1.0);
        let plan = threshold.map(|delay| Sent::new(&curve, delay, state.probability, policy, phi));
        let calls = minute.calls as f64;
        let (mut alone, mut with) = (Mix::default(), Mix::default());
        alone.add(calls, &curve, None);
        with.add(calls, &curve, plan.as_ref());
        let hedge_rate = plan.as_ref().map_or(0.0, |plan| plan.rate);
        sent += hedge_rate * calls;
        sent_then += minute.hedged as f64;
        rows.push(Row {
            at: minute.at,
            calls: minute.calls,
            threshold,
            hedge_rate,
            hedge_rate_then: minute.hedged as f64 / calls.max(1.0),
            unhedged_p99: alone.percentile(Percentile::P99),
            hedged_p99: with.percentile(Percentile::P99),
            off,
        });
        unhedged.merge(&alone);
        hedged.merge(&with);
        state.learn(minute.at, primaries, policy, Ratio::clamped(phi));
    }
    // A row that was damaged in a store may say anything.
    let calls = minutes
        .iter()
        .fold(0_u64, |sum, minute| sum.saturating_add(minute.calls));
    let share = |hedges: f64| {
        if calls > 0 {
            hedges / calls as f64
        } else {
            0.0
        }
    };
    let line = rate_line(Some(policy.budget().get()), None);
    Replay {
        calls,
        hedge_rate: share(sent),
        hedge_rate_then: share(sent_then),
        unhedged: Percentile::SHOWN.map(|percentile| unhedged.percentile(percentile)),
        hedged: Percentile::SHOWN.map(|percentile| hedged.percentile(percentile)),
        minutes_off: rows.iter().filter(|row| row.off.is_some()).count(),
        minutes_alerting: rows.iter().filter(|row| row.hedge_rate > line).count(),
        rows,
    }
}

/// What a controller would remember from minute to minute.
#[derive(Debug)]
struct State {
    threshold: Option<Duration>,
    /// The share of crossed calls hedged.
    probability: f64,
    /// The last minutes' primaries and their ends, oldest first.
    last: VecDeque<(Moment, Attempts)>,
    failing: bool,
}

impl Default for State {
    fn default() -> Self {
        Self {
            threshold: None,
            probability: 1.0,
            last: VecDeque::new(),
            failing: false,
        }
    }
}

impl State {
    /// Why hedging is off in a minute. Errors by the policy's own limit, off above it and on again
    /// under half of it; what depends on the replicas as it was found then.
    fn off(&mut self, minute: &Minute, policy: &Policy) -> Option<OffReason> {
        let limit = policy.error_limit().get();
        if let Some(errors) = minute.known.errors {
            self.failing = errors > limit || (self.failing && errors > limit / 2.0);
        }
        if policy.intent() != Intent::Hedge {
            return Some(OffReason::Policy).filter(|_| policy.intent() == Intent::Off);
        }
        if self.failing {
            return Some(OffReason::Errors);
        }
        minute.known.off.filter(|off| {
            matches!(
                off,
                OffReason::SharedSlowdown | OffReason::PushBack | OffReason::WinsNothing
            )
        })
    }

    fn learn(&mut self, at: Moment, primaries: Attempts, policy: &Policy, shared: Ratio) {
        self.last
            .retain(|(before, _)| at.since(*before) < SLOW_SPAN);
        self.last.push_back((at, primaries));
        if self.last.len() > SLOW_MINUTES {
            self.last.pop_front();
        }
        let fast = self.curve(1);
        let slow = self.curve(SLOW_MINUTES);
        let enough = fast.as_ref().or(slow.as_ref());
        if let Some((delay, probability)) = enough.and_then(|curve| look(curve, policy, shared)) {
            self.probability = probability;
            self.threshold = delay.or(self.threshold);
            return;
        }
        let quantile = |curve: &Option<SurvivalCurve>| {
            curve
                .as_ref()
                .and_then(|curve| curve.quantile(policy.percentile().get()))
        };
        // Under too few calls the last good one is held.
        if let Some(value) = quantile(&fast).max(quantile(&slow)) {
            let value = policy.threshold_min().map_or(value, |min| value.max(min));
            let value = policy.threshold_max().map_or(value, |max| value.min(max));
            self.threshold = Some(Threshold::clamped(value).get());
        }
    }

    /// The last minutes' primaries; None where they are too few.
    fn curve(&self, minutes: usize) -> Option<SurvivalCurve> {
        let mut sum = Attempts::default();
        for (_, own) in self.last.iter().rev().take(minutes) {
            // Fails after 2^48 samples only.
            let _ = sum.done.add(&own.done);
            let _ = sum.censored.add(&own.censored);
        }
        (sum.count() >= THRESHOLD_CALLS_MIN).then(|| sum.curve())
    }
}

/// The hedges of one minute.
struct Sent<'a> {
    curve: &'a SurvivalCurve,
    delay: Duration,
    /// The share of eligible, treated calls that are hedged once they have crossed, less what they
    /// share with their hedge.
    helps: f64,
    treated: f64,
    rate: f64,
}

impl<'a> Sent<'a> {
    fn new(
        curve: &'a SurvivalCurve,
        delay: Duration,
        probability: f64,
        policy: &Policy,
        phi: f64,
    ) -> Self {
        let treated = 1.0 - policy.holdout().get();
        let crossed = survival(curve, delay) * treated;
        // In the search for a goal what is shared was weighed already.
        let lent = match Aim::of(policy) {
            Aim::Percentile => 1.0 - phi,
            Aim::Goal(_) | Aim::Objective(_) => 1.0,
        };
        let rate = (crossed * probability).min(policy.budget().get() * lent);
        let drawn = if crossed > 0.0 { rate / crossed } else { 0.0 };
        Self {
            curve,
            delay,
            helps: drawn * (1.0 - phi),
            treated,
            rate,
        }
    }

    /// The share of callers that wait longer than a time, of whom `alone` would without hedges.
    fn beyond(&self, time: Duration, alone: f64) -> f64 {
        let back = time
            .checked_sub(self.delay)
            .map_or(0.0, |age| 1.0 - survival(self.curve, age));
        alone * (1.0 - self.treated * self.helps * back)
    }
}

/// The share that takes longer; beyond what is known as many as at its end.
fn survival(curve: &SurvivalCurve, time: Duration) -> f64 {
    curve
        .survival_at(time)
        .or_else(|| curve.survival_at(curve.known_until()?))
        .unwrap_or(0.0)
}

/// Calls of many minutes by how long they wait: expected numbers beyond each bucket's upper edge.
struct Mix {
    beyond: Vec<f64>,
    calls: f64,
    /// Calls of whom nothing is known beyond a bucket: those of a curve that ends there.
    unknown: Vec<f64>,
}

impl Default for Mix {
    fn default() -> Self {
        Self {
            beyond: vec![0.0; BUCKETS],
            calls: 0.0,
            unknown: vec![0.0; BUCKETS],
        }
    }
}

impl Mix {
    fn add(&mut self, calls: f64, curve: &SurvivalCurve, sent: Option<&Sent<'_>>) {
        if curve.is_empty() {
            return;
        }
        self.calls += calls;
        let mut alone = 1.0;
        let mut steps = curve.steps();
        for bucket in 0..BUCKETS {
            match steps.next() {
                Some(step) => alone = step.survival,
                None if alone > 0.0 => self.unknown[bucket] += calls * alone,
                // Nobody is left.
                None => break,
            }
            let edge = Duration::from_nanos((upper_edge_us(bucket) * 1e3) as u64);
            let beyond = sent.map_or(alone, |sent| sent.beyond(edge, alone));
            self.beyond[bucket] += calls * beyond;
        }
    }

    fn merge(&mut self, other: &Self) {
        self.calls += other.calls;
        for (sum, more) in self.beyond.iter_mut().zip(&other.beyond) {
            *sum += more;
        }
        for (sum, more) in self.unknown.iter_mut().zip(&other.unknown) {
            *sum += more;
        }
    }

    /// The first bucket edge beyond which no more calls wait than the percentile leaves. None where
    /// that depends on calls of whom nothing is known.
    fn percentile(&self, percentile: Percentile) -> Option<Duration> {
        // A hair, for sums of floats.
        let leaves = percentile.beyond() * self.calls * (1.0 + 1e-9);
        let bucket = self.beyond.iter().position(|&beyond| beyond <= leaves)?;
        let known = self.unknown[bucket] <= 0.0;
        (self.calls > 0.0 && known)
            .then(|| Duration::from_nanos((upper_edge_us(bucket) * 1e3) as u64))
    }
}
