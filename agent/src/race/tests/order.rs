//! Who answers, who fails, and what the caller gets when.

use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::report::Refusal;
use hedgerow_protocol::units::{AttemptLimit, Ratio, Threshold};
use tokio::time::{Duration, sleep};

use super::rig::{Does, Failure, MS, Rig};
use crate::attempt::{Attempt, AttemptKind, HEDGE_HEADER, HEDGE_MARK};
use crate::eligibility::{Call, Verdict};
use crate::error::CallError;

use AttemptKind::{Hedge, Primary};
use Verdict::{Fatal, PushBack, Retryable};

const fn failed(of: AttemptKind, verdict: Verdict) -> CallError<Failure> {
    CallError::Failed(Failure { of, verdict })
}

#[tokio::test(start_paused = true)]
async fn b01_with_an_empty_budget_a_failing_primary_returns_at_once() {
    let mut rig = Rig::hedging().await;
    rig.without_budget();
    let call = Call::idempotent().deadline(15_000 * MS);
    let (outcome, took) = rig
        .call_as(call, Does::Fails(4, Retryable), Does::Answers(1))
        .await;
    assert_eq!(outcome, Err(failed(Primary, Retryable)));
    assert!(took < 6 * MS, "{took:?}");
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn b04_an_empty_budget_suppresses_the_hedge_and_nothing_else() {
    let mut rig = Rig::hedging().await;
    rig.without_budget();
    let (outcome, took) = rig.call(Does::Answers(150), Does::Answers(1)).await;
    assert_eq!(outcome, Ok(Primary));
    assert!((150..153).contains(&took.as_millis()), "{took:?}");
    assert_eq!((rig.totals().hedged, rig.refused(Refusal::Budget)), (0, 1));
    rig.assert_at_rest().await;
}

/// Primary, hedge, what the caller gets, after how many ms, hedges sent.
type Row = (
    Does,
    Does,
    Result<AttemptKind, CallError<Failure>>,
    u128,
    u64,
);

/// The threshold is 100 ms, the deadline 2 s.
async fn play(rows: &[Row]) {
    for (primary, hedge, expected, after, hedges) in rows {
        let mut rig = Rig::hedging().await;
        let call = Call::idempotent().deadline(2000 * MS);
        let (outcome, took) = rig.call_as(call, *primary, *hedge).await;
        assert_eq!(outcome, *expected, "{primary:?} {hedge:?}");
        assert!(
            (*after..after + 4).contains(&took.as_millis()),
            "{primary:?} {hedge:?} {took:?}"
        );
        assert_eq!(rig.totals().hedged, *hedges, "{primary:?} {hedge:?}");
        rig.assert_at_rest().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_answer_is_the_calls() {
    play(&[
        (Does::Answers(0), Does::Never, Ok(Primary), 0, 0),
        (Does::Answers(99), Does::Never, Ok(Primary), 99, 0),
        (Does::Answers(500), Does::Answers(20), Ok(Hedge), 120, 1),
        (Does::Answers(110), Does::Answers(20), Ok(Primary), 110, 1),
        (
            Does::Never,
            Does::Never,
            Err(CallError::DeadlineExceeded),
            2000,
            1,
        ),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn c01_a_failing_hedge_neither_fails_the_call_nor_ends_it() {
    for verdict in [Retryable, Fatal, PushBack, Verdict::Dropped] {
        let hedge = Does::Fails(10, verdict);
        play(&[(Does::Answers(150), hedge, Ok(Primary), 150, 1)]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn c02_a_retryable_failure_waits_for_the_hedge_and_is_what_the_caller_sees() {
    let failure = || Err(failed(Primary, Retryable));
    let primary = Does::Fails(120, Retryable);
    play(&[
        (primary, Does::Answers(50), Ok(Hedge), 150, 1),
        (primary, Does::Fails(50, Fatal), failure(), 150, 1),
        (
            primary,
            Does::Fails(50, Verdict::Dropped),
            failure(),
            150,
            1,
        ),
        (
            Does::Fails(150, Retryable),
            Does::Fails(10, Fatal),
            failure(),
            150,
            1,
        ),
        // Within the deadline.
        (primary, Does::Never, failure(), 2000, 1),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn c03_a_fatal_failure_is_returned_at_once() {
    let failure = || Err(failed(Primary, Fatal));
    play(&[
        (Does::Fails(7, Fatal), Does::Answers(1), failure(), 7, 0),
        (
            Does::Fails(120, Fatal),
            Does::Answers(50),
            failure(),
            120,
            1,
        ),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn c14_push_back_sends_no_hedge() {
    let failure = Err(failed(Primary, PushBack));
    play(&[(Does::Fails(7, PushBack), Does::Answers(1), failure, 7, 0)]).await;
}

#[tokio::test(start_paused = true)]
async fn b14_a_new_route_measures_and_never_hedges() {
    let mut rig = Rig::with(|route| route).await;
    rig.earn(1000);
    for _ in 0..300 {
        assert_eq!(
            rig.call(Does::Answers(10), Does::Answers(1)).await.0,
            Ok(Primary)
        );
    }
    sleep(3000 * MS).await;
    assert_eq!(
        rig.call(Does::Answers(500), Does::Answers(1)).await.0,
        Ok(Primary)
    );
    let report = rig.report();
    assert_eq!(report.effective.mode, Mode::Observing);
    assert!(
        report.effective.threshold.is_some(),
        "its own, from 200 calls on"
    );
    assert_eq!((rig.totals().hedged, rig.refused(Refusal::Mode)), (0, 1));
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn b18_an_unmarked_call_is_never_hedged() {
    let mut rig = Rig::hedging().await;
    let call = Call::not_idempotent();
    let (outcome, _) = rig
        .call_as(call, Does::Answers(900), Does::Answers(1))
        .await;
    assert_eq!(outcome, Ok(Primary));
    let t = rig.totals();
    assert_eq!(
        (t.not_eligible, t.started, t.crossed, t.hedged),
        (1, 0, 0, 0)
    );
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn every_refusal_has_its_reason() {
    let mut rig = Rig::hedging().await;
    let slow = Does::Answers(500);
    rig.direct(|d| d.mode = Mode::Off(OffReason::KillSwitch));
    let _ = rig.call(slow, Does::Answers(1)).await;
    rig.direct(|d| (d.mode, d.standing.holdout) = (Mode::On, Ratio::ONE));
    let _ = rig.call(slow, Does::Answers(1)).await;
    rig.direct(|d| (d.standing.holdout, d.live.probability) = (Ratio::ZERO, Ratio::ZERO));
    let _ = rig.call(slow, Does::Answers(1)).await;
    rig.direct(|d| d.live.probability = Ratio::ONE);
    let _ = rig
        .call_as(
            Call::idempotent().already_hedge(true),
            slow,
            Does::Answers(1),
        )
        .await;
    for reason in [
        Refusal::Mode,
        Refusal::Holdout,
        Refusal::NotDrawn,
        Refusal::AlreadyHedge,
    ] {
        assert_eq!(rig.refused(reason), 1, "{}", reason.as_str());
    }
    assert_eq!((rig.totals().crossed, rig.totals().hedged), (4, 0));
    assert_eq!(rig.totals().holdout_finished, 1);
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn one_replica_is_never_hedged() {
    let replicas = crate::Replicas::new([("a:1", None)]).unwrap();
    let mut rig = Rig::with(|route| route.replicas(replicas)).await;
    rig.direct(|_| {});
    rig.earn(1000);
    assert_eq!(
        rig.call(Does::Answers(500), Does::Answers(1)).await.0,
        Ok(Primary)
    );
    assert_eq!(rig.refused(Refusal::NoReplica), 1);
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn c10_a_hedge_that_cannot_finish_is_not_sent() {
    let mut rig = Rig::hedging().await;
    for _ in 0..300 {
        let _ = rig.call(Does::Answers(50), Does::Never).await;
    }
    sleep(2000 * MS).await;
    // Unanswered at 100 ms, an answer takes 50 ms, the call ends at 140 ms.
    let call = Call::idempotent().deadline(140 * MS);
    let (outcome, _) = rig.call_as(call, Does::Never, Does::Answers(1)).await;
    assert_eq!(outcome, Err(CallError::DeadlineExceeded));
    assert_eq!(
        (rig.totals().hedged, rig.refused(Refusal::Deadline)),
        (0, 1)
    );
    let call = Call::idempotent().deadline(160 * MS);
    let (outcome, _) = rig.call_as(call, Does::Never, Does::Answers(1)).await;
    assert_eq!(outcome, Ok(Hedge));
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn b23_a_policy_that_can_do_nothing_is_seen_in_the_snapshot() {
    // The threshold is 100 ms: at the deadline it is as good as beyond it.
    let mut rig = Rig::hedging().await;
    for deadline in [60 * MS, 100 * MS] {
        let call = Call::idempotent().deadline(deadline);
        let _ = rig.call_as(call, Does::Never, Does::Answers(1)).await;
    }
    let call = Call::not_idempotent().deadline(60 * MS);
    let _ = rig.call_as(call, Does::Never, Does::Answers(1)).await;
    let call = Call::idempotent().deadline(110 * MS);
    let _ = rig.call_as(call, Does::Never, Does::Answers(1)).await;
    let totals = rig.route.snapshot().totals;
    assert_eq!(
        totals.threshold_past_deadline, 2,
        "of those it is meant for"
    );
    assert_eq!((totals.started, totals.crossed, totals.hedged), (3, 1, 1));
    assert_eq!(rig.report().totals.threshold_past_deadline, 2);
    rig.assert_at_rest().await;

    let replicas = crate::Replicas::new([("a:1", None)]).unwrap();
    let mut rig = Rig::with(|route| route.replicas(replicas)).await;
    rig.direct(|_| {});
    rig.earn(1000);
    let _ = rig.call(Does::Answers(500), Does::Answers(1)).await;
    let totals = rig.route.snapshot().totals;
    assert_eq!(
        (totals.crossed, totals.refused_for(Refusal::NoReplica)),
        (1, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn c11_a_cancelled_loser_is_in_no_error_rate() {
    let mut rig = Rig::hedging().await;
    for _ in 0..50 {
        rig.earn(50);
        let _ = rig
            .call(Does::Fails(900, Retryable), Does::Answers(20))
            .await;
        let _ = rig
            .call(Does::Answers(120), Does::Fails(900, Retryable))
            .await;
    }
    let t = rig.totals();
    assert_eq!((t.hedged, t.won), (100, 50));
    assert_eq!((t.primary_finished, t.primary_errors), (50, 0));
    assert_eq!((t.hedge_finished, t.hedge_errors), (50, 0));
    rig.assert_at_rest().await;
    let report = rig.report();
    let (primary, hedge) = (&report.primary, &report.hedge);
    assert_eq!(primary.done.count() + primary.censored.count(), 100);
    assert_eq!(hedge.done.count() + hedge.censored.count(), 100);
}

#[tokio::test(start_paused = true)]
async fn one_hedged_call_in_ten_lets_its_loser_finish() {
    let mut rig = Rig::hedging().await;
    for _ in 0..1000 {
        rig.earn(20);
        let _ = rig.call(Does::Answers(130), Does::Answers(20)).await;
    }
    rig.assert_at_rest().await;
    let report = rig.report();
    assert_eq!(report.totals.won, 1000);
    let watched = report.primary.done.count();
    assert!((70..130).contains(&watched), "{watched} of 1000");
    assert_eq!(report.primary.censored.count(), 1000 - watched);
    assert_eq!(report.totals.primary_finished, 0, "a loser is in no rate");
}

#[tokio::test(start_paused = true)]
async fn c14_push_back_counts_toward_switching_off() {
    let mut rig = Rig::hedging().await;
    for _ in 0..4 {
        for i in 0..200 {
            let does = if i % 50 == 0 {
                Does::Fails(5, PushBack)
            } else {
                Does::Answers(5)
            };
            let _ = rig.call(does, Does::Never).await;
        }
    }
    assert_eq!(rig.totals().push_back, 16);
    let effective = rig.report().effective;
    assert!(effective.own_off);
    assert_eq!(effective.mode, Mode::Off(OffReason::PushBack));
    assert_eq!(
        rig.call(Does::Answers(300), Does::Answers(1)).await.0,
        Ok(Primary)
    );
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn c15_a_hedge_is_marked_on_the_wire_and_not_hedged_again() {
    let mut rig = Rig::hedging().await;
    let marks = |already: bool| {
        let route = rig.route.clone();
        async move {
            let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
            let attempts = move |attempt: Attempt| {
                let headers: Vec<_> = attempt.headers().collect();
                tell.send((attempt.kind(), headers)).unwrap();
                async move {
                    sleep(if attempt.kind() == Primary {
                        500 * MS
                    } else {
                        MS
                    })
                    .await;
                    Ok::<_, ()>(())
                }
            };
            route
                .call(Call::idempotent().already_hedge(already), attempts)
                .await
                .unwrap();
            let mut seen = vec![];
            while let Ok(mark) = told.try_recv() {
                seen.push(mark);
            }
            seen
        }
    };
    let mark = vec![(HEDGE_HEADER, HEDGE_MARK)];
    assert_eq!(
        marks(false).await,
        [(Primary, vec![]), (Hedge, mark.clone())]
    );
    assert_eq!(
        marks(true).await,
        [(Primary, mark)],
        "not hedged again, and the mark goes on"
    );
    rig.assert_at_rest().await;
}

/// The case's million in an optimised build; a part of it in one that is forty times slower.
const SAME_TICK: u32 = if cfg!(debug_assertions) {
    100_000
} else {
    1_000_000
};

/// An answer that is there when a timer fires: the one of the first hedge, of the second, or of the
/// deadline.
#[tokio::test(start_paused = true)]
async fn b21_an_answer_in_the_timers_own_tick_is_always_an_answer() {
    let mut rig = Rig::with(|route| route).await;
    rig.direct(|d| {
        d.live.threshold = Some(Threshold::new(MS).unwrap());
        d.standing.attempts = AttemptLimit::new(3).unwrap();
    });
    for i in 0..SAME_TICK {
        if i % 16 == 0 {
            rig.earn(80);
        }
        let call = Call::idempotent();
        let (call, primary, hedge) = match i % 3 {
            0 => (call, Does::Answers(1), Does::Answers(0)),
            1 => (call, Does::Answers(5), Does::Answers(1)),
            _ => (call.deadline(4 * MS), Does::Answers(4), Does::Never),
        };
        let (outcome, _) = rig.call_as(call, primary, hedge).await;
        assert!(outcome.is_ok(), "{i}: {outcome:?}");
    }
    let t = rig.totals();
    assert_eq!((t.started, t.failed), (u64::from(SAME_TICK), 0));
    assert!(t.won > u64::from(SAME_TICK) / 5, "{t:?}");
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn c04_a_deadline_beyond_all_time_is_no_panic() {
    let mut rig = Rig::hedging().await;
    for deadline in [Duration::ZERO, Duration::MAX] {
        let call = Call::idempotent().deadline(deadline);
        let (outcome, _) = rig.call_as(call, Does::Answers(0), Does::Never).await;
        assert_eq!(outcome, Ok(Primary), "what answers at once needs no time");
    }
    let call = Call::idempotent().deadline(Duration::ZERO);
    let (outcome, _) = rig.call_as(call, Does::Answers(5), Does::Never).await;
    assert_eq!(outcome, Err(CallError::DeadlineExceeded));
    let hour = Duration::from_hours(1).as_millis() as u32;
    rig.direct(|d| d.mode = Mode::Observing);
    let call = Call::idempotent().deadline(Duration::MAX);
    let (outcome, _) = rig.call_as(call, Does::Answers(hour), Does::Never).await;
    assert_eq!(outcome, Ok(Primary));
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn c05_a_threshold_below_a_timers_tick_still_counts_what_crossed() {
    let mut rig = Rig::hedging().await;
    rig.direct(|d| d.live.threshold = Some(Threshold::new(300 * MS / 1000).unwrap()));
    assert_eq!(
        rig.report().effective.threshold.map(Threshold::get),
        Some(MS * 3 / 10)
    );
    for us in [200, 900] {
        let attempts = |_attempt: Attempt| async move {
            tokio::time::advance(Duration::from_micros(us)).await;
            Ok::<_, ()>(())
        };
        rig.route.call(Call::idempotent(), attempts).await.unwrap();
    }
    assert_eq!(rig.totals().crossed, 1);
}
