//! Off where hedges win nothing: for ten minutes they have answered less than half as often as
//! independent ones would, and callers have waited as long as those held out.
//!
//! Windows end at 60 s, so a minute is added up when it is over, and ten such sums are kept.
//!
//! **What is compared.** A hedge can shorten nothing but the time a call waits beyond the threshold
//! d, so each call counts with that: 0 up to d, at most [`WAIT_MAX`] times d beyond. Its mean over
//! *all* calls of each arm, not over those that crossed: who crosses d may depend on the arm where
//! agents change d within the minute, who is held out depends on nothing. A share of calls over d
//! would say nothing (a hedge is sent at d), and p99 of the one call in a hundred held out rests on
//! ten of a thousand.
//!
//! **The test.** With m the means, g = 1 - m(treated) / m(held out) is the gain. That g is under
//! some g0 is shown where z = (m(t) - (1 - g0) m(h)) / sqrt(v(t)/n(t) + (1 - g0)^2 v(h)/n(h)) is
//! over the normal distribution's one-sided 95 % point: the ratio of two means as a linear contrast
//! (E. C. Fieller, "Some problems in interval estimation", J. R. Statist. Soc. B 16, 1954) with
//! each arm's own variance (B. L. Welch, "The generalization of Student's problem when several
//! different population variances are involved", Biometrika 34, 1947). *No gain* is one that is
//! shown to be under a fifth. That none is seen, for want of calls, is never a verdict: with few
//! held out nothing is shown either way, and hedging stays on.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use hedgerow_protocol::directive::Mode;
use hedgerow_protocol::ids::{ReplicaName, RouteKey};
use hedgerow_protocol::latency::{Histogram, bucket_of, lower_edge_us, upper_edge_us};

use super::latch::Findings;
use super::naming::Entry;
use super::shared_cause;
use super::words::latency;
use crate::moment::Moment;
use crate::stagger::stagger;
use crate::view::Evidence;
use crate::window::{WINDOW_MAX, Windows};

/// Answered / expected hedges under which they are asked what they win.
const POOR_RATIO: f64 = 0.5;
/// Minutes added up, each kept for the time that so many more take: a gap is not bridged for long.
const MINUTES: usize = 10;
const KEPT: Duration = Duration::from_mins(15);
/// Expected answers over all of them under which O/E says nothing.
const EXPECTED_MIN: f64 = 40.0;
/// Held-out calls that waited beyond the threshold under which their mean says nothing.
const HELD_OUT_MIN: u64 = 50;
/// Hedges sent, of the crossed calls that were to be hedged, under which the treated were hardly
/// treated: a budget cut short is no proof that hedging wins nothing.
const TREATED_MIN: f64 = 0.5;
/// A gain, of the time waited beyond the threshold, that is none for hedges half of which are in
/// vain.
const LITTLE: f64 = 0.2;
/// One-sided 95 % point of the normal distribution.
const SURE: f64 = 1.645;
/// Longest wait beyond the threshold that counts, in thresholds: one call that runs into its
/// deadline must not outweigh a hundred.
const WAIT_MAX: f64 = 10.0;

/// The last minutes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct WinsNothing {
    minutes: VecDeque<Minute>,
    /// Slices pushed when the minute under way began; None before the first.
    from: Option<u64>,
    /// Crossed calls that were to be hedged in it, and hedges sent.
    wanted: f64,
    sent: f64,
    /// Whether nothing was to be hedged in some second of it, so that it compares nothing.
    broken: bool,
}

/// What a minute added up to.
#[derive(Debug, Clone, PartialEq)]
struct Minute {
    at: Moment,
    threshold: Duration,
    observed: f64,
    expected: f64,
    wanted: f64,
    sent: f64,
    treated: Waits,
    held_out: Waits,
}

/// Waits beyond the threshold of one arm, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Waits {
    calls: u64,
    /// Of these, those that waited beyond it at all.
    beyond: u64,
    sum: f64,
    squares: f64,
}

/// What a tick is judged on.
pub(crate) struct View<'a> {
    pub(crate) now: Moment,
    pub(crate) route: &'a RouteKey,
    pub(crate) windows: &'a Windows,
    /// Replicas that are at fault by themselves.
    pub(crate) named: &'a BTreeMap<ReplicaName, Entry>,
    /// The mode agents have had, and slices pushed when they got it.
    pub(crate) mode: Mode,
    pub(crate) mode_from: u64,
    /// The share of crossed calls that was to be hedged.
    pub(crate) probability: f64,
    pub(crate) threshold: Option<Duration>,
}

