//! Off where calls are slow for a cause their hedges share, and on again once probes show that they
//! no longer do.

use std::collections::BTreeMap;
use std::time::Duration;

use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::ids::ReplicaName;
use hedgerow_protocol::latency::{LogRank, log_rank};

use super::all_slow::{self, Base};
use super::latch::{Findings, LEAST_STAY, TICKS_OVER, Tripped};
use super::naming::Entry;
use super::primaries::share;
use super::words::times;
use crate::moment::Moment;
use crate::view::Evidence;
use crate::window::{Lookback, Slice, Windows};

/// Answered / expected hedges under which the cause is shared, and how far below chance.
pub(crate) const SHARED_RATIO: f64 = 0.3;
const SHARED_Z: f64 = -4.0;
/// Expected answers the window grows for.
const EXPECTED: f64 = 40.0;
/// Shortest and longest window of the test, in slices.
const WINDOW: (usize, usize) = (3, 60);
/// Hedges ended, as a share of the answers wanted, at which the test is worth making.
const LIKELY: f64 = 0.7;
/// How much shorter than asked for a lookback may be while there is more.
const GROUP: usize = 10;
/// Answered / expected probes above which hedging helps again.
pub(crate) const HELPS_RATIO: f64 = 0.7;
/// Above this and not above [`HELPS_RATIO`] a tick counts neither way.
const UNDECIDED_RATIO: f64 = 0.5;
/// Expected answers a probe needs, and after how many good ticks it is believed.
const PROBE_EXPECTED: f64 = 15.0;
const PROBE_TICKS: u32 = 5;
/// Slices after going off whose hedges were not probes yet: orders and answers are on their way.
const IN_TRANSIT: u64 = 2;
/// How long a probe may take before it starts anew: what an agent took with it is not waited for.
pub(crate) const PROBE_DEADLINE: Duration = Duration::from_mins(1);
/// Longest probe. One that found too little in its time gets twice as long the next time, so that a
/// dependency with few calls comes to a verdict at all (B37).
const PROBE_DEADLINE_MAX: Duration = Duration::from_mins(4);
/// Expected answers that suffice at the end of the longest probe. Were all of the cause shared, four
/// of five would answer once in three hundred times.
const PROBE_EXPECTED_LAST: f64 = 5.0;
/// The same two where hedges win nothing: they answer half as often as independent ones, not a
/// tenth, and fifteen of those look like seven in ten once in nine times. A hundred do so once in a
/// thousand. A route that was found to win nothing has the calls for it.
const PROBE_EXPECTED_POOR: (f64, f64) = (100.0, 40.0);

/// How long the median must have been as before to let go without enough probes.
const CALM_ALONE: Duration = Duration::from_secs(20);
/// After a restart: times the target that may cross a threshold of before the fault.
const CROSSED_CALM: f64 = 2.0;
/// After a restart: how long a share above that is taken for the fault and not for a new normal.
const NEW_NORMAL: Duration = Duration::from_mins(5);

/// The state of both rules.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SharedCause {
    over: u32,
    off: Option<Off>,
    /// The test of this tick, for the page.
    test: Option<(LogRank, Duration)>,
}

/// While it is off.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Off {
    tripped: Tripped,
    /// Which rule it was: a shared slowdown, or hedges that win nothing.
    pub(crate) reason: OffReason,
    /// Whether the median went over its limit, then or since.
    pub(crate) by_median: bool,
    /// Until when, after a restart, the crossed share has to stand in for the base.
    no_base_until: Option<Moment>,
    /// Since when the crossed share has been near its target.
    few_crossed: Option<Moment>,
    probe: Probe,
}

#[derive(Debug, Clone, PartialEq)]
struct Probe {
    /// Slices pushed when it began.
    from: u64,
    since: Moment,
    deadline: Duration,
    well: u32,
}

/// What a tick is judged on.
pub(crate) struct View<'a> {
    /// When.
    pub(crate) now: Moment,
    /// The route's slices.
    pub(crate) windows: &'a Windows,
    /// The mode agents have had.
    pub(crate) mode: Mode,
    /// Slices pushed when they got it.
    pub(crate) mode_from: u64,
    /// Replicas that are at fault by themselves.
    pub(crate) named: &'a BTreeMap<ReplicaName, Entry>,
    /// Median and base of this tick.
    pub(crate) base: &'a Base,
    /// The share of the healthy majority's calls that crossed in the present window; None without
    /// calls.
    pub(crate) crossed: Option<f64>,
    /// The share that is to cross.
    pub(crate) target: f64,
    /// How many replicas are slow together, of how many.
    pub(crate) slow_replicas: (usize, usize),
}

