//! What the agent knows, and what it must not make of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::ids::ReplicaName;
use hedgerow_protocol::majority::Count;
use hedgerow_protocol::units::{AttemptLimit, Ratio, Threshold};
use proptest::prelude::*;
use tokio::time::{Instant, sleep, timeout};
use tracing::span;

use super::rig::{D, Does, MS, Rig, hedging_policy};
use crate::attempt::{Attempt, AttemptKind};
use crate::eligibility::{Call, Verdict};
use crate::gate::{Further, Gate};
use crate::host::Host as _;
use crate::local::{Ended, OwnSwitch};
use crate::naming::named;
use crate::replicas::Replicas;
use crate::route::Route;

const S: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn b20_callers_that_leave_never_switch_hedging_off() {
    let mut rig = Rig::hedging().await;
    for n in 0..1000_u32 {
        rig.earn(20);
        let after = if n % 2 == 0 { D / 2 } else { D * 3 / 2 };
        let call = rig.call(Does::Fails(5000, Verdict::Retryable), Does::Never);
        assert!(timeout(after, call).await.is_err());
    }
    let t = rig.totals();
    assert_eq!((t.started, t.abandoned, t.failed), (1000, 1000, 0));
    assert_eq!(
        (t.crossed, t.primary_finished, t.hedge_finished),
        (500, 0, 0)
    );
    let effective = rig.report().effective;
    assert_eq!((effective.mode, effective.own_off), (Mode::On, false));
    rig.assert_at_rest().await;
}

