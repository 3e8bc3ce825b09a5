//! What is kept of one agent on one route, and when it goes in and out.

use std::collections::VecDeque;
use std::time::Duration;

use hedgerow_protocol::ids::InstanceId;

use super::compare::{
    CALLS_MIN, EVENTS_MIN, EVENTS_TO_DOUBT, Finding, Floors, Medians, agrees, contradicts, worst,
};
use super::figures::Counts;
use super::{Change, Outcome, evidence};
use crate::moment::Moment;
use crate::route::Arrival;
use crate::view::QuarantineView;

/// Longest time the recent counts tell of with their whole weight: they are halved so often.
pub(super) const WINDOW: Duration = Duration::from_mins(1);
/// The same in ticks.
const WINDOW_TICKS: u64 = 60;
/// Calls after which they are halved sooner: half of it is enough to tell that none of them crosses
/// where a twentieth should, and an agent with much traffic is judged by its last seconds.
const RECENT_CALLS: u64 = 800;
/// Calls that tell what an agent with few a second says at present: two of two are enough to stand
/// out, and an honest past of a minute would hide a dozen lies.
const LATEST_CALLS: u64 = 4;
/// Ticks an agent must have stood out in to be quarantined: a pause of its own is over by then.
const TICKS_OUT: u32 = 3;
/// Reports that wait while it is held; what is older is left out for good.
const HELD_MAX: usize = 10;
/// Least stay, and the time over which it must agree with the others.
const LEAST_STAY: Duration = Duration::from_secs(30);
/// After so long fewer calls are enough to be let go.
const LONG_STAY: Duration = Duration::from_mins(5);
const LONG_STAY_CALLS: u64 = 20;
/// Quarantines an hour; after the last it stays in until the first is an hour old.
const HOURLY_MAX: usize = 3;
const HOUR: Duration = Duration::from_hours(1);

/// Left out, and what for.
#[derive(Debug, Clone)]
pub(super) struct Out {
    since: Moment,
    finding: Finding,
    reports: u64,
    calls: u64,
}

/// Held, while it stands out.
#[derive(Debug, Clone)]
pub(super) struct Doubt {
    out: Out,
    held: VecDeque<Arrival>,
}

/// A quarantine.
#[derive(Debug, Clone)]
struct Quarantine {
    out: Out,
    /// What it said since `trial_from`.
    trial: Counts,
    trial_from: Moment,
}

/// Why an agent may have to be left out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Suspicion {
    /// How far it stands out.
    pub(super) times: f64,
    /// In what, at this tick; None: it did before.
    found: Option<Finding>,
}

#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) instance: InstanceId,
    /// Since the last tick.
    pub(super) second: Counts,
    /// What it said last: the newest second, and where that has but a few calls, those before.
    pub(super) latest: Counts,
    /// Over the last minute at most.
    pub(super) recent: Counts,
    /// Ticks it stood out in, less those in which it did not.
    ticks_out: u32,
    /// How much it said since the last tick; None: nothing.
    pub(super) load: Option<f64>,
    pub(super) doubt: Option<Box<Doubt>>,
    quarantine: Option<Box<Quarantine>>,
    /// When it was quarantined in the last hour.
    entered: VecDeque<Moment>,
}

impl Out {
    fn begin(now: Moment, finding: Finding) -> Self {
        Self {
            since: now,
            finding,
            reports: 0,
            calls: 0,
        }
    }

    fn count(&mut self, calls: u64) {
        self.reports += 1;
        self.calls = self.calls.saturating_add(calls);
    }

    fn view(&self, held: bool) -> QuarantineView {
        QuarantineView {
            since: self.since,
            held,
            words: self.finding.words(),
            evidence: evidence(&self.finding),
            reports: self.reports,
            calls: self.calls,
        }
    }
}

impl Record {
    pub(super) fn new(instance: InstanceId) -> Self {
        Self {
            instance,
            second: Counts::default(),
            latest: Counts::default(),
            recent: Counts::default(),
            ticks_out: 0,
            load: None,
            doubt: None,
            quarantine: None,
            entered: VecDeque::new(),
        }
    }

