use hedgerow_protocol::ids::{Epoch, ModeSequence, Revision, RouteKey, Tick};
use hedgerow_protocol::units::AttemptLimit;
use proptest::prelude::*;

use super::*;

const S: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

fn directive(stamp: (u64, u64, u64), tick: u64, mode: Mode) -> Directive {
    let threshold = Threshold::new(50 * MS).unwrap();
    let budget = Budget::new(0.08).unwrap();
    Directive {
        route: RouteKey::new("catalog", "get").unwrap(),
        stamp: Stamp {
            epoch: Epoch(stamp.0),
            revision: Revision(stamp.1),
            mode_sequence: ModeSequence(stamp.2),
        },
        mode,
        live: LiveValues::new(Tick(tick), Some(threshold), Ratio::ONE, budget, 10.0).unwrap(),
        standing: Standing {
            percentile: Quantile::new(0.95).unwrap(),
            holdout: Ratio::clamped(0.01),
            error_limit: Ratio::clamped(0.05),
            threshold_min: None,
            threshold_max: None,
            lease: 30 * S,
            attempts: AttemptLimit::default(),
            hedge_on_error: false,
        },
        probation: vec![],
        start_credit: 0.0,
    }
}

fn heard_at(now: Duration) -> LinkClock {
    let mut link = LinkClock::default();
    link.heard(now);
    link
}

fn mode_at(route: &RouteMode, now: Duration, own: OwnFigures) -> InForce {
    route.in_force(now, &heard_at(Duration::ZERO), own)
}

#[test]
fn b14_a_new_route_observes_and_has_no_budget() {
    let in_force = mode_at(&RouteMode::default(), S, OwnFigures::default());
    assert_eq!(in_force.mode, Mode::Observing);
    assert_eq!(
        (in_force.budget, in_force.cap, in_force.threshold),
        (Budget::ZERO, 0.0, None)
    );
}

#[test]
fn p05_an_older_stamp_is_refused_and_the_held_one_stays() {
    let mut route = RouteMode::default();
    route.apply(directive((2, 7, 1), 5, Mode::On)).unwrap();
    for older in [(2, 7, 0), (2, 5, 9), (1, 99, 99)] {
        let offered = directive(older, 99, Mode::Off(OffReason::KillSwitch));
        let refused = route.apply(offered).unwrap_err();
        assert!(
            matches!(refused, DirectiveRefused::Older { .. }),
            "{refused}"
        );
    }
    assert_eq!(mode_at(&route, S, OwnFigures::default()).mode, Mode::On);
}

#[test]
fn b49_two_controllers_alternating_never_take_it_back() {
    let mut route = RouteMode::default();
    for _ in 0..5 {
        let _ = route.apply(directive((1, 7, 1), 7, Mode::On));
        let _ = route.apply(directive((1, 5, 1), 9, Mode::Observing));
        assert_eq!(route.directive().unwrap().stamp.revision, Revision(7));
    }
}

#[test]
fn b52_a_new_epoch_is_taken_whatever_its_revisions_say() {
    let mut route = RouteMode::default();
    route.apply(directive((1, 7, 9), 500, Mode::On)).unwrap();
    route
        .apply(directive((2, 0, 0), 1, Mode::Observing))
        .unwrap();
    assert_eq!(route.directive().unwrap().live.tick, Tick(1));
    assert_eq!(
        mode_at(&route, S, OwnFigures::default()).mode,
        Mode::Observing
    );
}

#[test]
fn p05_a_lower_tick_is_passed_over() {
    let mut route = RouteMode::default();
    route.apply(directive((1, 1, 1), 9, Mode::On)).unwrap();
    let mut late = directive((1, 1, 1), 8, Mode::On);
    late.live.budget = Budget::new(0.2).unwrap();
    route.apply(late).unwrap();
    assert_eq!(route.directive().unwrap().live.budget.get(), 0.08);
    // A new mode whose live values were overtaken: the mode counts, the newer values stay.
    route
        .apply(directive((1, 1, 2), 7, Mode::Off(OffReason::Errors)))
        .unwrap();
    let held = route.directive().unwrap();
    assert_eq!(
        (held.mode, held.live.tick),
        (Mode::Off(OffReason::Errors), Tick(9))
    );
}