impl SharedCause {
    /// Off since before, by a controller that is no more. Its base is unknown, and probes alone
    /// cannot tell that everything is slow. But its threshold of before the fault is known to the
    /// agents: until too many calls no longer cross that, it is not well (for five minutes at most,
    /// after which the new speed counts as normal).
    pub(crate) fn restored(reason: OffReason, at: Moment, now: Moment, why: Findings) -> Self {
        let slow = reason != OffReason::WinsNothing;
        let off = Off {
            no_base_until: slow.then(|| now.plus(NEW_NORMAL)),
            ..Off::new(reason, Tripped { at, why }, 0, now)
        };
        Self {
            off: Some(off),
            ..Self::default()
        }
    }

    /// The off, while it lasts.
    pub(crate) fn off(&self) -> Option<&Off> {
        self.off.as_ref()
    }

    /// What led to the off, while it lasts.
    pub(crate) fn tripped(&self) -> Option<&Tripped> {
        self.off.as_ref().map(|off| &off.tripped)
    }

    /// Observed against expected hedges, and over what time.
    pub(crate) fn test(&self) -> Option<(LogRank, Duration)> {
        self.test
    }

    /// For which of the rules.
    pub(crate) fn reason(&self) -> Option<OffReason> {
        self.off.as_ref().map(|off| off.reason)
    }

    /// Hedges win nothing: off, and on again by the same probes. Does nothing where it is off.
    pub(crate) fn trip(&mut self, now: Moment, pushed: u64, why: Findings) {
        let tripped = Tripped { at: now, why };
        self.off.get_or_insert_with(|| {
            Off::new(OffReason::WinsNothing, tripped, pushed + IN_TRANSIT, now)
        });
    }

    /// When a probe ends that has not come to a verdict, at the latest.
    pub(crate) fn tries_again(&self) -> Option<Moment> {
        let off = self.off.as_ref()?;
        Some(off.probe.since.plus(off.probe.deadline))
    }

    /// One tick. Returns what let it go, where it does so now.
    pub(crate) fn observe(&mut self, view: &View<'_>) -> Option<Findings> {
        if self.off.is_some() {
            return self.probe(view);
        }
        let slices = view.windows.pushed().saturating_sub(view.mode_from) as usize;
        self.test = if view.mode == Mode::On && slices >= WINDOW.0 {
            test(view, WINDOW.1.min(slices), EXPECTED)
        } else {
            None
        };
        let shared = self.test.filter(|(test, _)| {
            test.ratio.is_some_and(|ratio| ratio < SHARED_RATIO)
                && test.z.is_some_and(|z| z < SHARED_Z)
        });
        self.over = if shared.is_some() { self.over + 1 } else { 0 };
        let slow = view.base.ticks_over() >= TICKS_OVER;
        if !slow && self.over < TICKS_OVER {
            return None;
        }
        self.over = 0;
        let why = if slow {
            why_slow(view)
        } else {
            why_shared(shared)
        };
        let tripped = Tripped { at: view.now, why };
        let from = view.windows.pushed() + IN_TRANSIT;
        self.off = Some(Off {
            by_median: slow,
            ..Off::new(OffReason::SharedSlowdown, tripped, from, view.now)
        });
        None
    }

