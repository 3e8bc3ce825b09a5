//! Everything slow: the healthy majority's median against its base.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use hedgerow_protocol::ids::ReplicaName;

use super::naming::Entry;
use super::primaries::{Primaries, healthy};
use crate::moment::Moment;
use crate::window::{Lookback, WINDOW_MAX, WINDOW_MIN, Windows};

/// Times the base above which everything is slow.
pub(crate) const LIMIT: f64 = 2.5;
/// Times the base under which it is as before.
pub(crate) const CALM: f64 = 1.3;
/// How long it must be so before hedging goes on again.
pub(crate) const CALM_FOR: Duration = Duration::from_secs(10);

/// Calls the median needs: it is then known to within some 4 %, and a lasting 2.2 times the base
/// is not taken for 2.5.
const CALLS: u64 = 300;
/// Slices without a call after which what came before is no news any more.
const SILENCE: usize = 3;
/// Slices between two levels of the base, and what each looks at.
const LEVEL_EVERY: u64 = 10;
/// Calls a level needs.
const LEVEL_CALLS: u64 = 100;
/// Levels kept: an hour.
const LEVELS: usize = 360;
/// Slices and calls learned before there is a base: what comes first is often a cold start.
const LEARN_SLICES: u64 = 15;
const LEARN_CALLS: u64 = 1_000;
/// Levels in a row at which a lasting new speed becomes the base: five minutes.
const STEADY_LEVELS: usize = 30;
/// How far each may be from their median and still count as steady.
const STEADY_WITHIN: f64 = 0.1;

/// The base, and how the present stands to it.
///
/// The base is the median of an hour's levels, none of them from while hedging was off: it follows a
/// creep with half an hour's delay, and no fault can pull it up, however long it lasts (B34).
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Base {
    /// Medians of ten seconds each, in microseconds, newest last.
    levels: VecDeque<u32>,
    /// The same while everything is slow.
    steady: VecDeque<u32>,
    /// Slices and calls learned from.
    slices: u64,
    calls: u64,
    /// The present median, whether or not there is a base.
    median: Option<Duration>,
    /// See [`Base::ratio`].
    ratio: Option<f64>,
    /// What the median is of.
    window: Duration,
    /// Ticks in a row over the limit.
    over: u32,
    /// Since when it has been calm.
    calm: Option<Moment>,
}

/// How the tick is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing is wrong: learn.
    Learning,
    /// Off for something else: do not learn.
    Off,
    /// Many primaries fail: neither learn nor judge.
    Failing,
    /// Off because everything is slow: a new level that lasts becomes the base.
    Slow,
}

impl Base {
    /// The base; None until enough was learned.
    pub(crate) fn base(&self) -> Option<Duration> {
        let known = self.slices >= LEARN_SLICES && self.calls >= LEARN_CALLS;
        known.then(|| lower_median(&self.levels)).flatten()
    }

    /// The present median / base, or as much of it as is known.
    pub(crate) fn ratio(&self) -> Option<f64> {
        self.ratio
    }

    /// The time the present median is of.
    pub(crate) fn window(&self) -> Duration {
        self.window
    }

    /// Ticks in a row over the limit.
    pub(crate) fn ticks_over(&self) -> u32 {
        self.over
    }

