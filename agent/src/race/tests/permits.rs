//! Permits: a call never waits for one, a hedge never takes one too many, a loser keeps its own
//! until its work really ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use futures::future::join_all;
use hedgerow_protocol::report::Refusal;
use tokio::time::{Instant, sleep};

use super::rig::{Does, MS, Rig};
use crate::attempt::{Attempt, AttemptKind};
use crate::eligibility::Call;

#[tokio::test(start_paused = true)]
async fn b15_saturated_permits_refuse_the_hedge_and_leave_the_call_alone() {
    let mut rig = Rig::with(|route| route.max_in_flight(1)).await;
    rig.direct(|_| {});
    rig.earn(1000);
    let (outcome, took) = rig.call(Does::Answers(300), Does::Answers(1)).await;
    assert_eq!(outcome, Ok(AttemptKind::Primary));
    assert!(took < 303 * MS);
    assert_eq!(
        (rig.totals().hedged, rig.refused(Refusal::NoPermit)),
        (0, 1)
    );
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn b15_as_many_hedges_as_may_be_alive_refuse_the_next_one_and_no_call() {
    let mut rig = Rig::with(|route| route.max_hedges_in_flight(2)).await;
    rig.direct(|_| {});
    rig.earn(1000);
    let slow = || rig.call(Does::Answers(300), Does::Answers(150));
    let all = join_all((0..5).map(|_| slow())).await;
    let won = all.iter().filter(|(it, _)| *it == Ok(AttemptKind::Hedge));
    assert_eq!(won.count(), 2);
    assert!(
        all.iter()
            .all(|(outcome, took)| outcome.is_ok() && *took < 303 * MS)
    );
    assert_eq!(
        (rig.totals().hedged, rig.refused(Refusal::NoPermit)),
        (2, 3)
    );
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn b16_primaries_and_hedges_together_stay_within_the_limit() {
    for calls in [4, 8, 9, 10, 12] {
        let mut rig = Rig::with(|route| route.max_in_flight(10).max_hedges_in_flight(10)).await;
        rig.direct(|_| {});
        rig.earn(1000);
        let (alive, most) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
        let attempts = |_attempt: Attempt| {
            let (alive, most) = (alive.clone(), most.clone());
            async move {
                most.fetch_max(alive.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                sleep(500 * MS).await;
                alive.fetch_sub(1, Ordering::Relaxed);
                Ok::<_, ()>(())
            }
        };
        let began = Instant::now();
        join_all((0..calls).map(|_| rig.route.call(Call::idempotent(), attempts))).await;
        assert!(began.elapsed() < 505 * MS, "no call waits for a permit");
        // Beyond ten it is the callers' own load, and no hedge is added to it.
        assert_eq!(most.load(Ordering::Relaxed), (2 * calls).min(10).max(calls));
        rig.assert_at_rest().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c12_a_loser_that_ignores_cancellation_keeps_its_permit() {
    let mut rig = Rig::hedging().await;
    let attempts = |attempt: Attempt| {
        let work = attempt.hold();
        let slow = attempt.kind() == AttemptKind::Primary;
        async move {
            let task = tokio::spawn(async move {
                let _work = work;
                sleep(if slow { 5_000 * MS } else { 20 * MS }).await;
            });
            task.await.map_err(drop)
        }
    };
    let began = Instant::now();
    // Not the one in ten that is watched.
    crate::chance::seed(11);
    rig.route.call(Call::idempotent(), attempts).await.unwrap();
    assert!(began.elapsed() < 130 * MS, "the winner returns at once");
    assert_eq!(
        rig.route.snapshot().attempts_in_flight,
        1,
        "the loser's work goes on"
    );
    sleep(4_800 * MS).await;
    assert_eq!(rig.route.snapshot().attempts_in_flight, 1);
    sleep(200 * MS).await;
    assert_eq!(rig.route.snapshot().attempts_in_flight, 0);
    rig.assert_at_rest().await;
}
