//! Hours of stored minutes under another policy.

use std::time::Duration;

use hedgerow_protocol::directive::OffReason;
use hedgerow_protocol::ids::DependencyName;
use hedgerow_protocol::latency::{SparseHistogram, bucket_of};
use hedgerow_protocol::policy::{Intent, Policy, PolicyDraft};

use crate::minute::{Known, Minute};
use crate::moment::Moment;
use crate::whatif::{Percentile, replay};

/// `counts`: milliseconds and how many.
fn sparse(counts: &[(u64, u64)]) -> SparseHistogram {
    let pairs = counts
        .iter()
        .map(|&(ms, count)| (bucket_of(Duration::from_millis(ms)) as u16, count));
    SparseHistogram::try_from_pairs(pairs).unwrap()
}

/// 940 of 10 to 12 ms, 60 stalls of 200.
const USUAL: &[(u64, u64)] = &[(10, 500), (12, 440), (200, 60)];

fn minute(number: u64, done: &[(u64, u64)], known: Known) -> Minute {
    let done = sparse(done);
    Minute {
        at: Moment::from_millis(number * 60_000),
        span: Duration::from_mins(1),
        calls: done.count(),
        hedged: done.count() / 50,
        done,
        censored: SparseHistogram::default(),
        known,
    }
}

fn hour() -> Vec<Minute> {
    (1..=60)
        .map(|number| minute(number, USUAL, Known::default()))
        .collect()
}

fn policy(change: impl FnOnce(&mut PolicyDraft)) -> Policy {
    let mut draft: PolicyDraft =
        Policy::observing(DependencyName::new("catalog").unwrap().into()).into();
    draft.intent = Intent::Hedge;
    draft.holdout = 0.0;
    // Of what a call takes in the body nothing is to be hedged here.
    draft.percentile = 0.94;
    change(&mut draft);
    Policy::try_from(draft).unwrap()
}

fn p(replayed: &[Option<Duration>; 5], percentile: Percentile) -> f64 {
    let place = Percentile::SHOWN.iter().position(|&it| it == percentile);
    replayed[place.unwrap()].unwrap().as_secs_f64() * 1e3
}

#[test]
fn an_hour_of_stalls_is_hedged_as_the_formula_says() {
    let replayed = replay(&hour(), &policy(|_| ()));
    assert_eq!(replayed.calls, 60_000);
    // In the first minute nothing is known yet.
    assert_eq!(replayed.rows[0].threshold, None);
    assert_eq!(replayed.rows[0].hedge_rate, 0.0);
    let d = replayed.rows[1].threshold.unwrap().as_secs_f64() * 1e3;
    assert!((11.8..12.3).contains(&d), "{d}");
    let rate = replayed.rows[1].hedge_rate;
    assert!((rate - 0.06).abs() < 1e-6, "{rate}");
    assert!((replayed.hedge_rate - 0.06 * 59.0 / 60.0).abs() < 1e-6);
    assert!((replayed.hedge_rate_then - 0.02).abs() < 1e-9);
    // 6 % stall alone; both copies in 0.36 %, and in a minute without threshold 0.1 % of all.
    assert!((p(&replayed.unhedged, Percentile::P99) / 200.0 - 1.0).abs() < 0.03);
    let hedged = p(&replayed.hedged, Percentile::P99);
    assert!((22.0..26.0).contains(&hedged), "{hedged}");
    assert!((p(&replayed.hedged, Percentile::P99_9) / 200.0 - 1.0).abs() < 0.1);
}

#[test]
fn a_smaller_budget_buys_less_and_never_costs_more_than_it_says() {
    let whole = replay(&hour(), &policy(|_| ()));
    let half = replay(&hour(), &policy(|draft| draft.budget = 0.03));
    assert!(half.rows.iter().all(|row| row.hedge_rate <= 0.03 + 1e-12));
    assert!(p(&half.hedged, Percentile::P99) > p(&whole.hedged, Percentile::P99));
}

#[test]
fn what_was_shared_then_is_shared_in_the_replay() {
    let shared: Vec<_> = (1..=60)
        .map(|number| {
            let phi = Some(0.9);
            minute(
                number,
                USUAL,
                Known {
                    phi,
                    ..Known::default()
                },
            )
        })
        .collect();
    let replayed = replay(&shared, &policy(|_| ()));
    assert!(replayed.hedge_rate < 0.01, "{}", replayed.hedge_rate);
    assert!(p(&replayed.hedged, Percentile::P99) > 190.0);
}