    pub(super) fn is_out(&self) -> bool {
        self.quarantine.is_some() || self.doubt.is_some()
    }

    /// Counts a report's calls apart, where it is quarantined.
    pub(super) fn leaves_out(&mut self, calls: u64) -> bool {
        let quarantine = self.quarantine.as_mut();
        quarantine.map(|it| it.out.count(calls)).is_some()
    }

    /// See [`Bench::keep`](super::Bench::keep).
    pub(super) fn keep(&mut self, arrival: Arrival) -> Option<Arrival> {
        let calls = arrival.delta.started;
        if self.leaves_out(calls) {
            return None;
        }
        let Some(doubt) = &mut self.doubt else {
            return Some(arrival);
        };
        doubt.out.count(calls);
        if doubt.held.len() >= HELD_MAX {
            doubt.held.pop_front();
        }
        doubt.held.push_back(arrival);
        None
    }

    /// See [`Bench::begin_anew`](super::Bench::begin_anew).
    pub(super) fn begin_anew(&mut self) {
        self.second = Counts::default();
        self.latest = Counts::default();
        self.recent = Counts::default();
        self.ticks_out = 0;
    }

    /// Its stream ended: what waited is nobody's any more.
    pub(super) fn part(&mut self) {
        self.second = Counts::default();
        self.load = None;
        self.doubt = None;
    }

    pub(super) fn to_remember(&self) -> bool {
        self.quarantine.is_some() || !self.entered.is_empty()
    }

    /// What it counts for where a majority must be left.
    pub(super) fn weight(&self) -> u64 {
        self.recent.calls()
    }

    pub(super) fn view(&self) -> Option<QuarantineView> {
        let quarantined = self.quarantine.as_ref().map(|it| it.out.view(false));
        quarantined.or_else(|| self.doubt.as_ref().map(|it| it.out.view(true)))
    }

    /// The second is over. In silence nothing is forgotten: it is no acquittal (P16).
    pub(super) fn advance(&mut self, tick: u64) {
        if self.second.calls() == 0 {
            return;
        }
        self.latest = self.with_second();
        self.recent.add(&self.second);
        if self.recent.calls() > RECENT_CALLS || tick.is_multiple_of(WINDOW_TICKS) {
            self.recent.halve();
        }
        if let Some(quarantine) = &mut self.quarantine {
            quarantine.trial.add(&self.second);
        }
    }

    /// What it said last, the second that is not over included.
    pub(super) fn with_second(&self) -> Counts {
        let mut latest = self.second;
        if self.latest.calls() < LATEST_CALLS && self.second.calls() < LATEST_CALLS {
            latest.add(&self.latest);
        }
        latest
    }

    /// Where it stands out, where it does, or did and has not been acquitted. `newest`: what others
    /// say now, asked for by few.
    pub(super) fn look(
        &self,
        floors: &Floors,
        lately: &Medians,
        newest: impl Fn() -> Medians,
    ) -> Option<Suspicion> {
        let before = |finding: &Finding| Suspicion {
            times: finding.times,
            found: None,
        };
        if let Some(quarantine) = &self.quarantine {
            return Some(before(&quarantine.out.finding));
        }
        let doubt = self.doubt.as_ref().map(|doubt| &doubt.out.finding);
        if self.second.calls() == 0 {
            return doubt.map(before);
        }
        // Beside what others say now, too: where all are slow at once nobody stands out.
        let now = worst(&self.latest, EVENTS_TO_DOUBT, floors, lately)
            .filter(|_| worst(&self.latest, EVENTS_TO_DOUBT, floors, &newest()).is_some());
        let found = now.or_else(|| {
            worst(&self.recent, EVENTS_TO_DOUBT, floors, lately)
                .filter(|finding| !contradicts(&self.second, finding))
        });
        // Too few calls acquit nobody.
        let unproven = self.latest.calls() < LATEST_CALLS;
        found
            .map(|found| Suspicion {
                times: found.times,
                found: Some(found),
            })
            .or_else(|| doubt.filter(|_| unproven).map(before))
    }

