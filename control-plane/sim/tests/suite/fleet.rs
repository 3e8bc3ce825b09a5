//! So many agents that one token each would be more than the fleet may hedge.
//!
//! A run of 100,000 agents takes as long as five hundred others: three seeds have that many, seventeen
//! have 10,000, at one call a second each as well.

use hedgerow_sim::scenario::Scenario;
use hedgerow_sim::{Outcome, Variation};

use crate::runs::{PROOF, Spread, line, one, seeds, shipped, timed};

const HEDGED_AT_MOST: f64 = 0.1;
/// Long enough for buckets to fill: a token takes 12 calls.
const STALL_FROM_S: u64 = 30;

fn scenario(agents: usize) -> Scenario {
    let mut scenario = timed(
        shipped("fleet-100k"),
        STALL_FROM_S,
        STALL_FROM_S + 3,
        STALL_FROM_S + 3,
    );
    (scenario.fleet.agents, scenario.fleet.calls_per_s) = (agents, agents as f64);
    scenario
}

/// Of the calls of the stall's first second.
fn hedged_first(run: &Outcome) -> f64 {
    let row = run.between(STALL_FROM_S, STALL_FROM_S + 1).next().unwrap();
    row.hedged as f64 / row.calls as f64
}

fn worst(run: &Outcome) -> f64 {
    let rows = run.between(STALL_FROM_S, u64::MAX);
    rows.map(|row| row.hedged as f64 / row.calls as f64)
        .fold(0.0, f64::max)
}

#[test]
fn a_fleet_of_small_agents_hedges_no_more_than_a_tenth_in_a_stalls_first_second() {
    let sizes: &[(usize, u64)] = if PROOF {
        &[(10_000, 17), (100_000, 3)]
    } else {
        &[(2_000, 1)]
    };
    let mut most: f64 = 0.0;
    for (agents, count) in sizes.iter().copied() {
        let scenario = scenario(agents);
        let found = seeds(count, |seed| {
            let run = one(&scenario, &Variation::seed(seed));
            let before = run.between(STALL_FROM_S - 5, STALL_FROM_S);
            let (hedged, calls) = before.fold((0, 0), |(hedged, calls), row| {
                (hedged + row.hedged, calls + row.calls)
            });
            (
                hedged_first(&run),
                worst(&run),
                hedged as f64 / calls as f64,
            )
        });
        let first = Spread::of(found.iter().map(|it| 100.0 * it.0));
        let worst = Spread::of(found.iter().map(|it| 100.0 * it.1));
        let before = Spread::of(found.iter().map(|it| 100.0 * it.2));
        line(
            &format!("{agents} agents at 1 call/s, {count} seeds"),
            &format!(
                "hedged {first:.1} % in a stall's first second, {worst:.1} % in the worst, {before:.2} % before"
            ),
        );
        most = most.max(first.most);
    }
    assert!(most <= 100.0 * HEDGED_AT_MOST, "{most} %");
}
