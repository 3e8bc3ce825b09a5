//! Agents that say what is not so: the threshold does not follow them.

use hedgerow_sim::scenario::{Fault, FaultKind, Lie};
use hedgerow_sim::{Scenario, Variation};

use crate::runs::{PROOF, SEEDS, Spread, line, one, outcomes, seeds, shipped, threshold};

const FROM_S: u64 = 40;
const SECONDS: u64 = if PROOF { 90 } else { 60 };
const MOVES: f64 = 0.05;

fn fleet(liars: Option<(usize, Lie)>) -> Scenario {
    let mut scenario = shipped("one-liar");
    scenario.seconds = SECONDS;
    scenario.faults = Vec::from_iter(liars.map(|(count, says)| Fault {
        from_s: FROM_S as f64,
        to_s: None,
        kind: FaultKind::Liars { count, says },
    }));
    scenario
}

fn moves_nothing(calls_per_s: f64, count: usize, holds: bool) {
    let variation = Variation {
        calls_per_s: Some(calls_per_s),
        ..Variation::default()
    };
    let honest = outcomes(&fleet(None), &variation);
    let honest: Vec<f64> = honest
        .iter()
        .map(|run| threshold(run, FROM_S, SECONDS))
        .collect();
    let mut most: f64 = 0.0;
    for (says, words) in [
        (Lie::TenTimesSlower, "10x slower"),
        (Lie::Zero, "0"),
        (Lie::NothingCrosses, "nothing crosses"),
        (Lie::Replay, "replay"),
    ] {
        let scenario = fleet(Some((count, says)));
        let found = seeds(SEEDS, |seed| {
            let variation = Variation {
                seed,
                ..variation.clone()
            };
            let run = one(&scenario, &variation);
            let now = threshold(&run, FROM_S, SECONDS);
            let out = run.seconds.last().and_then(|row| row.agents_quarantined);
            (now, run.summary.offs, out.unwrap_or(0) as f64)
        });
        let moved = found.iter().zip(&honest);
        let moved = Spread::of(moved.map(|(it, honest)| 100.0 * (it.0 / honest - 1.0)));
        let offs: usize = found.iter().map(|it| it.1).sum();
        let out = Spread::of(found.iter().map(|it| it.2));
        line(
            &format!("{count} of 100 say {words}, {calls_per_s} calls/s"),
            &format!("threshold moves {moved:.1} %, quarantined in the end {out:.0}, offs {offs}"),
        );
        most = most.max(moved.most).max(-moved.least);
    }
    assert!(!holds || most < 100.0 * MOVES, "{most} %");
}

#[test]
fn one_liar_of_a_hundred_does_not_move_the_threshold() {
    moves_nothing(2000.0, 1, true);
}

#[test]
fn ten_liars_of_a_hundred_do_not_move_the_threshold() {
    moves_nothing(2000.0, 10, true);
}

/// An open end: a liar that says that nothing crosses is told from a lucky one the later, the fewer
/// calls it has. What is reached is printed.
#[test]
fn ten_liars_of_a_hundred_with_few_calls() {
    if PROOF {
        moves_nothing(200.0, 10, false);
    }
}