    /// It is one of those left out, for what is `suspected`, or it is not.
    pub(super) fn settle(
        &mut self,
        now: Moment,
        suspected: Option<&Suspicion>,
        floors: &Floors,
        lately: &Medians,
        outcome: &mut Outcome,
    ) {
        while self
            .entered
            .front()
            .is_some_and(|at| now.since(*at) >= HOUR)
        {
            self.entered.pop_front();
        }
        if self.quarantine.is_some() {
            self.settle_quarantine(now, suspected.is_some(), floors, lately, outcome);
        } else if let Some(suspicion) = suspected {
            if let Some(found) = suspicion.found {
                self.hold(now, found, floors, lately, outcome);
            }
        } else {
            if self.second.calls() > 0 {
                self.ticks_out = self.ticks_out.saturating_sub(1);
            }
            let doubt = self.doubt.take();
            outcome
                .freed
                .extend(doubt.into_iter().flat_map(|it| it.held));
        }
        self.second = Counts::default();
    }

    fn hold(
        &mut self,
        now: Moment,
        found: Finding,
        floors: &Floors,
        lately: &Medians,
        outcome: &mut Outcome,
    ) {
        let doubt = self.doubt.get_or_insert_with(|| {
            Box::new(Doubt {
                out: Out::begin(now, found),
                held: VecDeque::new(),
            })
        });
        let doubt = &mut doubt.out;
        doubt.finding = found;
        self.ticks_out += 1;
        let lasting = worst(&self.recent, EVENTS_MIN, floors, lately)
            .filter(|finding| finding.own.calls >= CALLS_MIN);
        let Some(finding) = lasting.filter(|_| self.ticks_out >= TICKS_OUT) else {
            return;
        };
        let mut out = Out::begin(now, finding);
        (out.reports, out.calls) = (doubt.reports, doubt.calls);
        self.doubt = None;
        self.ticks_out = 0;
        self.entered.push_back(now);
        self.quarantine = Some(Box::new(Quarantine {
            out,
            trial: Counts::default(),
            trial_from: now,
        }));
        outcome.changes.push(Change {
            instance: self.instance,
            into: true,
            words: finding.words(),
        });
    }

    fn settle_quarantine(
        &mut self,
        now: Moment,
        is_out: bool,
        floors: &Floors,
        lately: &Medians,
        outcome: &mut Outcome,
    ) {
        let Some(quarantine) = &mut self.quarantine else {
            return;
        };
        let words = if is_out {
            let stayed = now.since(quarantine.out.since);
            if now.since(quarantine.trial_from) < LEAST_STAY
                || !quarantine.has_enough(stayed, lately)
            {
                return;
            }
            let agreed = agrees(&quarantine.trial, floors, lately);
            if !agreed || self.entered.len() >= HOURLY_MAX {
                (quarantine.trial, quarantine.trial_from) = (Counts::default(), now);
                return;
            }
            format!(
                "agrees with the others over {} calls",
                quarantine.trial.calls()
            )
        } else {
            "otherwise no majority of the agents would be counted".to_owned()
        };
        self.recent = quarantine.trial;
        self.quarantine = None;
        outcome.changes.push(Change {
            instance: self.instance,
            into: false,
            words,
        });
    }
}

impl Quarantine {
    /// Whether there is enough to compare, in what it was left out for above all.
    fn has_enough(&self, stayed: Duration, lately: &Medians) -> bool {
        let least = if stayed >= LONG_STAY {
            LONG_STAY_CALLS
        } else {
            CALLS_MIN
        };
        let figure = self.out.finding.figure;
        let own = self.trial.get(figure);
        own.calls >= least && lately.beside(figure, own).is_some()
    }
}