#[test]
fn errors_switch_off_by_the_policys_own_limit_and_shared_slowness_as_it_was_found() {
    let mut minutes = hour();
    for minute in &mut minutes[10..15] {
        minute.known.errors = Some(0.04);
    }
    for minute in &mut minutes[30..33] {
        minute.known.off = Some(OffReason::SharedSlowdown);
    }
    let off = |limit| {
        let replayed = replay(&minutes, &policy(|draft| draft.error_limit = limit));
        let offs = replayed.rows.iter().filter(|row| row.off.is_some());
        assert_eq!(offs.clone().count(), replayed.minutes_off);
        assert!(offs.clone().all(|row| row.hedge_rate == 0.0));
        offs.filter(|row| row.off == Some(OffReason::Errors))
            .count()
    };
    assert_eq!(off(0.05), 0);
    // 4 % is over 3 %; in the minutes after it nothing is known of errors, so it stays off.
    assert!(off(0.03) >= 5);
}

#[test]
fn observing_or_off_changes_nothing_for_anybody() {
    for intent in [Intent::Observe, Intent::Off] {
        let replayed = replay(&hour(), &policy(|draft| draft.intent = intent));
        assert_eq!(replayed.hedge_rate, 0.0);
        assert_eq!(replayed.hedged, replayed.unhedged);
    }
}

#[test]
fn b46_nothing_stored_or_too_little_is_no_value_and_no_hedge() {
    let nothing = replay(&[], &policy(|_| ()));
    assert_eq!((nothing.calls, nothing.hedge_rate), (0, 0.0));
    assert_eq!(nothing.hedged, [None; 5]);
    let few: Vec<_> = (1..=3)
        .map(|number| minute(number, &[(10, 50)], Known::default()))
        .collect();
    let replayed = replay(&few, &policy(|_| ()));
    assert!(replayed.rows.iter().all(|row| row.threshold.is_none()));
}

#[test]
fn a_percentile_that_depends_on_stopped_calls_is_not_known() {
    let mut minutes = hour();
    for minute in &mut minutes {
        minute.done = sparse(&[(10, 940)]);
        minute.censored = sparse(&[(20, 60)]);
    }
    let replayed = replay(&minutes, &policy(|_| ()));
    let [p50, .., p99_9] = replayed.unhedged;
    assert!(p50.is_some());
    assert_eq!(p99_9, None);
}

#[test]
fn a_goal_is_replayed_by_the_best_delay_and_share_of_the_minute_before() {
    // 6 % stall, and 3 % may be hedged: the percentile hedges half of what it crosses, too late to
    // bring p95 down; the goal does, with what it is allowed.
    let goal = |goal| {
        replay(
            &hour(),
            &policy(|draft| {
                draft.budget = 0.03;
                draft.percentile = 0.95;
                draft.goal = goal;
            }),
        )
    };
    let (followed, sought) = (goal(None), goal(Some(0.95)));
    assert!(p(&followed.unhedged, Percentile::P95) > 190.0);
    let reached = p(&sought.hedged, Percentile::P95);
    assert!(reached < 40.0, "{reached}");
    assert!(sought.rows.iter().all(|row| row.hedge_rate <= 0.03 + 1e-9));
    assert!(sought.hedge_rate > 0.0);
    // What cannot be reached is left alone.
    let out_of_reach = goal(Some(0.999));
    assert_eq!(out_of_reach.hedge_rate, 0.0);
    assert_eq!(out_of_reach.hedged, out_of_reach.unhedged);
}

#[test]
fn x72_counts_that_no_minute_has_are_a_figure_and_no_overflow() {
    let mut minutes = hour();
    for minute in &mut minutes {
        (minute.calls, minute.hedged) = (i64::MAX as u64, i64::MAX as u64);
        minute.span = Duration::MAX;
        minute.known = Known {
            errors: Some(-1e308),
            phi: Some(1e308),
            off: None,
        };
    }
    let replayed = replay(&minutes, &policy(|_| ()));
    assert_eq!(replayed.calls, u64::MAX);
    assert!(replayed.hedge_rate.is_finite() && replayed.hedge_rate_then.is_finite());
}

#[test]
fn x73_minutes_from_before_a_gap_of_hours_hold_nothing_up() {
    let slow = |number| {
        minute(
            number,
            &[(100, 500), (120, 440), (2_000, 60)],
            Known::default(),
        )
    };
    let mut minutes: Vec<_> = (1..=5).map(slow).collect();
    minutes.extend((301..=310).map(|number| minute(number, USUAL, Known::default())));
    let replayed = replay(&minutes, &policy(|draft| draft.percentile = 0.92));
    // The first one after it is hedged by what was known before: there is nothing else.
    assert!(replayed.rows[5].threshold.unwrap() > Duration::from_millis(100));
    for row in &replayed.rows[6..] {
        assert!(
            row.threshold.unwrap() < Duration::from_millis(20),
            "{row:?}"
        );
    }
}

#[test]
fn x74_a_goal_whose_one_delay_cannot_reach_it_hedges_nothing() {
    let replayed = replay(
        &hour(),
        &policy(|draft| {
            draft.goal = Some(0.99);
            draft.budget = 0.03;
            (draft.threshold_min_ms, draft.threshold_max_ms) = (Some(11.0), Some(11.0));
        }),
    );
    assert_eq!(replayed.hedge_rate, 0.0);
}
