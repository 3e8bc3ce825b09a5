//! Single rules on figures made for them.

use std::collections::BTreeMap;
use std::time::Duration;

use hedgerow_protocol::ids::DependencyName;
use hedgerow_protocol::policy::Policy;
use hedgerow_protocol::report::Totals;
use hedgerow_protocol::units::Budget;

use super::agent::name;
use crate::decide::budget::{Phi, Pushed, cap};
use crate::decide::errors::push_back;
use crate::decide::latch::Verdict;
use crate::decide::naming::{Floors, judge};
use crate::moment::Moment;
use crate::window::{Attempts, ReplicaSlice, Slice, Windows};

const FLOORS: Floors = Floors {
    crossed: 0.025,
    errors: 0.025,
};

/// Ten seconds, each the same.
fn ten(slice: &Slice) -> Windows {
    let mut windows = Windows::new();
    for _ in 0..10 {
        windows.push(slice.clone(), Duration::from_secs(1));
    }
    windows
}

/// Replicas with a hundred calls a second each, of which so many cross.
fn crossing(crossed: &[u64]) -> Windows {
    let replicas = crossed.iter().enumerate().map(|(replica, crossed)| {
        let slice = ReplicaSlice {
            started: 100,
            crossed: *crossed,
            ..ReplicaSlice::default()
        };
        (name(replica), slice)
    });
    ten(&Slice {
        totals: Totals {
            started: 100 * crossed.len() as u64,
            ..Totals::default()
        },
        replicas: replicas.collect(),
        ..Slice::default()
    })
}

fn named(crossed: &[u64]) -> Vec<String> {
    let names = judge(
        &crossing(crossed),
        &BTreeMap::new(),
        FLOORS,
        Moment::default(),
    );
    names.into_keys().map(String::from).collect()
}

#[test]
fn b30_no_more_than_half_are_named_and_one_alone_never() {
    let nobody: [&str; 0] = [];
    assert_eq!(named(&[90]), nobody);
    assert_eq!(named(&[90, 5]), ["r0"]);
    assert_eq!(named(&[90, 90]), nobody);
    assert_eq!(named(&[90, 60, 5]), ["r0"]);
    assert_eq!(named(&[90, 60, 5, 5]), ["r0", "r1"]);
    assert_eq!(named(&[90, 90, 90, 5]), nobody);
    assert_eq!(named(&[]), nobody);
}

#[test]
fn b32_the_slower_of_two_is_never_the_one_that_is_not_named() {
    let mut before = false;
    for crossed in 0..=100 {
        let now = named(&[crossed, 5, 4, 6, 5]) == ["r0"];
        assert!(
            now || !before,
            "named at {} of 100 but not at {crossed}",
            crossed - 1
        );
        before = now;
    }
    assert!(before);
}

#[test]
fn b28_a_hundred_agents_burst_no_more_than_one() {
    let policy = Policy::observing(DependencyName::new("catalog").unwrap().into());
    let windows = |rate| {
        ten(&Slice {
            totals: Totals {
                started: rate,
                ..Totals::default()
            },
            ..Slice::default()
        })
    };
    for (rate, agents, expected) in [
        (600, 5, 4.8),      // half a second's worth of 120 calls/s at 8 %
        (200, 5, 3.0),      // 15 tokens are within a tenth of 200
        (100, 5, 2.0),      // of 100 no more than 10 are
        (40, 5, 1.0),       // one at least
        (1_000, 100, 1.0),  // 10 calls/s each
        (2_000, 100, 2.0),  // 20 calls/s each
        (10_000, 100, 4.0), // 100 calls/s each
        (0, 5, 1.0),
        (600, 0, 1.0),
    ] {
        let cap = cap(&windows(rate), agents, policy.budget(), None);
        assert!(
            (cap - expected).abs() < 1e-9,
            "{rate} calls/s, {agents} agents: {cap}"
        );
    }
}

#[test]
fn a_second_over_budget_is_one_beyond_what_budget_and_caps_allow() {
    let mut pushed = Pushed::default();
    let slice = |hedged, reports| Slice {
        reports,
        totals: Totals {
            hedged,
            finished: 600,
            ..Totals::default()
        },
        ..Slice::default()
    };
    assert!(
        !pushed.exceeded_by(&slice(500, 5)),
        "nothing was pushed, nothing can be judged"
    );
    pushed.push(Budget::clamped(0.08), 3.0, None);
    assert!(!pushed.exceeded_by(&slice(63, 5)));
    assert!(pushed.exceeded_by(&slice(64, 5)));
    // A report that came late brings its bucket's cap along.
    assert!(!pushed.exceeded_by(&slice(64, 6)));
    // A smaller budget takes a moment to arrive everywhere.
    pushed.push(Budget::clamped(0.02), 1.0, None);
    assert!(!pushed.exceeded_by(&slice(63, 5)));
    pushed.push(Budget::clamped(0.02), 1.0, None);
    pushed.push(Budget::clamped(0.02), 1.0, None);
    assert!(pushed.exceeded_by(&slice(63, 5)));
}

#[test]
fn c14_push_back_over_one_percent_is_over_and_only_its_end_is_well() {
    let windows = |pushed_back| {
        ten(&Slice {
            totals: Totals {
                primary_finished: 1_000,
                push_back: pushed_back,
                ..Totals::default()
            },
            ..Slice::default()
        })
    };
    assert!(matches!(push_back(&windows(11)), Verdict::Over(_)));
    assert_eq!(push_back(&windows(10)), Verdict::Between);
    assert_eq!(push_back(&windows(2)), Verdict::Between);
    assert!(matches!(push_back(&windows(0)), Verdict::Well(_)));
    assert_eq!(push_back(&Windows::new()), Verdict::Unknown);
}

#[test]
fn phi_reads_the_shared_share_and_chance_does_not_cut_the_budget() {
    let ms = Duration::from_millis;
    let attempts = |slow: u64, of: u64| {
        let mut attempts = Attempts::default();
        for i in 0..of {
            attempts.done.record(ms(if i < slow { 300 } else { 10 }));
        }
        attempts.curve()
    };
    let primary = attempts(50, 1_000);
    let phi = |slow, of| Phi::measure(&primary, &attempts(slow, of), of, ms(25));
    assert_eq!(phi(5, 99), None, "too few hedges");
    for (slow, value, lent) in [
        (5, 0.0, 1.0),
        (8, 0.03, 1.0),
        (70, 0.68, 0.41),
        (100, 1.0, 0.2),
    ] {
        let phi = phi(slow, 100).unwrap();
        assert!((phi.value - value).abs() < 0.01, "{slow}: {phi:?}");
        assert!((phi.lent() - lent).abs() < 0.02, "{slow}: {}", phi.lent());
    }
}
