//! Switchback: the whole fleet hedges for 30 s and does not for 30 s, in turns.
//!
//! The holdout compares calls side by side, so whatever hedging does to the dependency by its load
//! it does to both arms alike: there a hedge that slows everybody down still looks like a gain. A
//! switchback sees it, since while it is off nobody hedges. What a dependency has of one half in
//! its queues when the next begins is left out with the first 10 s of each. Randomised over time
//! instead of over calls where units influence one another: I. Bojinov, D. Simchi-Levi and J. Zhao,
//! "Design and Analysis of Switchback Experiments", Management Science 69, 2023. Here the turns are
//! fixed, as short as they are: what drifts over a minute is not told apart from hedging, which the
//! many rounds are for.
//!
//! Nothing about it is stored but its beginning and its end: it is a question, and a controller that
//! starts anew leaves the fleet as the mode says.

mod acts;
mod compare;

use std::sync::Arc;
use std::time::Duration;

use hedgerow_protocol::ids::Revision;
use hedgerow_protocol::latency::Histogram;

use self::compare::{differences, words};
use crate::event::Actor;
use crate::moment::Moment;
use crate::view::{ArmView, RoundView, SwitchbackResult, SwitchbackView};
use crate::window::Slice;

/// Rounds that may be asked for; ten are usual.
pub(crate) const ROUNDS: (u32, u32) = (3, 60);
/// Half a round.
const HALF: Duration = Duration::from_secs(30);
/// Of each half, what is left out: the half before is still in the queues, and word to the agents
/// and from them takes a second or two.
const SETTLING: Duration = Duration::from_secs(10);
/// Time a half needs to count, of the 20 s it has.
const MEASURED_MIN: Duration = Duration::from_secs(15);
/// Calls a half needs to count: under these there is no p99 to speak of.
const CALLS_MIN: u64 = 100;
/// Longest time between two ticks whose calls still belong to one half.
const TICK_MAX: Duration = Duration::from_secs(2);

/// One that runs.
#[derive(Debug, Clone)]
pub(crate) struct Switchback {
    by: Actor,
    reason: String,
    started: Moment,
    rounds: u32,
    /// Under which policy and since when on: another one ends it, also where only a share of the
    /// agents is to hold it.
    revision: Revision,
    on_since: Moment,
    /// Which half is being measured.
    half: u64,
    sums: Sums,
    /// The round's first half, once it is over.
    first: Option<Sums>,
    done: Vec<RoundView>,
    left_out: u32,
    /// All complete rounds, with hedging and without.
    all: [Sums; 2],
}

/// What a half adds up to.
#[derive(Debug, Clone, Default)]
struct Sums {
    span: Duration,
    started: u64,
    ended: u64,
    failed: u64,
    hedges: u64,
    callers: Histogram,
}

impl Switchback {
    pub(crate) fn new(
        (by, reason): (Actor, String),
        rounds: u32,
        (revision, on_since): (Revision, Moment),
        now: Moment,
    ) -> Self {
        Self {
            by,
            reason,
            started: now,
            rounds,
            revision,
            on_since,
            half: 0,
            sums: Sums::default(),
            first: None,
            done: Vec::new(),
            left_out: 0,
            all: [Sums::default(), Sums::default()],
        }
    }

    /// Whether nothing is to be hedged from `now` on.
    pub(crate) fn pauses(&self, now: Moment) -> bool {
        half_of(now.since(self.started)) % 2 == 1
    }

    /// Whether the policy and the mode it began under are still there.
    fn stands(&self, revision: Revision, on_since: Option<Moment>) -> bool {
        revision == self.revision && on_since == Some(self.on_since)
    }

    fn ends(&self) -> Moment {
        self.started.plus(HALF * 2 * self.rounds)
    }

    /// Takes in the slice of the tick that is over at `now`.
    fn observe(&mut self, now: Moment, slice: &Slice) {
        let middle = now.since(self.started).saturating_sub(slice.span / 2);
        let half = half_of(middle);
        if half != self.half {
            self.close_half();
            self.half = half;
        }
        let within = middle.saturating_sub(HALF * half as u32);
        if within >= SETTLING && slice.span <= TICK_MAX {
            self.sums.add(slice);
        }
    }

    /// The half is over: with the second of a round the round is.
    fn close_half(&mut self) {
        let sums = std::mem::take(&mut self.sums);
        if self.half.is_multiple_of(2) {
            self.first = Some(sums);
            return;
        }
        match self.first.take() {
            Some(on) if on.counts() && sums.counts() => {
                self.done.push(RoundView {
                    number: (self.half / 2) as u32 + 1,
                    on: on.view(),
                    off: sums.view(),
                });
                self.all[0].merge(&on);
                self.all[1].merge(&sums);
            }
            _ => self.left_out += 1,
        }
    }

    fn result(&self) -> Option<SwitchbackResult> {
        if self.done.is_empty() {
            return None;
        }
        let [on, off] = [self.all[0].view(), self.all[1].view()];
        let differences = differences(&self.done);
        Some(SwitchbackResult {
            words: words(&on, &off, &differences),
            on,
            off,
            differences,
            per_round: self.done.clone(),
            left_out: self.left_out,
        })
    }

    /// As it stands; `ended`: why it is over.
    fn view(&self, now: Moment, ended: Option<String>) -> SwitchbackView {
        SwitchbackView {
            started: self.started,
            by: self.by.clone(),
            reason: self.reason.clone(),
            rounds: self.rounds,
            rounds_done: self.done.len() as u32 + self.left_out,
            hedging: ended.is_none().then(|| !self.pauses(now)),
            ends: if ended.is_some() { now } else { self.ends() },
            ended,
            result: self.result(),
        }
    }
}

fn half_of(elapsed: Duration) -> u64 {
    elapsed.as_secs() / HALF.as_secs()
}

impl Sums {
    fn add(&mut self, slice: &Slice) {
        let totals = &slice.totals;
        self.span += slice.span;
        self.started += totals.started;
        self.ended += totals.finished.saturating_sub(totals.abandoned);
        self.failed += totals.failed;
        self.hedges += totals.hedges();
        slice.treated.add_to(&mut self.callers);
        slice.holdout.add_to(&mut self.callers);
    }

    fn merge(&mut self, other: &Self) {
        self.span += other.span;
        self.started += other.started;
        self.ended += other.ended;
        self.failed += other.failed;
        self.hedges += other.hedges;
        // Fails only after 2^48 calls in one bucket.
        let _ = self.callers.add(&other.callers);
    }

    fn counts(&self) -> bool {
        self.span >= MEASURED_MIN && self.ended >= CALLS_MIN
    }

    fn view(&self) -> ArmView {
        let share = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
        let seconds = self.span.as_secs_f64();
        ArmView {
            calls: self.ended,
            calls_per_s: (seconds > 0.0).then(|| self.started as f64 / seconds),
            p50: self.callers.quantile(0.5),
            p95: self.callers.quantile(0.95),
            p99: self.callers.quantile(0.99),
            error_rate: share(self.failed, self.ended),
            hedge_rate: share(self.hedges, self.started),
        }
    }
}

/// What a route keeps: the one that runs, and the last one's result.
#[derive(Debug, Clone, Default)]
pub(crate) struct Switchbacks {
    pub(crate) running: Option<Box<Switchback>>,
    pub(crate) last: Option<Arc<SwitchbackView>>,
}

impl Switchbacks {
    /// Whether nothing is to be hedged from `now` on.
    pub(crate) fn pauses(&self, now: Moment) -> bool {
        self.running.as_ref().is_some_and(|job| job.pauses(now))
    }
}
