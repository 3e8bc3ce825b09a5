//! When a call may be hedged: the target's quantile of the healthy majority's primaries, up at once
//! and down slowly.

use std::collections::BTreeMap;
use std::time::Duration;

use hedgerow_protocol::ids::ReplicaName;
use hedgerow_protocol::latency::{SurvivalCurve, flat};
use hedgerow_protocol::policy::Policy;
use hedgerow_protocol::units::Threshold;

use super::naming::Entry;
use super::primaries::{Healthy, healthy, share};
use super::recent::Recent;
use crate::moment::Moment;
use crate::view::Named;
use crate::window::{Lookback, Windows};

/// The slow window, in multiples of the present one.
const SLOW_WINDOWS: usize = 5;
/// Slices between two turns of the trim, and what each looks at.
const TRIM_EVERY: u64 = 10;
/// Calls the trim needs: their crossed share is then known to within 20 %.
const TRIM_CALLS: u64 = 500;
/// Share of the error that one turn takes out: 2 would be unstable, 0.5 is the most ALGORITHMS
/// allows, and less lets chance through less.
const TRIM_GAIN: f64 = 0.3;
/// How far the trim goes either way.
const TRIM_MAX: f64 = 0.2;
/// Times the threshold before, above which a rise is looked at without the worst replica.
const JUMP: f64 = 1.3;
/// Times the others' crossed share, above which a replica may be what makes a jump.
const STANDS_OUT: f64 = 1.5;
/// Ticks a jump that one replica makes is not followed: with 200 calls a second it takes five to name
/// one that is dead.
const DOUBTED_TICKS: u32 = 5;

/// What is remembered of the threshold.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Track {
    /// The last good one, before the policy's own limits.
    value: Option<Duration>,
    recent: Recent,
    /// What the target is multiplied by.
    trim: f64,
    /// Ticks in a row in which a jump was put down to one replica.
    doubted: u32,
}

impl Default for Track {
    fn default() -> Self {
        Self {
            value: None,
            recent: Recent::default(),
            trim: 1.0,
            doubted: 0,
        }
    }
}

/// What the threshold is estimated from.
pub(crate) struct View<'a> {
    /// The route's slices.
    pub(crate) windows: &'a Windows,
    /// The present window.
    pub(crate) present: &'a Lookback<'a>,
    /// The healthy majority's primaries in it.
    pub(crate) curve: &'a SurvivalCurve,
    /// Those left out.
    pub(crate) named: &'a BTreeMap<ReplicaName, Entry>,
    /// The target: the share of calls that is to cross.
    pub(crate) target: f64,
    /// Slices since which nothing is wrong for all: the slow window does not reach back further.
    pub(crate) calm: usize,
    /// Whether agents hedge at this threshold, so that what crosses tells how far it is off.
    pub(crate) in_use: bool,
}

impl Track {
    /// The last good value.
    pub(crate) fn value(&self) -> Option<Duration> {
        self.value
    }

    /// Takes over a value where there is none.
    pub(crate) fn relearn(&mut self, value: Duration) {
        self.value.get_or_insert(value);
    }

    /// A tick with nothing wrong for all.
    pub(crate) fn follow(&mut self, view: &View<'_>) {
        if view.calm < view.present.slices() {
            // Part of the window is from when something was.
            return;
        }
        if view.in_use && view.windows.pushed().is_multiple_of(TRIM_EVERY) {
            self.turn_trim(view);
        }
        let tail = view.target * self.trim;
        let fast = earliest(view.curve, tail);
        let slices = SLOW_WINDOWS * view.present.slices();
        let slow = view.windows.over(slices.min(view.calm));
        let slow = (slow.slices() > view.present.slices())
            .then(|| healthy(view.windows, &slow, view.named))
            .and_then(|primaries| earliest(&primaries.curve(), tail));
        // Where one is not known, as when nearly all is still in flight, the other has to do.
        if let Some(value) = fast.max(slow) {
            let believed = self.believed(view, tail, value);
            self.take(believed);
        }
    }