impl WinsNothing {
    /// One tick. Returns why, where hedges win nothing.
    pub(crate) fn observe(&mut self, view: &View<'_>) -> Option<Findings> {
        let pushed = view.windows.pushed();
        if view.mode != Mode::On {
            *self = Self::default();
            return None;
        }
        if let Some(slice) = view.windows.last() {
            self.wanted += slice.totals.crossed as f64 * view.probability;
            self.sent += slice.totals.hedged as f64;
            self.broken |= view.probability <= 0.0;
        }
        let from = *self.from.get_or_insert_with(|| {
            // The first one is longer by up to a minute, so that not all routes add up at once.
            view.mode_from.max(pushed.saturating_sub(1)) + stagger(view.route)
        });
        if pushed < from + WINDOW_MAX as u64 {
            return None;
        }
        let minute = Minute::add_up(self, view);
        *self = Self {
            minutes: std::mem::take(&mut self.minutes),
            from: Some(pushed),
            ..Self::default()
        };
        self.minutes
            .retain(|minute| view.now.since(minute.at) < KEPT);
        self.minutes.extend(minute);
        while self.minutes.len() > MINUTES {
            self.minutes.pop_front();
        }
        self.verdict()
    }

    fn verdict(&self) -> Option<Findings> {
        if self.minutes.len() < MINUTES {
            return None;
        }
        let sum = |part: fn(&Minute) -> f64| self.minutes.iter().map(part).sum::<f64>();
        let (observed, expected) = (sum(|it| it.observed), sum(|it| it.expected));
        let ratio = observed / expected;
        if expected < EXPECTED_MIN || ratio >= POOR_RATIO {
            return None;
        }
        if sum(|it| it.sent) < TREATED_MIN * sum(|it| it.wanted) {
            return None;
        }
        let (mut treated, mut held_out) = (Waits::default(), Waits::default());
        for minute in &self.minutes {
            treated.add(&minute.treated);
            held_out.add(&minute.held_out);
        }
        let threshold = self.minutes.back()?.threshold;
        gains_little(&treated, &held_out)
            .then(|| why(ratio, expected, threshold, &treated, &held_out))
    }
}

impl Minute {
    /// None where it has no threshold, no hedges, or a second in which none were wanted.
    fn add_up(sums: &WinsNothing, view: &View<'_>) -> Option<Self> {
        let threshold = view.threshold.filter(|_| !sums.broken)?;
        let window = view.windows.over(WINDOW_MAX);
        let test = shared_cause::test_on(&window, view.named)?;
        Some(Self {
            at: view.now,
            threshold,
            observed: test.observed,
            expected: test.expected,
            wanted: sums.wanted,
            sent: sums.sent,
            treated: Waits::beyond(threshold, &window.treated()),
            held_out: Waits::beyond(threshold, &window.holdout()),
        })
    }
}

impl Waits {
    fn beyond(threshold: Duration, calls: &Histogram) -> Self {
        let d = threshold.as_secs_f64() * 1e6;
        let first = bucket_of(threshold);
        let mut waits = Self {
            calls: calls.count(),
            ..Self::default()
        };
        // The threshold's own bucket counts in both arms, whichever side of it its calls were.
        for (bucket, count) in calls.iter().filter(|(bucket, _)| *bucket >= first) {
            let middle = f64::midpoint(lower_edge_us(bucket), upper_edge_us(bucket));
            let wait = (middle - d).clamp(0.0, WAIT_MAX * d) / 1e3;
            waits.beyond += count;
            waits.sum += wait * count as f64;
            waits.squares += wait * wait * count as f64;
        }
        waits
    }

    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.beyond += other.beyond;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    fn mean(&self) -> f64 {
        self.sum / self.calls as f64
    }

    /// The variance of the mean.
    fn doubt(&self) -> f64 {
        let calls = self.calls as f64;
        let mean = self.mean();
        ((self.squares / calls - mean * mean) / (calls - 1.0)).max(0.0)
    }
}

/// Whether it is shown that the treated gain less than [`LITTLE`]: see the module.
fn gains_little(treated: &Waits, held_out: &Waits) -> bool {
    if held_out.beyond < HELD_OUT_MIN || treated.beyond < HELD_OUT_MIN {
        return false;
    }
    let rest = 1.0 - LITTLE;
    let error = (treated.doubt() + rest * rest * held_out.doubt()).sqrt();
    treated.mean() - rest * held_out.mean() > SURE * error
}

fn why(
    ratio: f64,
    expected: f64,
    threshold: Duration,
    treated: &Waits,
    held_out: &Waits,
) -> Findings {
    let times = treated.mean() / held_out.mean();
    let window = Duration::from_mins(MINUTES as u64);
    let evidence = |what: &str, value: f64, limit: f64, unit: &str| Evidence {
        what: what.into(),
        value,
        limit,
        unit: unit.into(),
        window,
    };
    Findings {
        words: format!(
            "wins nothing (hedges answer {ratio:.2} times as often as independent ones would; \
             beyond {} callers wait {times:.2} times as long as those held out)",
            latency(threshold)
        ),
        evidence: vec![
            evidence("hedges answered / expected", ratio, POOR_RATIO, "x"),
            evidence(
                "wait beyond the threshold / held out",
                times,
                1.0 - LITTLE,
                "x",
            ),
            evidence("hedges expected to answer", expected, EXPECTED_MIN, ""),
            evidence(
                "held-out calls beyond the threshold",
                held_out.beyond as f64,
                HELD_OUT_MIN as f64,
                "",
            ),
        ],
    }
}