/// Calls of one operation, each after the other.
async fn calls(route: &Route, count: u32, takes: fn(u32) -> Duration) {
    for n in 0..count {
        let attempts = move |attempt: Attempt| async move {
            let _permit = attempt;
            sleep(takes(n)).await;
            Ok::<_, ()>(())
        };
        route.call(Call::idempotent(), attempts).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn b24_each_operation_of_a_dependency_has_a_threshold_of_its_own() {
    let rig = Rig::with(|route| route.hedge_standalone(hedging_policy())).await;
    let other = rig.agent.route("catalog", "search").build().unwrap();
    calls(&rig.route, 1500, |n| (5 + n % 5) * MS).await;
    calls(&other, 1500, |n| (200 + n % 50) * MS).await;
    let threshold = |route: &Route| route.snapshot().effective.threshold.unwrap().get();
    assert!(threshold(&rig.route) < 15 * MS && threshold(&other) > 200 * MS);
    assert_eq!(rig.route.snapshot().cost_classes(), None);
}

#[tokio::test(start_paused = true)]
async fn b24_two_cost_classes_under_one_name_are_seen_in_the_snapshot() {
    let rig = Rig::with(|route| route).await;
    let mixed = |n| {
        if n % 4 == 0 {
            (200 + n % 50) * MS
        } else {
            (5 + n % 5) * MS
        }
    };
    calls(&rig.route, 1500, mixed).await;
    let found = rig.route.snapshot().cost_classes().unwrap();
    assert!((0.22..0.28).contains(&found.expensive_share), "{found:?}");
    assert!(
        found.cheap < 15 * MS && found.expensive > 150 * MS,
        "{found:?}"
    );
}

/// Counts what is logged.
struct Lines(Arc<AtomicU64>);

impl tracing::Subscriber for Lines {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        if event.metadata().target().starts_with("hedgerow") {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test(start_paused = true)]
async fn b26_extreme_latencies_are_counted_and_no_log_storm() {
    let lines = Arc::new(AtomicU64::new(0));
    let _quiet = tracing::subscriber::set_default(Lines(lines.clone()));
    let mut rig = Rig::with(|route| route.deadline(Duration::from_hours(2))).await;
    rig.direct(|_| {});
    let before = lines.load(Ordering::Relaxed);
    for takes in [Duration::ZERO, 10_001 * MS, Duration::from_hours(1)] {
        for _ in 0..50 {
            let attempts = move |attempt: Attempt| async move {
                let _permit = attempt;
                // At one leap, not by the seconds. Of the controller no word is heard meanwhile.
                tokio::time::advance(takes).await;
                Ok::<_, ()>(())
            };
            rig.route.call(Call::idempotent(), attempts).await.unwrap();
            rig.heard();
        }
    }
    assert_eq!(rig.route.snapshot().treated.count(), 150);
    let said = lines.load(Ordering::Relaxed) - before;
    assert!(said <= 3, "{said} lines for 150 calls");
    rig.assert_at_rest().await;
}

fn name(n: usize) -> ReplicaName {
    ReplicaName::new(&format!("r{n}:1")).unwrap()
}

/// Who is named for these shares of events, of so many calls each in one second.
fn named_of(events: &[u64], calls: u64) -> Vec<ReplicaName> {
    let names: Vec<_> = (0..events.len()).map(name).collect();
    let second = names.iter().zip(events.iter().map(|events| Count {
        events: *events,
        calls,
    }));
    named([second], 0.025)
}

#[test]
fn b30_of_n_replicas_at_most_half_are_named_and_one_alone_never() {
    for bad in [
        vec![1000],
        vec![1000; 2],
        vec![1000; 3],
        vec![1000, 1000, 0],
    ] {
        let found = named_of(&bad, 1000);
        assert!(found.len() <= bad.len() / 2, "{bad:?}: {found:?}");
    }
    assert_eq!(named_of(&[1000], 1000), [], "alone it is the dependency");
    assert_eq!(named_of(&[1000, 10], 1000), [name(0)]);
    assert_eq!(named_of(&[1000, 10, 10], 1000), [name(0)]);
    assert_eq!(named_of(&[1000, 1000, 10], 1000).len(), 1, "no second one");
}

proptest! {
    /// Monotone: a replica that gets slower, all else equal, is never less named for it.
    #[test]
    fn b32_a_slower_replica_is_never_less_named(
        events in prop::collection::vec(0u64..300, 2..8),
        more in 0u64..300,
        calls in 300u64..2000,
    ) {
        let rank = |events: &[u64]| named_of(events, calls).iter().position(|it| *it == name(0));
        let mut slower = events.clone();
        slower[0] = (slower[0] + more).min(calls);
        if let Some(before) = rank(&events) {
            let after = rank(&slower);
            prop_assert!(after.is_some_and(|after| after <= before), "{before} became {after:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn b32_a_slower_replica_gets_no_more_hedges_for_it() {
    let names = ["a:1", "b:1", "c:1", "d:1"].map(|name| (name, None));
    let replicas = Replicas::new(names).unwrap();
    let mut rig = Rig::with(|route| route.replicas(replicas)).await;
    rig.direct(|d| {
        d.live.threshold = Some(Threshold::new(30 * MS).unwrap());
        d.live.budget = hedgerow_protocol::units::Budget::clamped(0.25);
    });
    let route = &rig.route;
    let workers = (0..20_u32).map(|worker| async move {
        for n in 0..300_u32 {
            let stalls = (n * 7 + worker) % 10 == 0;
            let attempts = move |attempt: Attempt| async move {
                let slow = attempt.replica().as_str() == "d:1";
                let stalls = stalls && attempt.kind() == AttemptKind::Primary;
                sleep(
                    MS * if stalls {
                        200
                    } else if slow {
                        25
                    } else {
                        10
                    },
                )
                .await;
                Ok::<_, ()>(())
            };
            route.call(Call::idempotent(), attempts).await.unwrap();
        }
    });
    futures::future::join_all(workers).await;
    let hedged = |report: &hedgerow_protocol::report::ReplicaReport| report.hedged;
    let report = rig.report();
    let slow = report
        .replicas
        .iter()
        .find(|it| it.replica.as_str() == "d:1")
        .unwrap();
    let least = report
        .replicas
        .iter()
        .filter(|it| it.replica != slow.replica)
        .map(hedged)
        .min();
    assert!(
        hedged(slow) <= least.unwrap() * 11 / 10 && report.totals.hedged > 100,
        "{least:?}"
    );
}

fn ended(errors: u64) -> Ended {
    Ended {
        primaries: 1000,
        attempts: 1000,
        errors,
        ..Ended::default()
    }
}

#[test]
fn b35_off_and_on_in_the_same_tick_is_one_state_with_its_time() {
    let (limit, mut switch) = (Ratio::clamped(0.05), OwnSwitch::default());
    switch.tick(S, ended(600), limit);
    switch.tick(2 * S, ended(600), limit);
    assert_eq!(switch.off(), Some(OffReason::Errors));
    // What would lift it comes at the same moment, and however often within the least stay.
    for at in [2 * S, 2 * S, 3 * S, 11 * S] {
        switch.tick(at, ended(0), limit);
        assert_eq!(switch.off(), Some(OffReason::Errors), "{at:?}");
    }
    switch.tick(12 * S, ended(0), limit);
    assert_eq!(switch.off(), None);
    // And what would switch it off again needs its two seconds anew.
    switch.tick(12 * S, ended(600), limit);
    assert_eq!(switch.off(), None);
}

#[test]
fn b35_a_reading_is_of_one_directive_never_of_two() {
    let gate = Gate::default();
    let three = Further {
        attempts: AttemptLimit::new(3).unwrap(),
        hedge_on_error: true,
    };
    let set = |on: bool| {
        if on {
            gate.set(true, true, Ratio::ONE, Ratio::ZERO, three);
        } else {
            gate.set(false, true, Ratio::ZERO, Ratio::ONE, Further::default());
        }
    };
    set(false);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..100_000 {
                set(n % 2 == 0);
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            let seen = gate.read();
            let rest = (
                seen.probability(),
                seen.holdout(),
                seen.attempts(),
                seen.hedge_on_error(),
            );
            let expected = if seen.open() {
                (1 << 24, 0, 3, true)
            } else {
                (0, 1 << 24, 2, false)
            };
            assert_eq!(rest, expected);
        }
    });
}

#[tokio::test(start_paused = true)]
async fn b42_without_calls_the_last_good_threshold_stays_and_nothing_is_made_up() {
    let mut rig = Rig::with(|route| route.hedge_standalone(hedging_policy())).await;
    calls(&rig.route, 1000, |n| (5 + n % 5) * MS).await;
    // Until the last call has left every window.
    sleep(70 * S).await;
    let known = rig.report().effective.threshold;
    assert!(known.is_some());
    sleep(Duration::from_mins(10)).await;
    let report = rig.report();
    assert_eq!(report.effective.threshold, known);
    assert!(report.primary.done.is_empty() && report.treated.is_empty());
    assert_eq!(report.effective.mode, Mode::On);
    // One that never had a call has none, and that is not 0.
    let never = rig.agent.route("search", "query").build().unwrap();
    sleep(5 * S).await;
    assert_eq!(never.snapshot().effective.threshold, None);
    assert_eq!(never.snapshot().treated.quantile(0.5), None);
}

#[tokio::test(start_paused = true)]
async fn c04_a_clock_that_seems_to_go_backwards_loses_no_count_and_panics_nowhere() {
    let mut rig = Rig::hedging().await;
    let shared = rig.agent.keeper.shared.clone();
    sleep(20 * S).await;
    for n in 0..200_u64 {
        let back = Duration::from_millis(n * 137 % 15_000);
        let now = Instant::now().checked_sub(back).unwrap();
        shared.heard(now);
        shared.tick(now);
        let (outcome, _) = rig.call(Does::Answers(3), Does::Never).await;
        assert_eq!(outcome, Ok(AttemptKind::Primary));
    }
    let report = rig.report();
    assert_eq!((report.totals.finished, report.treated.count()), (200, 200));
    assert_eq!(report.primary.done.count(), 200);
    let effective = report.effective;
    assert_eq!(
        (effective.mode, effective.threshold.map(Threshold::get)),
        (Mode::On, Some(D))
    );
    rig.assert_at_rest().await;
}

/// The wall clock is for people: the agent reads it where a report says what it shows, and nowhere
/// else, so that no decision can hang on it.
#[test]
fn c19_the_wall_clock_is_read_in_one_place() {
    fn sources(folder: &std::path::Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if path.file_name().is_none_or(|name| name != "tests") {
                    sources(&path, found);
                }
            } else if std::fs::read_to_string(&path)
                .unwrap()
                .contains("SystemTime")
            {
                found.push(path.file_name().unwrap().to_string_lossy().into_owned());
            }
        }
    }
    let mut found = vec![];
    sources(
        &std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut found,
    );
    assert_eq!(found, ["shared.rs"]);
}
