//! Threads and runtimes that come and go.

use std::time::Duration;

use hedgerow_agent::protocol::directive::Mode;
use hedgerow_agent::{Attempt, Call, Route};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinSet, LocalSet, spawn_blocking};
use tokio::time::sleep;

use super::{MS, route};
use crate::paused;

fn small() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// One in four is slow, and its hedge, too, in one of those.
async fn call(route: &Route, nth: u32) -> Result<(), ()> {
    let attempts = move |attempt: Attempt| async move {
        let primary = attempt.kind().as_str() == "primary";
        let slow = nth.is_multiple_of(4) && (primary || nth.is_multiple_of(16));
        sleep(if slow { 60 * MS } else { MS }).await;
        Ok::<_, ()>(())
    };
    let answer = route.call(Call::idempotent(), attempts).await;
    answer.map_err(drop)
}

async fn until_nothing_is_left(route: &Route) {
    let began = std::time::Instant::now();
    loop {
        let now = route.snapshot();
        if now.attempts_in_flight == 0 && now.effective.watched_losers == 0 {
            let t = &now.totals;
            assert_eq!(t.started, t.finished, "{t:?}");
            assert!(t.won <= t.hedged && t.hedged <= t.crossed, "{t:?}");
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{now:?}");
        sleep(10 * MS).await;
    }
}

#[test]
fn x49_where_the_agents_runtime_is_gone_nothing_is_hedged_by_what_it_knew() {
    let first = small();
    let (agent, route, before) = first.block_on(async {
        let (agent, route, _) = route(|policy| policy.threshold_max_ms = Some(10.0)).await;
        while route.snapshot().effective.threshold.is_none() {
            let calls: JoinSet<_> = (1..200)
                .map(|_| {
                    let route = route.clone();
                    async move { call(&route, 1).await }
                })
                .collect();
            calls.join_all().await;
        }
        let before = route.snapshot();
        assert_eq!(before.effective.mode, Mode::On);
        (agent, route, before)
    });
    drop(first);
    let second = small();
    second.block_on(async {
        for nth in 0..40 {
            call(&route, nth).await.unwrap();
        }
    });
    let now = route.snapshot();
    assert_eq!(now.effective.mode, Mode::Observing);
    assert_eq!(now.totals.hedged, before.totals.hedged);
    assert_eq!(now.totals.started, before.totals.started + 40);
    second.block_on(agent.shutdown());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x50_runtimes_that_end_in_the_middle_of_hedged_calls_leave_nothing() {
    let (_agent, route, _) = route(|policy| policy.threshold_max_ms = Some(5.0)).await;
    let threads: Vec<_> = (0..60_u32)
        .map(|thread| {
            let route = route.clone();
            spawn_blocking(move || {
                let runtime = small();
                for nth in 0..60 {
                    let route = route.clone();
                    runtime.spawn(async move { call(&route, nth).await });
                }
                let wait = Duration::from_millis(u64::from(thread) % 20);
                runtime.block_on(sleep(wait));
                // Dropped here, with its calls and its watched losers.
            })
        })
        .collect();
    for thread in threads {
        thread.await.unwrap();
    }
    until_nothing_is_left(&route).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x51_calls_from_local_sets_blocking_threads_and_handles() {
    let (_agent, route, _) = route(|policy| policy.threshold_max_ms = Some(5.0)).await;
    let handle = tokio::runtime::Handle::current();
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let (route, handle) = (route.clone(), handle.clone());
            spawn_blocking(move || match thread % 3 {
                0 => handle.block_on(async {
                    for nth in 0..200 {
                        call(&route, nth).await.unwrap();
                    }
                }),
                1 => LocalSet::new().block_on(&small(), async {
                    let calls: Vec<_> = (0..200)
                        .map(|nth| {
                            let route = std::rc::Rc::new(route.clone());
                            tokio::task::spawn_local(async move { call(&route, nth).await })
                        })
                        .collect();
                    for call in calls {
                        call.await.unwrap().unwrap();
                    }
                }),
                _ => small().block_on(async {
                    for nth in 0..200 {
                        call(&route, nth).await.unwrap();
                    }
                }),
            })
        })
        .collect();
    for thread in threads {
        thread.await.unwrap();
    }
    assert_eq!(route.snapshot().totals.started, 1_600);
    until_nothing_is_left(&route).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x52_ten_thousand_short_threads_each_with_a_call() {
    let (_agent, route, _) = route(|_| {}).await;
    let all = spawn_blocking({
        let route = route.clone();
        move || {
            for _ in 0..100 {
                std::thread::scope(|scope| {
                    for _ in 0..100 {
                        scope.spawn(|| {
                            let answers = route.call(Call::idempotent(), async |_| Ok::<_, ()>(()));
                            futures::executor::block_on(answers).unwrap();
                        });
                    }
                });
            }
        }
    });
    all.await.unwrap();
    let now = route.snapshot();
    assert_eq!((now.totals.started, now.totals.finished), (10_000, 10_000));
    assert_eq!(now.treated.count(), 10_000);
    assert_eq!(now.attempts_in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn x53_a_second_that_comes_late_is_no_second_of_more_calls() {
    let (_agent, route, _) = route(|policy| policy.budget = 0.1).await;
    sleep(1500 * MS).await;
    for _ in 0..10_000 {
        let answers = paused::Does::Answers(Duration::ZERO);
        paused::call(&route, Call::idempotent(), answers, answers)
            .await
            .unwrap();
        if route.snapshot().totals.started > 10_000 {
            break;
        }
    }
    // The runtime stands still.
    tokio::time::advance(Duration::from_secs(10)).await;
    sleep(MS).await;
    let cap = route.snapshot().effective.cap;
    assert!(
        cap <= 0.5 * 0.1 * 1_100.0,
        "{cap} for a thousand calls a second"
    );
}
