//! What people are told of, and what they are left in peace for.

use hedgerow_sim::{Scenario, Variation, run};

/// The rules that fired while what goes wrong lasted for some seven minutes.
fn told(name: &str) -> Vec<&'static str> {
    let mut scenario = Scenario::find(name).unwrap();
    scenario.seconds = 500;
    for fault in &mut scenario.faults {
        fault.to_s = Some(500.0);
    }
    let variation = Variation {
        calls_per_s: Some(500.0),
        ..Variation::seed(1)
    };
    let outcome = run(&scenario, &variation, |_| ()).unwrap();
    outcome.alerts.iter().map(|it| it.rule).collect()
}

#[test]
fn hedges_that_win_too_little_are_told_where_slowness_is_shared_and_only_there() {
    assert!(told("third-shared").contains(&"LowWinRate"));
    assert_eq!(told("independent-stalls"), [""; 0]);
}

#[test]
fn agents_that_lose_their_controller_for_two_minutes_are_told_once() {
    let scenario = Scenario::find("controller-away").unwrap();
    let outcome = run(&scenario, &Variation::seed(1), |_| ()).unwrap();
    let rules: Vec<_> = outcome.alerts.iter().map(|it| it.rule).collect();
    assert_eq!(rules, ["AgentsStale"]);
    let alert = &outcome.alerts[0];
    let (from, to) = outcome.trouble_s.unwrap();
    assert!(
        alert.from_s > from && alert.to_s.is_some_and(|it| it > to),
        "{alert:?}"
    );
}
