//! How many agents are armed at a time.

use std::time::Duration;

use hedgerow_protocol::ids::{DependencyName, PoolName};
use hedgerow_protocol::policy::{Policy, PolicyDraft};
use hedgerow_protocol::report::Totals;
use hedgerow_protocol::units::{Budget, Ratio};

use super::agent::route;
use crate::decide::arming::{Armed, arm};
use crate::decide::budget::Pushed;
use crate::decide::{Live, Situation, decide};
use crate::memory::Memory;
use crate::moment::Moment;
use crate::share::Lent;
use crate::window::{Slice, Windows};

fn policy(budget: f64) -> Policy {
    let observing = Policy::observing(DependencyName::new("catalog").unwrap().into());
    let draft = PolicyDraft {
        budget,
        ..observing.into()
    };
    draft.try_into().unwrap()
}

fn armed(share: f64, seconds: u64) -> Armed {
    Armed {
        share: Ratio::clamped(share),
        epoch: Duration::from_secs(seconds),
    }
}

#[test]
fn a_share_is_armed_where_all_tokens_at_once_are_more_than_a_tenth_of_the_calls() {
    for (agents, rate, budget, share, turn) in [
        (100_000, 100_000.0, 0.08, 0.1, 20), // two calls to the first hedge
        (20_000, 20_000.0, 0.08, 0.1, 20),
        (10_000, 50_000.0, 0.08, 0.5, 20), // seven calls, at five a second
        (10_000, 50_000.0, 0.25, 0.5, 10),
        (1_000, 110.0, 0.08, 0.08, 80), // never less than the budget: a hedge a call
        (1_000, 1.0, 0.08, 0.08, 600),
        (1_000, 1_000.0, 0.25, 0.25, 10),
        (20, 50.0, 0.08, 0.5, 40), // ten hedges at once harm nobody
    ] {
        let found = arm(Some(rate), agents, Budget::clamped(budget), None).unwrap();
        let case = format!("{agents} agents, {rate} calls/s at {budget}: {found:?}");
        assert!((found.share.get() - share).abs() < 1e-9, "{case}");
        assert_eq!(found.epoch, Duration::from_secs(turn), "{case}");
    }
    for (agents, rate) in [
        (100_000, 1_000_000.0),
        (100, 1_000.0),
        (10, 0.1), // ten agents are ten hedges
        (3, 20.0),
        (1, 1.0),
        (0, 5.0),
    ] {
        let found = arm(Some(rate), agents, Budget::clamped(0.08), None);
        assert_eq!(found, None, "{agents} agents, {rate} calls/s");
    }
}

#[test]
fn the_share_moves_only_by_more_than_a_tenth_and_not_without_calls() {
    let held = Some(armed(0.1, 20));
    let next = |rate: Option<f64>| arm(rate, 10_000, Budget::clamped(0.08), held);
    assert_eq!(next(Some(10_900.0)), held);
    assert_eq!(next(Some(9_100.0)), held);
    assert_eq!(next(None), held);
    assert_eq!(next(Some(11_200.0)), Some(armed(0.112, 20)));
    // A quieter fleet needs no other share than the budget, but longer turns.
    assert_eq!(next(Some(1_100.0)), Some(armed(0.08, 80)));
    assert_eq!(next(Some(200_000.0)), None);
    // Everybody is armed until that is a tenth too many, and again when a tenth more would be right.
    let rate = Some(95_000.0);
    assert_eq!(arm(rate, 10_000, Budget::clamped(0.08), None), None);
    let most = Some(armed(0.95, 20));
    assert_eq!(
        arm(Some(100_000.0), 10_000, Budget::clamped(0.08), most),
        most
    );
    assert_eq!(
        arm(Some(105_000.0), 10_000, Budget::clamped(0.08), most),
        None
    );
}

#[test]
fn a_second_over_budget_is_one_beyond_what_the_armed_can_send() {
    let mut pushed = Pushed::default();
    pushed.push(Budget::clamped(0.08), 1.0, Some(armed(0.1, 20)));
    let slice = |hedged| Slice {
        reports: 10_000,
        totals: Totals {
            hedged,
            finished: 10_000,
            ..Totals::default()
        },
        ..Slice::default()
    };
    // A thousand are armed, 121 more by the worst luck; together they earn what the budget says.
    assert!(!pushed.exceeded_by(&slice(1_800)));
    assert!(!pushed.exceeded_by(&slice(2_010)));
    assert!(pushed.exceeded_by(&slice(2_020)));
    // Nobody was armed in turns when it was sent: every cap counts.
    pushed.push(Budget::clamped(0.08), 1.0, None);
    assert!(!pushed.exceeded_by(&slice(10_000)));
}

/// What agents are told in thirty seconds of so many calls or a few more.
fn told((agents, calls): (u64, u64), policy: &Policy, lent: Option<&Lent>) -> Vec<Live> {
    let mut windows = Windows::new();
    let (mut memory, mut now) = (Memory::new(Moment::default()), Moment::default());
    let mut told = Vec::new();
    for second in 0..30 {
        now = now.plus(Duration::from_secs(1));
        let calls = calls + calls / 333 * (second % 3);
        let slice = Slice {
            reports: agents,
            totals: Totals {
                started: calls,
                finished: calls,
                ..Totals::default()
            },
            ..Slice::default()
        };
        windows.push(slice, Duration::from_secs(1));
        let situation = Situation {
            now,
            started: Moment::default(),
            policy: Some(policy),
            killed_by: None,
            agents,
            agents_stale: 0,
            replicas_per_agent_max: 4,
            paused: false,
            lent,
            utilisation: None,
        };
        let (decision, next) = decide(&route(), &windows, &situation, &memory);
        memory = next;
        told.push(decision.live);
        assert!(!decision.over_budget);
    }
    told
}

#[test]
fn a_hundred_thousand_agents_at_a_call_a_second_are_armed_a_tenth_at_a_time() {
    let told = told((100_000, 100_000), &policy(0.08), None);
    for live in &told {
        assert_eq!(live.arming, told[0].arming, "no tick draws anew");
        assert!((live.cap - 1.0).abs() < 1e-12);
    }
    assert_eq!(told[0].arming, Some(armed(0.1, 20)));
}

#[test]
fn never_fewer_are_armed_than_can_spend_what_a_pool_lends() {
    let lent = |share: f64| Lent {
        pool: PoolName::new("checkout").unwrap(),
        budget: Budget::clamped(share),
        own: Budget::clamped(0.02),
    };
    for (share, expected) in [(0.1, 0.1), (0.05, 0.05), (0.002, 0.03)] {
        let lent = lent(share);
        let live = told((100_000, 30_000), &policy(0.02), Some(&lent))[29];
        let arming = live.arming.unwrap();
        assert!(
            (arming.share.get() - expected).abs() < 1e-9,
            "{share}: {arming:?}"
        );
        // What an armed agent earns a call: a hedge at most, or what is beyond it is never spent.
        assert!(live.budget.get() <= arming.share.get() + 1e-9);
    }
}
