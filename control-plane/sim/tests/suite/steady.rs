//! What hedging is for, or has to bear: it stays on.

use hedgerow_sim::{Outcome, Scenario, Variation};

use crate::runs::{PROOF, SEEDS, line, outcomes, shipped};

/// Of each run. 20 of them are five hours.
const SECONDS: u64 = if PROOF { 900 } else { 120 };

fn false_offs(name: &str, scenario: &str) -> usize {
    let mut scenario: Scenario = shipped(scenario);
    scenario.seconds = SECONDS;
    for fault in &mut scenario.faults {
        fault.to_s = None;
    }
    let mut all = 0;
    for replicas in [5, 3] {
        let variation = Variation {
            replicas: Some(replicas),
            ..Variation::default()
        };
        let runs = outcomes(&scenario, &variation);
        let offs = runs.iter().map(|run| run.summary.offs).sum::<usize>();
        let hours = (SECONDS * SEEDS) as f64 / 3600.0;
        let why = runs.iter().flat_map(|run: &Outcome| {
            let offs = run.changes.iter().filter(|it| it.is_off());
            offs.map(|it| format!("; seed {} at {:.0} s: {}", run.seed, it.at_s, it.words))
        });
        line(
            &format!("{name}, {replicas} replicas"),
            &format!(
                "{offs} false offs in {hours:.1} hours{}",
                why.collect::<String>()
            ),
        );
        all = all.max(offs);
    }
    all
}

#[test]
fn independent_stalls_switch_nothing_off() {
    assert_eq!(false_offs("independent stalls", "independent-stalls"), 0);
}

#[test]
fn a_tail_that_drifts_switches_nothing_off() {
    assert_eq!(false_offs("tail drift", "tail-drift"), 0);
}

#[test]
fn a_lasting_slowdown_switches_nothing_off() {
    assert_eq!(false_offs("lasting 2.2x slowdown", "lasting-slowdown"), 0);
}

#[test]
fn replicas_that_pause_by_themselves_switch_nothing_off() {
    let mut scenario = shipped("three-pausing");
    scenario.seconds = if PROOF { scenario.seconds } else { 120 };
    let runs = outcomes(&scenario, &Variation::default());
    let offs = runs.iter().map(|run| run.summary.offs).sum::<usize>();
    let hours = (scenario.seconds * SEEDS) as f64 / 3600.0;
    line(
        "three replicas pausing independently",
        &format!("{offs} false offs in {hours:.1} hours"),
    );
    assert_eq!(offs, 0);
}
