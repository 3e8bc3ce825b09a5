//! A surge that fills the queues: hedging makes it no longer.

use hedgerow_sim::{Client, Outcome, Variation};

use crate::runs::{SEEDS, Spread, line, one, seeds, shipped};

const LATER_BY_S: f64 = 10.0;
/// Callers wait as before when their p99 is within two stalls for so many seconds in a row: one level
/// for all clients and seeds. Stalls are 1 % of calls: the p99 of one second lies on either side of
/// one, and twice that of before would not be the same level for any two runs.
const STALLS: f64 = 2.0;
const IN_A_ROW: usize = 5;

/// Seconds from the surge's end until callers wait at most `most_ms`.
fn well_after(run: &Outcome, most_ms: f64) -> Option<f64> {
    let end = run.trouble_s?.1 as u64;
    let rows: Vec<_> = run.between(end, u64::MAX).collect();
    let well = |row: &&hedgerow_sim::Second| row.waited_p99_ms.is_some_and(|it| it <= most_ms);
    let at = rows.windows(IN_A_ROW).position(|it| it.iter().all(well))?;
    Some(at as f64)
}

fn recovers(name: &str, scenario: &str) {
    let scenario = shipped(scenario);
    let most = STALLS * scenario.service.stall_ms;
    let all = seeds(SEEDS, |seed| {
        let variation = Variation::seed(seed);
        let bare = one(&scenario, &variation.clone().client(Client::Bare));
        let ours = one(&scenario, &variation);
        let plain = one(&scenario, &variation.client(Client::PlainP95));
        // Each by what its own callers had before, which asks more of hedging.
        let own = |run: &Outcome| run.summary.recovered_after_s.map(|it| it as f64);
        (
            well_after(&bare, most),
            well_after(&ours, most),
            well_after(&plain, most),
            own(&ours),
        )
    });
    let bare = Spread::of_any(all.iter().map(|it| it.0));
    let ours = Spread::of_any(all.iter().map(|it| it.1));
    let plain = Spread::of_any(all.iter().map(|it| it.2));
    let own = Spread::of_any(all.iter().map(|it| it.3));
    line(
        name,
        &format!(
            "recovered after {ours:.0} s (bare {bare:.0}, plain live p95 {plain:.0}); to its own p99 of before {own:.0}"
        ),
    );
    for (seed, (bare, ours, ..)) in (1..).zip(&all) {
        let bare = bare.unwrap();
        let ours = ours.unwrap_or(f64::INFINITY);
        assert!(ours <= bare + LATER_BY_S, "seed {seed}: {ours} for {bare}");
    }
}

#[test]
fn a_surge_is_over_as_soon_as_without_hedging() {
    recovers("surge, cancellation", "surge");
}

#[test]
fn a_surge_is_over_as_soon_as_without_hedging_or_cancellation() {
    recovers("surge, no cancellation", "surge-no-cancel");
}