#[test]
fn p05_under_the_stamp_held_only_live_values_and_probation_are_new() {
    let mut route = RouteMode::default();
    let off = Mode::Off(OffReason::KillSwitch);
    route.apply(directive((1, 1, 1), 1, off)).unwrap();
    let mut other = directive((1, 1, 1), 2, Mode::On);
    other.live.budget = Budget::new(0.2).unwrap();
    other.standing.holdout = Ratio::ONE;
    other.probation = vec!["a:1".parse().unwrap()];
    route.apply(other.clone()).unwrap();
    let held = route.directive().unwrap();
    assert_eq!(
        (held.mode, held.standing.holdout),
        (off, Ratio::clamped(0.01))
    );
    assert_eq!(
        (held.live, held.probation.clone()),
        (other.live, other.probation)
    );
    // Overtaken: neither its live values nor its probation.
    route.apply(directive((1, 1, 2), 1, Mode::On)).unwrap();
    let held = route.directive().unwrap();
    assert_eq!(
        (held.mode, held.live.tick, held.probation.len()),
        (Mode::On, Tick(2), 1)
    );
}

#[test]
fn p05_a_set_that_names_a_route_again_takes_it_back_whatever_its_tick() {
    let mut route = RouteMode::default();
    route.apply(directive((1, 1, 1), 9, Mode::On)).unwrap();
    route.let_go();
    route.apply(directive((1, 1, 1), 8, Mode::On)).unwrap();
    assert_eq!(mode_at(&route, S, OwnFigures::default()).mode, Mode::On);
}

#[test]
fn no_threshold_means_keep_the_one_held() {
    let mut route = RouteMode::default();
    route.apply(directive((1, 1, 1), 1, Mode::On)).unwrap();
    let mut without = directive((1, 1, 1), 2, Mode::On);
    without.live.threshold = None;
    route.apply(without).unwrap();
    let threshold = mode_at(&route, S, OwnFigures::default()).threshold;
    assert_eq!(threshold, Threshold::new(50 * MS).ok());
}

#[test]
fn p03_an_invalid_directive_is_refused_whole() {
    let mut route = RouteMode::default();
    route.apply(directive((1, 1, 1), 1, Mode::On)).unwrap();
    let mut bad = directive((1, 2, 1), 2, Mode::Observing);
    bad.standing.lease = Duration::ZERO;
    assert!(
        route
            .apply(bad)
            .unwrap_err()
            .to_string()
            .starts_with("lease:")
    );
    let mut bad = directive((1, 2, 1), 2, Mode::Observing);
    bad.live.cap = f64::NAN;
    assert!(
        route
            .apply(bad)
            .unwrap_err()
            .to_string()
            .starts_with("live.cap:")
    );
    assert_eq!(route.directive().unwrap().stamp.revision, Revision(1));
}

#[test]
fn p01_while_the_lease_holds_all_is_as_directed() {
    let mut route = RouteMode::default();
    route.apply(directive((1, 1, 1), 1, Mode::On)).unwrap();
    let fresh = mode_at(&route, Duration::ZERO, OwnFigures::default());
    assert_eq!(mode_at(&route, 30 * S, OwnFigures::default()), fresh);
}

