//! Runs over seeds, what holds in each of them, and how figures are put together.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use hedgerow_protocol::policy::Policy;
use hedgerow_sim::scenario::FaultKind;
use hedgerow_sim::{Client, Outcome, Scenario, Second, Variation, run};

/// Whether this is the proof, or a look.
pub(crate) const PROOF: bool = !cfg!(debug_assertions);
/// Seeds of each scenario.
pub(crate) const SEEDS: u64 = if PROOF { 20 } else { 1 };

/// A shipped scenario.
pub(crate) fn shipped(name: &str) -> Scenario {
    Scenario::find(name).unwrap()
}

/// The same, with all that goes wrong from one second to another, and over at a third.
pub(crate) fn timed(mut scenario: Scenario, from: u64, to: u64, seconds: u64) -> Scenario {
    for fault in &mut scenario.faults {
        fault.from_s = from as f64;
        fault.to_s = fault.to_s.map(|_| to as f64);
    }
    scenario.seconds = seconds;
    scenario
}

/// The scenario's policy, checked.
pub(crate) fn policy(scenario: &Scenario) -> Policy {
    Policy::try_from(scenario.policy.clone()).unwrap()
}

/// One run, and what holds in each.
pub(crate) fn one(scenario: &Scenario, variation: &Variation) -> Outcome {
    let outcome = run(scenario, variation, |_| ()).unwrap();
    if variation.client != Client::Hedgerow {
        return outcome;
    }
    let (summary, seed) = (&outcome.summary, variation.seed);
    let title = &scenario.title;
    assert_eq!(summary.seconds_over_budget, 0, "{title}, seed {seed}");
    if let Some(second) = over_budget(scenario, &outcome) {
        panic!("{title}, seed {seed}: more hedges than the budget allows in second {second}");
    }
    let lies = |kind: &FaultKind| matches!(kind, FaultKind::Liars { .. });
    if !scenario.faults.iter().any(|fault| lies(&fault.kind)) {
        let why = &summary.report_refusal;
        assert_eq!(summary.reports_refused, 0, "{title}, seed {seed}: {why:?}");
    }
    outcome
}

/// The first second with more hedges than were earned in it, and than all buckets could hold before.
/// No agent can have been told a budget above the policy's.
fn over_budget(scenario: &Scenario, outcome: &Outcome) -> Option<u64> {
    let budget = policy(scenario).budget().get();
    let mut cap: f64 = 1.0;
    let over = |row: &&Second| {
        let before = cap;
        cap = row.decided.as_ref().map_or(cap, |it| it.cap);
        let kept = before.max(cap) * outcome.agents as f64;
        row.hedged as f64 > budget * row.finished as f64 + kept + 1e-6
    };
    outcome.seconds.iter().find(over).map(|row| row.second)
}

/// `what` of each seed, in the order of seeds.
pub(crate) fn seeds<T: Send>(count: u64, what: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let next = AtomicU64::new(1);
    let found = Mutex::new(Vec::new());
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..cores.min(count as usize) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > count {
                        break;
                    }
                    let one = what(seed);
                    found.lock().unwrap().push((seed, one));
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort_by_key(|(seed, _)| *seed);
    found.into_iter().map(|(_, one)| one).collect()
}

/// A scenario's runs with Hedgerow, one a seed.
pub(crate) fn outcomes(scenario: &Scenario, variation: &Variation) -> Vec<Outcome> {
    seeds(SEEDS, |seed| {
        let variation = Variation {
            seed,
            ..variation.clone()
        };
        one(scenario, &variation)
    })
}

/// Least, median and most over seeds; what there was not in a run counts as more than anything.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) most: f64,
}

impl Spread {
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let at = |i: usize| sorted.get(i).copied().unwrap_or(f64::NAN);
        let last = sorted.len().saturating_sub(1);
        Self {
            least: at(0),
            median: f64::midpoint(at(last / 2), at(sorted.len() / 2)),
            most: at(last),
        }
    }

    /// Of what may not have been in a run.
    pub(crate) fn of_any(values: impl IntoIterator<Item = Option<f64>>) -> Self {
        Self::of(values.into_iter().map(|it| it.unwrap_or(f64::INFINITY)))
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = f.precision().unwrap_or(1);
        let Self {
            least,
            median,
            most,
        } = self;
        write!(f, "{least:.places$} / {median:.places$} / {most:.places$}")
    }
}

/// The median.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    Spread::of(values).median
}

/// The medians over some seconds of the thresholds the controller told.
pub(crate) fn threshold(outcome: &Outcome, from: u64, to: u64) -> f64 {
    let rows = outcome.between(from, to);
    median(rows.filter_map(|row| row.decided.as_ref()?.threshold_ms))
}

/// A line of the table.
pub(crate) fn line(scenario: &str, figures: &str) {
    println!("{scenario:44} {figures}");
}

/// Automatic offs in all runs together.
pub(crate) fn offs(runs: &[Outcome]) -> usize {
    runs.iter().map(|run| run.summary.offs).sum()
}
