//! What a run comes down to.

use hedgerow_core::effect::{AlertState, Transition};
use hedgerow_core::view::Named;
use hedgerow_protocol::directive::{Mode, OffReason};
use serde::Serialize;

use super::{Phase, PhaseName, Second};
use crate::controller::seconds;
use crate::scenario::Scenario;

/// Callers wait as before when their p99 is at most so many times what it was.
const RECOVERED_TIMES: f64 = 2.0;
/// For so many seconds in a row.
const RECOVERED_FOR: usize = 5;

/// What a run comes down to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Times the controller switched off, and on again.
    pub offs: usize,
    /// See `offs`.
    pub ons: usize,
    /// From the first fault's beginning to the first off after it.
    pub off_after_s: Option<f64>,
    /// From the last fault's end to the first on after it.
    pub on_after_s: Option<f64>,
    /// Hedges / calls, once warm.
    pub hedge_rate: Option<f64>,
    /// The most of a single second, once warm.
    pub hedge_rate_worst: Option<f64>,
    /// From the last fault's end until callers' p99 is within twice what it was before, for five
    /// seconds.
    pub recovered_after_s: Option<u64>,
    /// Seconds with more hedges than the budget allows.
    pub seconds_over_budget: usize,
    /// Reports the controller refused, and the last reason.
    pub reports_refused: u64,
    /// See `reports_refused`.
    pub report_refusal: Option<String>,
}

impl Summary {
    pub(super) fn of(
        scenario: &Scenario,
        rows: &[Second],
        phases: &[Phase],
        changes: &[Changed],
        (reports_refused, report_refusal): (u64, Option<String>),
    ) -> Self {
        let (from, to) = scenario.trouble().unwrap_or((f64::MAX, f64::MAX));
        let off = changes.iter().find(|it| it.is_off() && it.at_s >= from);
        let on = changes.iter().find(|it| it.is_on() && it.at_s >= to);
        let calls: u64 = phases.iter().map(|it| it.calls).sum();
        let hedged: u64 = phases.iter().map(|it| it.hedged).sum();
        let share = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
        let warm = rows.iter().filter(|it| it.second > scenario.warm_up_s);
        let rates = warm.filter_map(|it| share(it.hedged, it.calls));
        let over = |it: &&Second| it.decided.as_ref().is_some_and(|it| it.over_budget);
        Self {
            offs: changes.iter().filter(|it| it.is_off()).count(),
            ons: changes.iter().filter(|it| it.is_on()).count(),
            off_after_s: off.map(|it| it.at_s - from),
            on_after_s: on.map(|it| it.at_s - to),
            hedge_rate: share(hedged, calls),
            hedge_rate_worst: rates.reduce(f64::max),
            recovered_after_s: recovered(rows, phases, to),
            seconds_over_budget: rows.iter().filter(over).count(),
            reports_refused,
            report_refusal,
        }
    }
}

fn recovered(rows: &[Second], phases: &[Phase], end: f64) -> Option<u64> {
    let before = phases.iter().find(|it| it.name == PhaseName::Before)?;
    let most = RECOVERED_TIMES * before.waited.p99_ms?;
    let after: Vec<_> = rows
        .iter()
        .filter(|it| it.second as f64 > end)
        .map(|it| it.waited_p99_ms.is_some_and(|p99| p99 <= most))
        .collect();
    let mut windows = after.windows(RECOVERED_FOR);
    let at = windows.position(|window| window.iter().all(|well| *well))?;
    Some(at as u64)
}

/// A change of mode the controller made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Changed {
    /// When.
    pub at_s: f64,
    /// Before.
    pub from: &'static str,
    /// After.
    pub to: &'static str,
    /// Why it is off.
    pub reason: Option<&'static str>,
    /// In words, with the figures that led to it.
    pub words: String,
}

impl Changed {
    pub(super) fn of(it: &Transition) -> Self {
        Self {
            at_s: seconds(it.at),
            from: it.from.as_str(),
            to: it.to.as_str(),
            reason: it.to.reason().map(OffReason::as_str),
            words: it.words.clone(),
        }
    }

    /// Whether hedging went off by it.
    pub fn is_off(&self) -> bool {
        self.from == Mode::On.as_str() && self.reason.is_some()
    }

    /// Whether it went on again by it.
    pub fn is_on(&self) -> bool {
        self.to == Mode::On.as_str() && self.from != Mode::Observing.as_str()
    }
}

/// An alert's episode.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alerted {
    /// Its rule.
    pub rule: &'static str,
    /// The replica it is about.
    pub replica: Option<String>,
    /// In words.
    pub summary: String,
    /// When it began.
    pub from_s: f64,
    /// When it ended; None: it did not.
    pub to_s: Option<f64>,
}

impl Alerted {
    pub(super) fn of(it: &AlertState) -> Self {
        Self {
            rule: it.rule.as_str(),
            replica: it.replica.clone(),
            summary: it.summary.clone(),
            from_s: seconds(it.since),
            to_s: it.resolved.map(seconds),
        }
    }
}

/// A replica, named for some time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamedFor {
    /// Which.
    pub replica: String,
    /// For what.
    pub why: Named,
    /// The first second, and the last, at whose ends it was named.
    pub from_s: u64,
    /// See `from_s`.
    pub to_s: u64,
}

impl NamedFor {
    pub(super) fn in_rows(rows: &[Second]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for row in rows {
            for now in row.decided.iter().flat_map(|it| &it.named) {
                let same = |it: &&mut Self| {
                    it.replica == now.replica && it.why == now.why && it.to_s + 1 == row.second
                };
                match all.iter_mut().find(same) {
                    Some(known) => known.to_s = row.second,
                    None => all.push(Self {
                        replica: now.replica.clone(),
                        why: now.why,
                        from_s: row.second,
                        to_s: row.second,
                    }),
                }
            }
        }
        all
    }
}