#[test]
fn p02_after_the_lease_the_budget_decays_to_two_percent_and_never_grows() {
    let own = OwnFigures {
        threshold: Threshold::new(70 * MS).ok(),
        ..OwnFigures::default()
    };
    let mut route = RouteMode::default();
    route.apply(directive((1, 1, 1), 1, Mode::On)).unwrap();
    let at = |seconds: u32| mode_at(&route, seconds * S, own);
    assert_eq!(at(30).threshold, Threshold::new(50 * MS).ok());
    assert!((at(45).budget.get() - 0.05).abs() < 1e-9, "half of the way");
    for seconds in [60, 61, 3600, 360_000] {
        assert_eq!(at(seconds).budget.get(), 0.02);
        assert_eq!(at(seconds).mode, Mode::On);
        assert_eq!(at(seconds).threshold, Threshold::new(70 * MS).ok());
    }
    let steps: Vec<_> = (0..120).map(|s| at(s).budget.get()).collect();
    assert!(steps.windows(2).all(|pair| pair[1] <= pair[0]));

    let mut small = directive((1, 2, 1), 2, Mode::On);
    small.live.budget = Budget::new(0.01).unwrap();
    route.apply(small).unwrap();
    assert_eq!(
        mode_at(&route, 3600 * S, own).budget.get(),
        0.01,
        "never above the pushed one"
    );
}

#[test]
fn p02_an_off_outlives_the_lease_and_probing_without_a_controller_is_off() {
    let mut route = RouteMode::default();
    route
        .apply(directive((1, 1, 1), 1, Mode::Off(OffReason::KillSwitch)))
        .unwrap();
    for hours in [0, 1, 1000] {
        let in_force = mode_at(&route, hours * 3600 * S, OwnFigures::default());
        assert_eq!(in_force.mode, Mode::Off(OffReason::KillSwitch));
    }
    let shared = OffReason::SharedSlowdown;
    route
        .apply(directive((1, 1, 2), 2, Mode::Probing(shared)))
        .unwrap();
    assert_eq!(
        mode_at(&route, S, OwnFigures::default()).mode,
        Mode::Probing(shared)
    );
    assert_eq!(
        mode_at(&route, 31 * S, OwnFigures::default()).mode,
        Mode::Off(shared)
    );
}

#[test]
fn the_stricter_of_directive_and_own_off_holds() {
    let own = OwnFigures {
        off: Some(OffReason::Errors),
        ..OwnFigures::default()
    };
    for (directed, expected) in [
        (Mode::On, Mode::Off(OffReason::Errors)),
        (
            Mode::Probing(OffReason::SharedSlowdown),
            Mode::Off(OffReason::Errors),
        ),
        (
            Mode::Off(OffReason::KillSwitch),
            Mode::Off(OffReason::KillSwitch),
        ),
        (Mode::Observing, Mode::Observing),
    ] {
        let mut route = RouteMode::default();
        route.apply(directive((1, 1, 1), 1, directed)).unwrap();
        let in_force = mode_at(&route, S, own);
        assert_eq!(in_force.mode, expected);
        assert_eq!(in_force.own_off, Some(OffReason::Errors));
    }
}

#[test]
fn the_link_is_live_then_stale_then_fallback() {
    let link = heard_at(100 * S);
    for (at, expected) in [
        (100, LinkState::Live),
        (120, LinkState::Live),
        (121, LinkState::Stale),
        (130, LinkState::Stale),
        (131, LinkState::Fallback),
    ] {
        assert_eq!(link.state(at * S, 30 * S), expected, "{at}");
    }
    assert_eq!(LinkClock::default().state(S, 30 * S), LinkState::Fallback);
}

#[test]
fn a_welcome_says_how_long_what_is_held_stays_good() {
    let mut route = RouteMode::default();
    route.apply(directive((1, 1, 1), 1, Mode::On)).unwrap();
    route.welcomed(300 * S);
    assert_eq!(
        mode_at(&route, 200 * S, OwnFigures::default()).budget.get(),
        0.08
    );
    route.apply(directive((1, 1, 1), 2, Mode::On)).unwrap();
    assert_eq!(
        mode_at(&route, 200 * S, OwnFigures::default()).budget.get(),
        0.02
    );
}

