//! A service under load for minutes: rates, budgets, thresholds.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use hedgerow_protocol::directive::Mode;
use hedgerow_protocol::ids::ReplicaName;
use hedgerow_protocol::report::Totals;
use hedgerow_protocol::units::{Ratio, Threshold};
use tokio::time::{Instant, sleep, sleep_until};

use super::rig::{MS, Rig, hedging_policy};
use crate::attempt::Attempt;
use crate::chance;
use crate::eligibility::Call;
use crate::replicas::Replicas;
use crate::route::Route;

/// How long a replica takes, by its name and the time since the load began.
type Latency = Arc<dyn Fn(&ReplicaName, Duration) -> Duration + Send + Sync>;

/// Counters at the end of each second of an open load of `rate` calls a second.
async fn offer(route: &Route, rate: u32, seconds: u32, latency: Latency) -> Vec<Totals> {
    let began = Instant::now();
    let mut totals = vec![];
    let mut calls = FuturesUnordered::new();
    for i in 0..rate * seconds {
        let at = began + Duration::from_secs(1) * i / rate;
        // Calls under way go on while the next one is waited for.
        loop {
            tokio::select! {
                biased;
                Some(()) = calls.next(), if !calls.is_empty() => {}
                () = sleep_until(at) => break,
            }
        }
        if i % rate == 0 {
            totals.push(route.snapshot().totals);
        }
        let latency = latency.clone();
        let since = began.elapsed();
        calls.push(async move {
            let attempts = |attempt: Attempt| {
                let takes = latency(attempt.replica(), since);
                async move {
                    let _permit = attempt;
                    sleep(takes).await;
                    Ok::<_, ()>(())
                }
            };
            let _ = route.call(Call::idempotent(), attempts).await;
        });
    }
    while calls.next().await.is_some() {}
    totals.push(route.snapshot().totals);
    totals
}

/// 5 to 15 ms.
fn usual() -> Duration {
    Duration::from_micros(5_000 + chance::below(10_000) as u64)
}

fn assert_within_budget(totals: &[Totals], budget: f64, cap: f64) {
    for (second, pair) in totals.windows(2).enumerate() {
        let grown = pair[1].since(&pair[0]).unwrap();
        let allowed = budget * grown.finished as f64 + cap;
        assert!(
            grown.hedged as f64 <= allowed + 1e-6,
            "second {second}: {} hedges, {allowed} allowed",
            grown.hedged
        );
    }
}

