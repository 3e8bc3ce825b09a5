//! Real threads and runtimes that end: what the paused clock cannot show.

use std::sync::Arc;
use std::time::Duration;

use hedgerow_protocol::units::AttemptLimit;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::rig::{D, MS, Rig};
use crate::attempt::{Attempt, AttemptKind};
use crate::eligibility::Call;
use crate::permit::Permits;
use crate::pool::Pool;
use crate::replicas::Replicas;

#[test]
fn x15_the_agent_and_then_the_runtime_go_while_calls_are_under_way() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().start_paused(true).build().unwrap()
    };
    let first = runtime();
    let state = first.block_on(async {
        let rig = Rig::hedging().await;
        let state = rig.route.state.clone();
        let calls = (0..50).map(|_| {
            let route = rig.route.clone();
            tokio::spawn(async move {
                let attempts = |attempt: Attempt| async move {
                    let _permit = &attempt;
                    sleep(if attempt.kind() == AttemptKind::Hedge {
                        MS
                    } else {
                        20 * D
                    })
                    .await;
                    Ok::<_, ()>(())
                };
                let _ = route.call(Call::idempotent(), attempts).await;
            })
        });
        let calls: Vec<_> = calls.collect();
        sleep(D / 2).await;
        // The service lets go of its agent; routes that calls still use keep it.
        drop(rig);
        sleep(D).await;
        assert!(calls.iter().any(JoinHandle::is_finished));
        state
    });
    drop(first);
    assert_eq!(
        state.attempts_alive(),
        0,
        "what was alive was dropped with the runtime"
    );
    let t = state.recorder.totals();
    assert_eq!((t.started, t.finished), (50, 50));
}

#[test]
fn x16_four_threads_on_one_route_and_the_books_balance() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut rig = Rig::with(|route| route.deadline(Duration::from_secs(30))).await;
        rig.direct(|d| {
            d.live.threshold = Some((MS / 2).try_into().unwrap());
            d.standing.attempts = AttemptLimit::new(3).unwrap();
            d.standing.hedge_on_error = true;
        });
        let tasks = (0..64_u32).map(|task| {
            let route = rig.route.clone();
            tokio::spawn(async move {
                for n in 0..50_u32 {
                    let odd = (task * 31 + n * 17) % 11;
                    let attempts = move |attempt: Attempt| async move {
                        let _permit = attempt;
                        sleep(MS * odd / 3).await;
                        if odd == 7 { Err(()) } else { Ok(()) }
                    };
                    let call = route.call(Call::idempotent(), attempts);
                    if odd == 5 {
                        let _ = timeout(MS, call).await;
                    } else {
                        let _ = call.await;
                    }
                }
            })
        });
        let tasks: Vec<_> = tasks.collect();
        for task in tasks {
            task.await.unwrap();
        }
        rig.assert_at_rest().await;
        let t = rig.totals();
        assert_eq!(t.started, 64 * 50);
        assert!(t.hedges() as f64 <= 0.08 * t.finished as f64, "{t:?}");
    });
}

#[test]
fn x21_a_list_that_changes_while_threads_pick_never_gives_a_call_its_own_replica_again() {
    let [few, many] = [&["a:1", "b:1"][..], &["b:1", "c:1", "d:1"][..]];
    let with = |names: &[&'static str]| names.iter().map(|name| (*name, None)).collect::<Vec<_>>();
    let list = Replicas::new(with(few)).unwrap();
    let permits = Arc::new(Permits::new());
    let pool = Pool::new(Some(list.clone()), "catalog".parse().unwrap(), permits);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    let first = pool.primary().replica;
                    let second = pool.hedge(&[Some(&first)], 0.08).unwrap();
                    assert_ne!(first.name, second.name);
                    if let Some(third) = pool.hedge(&[Some(&first), Some(&second)], 0.08) {
                        assert!(third.name != first.name && third.name != second.name);
                    }
                }
            });
        }
        for n in 0..2_000 {
            list.replace(with(if n % 2 == 0 { many } else { few }))
                .unwrap();
            let probation = ["d:1".parse().unwrap()];
            pool.set_probation(&probation[..n % 2]);
        }
    });
    assert!(pool.known().len() <= 4, "what left the list is forgotten");
}