    /// How long it has been as before; zero where it is not.
    pub(crate) fn calm_for(&self, now: Moment) -> Duration {
        self.calm.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// The base of before a restart. From here it is learned on, as from any level.
    pub(crate) fn restore(&mut self, base: Duration) {
        if let Some(level) = micros(base) {
            self.replace(level);
        }
    }

    /// The present speed is the normal one, by a person's word.
    pub(crate) fn accept(&mut self) {
        if let Some(level) = self.median.and_then(micros) {
            self.replace(level);
        }
    }

    /// A tick. `known`: the present window, where it was estimated already.
    pub(crate) fn observe(
        &mut self,
        windows: &Windows,
        named: &BTreeMap<ReplicaName, Entry>,
        known: Option<(&Lookback<'_>, &Primaries)>,
        phase: Phase,
        now: Moment,
    ) {
        if phase == Phase::Failing {
            self.unknown();
        } else {
            self.compare(windows, named, known, now);
        }
        if phase == Phase::Learning && self.over == 0 {
            self.slices += 1;
            self.calls += windows.last().map_or(0, |slice| slice.totals.started);
        }
        if phase != Phase::Slow {
            self.steady.clear();
        }
        let counts = matches!(phase, Phase::Learning | Phase::Slow);
        if !counts || !windows.pushed().is_multiple_of(LEVEL_EVERY) {
            return;
        }
        let window = windows.over(LEVEL_EVERY as usize);
        let primaries = healthy(windows, &window, named);
        let level = (primaries.count() >= LEVEL_CALLS)
            .then(|| primaries.curve().quantile(0.5))
            .flatten()
            .and_then(micros);
        match (level, phase) {
            (Some(level), Phase::Learning) if self.over == 0 => {
                push(&mut self.levels, level, LEVELS);
            }
            (Some(level), Phase::Slow) => {
                push(&mut self.steady, level, STEADY_LEVELS);
                self.accept_steady();
            }
            _ => {}
        }
    }

    /// Present against base. The window begins with calls *started*, so that a fleet in which
    /// nothing ends any more is still looked at over the last seconds.
    fn compare(
        &mut self,
        windows: &Windows,
        named: &BTreeMap<ReplicaName, Entry>,
        known: Option<(&Lookback<'_>, &Primaries)>,
        now: Moment,
    ) {
        let window = windows.grown(WINDOW_MIN, WINDOW_MAX, |window| window.calls() >= CALLS);
        let own;
        let primaries = match known {
            // As many of the newest slices are the same ones.
            Some((present, primaries)) if present.slices() == window.slices() => primaries,
            _ => {
                own = Primaries::of(windows, &window, named);
                &own
            }
        };
        self.window = window.span();
        let silent = windows.over(SILENCE).calls() == 0;
        if silent || primaries.count < CALLS {
            self.unknown();
            return;
        }
        let curve = &primaries.curve;
        self.median = curve.quantile(0.5);
        let Some(base) = self.base() else {
            self.ratio = None;
            return;
        };
        let over = curve
            .survival_at(base.mul_f64(LIMIT))
            .is_some_and(|alive| alive > 0.5);
        self.over = if over { self.over + 1 } else { 0 };
        self.ratio = self
            .median
            .or_else(|| curve.known_until())
            .map(|median| median.as_secs_f64() / base.as_secs_f64());
        let calm = self
            .median
            .is_some_and(|median| median < base.mul_f64(CALM));
        self.calm = if calm { self.calm.or(Some(now)) } else { None };
    }

    /// Too little to say, or nothing that can be told.
    fn unknown(&mut self) {
        self.median = None;
        self.ratio = None;
        self.over = 0;
        self.calm = None;
    }

    fn accept_steady(&mut self) {
        if self.steady.len() < STEADY_LEVELS {
            return;
        }
        let Some(level) = lower_median(&self.steady).and_then(micros) else {
            return;
        };
        let within =
            |other: &u32| (f64::from(*other) / f64::from(level) - 1.0).abs() <= STEADY_WITHIN;
        if self.steady.iter().all(within) {
            self.replace(level);
        }
    }

    fn replace(&mut self, level: u32) {
        self.levels = VecDeque::from([level]);
        self.steady.clear();
        self.slices = self.slices.max(LEARN_SLICES);
        self.calls = self.calls.max(LEARN_CALLS);
        self.over = 0;
        self.calm = None;
    }
}

fn push(levels: &mut VecDeque<u32>, level: u32, kept: usize) {
    levels.push_back(level);
    if levels.len() > kept {
        levels.pop_front();
    }
}

/// At least 1 us, so that it can be divided by; None beyond 71 minutes, which no latency is.
fn micros(latency: Duration) -> Option<u32> {
    u32::try_from(latency.as_micros()).ok().map(|us| us.max(1))
}

/// The lower one of an even number: one fast level and one from just after a fault began give the
/// fast one.
fn lower_median(levels: &VecDeque<u32>) -> Option<Duration> {
    let mut sorted: Vec<u32> = levels.iter().copied().collect();
    let middle = sorted.len().checked_sub(1)? / 2;
    let (_, median, _) = sorted.select_nth_unstable(middle);
    Some(Duration::from_micros((*median).into()))
}

/// How many replicas are slow together, of how many that get calls: those whose own median is
/// nearer to the limit than to the base.
pub(crate) fn slow_replicas(windows: &Windows, base: &Base) -> (usize, usize) {
    if base.ticks_over() == 0 {
        return (0, 0);
    }
    let Some(base) = base.base() else {
        return (0, 0);
    };
    let window = windows.grown(WINDOW_MIN, WINDOW_MAX, |window| window.calls() >= CALLS);
    let line = base.mul_f64(f64::midpoint(1.0, LIMIT));
    let (mut slow, mut all) = (0, 0);
    for (name, counts) in window.replicas() {
        if counts.started == 0 {
            continue;
        }
        all += 1;
        let curve = window.primary_of(name).curve();
        if curve.survival_at(line).is_none_or(|alive| alive > 0.5) {
            slow += 1;
        }
    }
    (slow, all)
}