/// The threshold is fixed, as if the controller had not noticed yet: only the budget holds.
async fn everything_becomes_slower(slower: fn(Duration) -> Duration) {
    let mut rig = Rig::hedging().await;
    rig.direct(|d| {
        d.live.threshold = Some(Threshold::new(50 * MS).unwrap());
        d.live.cap = 10.0;
    });
    let latency = move |_: &ReplicaName, since: Duration| {
        if since < Duration::from_secs(5) {
            usual()
        } else {
            slower(usual() * 2)
        }
    };
    let totals = offer(&rig.route, 500, 15, Arc::new(latency)).await;
    assert_within_budget(&totals, 0.08, 10.0);
    let grown = totals.last().unwrap().since(&totals[6]).unwrap();
    assert!(
        grown.crossed as f64 > 0.9 * grown.started as f64,
        "all of it crosses"
    );
    assert!(grown.hedged > 0, "the budget is used, and not exceeded");
    assert_eq!(rig.report().over_budget_seconds, 0);
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn b12_all_replicas_slower_by_200_ms_stay_within_the_budget_in_every_second() {
    everything_becomes_slower(|takes| takes + 200 * MS).await;
}

#[tokio::test(start_paused = true)]
async fn c08_everything_slower_at_once_stays_within_the_budget_in_every_second() {
    everything_becomes_slower(|takes| takes * 3 + 50 * MS).await;
}

#[tokio::test(start_paused = true)]
async fn c07_ten_minutes_with_cancelled_losers_keep_the_rate_at_its_target() {
    let policy = hedging_policy();
    let target = policy.target_rate();
    let mut rig = Rig::with(|route| route.hedge_standalone(policy)).await;
    let latency = |_: &ReplicaName, _: Duration| {
        if chance::below(20) == 0 {
            usual() * 10
        } else {
            usual()
        }
    };
    let totals = offer(&rig.route, 200, 600, Arc::new(latency)).await;
    // The first minute is left out: it has to learn first.
    let grown = totals.last().unwrap().since(&totals[60]).unwrap();
    let rate = grown.hedged as f64 / grown.started as f64;
    assert!(
        (rate - target).abs() <= 0.005,
        "{rate} for a target of {target}"
    );
    assert_eq!(rig.report().over_budget_seconds, 0);
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn b46_nothing_is_hedged_before_there_are_enough_calls() {
    let policy = hedging_policy();
    let rig = Rig::with(|route| route.hedge_standalone(policy)).await;
    let latency = |_: &ReplicaName, _: Duration| {
        if chance::below(10) == 0 {
            usual() * 20
        } else {
            usual()
        }
    };
    let totals = offer(&rig.route, 50, 20, Arc::new(latency)).await;
    let early = totals.iter().take_while(|t| t.started < 150);
    assert!(early.clone().count() >= 3);
    assert!(early.clone().all(|t| t.hedged == 0 && t.crossed == 0));
    assert!(totals.last().unwrap().hedged > 0);
}

/// Calls a closed loop of `workers` gets answered in `seconds`.
async fn throughput(route: &Route, workers: u32, seconds: u64, black_hole: Option<&str>) -> u64 {
    let before = route.snapshot().totals.finished;
    let until = Instant::now() + Duration::from_secs(seconds);
    let work = (0..workers).map(|_| async {
        while Instant::now() < until {
            let attempts = |attempt: Attempt| {
                let lost = black_hole == Some(attempt.replica().as_str());
                async move {
                    let _permit = attempt;
                    if lost {
                        std::future::pending::<()>().await;
                    }
                    sleep(usual()).await;
                    Ok::<_, ()>(())
                }
            };
            let _ = route.call(Call::idempotent(), attempts).await;
        }
    });
    futures::future::join_all(work).await;
    route.snapshot().totals.finished - before
}

#[tokio::test(start_paused = true)]
async fn b08_one_black_hole_of_three_once_it_is_on_probation() {
    let replicas = Replicas::new([("a:1", None), ("b:1", None), ("c:1", None)]).unwrap();
    let mut rig = Rig::with(|route| route.replicas(replicas)).await;
    rig.direct(|d| d.live.threshold = Some(Threshold::new(20 * MS).unwrap()));
    let before = throughput(&rig.route, 20, 20, None).await;
    rig.direct(|d| d.probation = vec![ReplicaName::new("c:1").unwrap()]);
    let during = throughput(&rig.route, 20, 20, Some("c:1")).await;
    assert!(during as f64 >= 0.9 * before as f64, "{during} of {before}");
    assert!(rig.totals().probation_skipped > 0);
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn b09_a_slow_replica_is_seen_apart_from_the_others_and_switches_nothing_off() {
    let replicas = Replicas::new([("a:1", None), ("b:1", None), ("c:1", None)]).unwrap();
    let mut rig = Rig::with(|route| route.replicas(replicas)).await;
    rig.direct(|d| {
        d.live.threshold = Some(Threshold::new(20 * MS).unwrap());
        d.live.cap = 10.0;
    });
    let latency = |replica: &ReplicaName, since: Duration| {
        let slow = replica.as_str() == "c:1" && since > Duration::from_secs(10);
        if slow { usual() * 10 } else { usual() }
    };
    let totals = offer(&rig.route, 300, 30, Arc::new(latency)).await;
    assert_within_budget(&totals, 0.08, 10.0);
    let report = rig.report();
    assert_eq!(
        (report.effective.mode, report.effective.own_off),
        (Mode::On, false)
    );
    for replica in &report.replicas {
        let share = replica.crossed as f64 / replica.started as f64;
        let (done, stopped) = (
            replica.primary.done.count(),
            replica.primary.censored.count(),
        );
        assert_eq!(
            done + stopped,
            replica.started,
            "each primary once, on its own clock"
        );
        if replica.replica.as_str() == "c:1" {
            assert!(share > 0.4, "{share}");
        } else {
            assert!(share < 0.01, "{share}");
            assert_eq!(
                stopped, 0,
                "hedges for another replica's calls leave no trace here"
            );
        }
    }
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn failing_replicas_on_probation_are_not_the_dependency_failing() {
    let names = ["a:1", "b:1", "c:1", "d:1", "e:1"];
    let replicas = Replicas::new(names.map(|name| (name, None))).unwrap();
    let mut rig = Rig::with(|route| route.replicas(replicas)).await;
    rig.direct(|d| {
        d.probation = ["d:1", "e:1"].map(|name| name.parse().unwrap()).to_vec();
        d.standing.error_limit = Ratio::clamped(0.02);
    });
    for _ in 0..4000 {
        let attempts = |attempt: Attempt| {
            let fails = attempt.replica().as_str() >= "d:1";
            async move {
                sleep(3 * MS).await;
                if fails { Err(()) } else { Ok(()) }
            }
        };
        let _ = rig.route.call(Call::idempotent(), attempts).await;
    }
    let report = rig.report();
    assert!(report.totals.primary_errors > 100, "{:?}", report.totals);
    assert_eq!(
        (report.effective.mode, report.effective.own_off),
        (Mode::On, false)
    );
}

/// The agent's own threshold before and half a minute after one of three replicas is as `bad` says;
/// and the counters in between.
async fn one_of_three_becomes(bad: fn() -> Duration) -> ([Duration; 2], Totals) {
    let policy = hedging_policy();
    let replicas = Replicas::new([("a:1", None), ("b:1", None), ("c:1", None)]).unwrap();
    let mut rig = Rig::with(|route| {
        let route = route.replicas(replicas).deadline(500 * MS);
        route.hedge_standalone(policy)
    })
    .await;
    let own = || rig.route.snapshot().effective.threshold.unwrap().get();
    let usual_for_all = |_: &ReplicaName, _: Duration| usual();
    offer(&rig.route, 300, 20, Arc::new(usual_for_all)).await;
    let (healthy, before) = (own(), rig.totals());
    let latency = move |replica: &ReplicaName, _: Duration| {
        if replica.as_str() == "c:1" {
            bad()
        } else {
            usual()
        }
    };
    let mut most = healthy;
    for _ in 0..6 {
        offer(&rig.route, 300, 5, Arc::new(latency)).await;
        most = most.max(own());
    }
    let grown = rig.totals().since(&before).unwrap();
    let report = rig.report();
    assert_eq!(
        (report.effective.mode, report.effective.own_off),
        (Mode::On, false)
    );
    assert_eq!(report.over_budget_seconds, 0);
    rig.assert_at_rest().await;
    ([healthy, most], grown)
}

#[tokio::test(start_paused = true)]
async fn b08_one_black_hole_of_three_leaves_the_agents_own_threshold_within_twice() {
    let ([healthy, most], _) = one_of_three_becomes(|| Duration::from_hours(1)).await;
    assert!(most <= 2 * healthy, "{healthy:?} became {most:?}");
}

#[tokio::test(start_paused = true)]
async fn b09_a_slow_replica_does_not_move_the_agents_own_threshold() {
    let ([healthy, most], grown) = one_of_three_becomes(|| usual() * 10).await;
    assert!(most <= healthy * 3 / 2, "{healthy:?} became {most:?}");
    assert!(grown.won * 2 > grown.hedged, "{grown:?}");
}

#[tokio::test(start_paused = true)]
async fn b10_no_replica_gets_more_than_its_share_and_the_budget() {
    let names = ["a:1", "b:1", "c:1", "d:1"];
    let replicas = Replicas::new(names.map(|name| (name, None))).unwrap();
    let mut rig = Rig::with(|route| route.replicas(replicas)).await;
    rig.direct(|d| d.live.threshold = Some(Threshold::new(14 * MS).unwrap()));
    let latency = |replica: &ReplicaName, _: Duration| {
        if replica.as_str() == "a:1" {
            usual() * 21 / 20
        } else {
            usual()
        }
    };
    offer(&rig.route, 300, 60, Arc::new(latency)).await;
    let report = rig.report();
    let hedges: u64 = report.replicas.iter().map(|replica| replica.hedged).sum();
    assert!(hedges > 0 && hedges == report.totals.hedged, "{hedges}");
    let share = report.totals.started as f64 / 4.0;
    for replica in &report.replicas {
        let got = (replica.started + replica.hedged) as f64;
        assert!(
            got <= share * 1.08 * 1.03,
            "{}: {got} of {share}",
            replica.replica
        );
    }
    assert!(report.totals.hedged as f64 <= 0.08 * report.totals.finished as f64 + 40.0);
}