#[test]
fn a_route_the_sets_no_longer_name_runs_out_while_the_controller_talks_on() {
    let mut route = RouteMode::default();
    route.apply(directive((1, 1, 1), 1, Mode::On)).unwrap();
    route.delivered(false, 10 * S);
    let at = |route: &RouteMode, seconds: u32| {
        let link = heard_at(seconds * S);
        route
            .in_force(seconds * S, &link, OwnFigures::default())
            .budget
            .get()
    };
    assert_eq!(at(&route, 40), 0.08);
    assert_eq!(at(&route, 70), 0.02);
    route.delivered(true, 71 * S);
    assert_eq!(at(&route, 72), 0.08);
}

#[test]
fn b62_letting_go_is_observing_but_for_what_is_off() {
    for (directed, expected) in [
        (Mode::On, Mode::Observing),
        (
            Mode::Off(OffReason::KillSwitch),
            Mode::Off(OffReason::KillSwitch),
        ),
        (
            Mode::Probing(OffReason::PushBack),
            Mode::Off(OffReason::PushBack),
        ),
    ] {
        let mut route = RouteMode::default();
        route.apply(directive((1, 2, 1), 1, directed)).unwrap();
        route.let_go();
        assert_eq!(mode_at(&route, S, OwnFigures::default()).mode, expected);
        assert!(
            route.apply(directive((1, 1, 1), 2, Mode::On)).is_err(),
            "the order stays"
        );
        route.apply(directive((1, 2, 2), 2, Mode::On)).unwrap();
        assert_eq!(mode_at(&route, S, OwnFigures::default()).mode, Mode::On);
    }
}

#[test]
fn a_service_may_direct_itself_where_there_is_no_controller() {
    let draft = hedgerow_protocol::policy::PolicyDraft {
        intent: Intent::Hedge,
        threshold_min_ms: Some(20.0),
        ..Policy::observing("catalog".parse().unwrap()).into()
    };
    let route = RouteMode::own(Policy::try_from(draft).unwrap());
    let own = OwnFigures {
        threshold: Threshold::new(5 * MS).ok(),
        calls_per_second: 1000.0,
        ..OwnFigures::default()
    };
    let in_force = route.in_force(3600 * S, &LinkClock::default(), own);
    assert_eq!(in_force.mode, Mode::On);
    assert_eq!(in_force.threshold, Threshold::new(20 * MS).ok());
    assert_eq!((in_force.budget.get(), in_force.cap), (0.08, 40.0));
}

fn policy(intent: Intent, budget: f64) -> Policy {
    let observing = Policy::observing("catalog".parse().unwrap());
    Policy::try_from(hedgerow_protocol::policy::PolicyDraft {
        intent,
        budget,
        ..observing.into()
    })
    .unwrap()
}

#[test]
fn the_files_word_goes_before_the_codes_and_a_directive_before_both() {
    let budget = |route: &RouteMode| mode_at(route, S, OwnFigures::default()).budget.get();
    let file = policy(Intent::Hedge, 0.2);
    let mut route = RouteMode::own(policy(Intent::Hedge, 0.1));
    assert_eq!(budget(&route), 0.1);
    route.set_file_policy(Some(&file));
    assert_eq!(budget(&route), 0.2);
    route.set_file_policy(None);
    assert_eq!(budget(&route), 0.1);

    let mut route = RouteMode::default();
    route.set_file_policy(Some(&file));
    route.set_file_policy(None);
    assert_eq!(
        mode_at(&route, S, OwnFigures::default()).mode,
        Mode::Observing
    );
    route
        .apply(directive((1, 1, 1), 1, Mode::Off(OffReason::KillSwitch)))
        .unwrap();
    route.set_file_policy(Some(&file));
    let off = Mode::Off(OffReason::KillSwitch);
    assert_eq!(mode_at(&route, S, OwnFigures::default()).mode, off);
}

