//! Runs: they repeat, and the plainest of them come out right.

use hedgerow_sim::outcome::{Outcome, PhaseName};
use hedgerow_sim::{Client, Scenario, Variation, run};

fn ran(name: &str, variation: &Variation) -> Outcome {
    run(&Scenario::find(name).unwrap(), variation, |_| ()).unwrap()
}

fn smaller(seed: u64) -> Variation {
    Variation {
        calls_per_s: Some(300.0),
        ..Variation::seed(seed)
    }
}

fn rate(outcome: &Outcome, phase: PhaseName) -> f64 {
    outcome.phase(phase).unwrap().hedge_rate.unwrap()
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_another() {
    let seconds = |seed| Variation {
        seconds: Some(40),
        ..smaller(seed)
    };
    let once = ran("healthy", &seconds(1));
    assert_eq!(once, ran("healthy", &seconds(1)));
    assert_ne!(once.seconds, ran("healthy", &seconds(2)).seconds);
}

#[test]
fn the_same_calls_are_made_whoever_makes_them() {
    let calls = |client| {
        let outcome = ran("one-slow", &smaller(3).client(client));
        let truth = |it: &hedgerow_sim::Second| (it.second, it.calls);
        outcome.seconds.iter().map(truth).collect::<Vec<_>>()
    };
    let bare = calls(Client::Bare);
    assert_eq!(calls(Client::Hedgerow), bare);
    assert_eq!(calls(Client::PlainP95), bare);
}

#[test]
fn healthy_hedges_at_about_the_target_and_callers_wait_less() {
    let outcome = ran("healthy", &smaller(4));
    let hedged = rate(&outcome, PhaseName::Before);
    assert!((0.04..0.055).contains(&hedged), "{hedged}");
    assert_eq!(outcome.summary.offs, 0, "{:?}", outcome.changes);
    assert_eq!(outcome.summary.reports_refused, 0);
    let bare = ran("healthy", &smaller(4).client(Client::Bare));
    let p99 = |it: &Outcome| it.phase(PhaseName::Before).unwrap().waited.p99_ms.unwrap();
    assert!(p99(&outcome) < 0.5 * p99(&bare));
}

#[test]
fn a_live_p95_of_what_answered_hedges_more_than_it_is_asked_to() {
    let plain = ran("healthy", &smaller(5).client(Client::PlainP95));
    let hedged = rate(&plain, PhaseName::Before);
    assert!(hedged > 0.06, "{hedged}");
}

#[test]
fn all_slow_goes_off_and_on_again_once() {
    let outcome = ran("all-slow", &smaller(6));
    let it = &outcome.summary;
    assert_eq!((it.offs, it.ons), (1, 1), "{:?}", outcome.changes);
    assert!(it.off_after_s.unwrap() <= 10.0, "{it:?}");
    assert!(it.on_after_s.unwrap() <= 30.0, "{it:?}");
}

#[test]
fn p02_without_a_controller_agents_fall_back_and_come_back() {
    let outcome = ran("controller-away", &smaller(7));
    let at = |second: usize| &outcome.seconds[second - 1];
    assert_eq!((at(59).agents_attached, at(59).agents_fallback), (5, 0));
    // The lease holds for 30 s.
    assert_eq!((at(85).agents_attached, at(85).agents_fallback), (0, 0));
    assert_eq!(at(95).agents_fallback, 5);
    let hedges = |from, to| {
        let rows: Vec<_> = outcome.between(from, to).collect();
        let hedged: u64 = rows.iter().map(|it| it.hedged).sum();
        hedged as f64 / rows.iter().map(|it| it.calls).sum::<u64>() as f64
    };
    // A lease and thirty seconds later: on their own, at 2 % at most.
    let alone = hedges(125, 180);
    assert!((0.005..0.021).contains(&alone), "{alone}");
    assert_eq!((at(190).agents_attached, at(190).agents_fallback), (5, 0));
    let back = hedges(200, 260);
    assert!((0.035..0.06).contains(&back), "{back}");
    assert_eq!(outcome.summary.offs, 0, "{:?}", outcome.changes);
}

#[test]
fn p13_a_restarted_fleet_has_empty_buckets_and_counts_anew() {
    let outcome = ran("agent-restart", &smaller(8));
    assert_eq!(outcome.summary.reports_refused, 0);
    assert_eq!(outcome.summary.seconds_over_budget, 0);
    let first: u64 = outcome.between(60, 61).map(|it| it.hedged).sum();
    assert!(first < 30, "{first}");
}
