//! Causes that both copies of a call share: off soon, on again soon after, and on where most hedges
//! still pay.

use hedgerow_sim::outcome::PhaseName;
use hedgerow_sim::{Outcome, Scenario, Variation};

use crate::runs::{PROOF, SEEDS, Spread, line, median, offs, outcomes, policy, shipped, timed};

/// Off: the median at 1,000 calls/s, the worst there, and the median at 50.
const OFF_MEDIAN_S: f64 = 5.0;
const OFF_WORST_S: f64 = 10.0;
const OFF_FEW_CALLS_S: f64 = 25.0;
const ON_WITHIN_S: f64 = 30.0;

fn at(calls_per_s: f64) -> Variation {
    Variation {
        calls_per_s: Some(calls_per_s),
        ..Variation::default()
    }
}

struct Switched {
    off: Spread,
    on: Spread,
    /// Runs with one off and one on.
    once: usize,
}

fn switched(name: &str, scenario: &Scenario, calls_per_s: f64) -> Switched {
    let runs = outcomes(scenario, &at(calls_per_s));
    let summaries = || runs.iter().map(|run| &run.summary);
    let off = Spread::of_any(summaries().map(|it| it.off_after_s));
    let on = Spread::of_any(summaries().map(|it| it.on_after_s));
    let once = summaries().filter(|it| it.offs == 1 && it.ons == 1).count();
    let part = |of: fn(&Outcome) -> usize| Spread::of(runs.iter().map(|it| of(it) as f64));
    line(
        &format!("{name}, {calls_per_s} calls/s"),
        &format!(
            "off after {off:.0} s, on {on:.0} s after the end, once each in {once} of {SEEDS} (offs {:.0}, ons {:.0})",
            part(|it| it.summary.offs),
            part(|it| it.summary.ons)
        ),
    );
    Switched { off, on, once }
}

fn goes_off_and_on(name: &str, scenario: &Scenario) {
    let it = switched(name, scenario, 1000.0);
    if PROOF {
        assert!(it.off.median <= OFF_MEDIAN_S, "{}", it.off);
    }
    assert!(it.off.most <= OFF_WORST_S, "{}", it.off);
    assert!(it.on.most <= ON_WITHIN_S, "{}", it.on);
    assert_eq!(it.once, SEEDS as usize);
}

/// With few calls only the off has a bound; how soon it comes back is printed.
fn goes_off_with_few_calls(name: &str, scenario: &Scenario) {
    let it = switched(name, scenario, 50.0);
    if PROOF {
        assert!(it.off.median <= OFF_FEW_CALLS_S, "{}", it.off);
        switched(name, scenario, 200.0);
    }
    assert!(it.off.most.is_finite(), "{}", it.off);
}

#[test]
fn everything_slow_goes_off_and_on_once() {
    goes_off_and_on("everything 5x slower", &shipped("all-slow"));
}

#[test]
fn everything_slow_goes_off_with_few_calls() {
    goes_off_with_few_calls("everything 5x slower", &shipped("all-slow"));
}

#[test]
fn expensive_queries_go_off_and_on_once() {
    goes_off_and_on("3 % expensive", &shipped("expensive-queries"));
}

#[test]
fn expensive_queries_go_off_with_few_calls() {
    let scenario = timed(shipped("expensive-queries"), 60, 130, 240);
    goes_off_with_few_calls("3 % expensive", &scenario);
}

#[test]
fn a_third_shared_stays_on_with_less_budget() {
    let scenario = shipped("third-shared");
    let full = policy(&scenario).budget().get();
    let (from, to) = scenario.trouble().unwrap();
    let rates: &[f64] = if PROOF { &[1000.0, 200.0] } else { &[1000.0] };
    for calls_per_s in rates.iter().copied() {
        let runs = outcomes(&scenario, &at(calls_per_s));
        let lent = |run: &Outcome| {
            let rows = run.between(from as u64 + 20, to as u64);
            median(rows.filter_map(|row| Some(row.decided.as_ref()?.budget))) / full
        };
        let lent = Spread::of(runs.iter().map(lent));
        let off_in = runs.iter().filter(|run| run.summary.offs > 0).count();
        line(
            &format!("a third shared, {calls_per_s} calls/s"),
            &format!("off in {off_in} of {SEEDS} runs, budget {lent:.2} of the policy's"),
        );
        if calls_per_s >= 1000.0 {
            assert_eq!(off_in, 0);
            assert!(lent.most < 0.9, "{lent:.3}");
        }
    }
}

/// Pauses shared by all, and nothing else to hedge for. Where there are 2 % of independent stalls
/// beside, most hedges answer first: what is reached there is printed.
#[test]
fn shared_pauses_are_caught_or_do_little_harm() {
    let with_stalls = shipped("shared-pauses");
    let mut alone = with_stalls.clone();
    alone.service.stall_share = 0.0;
    for (name, scenario, is_alone) in [
        ("pauses shared by all", alone, true),
        ("the same, 2 % independent stalls", with_stalls, false),
    ] {
        let runs = outcomes(&scenario, &Variation::default());
        let during = |run: &Outcome, of: fn(u64, u64) -> u64| {
            let phase = run.phase(PhaseName::During).unwrap();
            100.0 * of(phase.hedged, phase.won) as f64 / phase.calls as f64
        };
        let harm = Spread::of(runs.iter().map(|it| during(it, |hedged, _| hedged)));
        let lost = Spread::of(runs.iter().map(|it| during(it, |hedged, won| hedged - won)));
        let caught = runs.iter().filter(|run| run.summary.offs > 0).count();
        line(
            name,
            &format!(
                "caught in {caught} of {SEEDS} runs, {harm:.1} % hedged meanwhile, {lost:.1} % in vain, offs {}",
                offs(&runs)
            ),
        );
        let nine_of_ten = 10 * caught >= 9 * SEEDS as usize;
        let holds = !is_alone || !PROOF || nine_of_ten || harm.most < 3.0;
        assert!(holds, "{caught}, {harm}");
    }
}
