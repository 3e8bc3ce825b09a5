//! What a run comes to. Each figure is defined here, once.

use std::ops::Range;
use std::time::Duration;

use super::drive::{Record, Run, SAMPLED};
use crate::subjects::Outcome;
use crate::world::ledger::entry;

/// Name and value; no number where there was nothing to measure.
pub(crate) type Fields = Vec<(&'static str, f64)>;

/// A second with fewer calls says nothing about a rate.
const CALLS_MIN: u32 = 100;
/// Over this a call is what a user notices.
const LONG: Duration = Duration::from_secs(1);

/// The usual figures of the whole seconds `window`.
pub(crate) fn usual(run: &Run, window: &Range<u64>) -> Fields {
    let calls: Vec<_> = within(&run.calls, window).collect();
    let span = (window.end - window.start) as f64;
    let hedges = sum(&run.books.hedges_in, window);
    let attempts = sum(&run.books.attempts_in, window);
    let busy: Duration = seconds(window)
        .filter_map(|second| run.books.busy_in.get(second))
        .sum();
    let answered = ended(run, window, Outcome::Answered);
    let n = calls.len() as f64;
    let mut fields = vec![
        ("calls", n),
        ("hedge_rate", f64::from(hedges) / n),
        ("worst_second_hedge_rate", worst_second(run, window)),
        ("extra_load", f64::from(attempts) / n - 1.0),
        ("busy_ms_per_call", busy.as_secs_f64() * 1e3 / n),
        ("answered_per_s", answered / span),
    ];
    fields.extend(waits(&calls));
    let (over, most) = budget_use(run);
    fields.extend([("seconds_over_budget", over), ("worst_budget_use", most)]);
    fields.extend(thresholds(run, window));
    fields
}

/// Between what its threshold was for eight tenths of the time.
fn thresholds(run: &Run, window: &Range<u64>) -> Fields {
    let samples = run.samples.iter();
    let within = samples.filter(|(at, _)| window.contains(&at.as_secs()));
    let mut thresholds: Vec<f64> = within.map(|(_, sample)| sample.threshold_ms).collect();
    thresholds.sort_by(f64::total_cmp);
    let tenth = |i: usize| thresholds.get(i * thresholds.len() / 10).copied();
    vec![
        ("threshold_p10_ms", tenth(1).unwrap_or(f64::NAN)),
        ("threshold_p90_ms", tenth(9).unwrap_or(f64::NAN)),
    ]
}

/// What callers waited. A call that failed waited for nothing and is in `success` only; one that
/// ran out of time waited that long.
pub(crate) fn waits(records: &[&Record]) -> Fields {
    let of = |outcome| records.iter().filter(move |r| r.outcome == outcome).count();
    let waited = records.iter().filter(|r| r.outcome != Outcome::Failed);
    let mut took: Vec<_> = waited.map(|record| record.took).collect();
    took.sort_unstable();
    let quantile = |q: f64| {
        let at = ((q * took.len() as f64) as usize).min(took.len().saturating_sub(1));
        took.get(at)
            .map_or(f64::NAN, |took| took.as_secs_f64() * 1e3)
    };
    let over = took.iter().filter(|took| **took > LONG).count();
    vec![
        ("p50_ms", quantile(0.5)),
        ("p95_ms", quantile(0.95)),
        ("p99_ms", quantile(0.99)),
        ("p999_ms", quantile(0.999)),
        ("over_1s", over as f64),
        (
            "success",
            of(Outcome::Answered) as f64 / records.len() as f64,
        ),
    ]
}

/// Those that began within the window.
pub(crate) fn within<'a>(
    records: &'a [Record],
    window: &Range<u64>,
) -> impl Iterator<Item = &'a Record> {
    let window = window.clone();
    records
        .iter()
        .filter(move |r| window.contains(&r.began.as_secs()))
}