    /// The value, or where a jump to it is one replica's doing alone, what it is without that one:
    /// for a few ticks, within which a replica at fault is named, and left out for that.
    fn believed(&mut self, view: &View<'_>, tail: f64, value: Duration) -> Duration {
        let Some(before) = self.value.filter(|it| value > it.mul_f64(JUMP)) else {
            self.doubted = 0;
            return value;
        };
        if self.doubted >= DOUBTED_TICKS {
            return value;
        }
        let without = worst(view).and_then(|named| {
            let others = healthy(view.windows, view.present, &named);
            earliest(&others.curve(), tail)
        });
        match without {
            Some(without) if without <= before.mul_f64(JUMP) => {
                self.doubted += 1;
                before.max(without)
            }
            _ => value,
        }
    }

    /// A tick while hedging is off for a shared cause or for errors: the lowest of the last twenty,
    /// which was right before the fault, or what the present would give where that is lower.
    /// Followed upward, it would leave nothing to probe with once all is well again; and where many
    /// attempts fail, which is when they would have answered, the curve is far above the true one.
    pub(crate) fn hold(&mut self, view: Option<&View<'_>>) {
        // Nothing from before, as after a restart: agents keep the one they hold.
        let Some(before) = self.recent.least().or(self.value) else {
            return;
        };
        let present = view.and_then(|view| earliest(view.curve, view.target * self.trim));
        self.value = Some(present.map_or(before, |present| present.min(before)));
    }

    fn take(&mut self, value: Duration) {
        self.value = Some(value);
        self.recent.push(value);
    }

    /// Takes out what the estimate is off by in the mean: the larger of two noisy quantiles is
    /// above the true one. It acts on the target and not on the threshold, since the share that
    /// crosses then follows one to one, however steep the curve is there.
    fn turn_trim(&mut self, view: &View<'_>) {
        let window = view.windows.over(TRIM_EVERY as usize);
        let seen = Healthy::count(&window, view.named);
        if seen.started < TRIM_CALLS || seen.crossed == 0 || self.value.is_none() {
            return;
        }
        let off = view.target * seen.started as f64 / seen.crossed as f64;
        // A step of everything's speed is not for the trim to follow.
        self.trim *= off.clamp(0.5, 2.0).powf(TRIM_GAIN);
        self.trim = self.trim.clamp(1.0 - TRIM_MAX, 1.0 + TRIM_MAX);
    }
}

/// The named replicas and the one that crosses most of the others, where it stands out; None where
/// it does not, or is the only one.
fn worst(view: &View<'_>) -> Option<BTreeMap<ReplicaName, Entry>> {
    let replicas = view.present.replicas();
    let others = || {
        let named = |name: &ReplicaName| view.named.contains_key(name);
        replicas.iter().filter(move |(name, _)| !named(name))
    };
    let shares = others().filter_map(|(name, it)| Some((share(it.crossed, it.started)?, *name)));
    let (most, worst) = shares.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let rest = || others().filter(|(name, _)| **name != worst);
    let crossed = rest().map(|(_, it)| it.crossed).sum();
    let usual = share(crossed, rest().map(|(_, it)| it.started).sum())?.max(view.target / 2.0);
    (most > STANDS_OUT * usual).then(|| {
        let mut named = view.named.clone();
        let entry = Entry {
            named: Named::Slow,
            since: Moment::from_millis(0),
            times: most / usual,
        };
        named.insert(worst.clone(), entry);
        named
    })
}

/// The tail's quantile, or where the curve is flat before it the near end: an agent by itself takes
/// the same.
fn earliest(curve: &SurvivalCurve, tail: f64) -> Option<Duration> {
    flat::threshold(curve, tail, curve.at_risk(0) as u64)
}

/// A value within the policy's limits and the protocol's.
pub(crate) fn limited(value: Duration, policy: &Policy) -> Threshold {
    let value = policy.threshold_min().map_or(value, |min| value.max(min));
    Threshold::clamped(policy.threshold_max().map_or(value, |max| value.min(max)))
}