    fn probe(&mut self, view: &View<'_>) -> Option<Findings> {
        let off = self.off.as_mut()?;
        off.by_median |= view.base.ticks_over() >= TICKS_OVER;
        let since_probe = view.now.since(off.probe.since);
        let slices = view.windows.pushed().saturating_sub(off.probe.from) as usize;
        let (needed, needed_last) = off.probes_needed();
        self.test = (slices >= 1).then(|| test(view, slices, needed)).flatten();
        let expected = self.test.map_or(0.0, |(test, _)| test.expected);
        let last = off.probe.deadline >= PROBE_DEADLINE_MAX && since_probe >= off.probe.deadline;
        let enough = expected >= needed || (last && expected >= needed_last);
        let ratio = self
            .test
            .and_then(|(test, _)| test.ratio)
            .filter(|_| enough);
        let well = ratio.is_some_and(|ratio| ratio > HELPS_RATIO);
        let news = view.windows.last().is_some_and(|slice| ended(slice) > 0);
        off.probe.well = match ratio {
            // Without a new answer nothing is better than a second ago (P16).
            _ if !news => off.probe.well,
            Some(_) if well => off.probe.well + 1,
            // Chance alone takes fifteen independent ones there every other minute.
            Some(ratio) if ratio > UNDECIDED_RATIO => off.probe.well,
            _ => 0,
        };

        let stayed = view.now.since(off.tripped.at) >= LEAST_STAY;
        let few = view
            .crossed
            .is_some_and(|crossed| crossed <= CROSSED_CALM * view.target);
        off.few_crossed = few.then(|| off.few_crossed.unwrap_or(view.now));
        let calm = if off.by_median {
            view.base.calm_for(view.now) >= all_slow::CALM_FOR
        } else {
            off.no_base_until.is_none_or(|until| {
                let few = off.few_crossed.map(|since| view.now.since(since));
                view.now >= until || few.is_some_and(|few| few >= all_slow::CALM_FOR)
            })
        };
        let proven = off.probe.well >= PROBE_TICKS || (last && well);
        if stayed && calm && (proven || off.speed_suffices(view, self.test)) {
            let findings = why_again(off.by_median, view, self.test);
            self.off = None;
            return Some(findings);
        }
        if since_probe >= off.probe.deadline {
            off.probe.renew(view, enough);
        }
        None
    }
}

impl Off {
    fn new(reason: OffReason, tripped: Tripped, from: u64, now: Moment) -> Self {
        Self {
            tripped,
            reason,
            by_median: false,
            no_base_until: None,
            few_crossed: None,
            probe: Probe {
                from,
                since: now,
                deadline: PROBE_DEADLINE,
                well: 0,
            },
        }
    }

    /// Expected answers a probe needs, and those that suffice at the end of the longest.
    fn probes_needed(&self) -> (f64, f64) {
        if self.reason == OffReason::WinsNothing {
            PROBE_EXPECTED_POOR
        } else {
            (PROBE_EXPECTED, PROBE_EXPECTED_LAST)
        }
    }

    /// Whether speed alone lets it go, without enough probes: where it was the median that tripped,
    /// and either nothing may be hedged at all, so that there are no probes, or it has been as
    /// before for long and what few probes there are do not speak against it.
    fn speed_suffices(&self, view: &View<'_>, test: Option<(LogRank, Duration)>) -> bool {
        let against = test.is_some_and(|(test, _)| {
            test.expected >= PROBE_EXPECTED_LAST
                && test.ratio.is_some_and(|ratio| ratio <= UNDECIDED_RATIO)
        });
        let long = view.base.calm_for(view.now) >= CALM_ALONE;
        self.by_median && (!matches!(view.mode, Mode::Probing(_)) || (long && !against))
    }
}

impl Probe {
    /// Starts anew. With too little found it gets twice the time and keeps the newer half of what
    /// there was, which may already be from after the fault.
    fn renew(&mut self, view: &View<'_>, enough: bool) {
        let pushed = view.windows.pushed();
        *self = if enough {
            Self {
                from: pushed,
                since: view.now,
                deadline: PROBE_DEADLINE,
                well: 0,
            }
        } else {
            Self {
                from: pushed - pushed.saturating_sub(self.from) / 2,
                since: view.now,
                deadline: (self.deadline * 2).min(PROBE_DEADLINE_MAX),
                well: 0,
            }
        };
    }
}

/// Hedges against the primaries' curve of the same window, grown until enough is expected.
fn test(view: &View<'_>, slices_max: usize, expected: f64) -> Option<(LogRank, Duration)> {
    let windows = view.windows;
    // About as many answers are expected as hedges ended; counting those is cheap, the test is not.
    let likely = windows.grown(WINDOW.0.min(slices_max), slices_max, |window| {
        window.parts().map(ended).sum::<u64>() as f64 >= expected * LIKELY
    });
    let mut slices = likely.slices();
    loop {
        let window = windows.over(slices);
        let found = test_on(&window, view.named);
        let enough = found.is_some_and(|test| test.expected >= expected);
        if enough || slices >= slices_max || window.slices() + GROUP < slices {
            return found.map(|test| (test, window.span()));
        }
        slices = (slices + (slices / 3).max(1)).min(slices_max);
    }
}

