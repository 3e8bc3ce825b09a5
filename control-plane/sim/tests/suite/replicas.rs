//! One replica at fault: named, kept away from, and the threshold is the others'.

use hedgerow_sim::outcome::PhaseName;
use hedgerow_sim::scenario::{Fault, FaultKind, Which};
use hedgerow_sim::{Client, Outcome, Scenario, Variation};

use crate::runs::{PROOF, SEEDS, Spread, line, offs, one, outcomes, seeds, shipped, threshold};

const FROM_S: u64 = 40;
const SECONDS: u64 = 75;
const NAMED_WITHIN_S: f64 = 10.0;
const THRESHOLD_MOVES: f64 = 1.5;
const P99_PART: f64 = 1.0 / 3.0;

fn one_at_fault(kind: FaultKind) -> Scenario {
    let mut scenario = shipped("healthy");
    scenario.seconds = SECONDS;
    scenario.faults = vec![Fault {
        from_s: FROM_S as f64,
        to_s: None,
        kind,
    }];
    scenario
}

fn first() -> Which {
    Which::These(vec![0])
}

/// From the fault's beginning.
fn named_after(run: &Outcome) -> Option<f64> {
    let of_it =
        |it: &&hedgerow_sim::outcome::NamedFor| it.replica == "replica-0" && it.from_s > FROM_S;
    let named = run.named.iter().find(of_it)?;
    Some((named.from_s - FROM_S) as f64)
}

/// The furthest it gets from what it was, either way, as a factor.
fn threshold_moves(run: &Outcome) -> f64 {
    let before = threshold(run, FROM_S - 20, FROM_S);
    let rows = run.between(FROM_S, SECONDS);
    let after = rows.filter_map(|row| row.decided.as_ref()?.threshold_ms);
    after.fold(1.0, |most: f64, it| most.max(it / before).max(before / it))
}

/// Prints what is reached with each number of replicas; where it is to hold, what does not.
fn is_named(what: &str, scenario: &Scenario, calls_per_s: f64, holds: bool) {
    let mut amiss = Vec::new();
    for replicas in [2, 3, 5, 10] {
        let variation = Variation {
            replicas: Some(replicas),
            calls_per_s: Some(calls_per_s),
            ..Variation::default()
        };
        let runs = outcomes(scenario, &variation);
        let named = Spread::of_any(runs.iter().map(named_after));
        let moves = Spread::of(runs.iter().map(threshold_moves));
        let others = runs.iter().flat_map(|run| &run.named);
        let others = others.filter(|it| it.replica != "replica-0").count();
        let name = format!("one {what} of {replicas}, {calls_per_s} calls/s");
        let figures = format!(
            "offs {}, named after {named:.0} s, threshold moves {moves:.2} times, others named {others}",
            offs(&runs)
        );
        line(&name, &figures);
        let well = offs(&runs) == 0 && named.most <= NAMED_WITHIN_S && moves.most < THRESHOLD_MOVES;
        if !well {
            amiss.push(format!("{name}: {figures}"));
        }
    }
    assert!(!holds || amiss.is_empty(), "{amiss:#?}");
}

fn slow() -> Scenario {
    one_at_fault(FaultKind::Slow {
        factor: 10.0,
        replicas: first(),
    })
}

fn dead() -> Scenario {
    one_at_fault(FaultKind::Dead { replicas: first() })
}

#[test]
fn one_slow_replica_is_named_and_changes_nothing_else() {
    is_named("slow", &slow(), 1000.0, true);
}

#[test]
fn one_dead_replica_is_named_and_changes_nothing_else() {
    is_named("dead", &dead(), 1000.0, true);
}

/// What is reached where there is a fifth of the traffic.
#[test]
fn one_slow_or_dead_replica_with_fewer_calls() {
    if !PROOF {
        return;
    }
    is_named("slow", &slow(), 200.0, false);
    is_named("dead", &dead(), 200.0, false);
}

#[test]
fn probation_takes_a_slow_replica_out_of_the_tail() {
    let scenario = shipped("one-of-ten");
    let mut without = scenario.clone();
    without.policy.probation = false;
    let p99 = |run: &Outcome| run.phase(PhaseName::During).unwrap().waited.p99_ms.unwrap();
    let all = seeds(SEEDS, |seed| {
        let variation = Variation::seed(seed);
        let bare = p99(&one(&scenario, &variation.clone().client(Client::Bare)));
        let hedged = p99(&one(&scenario, &variation));
        (bare, hedged, p99(&one(&without, &variation)))
    });
    let bare = Spread::of(all.iter().map(|it| it.0));
    let hedged = Spread::of(all.iter().map(|it| it.1));
    let alone = Spread::of(all.iter().map(|it| it.2));
    let part = Spread::of(all.iter().map(|it| it.1 / it.0));
    line(
        "one of ten 10x slower",
        &format!(
            "p99 {hedged:.0} ms, unhedged {bare:.0} ({part:.2} of it), without probation {alone:.0}"
        ),
    );
    assert!(part.most < P99_PART, "{part:.3}");
}
