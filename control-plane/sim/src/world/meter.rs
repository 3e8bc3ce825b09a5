//! What the world itself counts, which no agent need know of: the truth of a run.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::time::Duration;

use hedgerow_protocol::latency::{Histogram, LATENCY_MAX};
use hedgerow_protocol::report::Refusal;

use crate::outcome::{Phase, PhaseName, Waits};
use crate::scenario::Scenario;

/// Seconds of true latencies that are kept: as long as a controller's window.
const KEPT: usize = 60;

/// Counters of some time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counters {
    pub(super) calls: u64,
    pub(super) finished: u64,
    pub(super) failed: u64,
    pub(super) abandoned: u64,
    pub(super) crossed: u64,
    pub(super) hedged: u64,
    pub(super) won: u64,
    pub(super) refused: [u64; Refusal::ALL.len()],
}

impl Counters {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.finished += other.finished;
        self.failed += other.failed;
        self.abandoned += other.abandoned;
        self.crossed += other.crossed;
        self.hedged += other.hedged;
        self.won += other.won;
        for (sum, n) in self.refused.iter_mut().zip(other.refused) {
            *sum += n;
        }
    }

    /// Refusals by name, those there were.
    pub(super) fn refusals(&self) -> BTreeMap<&'static str, u64> {
        let all = Refusal::ALL.iter().map(|it| it.as_str()).zip(self.refused);
        all.filter(|(_, n)| *n > 0).collect()
    }
}

/// A second of the truth.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) counters: Counters,
    /// What callers waited.
    pub(super) waited: Histogram,
    /// What the primaries begun in it would have taken; empty where there are queues.
    pub(super) would_take: Histogram,
}

/// Some time of it.
#[derive(Debug, Default)]
struct Stretch {
    seconds: u64,
    counters: Counters,
    waited: Histogram,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Meter {
    second: Measured,
    seconds: u64,
    lately: VecDeque<Histogram>,
    phases: BTreeMap<PhaseName, Stretch>,
}

impl Meter {
    pub(super) fn began(&mut self) {
        self.second.counters.calls += 1;
    }

    pub(super) fn crossed(&mut self) {
        self.second.counters.crossed += 1;
    }

    pub(super) fn hedged(&mut self) {
        self.second.counters.hedged += 1;
    }

    pub(super) fn won(&mut self) {
        self.second.counters.won += 1;
    }

    pub(super) fn abandoned(&mut self) {
        self.second.counters.abandoned += 1;
    }

    pub(super) fn refused(&mut self, refusal: Refusal) {
        self.second.counters.refused[refusal as usize] += 1;
    }

    pub(super) fn finished(&mut self, waited: u64, failed: bool) {
        self.second.counters.finished += 1;
        self.second.counters.failed += u64::from(failed);
        self.second.waited.record(Duration::from_micros(waited));
    }

    /// What a primary would take were it let finish; None: for ever.
    pub(super) fn would_take(&mut self, us: Option<u64>) {
        let latency = us.map_or(LATENCY_MAX, Duration::from_micros);
        self.second.would_take.record(latency);
    }

    /// A second is over: what it was.
    pub(super) fn end_second(&mut self, scenario: &Scenario) -> Measured {
        let measured = std::mem::take(&mut self.second);
        let second = self.seconds;
        self.seconds += 1;
        self.lately.push_front(measured.would_take.clone());
        self.lately.truncate(KEPT);
        if let Some(phase) = PhaseName::of(scenario, second) {
            let stretch = self.phases.entry(phase).or_default();
            stretch.seconds += 1;
            stretch.counters.add(&measured.counters);
            // An hour of a million calls a second is far from the most a histogram holds.
            let _ = stretch.waited.add(&measured.waited);
        }
        measured
    }

    /// The quantile of what primaries of the last seconds would have taken.
    pub(super) fn true_quantile(&self, q: f64, seconds: usize) -> Option<Duration> {
        let mut all = Histogram::new();
        for second in self.lately.iter().take(seconds.max(1)) {
            let _ = all.add(second);
        }
        all.quantile(q)
    }

    /// The run by phase.
    pub(super) fn phases(&self, scenario: &Scenario) -> Vec<Phase> {
        let phase = |(name, it): (&PhaseName, &Stretch)| {
            let (from_s, to_s) = name.span(scenario);
            let share = |part: u64| {
                let of = it.counters.calls;
                (of > 0).then(|| part as f64 / of as f64)
            };
            Phase {
                name: *name,
                from_s,
                to_s,
                calls: it.counters.calls,
                finished: it.counters.finished,
                failed: it.counters.failed,
                crossed: it.counters.crossed,
                hedged: it.counters.hedged,
                won: it.counters.won,
                refused: it.counters.refusals(),
                hedge_rate: share(it.counters.hedged),
                waited: Waits::of(&it.waited),
            }
        };
        self.phases.iter().map(phase).collect()
    }
}