fn ended(slice: &Slice) -> u64 {
    slice.hedge_done.count() + slice.hedge_censored.count()
}

/// The test on the hedges that were not sent to a named replica.
///
/// With two replicas, one of them dead, all hedges of the other's slow calls go to the dead one: that
/// none of these answers says nothing of a shared cause. Where hedges ended is not known, only where
/// they were sent. So the answers expected are those of the hedges sent elsewhere, and all there were
/// count as theirs: an error is on the side of hedging.
pub(crate) fn test_on(
    window: &Lookback<'_>,
    named: &BTreeMap<ReplicaName, Entry>,
) -> Option<LogRank> {
    let hedges = window.hedge();
    if hedges.count() == 0 {
        return None;
    }
    let test = log_rank(&window.primary().curve(), &hedges.done, &hedges.censored);
    let expected = test.expected * sent_elsewhere(window, named);
    (expected > 0.0).then(|| LogRank {
        observed: test.observed,
        expected,
        z: Some((test.observed - expected) / expected.sqrt()),
        ratio: Some(test.observed / expected),
    })
}

/// The share of a window's hedges that were sent to replicas not named; 1 without hedges.
pub(crate) fn sent_elsewhere(window: &Lookback<'_>, named: &BTreeMap<ReplicaName, Entry>) -> f64 {
    if named.is_empty() {
        return 1.0;
    }
    let (mut all, mut to_named) = (0, 0);
    for (name, counts) in window.replicas() {
        all += counts.hedged;
        if named.contains_key(name) {
            to_named += counts.hedged;
        }
    }
    // An agent tells of its busiest replicas only: the totals have the others' hedges.
    let all = all.max(window.totals().hedges());
    1.0 - share(to_named, all).unwrap_or(0.0)
}

fn why_slow(view: &View<'_>) -> Findings {
    let ratio = view.base.ratio().unwrap_or(all_slow::LIMIT);
    let (slow, all) = view.slow_replicas;
    let replicas = if all > 0 {
        format!("; {slow} of {all} replicas slow together")
    } else {
        String::new()
    };
    Findings {
        words: format!(
            "shared slowdown (median {} times its base{replicas})",
            times(ratio)
        ),
        evidence: vec![
            evidence("median / base", ratio, all_slow::LIMIT, view.base.window()),
            Evidence {
                what: "replicas slow together".into(),
                value: slow as f64,
                limit: all as f64,
                unit: String::new(),
                window: view.base.window(),
            },
        ],
    }
}

fn why_shared(test: Option<(LogRank, Duration)>) -> Findings {
    let Some((test, window)) = test else {
        return Findings::default();
    };
    let ratio = test.ratio.unwrap_or(0.0);
    Findings {
        words: format!(
            "shared slowdown (hedges answer {ratio:.2} times as often as independent ones would)"
        ),
        evidence: vec![
            evidence("hedges answered / expected", ratio, SHARED_RATIO, window),
            Evidence {
                what: "log-rank Z".into(),
                value: test.z.unwrap_or(0.0),
                limit: SHARED_Z,
                unit: String::new(),
                window,
            },
        ],
    }
}

fn why_again(by_median: bool, view: &View<'_>, test: Option<(LogRank, Duration)>) -> Findings {
    let mut words = Vec::new();
    let mut figures = Vec::new();
    if let Some((ratio, window)) = test.and_then(|(test, window)| Some((test.ratio?, window))) {
        words.push(format!(
            "probes answer {ratio:.2} times as often as independent ones would"
        ));
        figures.push(evidence(
            "hedges answered / expected",
            ratio,
            HELPS_RATIO,
            window,
        ));
    }
    if let Some(ratio) = view.base.ratio().filter(|_| by_median) {
        words.push(format!("median {} times its base", times(ratio)));
        figures.push(evidence(
            "median / base",
            ratio,
            all_slow::CALM,
            all_slow::CALM_FOR,
        ));
    }
    Findings {
        words: words.join(", "),
        evidence: figures,
    }
}

fn evidence(what: &str, value: f64, limit: f64, window: Duration) -> Evidence {
    Evidence {
        what: what.into(),
        value,
        limit,
        unit: "x".into(),
        window,
    }
}