#[test]
fn after_the_end_nothing_is_hedged_and_what_was_off_stays_off() {
    let own = OwnFigures {
        threshold: Threshold::new(5 * MS).ok(),
        ..OwnFigures::default()
    };
    let off = Mode::Off(OffReason::KillSwitch);
    for (mode, after) in [
        (Mode::On, Mode::Observing),
        (Mode::Observing, Mode::Observing),
        (off, off),
        (Mode::Probing(OffReason::KillSwitch), off),
    ] {
        let mut route = RouteMode::default();
        route.apply(directive((1, 1, 1), 1, mode)).unwrap();
        route.close();
        let in_force = mode_at(&route, S, own);
        assert_eq!((in_force.mode, in_force.threshold), (after, None));
        assert_eq!((in_force.budget, in_force.cap), (Budget::ZERO, 0.0));
        assert_eq!(in_force.stamp, directive((1, 1, 1), 1, mode).stamp);
        // Whatever is still on its way.
        route.apply(directive((1, 1, 2), 2, Mode::On)).unwrap();
        assert_eq!(mode_at(&route, S, own).mode, Mode::Observing);
    }
}

#[test]
fn who_decides_about_probation() {
    let link = heard_at(Duration::ZERO);
    let rule = |route: &RouteMode, now| match route.probation_rule(now, &link) {
        ProbationRule::None => "none".to_owned(),
        ProbationRule::Own => "own".to_owned(),
        ProbationRule::Directed(names) => format!("directed {}", names.len()),
        ProbationRule::OwnAmong(names) => format!("own among {}", names.len()),
    };
    assert_eq!(rule(&RouteMode::default(), S), "none");
    assert_eq!(rule(&RouteMode::own(policy(Intent::Hedge, 0.1)), S), "own");
    assert_eq!(
        rule(&RouteMode::own(policy(Intent::Observe, 0.1)), S),
        "none"
    );
    assert_eq!(rule(&RouteMode::own(policy(Intent::Off, 0.1)), S), "none");
    let mut route = RouteMode::default();
    let mut offered = directive((1, 1, 1), 1, Mode::On);
    offered.probation = vec!["a:1".parse().unwrap()];
    route.apply(offered).unwrap();
    assert_eq!(rule(&route, 30 * S), "directed 1");
    assert_eq!(rule(&route, 31 * S), "own among 1", "its lease is over");
    route.let_go();
    assert_eq!(rule(&route, 31 * S), "none");
}

proptest! {
    /// P5: whatever comes in whatever order, the stamp held never goes back, nor the tick within
    /// an epoch.
    #[test]
    fn p05_no_sequence_of_directives_goes_back(
        offers in prop::collection::vec((0u64..3, 0u64..4, 0u64..4, 0u64..6), 1..60),
    ) {
        let mut route = RouteMode::default();
        let mut before: Option<Directive> = None;
        for (epoch, revision, sequence, tick) in offers {
            let _ = route.apply(directive((epoch, revision, sequence), tick, Mode::On));
            let now = route.directive().cloned();
            if let (Some(before), Some(now)) = (&before, &now) {
                prop_assert!(now.stamp >= before.stamp);
                if now.stamp.epoch == before.stamp.epoch {
                    prop_assert!(now.live.tick >= before.live.tick);
                }
            }
            before = now;
        }
    }

    /// P8: whatever is pushed, for however long, the budget in force is within the hard limit.
    #[test]
    fn p08_the_budget_in_force_is_never_above_a_quarter(
        budget in 0.0..10.0f64,
        seconds in 0u32..100_000,
    ) {
        let mut offered = directive((1, 1, 1), 1, Mode::On);
        offered.live.budget = Budget::clamped(budget);
        let mut route = RouteMode::default();
        route.apply(offered).unwrap();
        let in_force = mode_at(&route, seconds * S, OwnFigures::default());
        prop_assert!((0.0..=0.25).contains(&in_force.budget.get()));
    }
}