/// Calls that ended within the window in this way.
pub(crate) fn ended(run: &Run, window: &Range<u64>, outcome: Outcome) -> f64 {
    let ends = |record: &&Record| window.contains(&(record.began + record.took).as_secs());
    let so = run.calls.iter().filter(|record| record.outcome == outcome);
    so.filter(ends).count() as f64
}

/// Hedges received in a second over calls started in it, in each second with enough calls.
fn rates(run: &Run, window: &Range<u64>) -> Vec<(u64, f64)> {
    let mut started: Vec<u32> = Vec::new();
    for record in &run.calls {
        *entry(&mut started, record.began.as_secs() as usize) += 1;
    }
    let rate = |second: u64| {
        let calls = *started.get(second as usize)?;
        let hedges = run.books.hedges_in.get(second as usize).copied();
        let rate = f64::from(hedges.unwrap_or(0)) / f64::from(calls);
        (calls >= CALLS_MIN).then_some((second, rate))
    };
    window.clone().filter_map(rate).collect()
}

pub(crate) fn worst_second(run: &Run, window: &Range<u64>) -> f64 {
    let rates = rates(run, window);
    rates
        .into_iter()
        .map(|(_, rate)| rate)
        .fold(f64::NAN, f64::max)
}

/// Seconds until the last one in which the rate was 10 % or more was over; none if that was the
/// window's last.
pub(crate) fn seconds_until_under_10(run: &Run, window: &Range<u64>) -> f64 {
    let mut over = rates(run, window)
        .into_iter()
        .filter(|(_, rate)| *rate >= 0.1);
    match over.next_back() {
        None => 0.0,
        Some((last, _)) if last + 1 == window.end => f64::NAN,
        Some((last, _)) => (last + 1 - window.start) as f64,
    }
}

/// Hedges as a share of B x calls finished in the same second + cap, by the replicas' count: in how
/// many seconds it was over 1, and the most there was. None where the subject has no budget. The cap
/// follows the calls of the second before: the largest that was in force in the second counts.
fn budget_use(run: &Run) -> (f64, f64) {
    if run.samples.is_empty() {
        return (f64::NAN, f64::NAN);
    }
    let mut finished: Vec<u32> = Vec::new();
    for record in &run.calls {
        let ended = record.began + record.took;
        *entry(&mut finished, ended.as_secs() as usize) += 1;
    }
    let mut allowed: Vec<f64> = Vec::new();
    for (at, sample) in &run.samples {
        // A sample holds until the next one, also where that is in another second.
        for second in [at.as_secs(), (*at + SAMPLED).as_secs()] {
            let ended = finished.get(second as usize).copied().unwrap_or(0);
            let most = sample.budget * f64::from(ended) + sample.cap;
            let known = entry(&mut allowed, second as usize);
            *known = known.max(most);
        }
    }
    let hedges = run.books.hedges_in.iter().zip(&allowed);
    let used: Vec<_> = hedges.map(|(n, most)| f64::from(*n) / most).collect();
    let over = used.iter().filter(|used| **used > 1.0).count();
    (over as f64, used.into_iter().fold(0.0, f64::max))
}

fn seconds(window: &Range<u64>) -> impl Iterator<Item = usize> + use<> {
    window.start as usize..window.end as usize
}

fn sum(counts: &[u32], window: &Range<u64>) -> u32 {
    seconds(window)
        .filter_map(|second| counts.get(second))
        .sum()
}

/// Puts `value` in place of what `name` had, or behind.
pub(crate) fn set(fields: &mut Fields, name: &'static str, value: f64) {
    match fields.iter_mut().find(|(known, _)| *known == name) {
        Some(field) => field.1 = value,
        None => fields.push((name, value)),
    }
}

pub(crate) fn get(fields: &[(&'static str, f64)], name: &str) -> f64 {
    let found = fields.iter().find(|(known, _)| *known == name);
    found.map_or(f64::NAN, |(_, value)| *value)
}
