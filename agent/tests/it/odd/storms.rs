//! Everything at once, everything failing, everything changing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hedgerow_agent::protocol::directive::{Mode, OffReason};
use hedgerow_agent::{Attempt, Call, Replicas, Verdict};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::{MS, route};

/// Ten thousand calls a second for so many seconds; the attempts sent in each.
async fn storm(
    route: &hedgerow_agent::Route,
    seconds: usize,
    classify: impl Fn(&Result<(), ()>) -> Verdict + Copy + Send + 'static,
) -> Vec<u64> {
    let sent = Arc::new(AtomicU64::new(0));
    let mut attempts_in = Vec::new();
    for _ in 0..seconds {
        let before = sent.load(Ordering::Relaxed);
        for _ in 0..100 {
            let mut calls = JoinSet::new();
            for _ in 0..100 {
                let (route, sent) = (route.clone(), sent.clone());
                calls.spawn(async move {
                    let attempts = move |_: Attempt| {
                        sent.fetch_add(1, Ordering::Relaxed);
                        async {
                            sleep(5 * MS).await;
                            Err::<(), ()>(())
                        }
                    };
                    let call = Call::idempotent();
                    assert!(route.call_with(call, classify, attempts).await.is_err());
                });
            }
            let until = Instant::now() + 10 * MS;
            calls.join_all().await;
            tokio::time::sleep_until(until).await;
        }
        attempts_in.push(sent.load(Ordering::Relaxed) - before);
    }
    attempts_in
}

#[tokio::test(start_paused = true)]
async fn x54_everything_fails_at_ten_thousand_calls_a_second() {
    let (_agent, route, _) = route(|policy| {
        policy.hedge_on_error = true;
        policy.attempts = 3;
        policy.budget = 0.1;
        policy.threshold_max_ms = Some(2.0);
    })
    .await;
    let attempts = storm(&route, 6, |_| Verdict::Retryable).await;
    for (second, attempts) in attempts.iter().enumerate() {
        // The bucket's cap: half a second's worth of hedges.
        assert!(*attempts <= 11_500 + 50, "second {second}: {attempts}");
        assert!(
            second < 4 || *attempts == 10_000,
            "second {second}: {attempts}"
        );
    }
    let now = route.snapshot();
    assert_eq!(now.effective.mode, Mode::Off(OffReason::Errors));
    assert_eq!(now.attempts_in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn x55_a_storm_of_push_back_sends_no_second_copy_of_anything() {
    let (_agent, route, _) = route(|policy| {
        policy.hedge_on_error = true;
        policy.attempts = 3;
    })
    .await;
    let attempts = storm(&route, 5, |_| Verdict::PushBack).await;
    assert!(
        attempts.iter().all(|attempts| *attempts == 10_000),
        "{attempts:?}"
    );
    let now = route.snapshot();
    assert_eq!(now.effective.mode, Mode::Off(OffReason::PushBack));
    assert_eq!(now.totals.push_back, 50_000);
}

#[tokio::test(start_paused = true)]
async fn x56_three_attempts_and_two_replicas_are_two_attempts() {
    let (_agent, route, replicas) = route(|policy| {
        policy.attempts = 3;
        policy.hedge_on_error = true;
        policy.error_limit = 0.5;
        policy.threshold_max_ms = Some(5.0);
    })
    .await;
    replicas.replace([("a:1", None), ("b:1", None)]).unwrap();
    let most = Arc::new(AtomicU64::new(0));
    for nth in 0..4_000_u32 {
        let (sent, most) = (Arc::new(AtomicU64::new(0)), most.clone());
        let attempts = move |_: Attempt| {
            let sent = sent.fetch_add(1, Ordering::Relaxed) + 1;
            most.fetch_max(sent, Ordering::Relaxed);
            async move {
                if nth % 10 == 0 {
                    sleep(40 * MS).await;
                }
                sleep(2 * MS).await;
                if nth % 7 == 0 { Err(()) } else { Ok(()) }
            }
        };
        let _ = route.call(Call::idempotent(), attempts).await;
    }
    assert_eq!(most.load(Ordering::Relaxed), 2);
    assert!(route.snapshot().totals.hedges() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x57_lists_zones_and_pins_that_change_all_the_time_under_load() {
    let (_agent, route, replicas) = route(|policy| policy.threshold_max_ms = Some(2.0)).await;
    let stop = Arc::new(AtomicBool::new(false));
    let changing = std::thread::spawn({
        let (stop, replicas) = (stop.clone(), replicas.clone());
        move || {
            let names: Vec<_> = (0..256).map(|nth| format!("r{nth}:1")).collect();
            let mut nth = 0;
            while !stop.load(Ordering::Relaxed) {
                nth += 1;
                let zone = ["eu-1", "eu-2", "eu-3"][nth % 3];
                let some = &names[nth % 200..(nth % 200 + 1 + nth * 7 % 56)];
                let some = if nth % 50 == 0 { &names } else { some };
                let list = some.iter().map(|name| (name.as_str(), Some(zone)));
                replicas.replace(list).unwrap();
                std::thread::sleep(MS);
            }
        }
    });
    let began = std::time::Instant::now();
    let mut calls = 0_u64;
    while began.elapsed() < Duration::from_secs(3) {
        let running: JoinSet<_> = (0..100_u32)
            .map(|nth| {
                let route = route.clone();
                let user = calls + u64::from(nth);
                async move {
                    let attempts = move |attempt: Attempt| async move {
                        sleep(if nth % 9 == 0 { 8 * MS } else { MS }).await;
                        Ok::<_, ()>(attempt.replica().clone())
                    };
                    let call = Call::idempotent();
                    let call = if nth % 3 == 0 {
                        call.pinned(format!("user-{user}").parse().unwrap())
                    } else {
                        call
                    };
                    route.call(call, attempts).await.unwrap();
                }
            })
            .collect();
        running.join_all().await;
        calls += 100;
    }
    stop.store(true, Ordering::Relaxed);
    changing.join().unwrap();
    sleep(100 * MS).await;
    let now = route.snapshot();
    assert_eq!((now.totals.started, now.totals.finished), (calls, calls));
    assert_eq!(now.attempts_in_flight, 0);
    assert!(now.effective.replicas <= 256);
}

#[tokio::test(start_paused = true)]
async fn x58_a_million_names_are_not_kept() {
    let (agent, _, _) = route(|_| {}).await;
    let route = agent.route("search", "get").build().unwrap();
    for user in 0..20_000_u32 {
        let call = Call::idempotent().pinned(format!("user-{user}").parse().unwrap());
        route.call(call, async |_| Ok::<_, ()>(())).await.unwrap();
    }
    let now = route.snapshot();
    assert_eq!(now.totals.finished, 20_000);
    let text = format!("{now:?}").len() + serde_json::to_string(&now).unwrap().len();
    assert!(text < 100_000, "{text} bytes");
    let _ = Replicas::new([("a:1", None)]).unwrap();
}
