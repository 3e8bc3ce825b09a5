//! Calls of up to three attempts, and hedges on error: the same promises as with one hedge.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use hedgerow_protocol::directive::Mode;
use hedgerow_protocol::report::{Refusal, Totals};
use hedgerow_protocol::units::{AttemptLimit, Budget, Ratio};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::rig::{Does, MS, Rig};
use crate::attempt::{Attempt, HEDGE_HEADER, HEDGE_MARK};
use crate::eligibility::{Call, Verdict};
use crate::error::CallError;
use crate::replicas::Replicas;

use Verdict::{Fatal, PushBack, Retryable};

/// Which attempt it was, and how it failed.
type Failed = (usize, Verdict);
/// What the caller gets: the answering attempt's number.
type Outcome = Result<usize, CallError<Failed>>;

const fn failed(which: usize, verdict: Verdict) -> Outcome {
    Err(CallError::Failed((which, verdict)))
}

/// Four replicas, hedging on at 100 ms, so many attempts, a full bucket.
async fn rig(attempts: u64, on_error: bool) -> Rig {
    let names = ["a:1", "b:1", "c:1", "d:1"].map(|name| (name, None));
    let replicas = Replicas::new(names).unwrap();
    let mut rig = Rig::with(|route| route.replicas(replicas)).await;
    rig.direct(|d| {
        d.standing.attempts = AttemptLimit::new(attempts).unwrap();
        d.standing.hedge_on_error = on_error;
    });
    rig.earn(1000);
    rig
}

/// One call whose attempts do as listed, no two of them on one replica.
async fn call_as(rig: &Rig, call: Call, does: [Does; 3]) -> (Outcome, Duration) {
    let began = Instant::now();
    let mut sent = vec![];
    let attempts = |attempt: Attempt| {
        let which = sent.len();
        assert!(!sent.contains(attempt.replica()), "{sent:?}");
        sent.push(attempt.replica().clone());
        async move {
            let _permit = attempt;
            match does[which] {
                Does::Answers(ms) => {
                    sleep(ms * MS).await;
                    Ok(which)
                }
                Does::Fails(ms, verdict) => {
                    sleep(ms * MS).await;
                    Err((which, verdict))
                }
                Does::Never => std::future::pending().await,
            }
        }
    };
    let classify =
        |result: &Result<usize, Failed>| result.map_or_else(|it| it.1, |_| Verdict::Good);
    let outcome = rig.route.call_with(call, classify, attempts).await;
    (outcome, began.elapsed())
}

/// The same, of 2 s at most: it ends as and when expected, to 4 ms.
async fn play(rig: &mut Rig, does: [Does; 3], expected: Outcome, after: u128) -> Totals {
    let before = rig.totals();
    let call = Call::idempotent().deadline(2000 * MS);
    let (outcome, took) = call_as(rig, call, does).await;
    assert_eq!(outcome, expected, "{does:?}");
    assert!((after..after + 4).contains(&took.as_millis()), "{took:?}");
    rig.assert_at_rest().await;
    rig.totals().since(&before).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_second_hedge_goes_out_another_threshold_later_and_no_third() {
    let mut rig = rig(3, false).await;
    let never = [Does::Never; 3];
    let t = play(&mut rig, never, Err(CallError::DeadlineExceeded), 2000).await;
    assert_eq!((t.crossed, t.hedged, t.hedged_again), (1, 1, 1));
    let second = [Does::Never, Does::Never, Does::Answers(20)];
    let t = play(&mut rig, second, Ok(2), 220).await;
    assert_eq!((t.won, t.hedged_again, t.failed), (1, 1, 0));
    let first = [Does::Never, Does::Answers(50), Does::Never];
    let t = play(&mut rig, first, Ok(1), 150).await;
    assert_eq!((t.won, t.hedged_again), (1, 0), "not needed any more");
}

#[tokio::test(start_paused = true)]
async fn c01_two_failing_hedges_neither_fail_the_call_nor_end_it() {
    for verdict in [Retryable, Fatal, PushBack, Verdict::Dropped] {
        let mut rig = rig(3, false).await;
        let fails = Does::Fails(10, verdict);
        let t = play(&mut rig, [Does::Answers(350), fails, fails], Ok(0), 350).await;
        assert_eq!((t.hedged, t.won, t.failed), (1, 0, 0));
        // Where the dependency pushes back, or the request itself is at fault, no further copy helps.
        let further = u64::from(matches!(verdict, Retryable | Verdict::Dropped));
        assert_eq!(t.hedged_again, further, "{verdict:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn c02_all_three_fail_and_the_caller_sees_the_primarys_error() {
    let mut rig = rig(3, false).await;
    let primary = Does::Fails(220, Retryable);
    let hedges = [Does::Fails(300, Fatal), Does::Fails(250, Retryable)];
    let all = [primary, hedges[0], hedges[1]];
    let t = play(&mut rig, all, failed(0, Retryable), 450).await;
    assert_eq!((t.hedged, t.hedged_again, t.failed), (1, 1, 1));
    // One of them makes good what the primary failed at.
    let all = [primary, hedges[0], Does::Answers(150)];
    play(&mut rig, all, Ok(2), 350).await;
}

#[tokio::test(start_paused = true)]
async fn c03_c14_no_hedge_on_error_after_a_fatal_failure_or_push_back() {
    for verdict in [Fatal, PushBack, Verdict::Dropped] {
        let mut rig = rig(3, true).await;
        let all = [Does::Fails(7, verdict), Does::Answers(1), Does::Answers(1)];
        let t = play(&mut rig, all, failed(0, verdict), 7).await;
        assert_eq!((t.hedges(), t.further_refused), (0, 0), "{verdict:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retryable_failure_sends_the_next_copy_at_once_up_to_the_most_of_a_call() {
    for attempts in [2, 3] {
        let mut rig = rig(attempts, true).await;
        let fails = Does::Fails(5, Retryable);
        let t = play(
            &mut rig,
            [fails; 3],
            failed(0, Retryable),
            u128::from(5 * attempts),
        )
        .await;
        assert_eq!((t.hedged_on_error, t.won_on_error), (attempts - 1, 0));
        assert_eq!((t.crossed, t.hedged, t.failed), (0, 0, 1));
        let t = play(&mut rig, [fails, Does::Answers(10), fails], Ok(1), 15).await;
        assert_eq!((t.hedged_on_error, t.won_on_error, t.failed), (1, 1, 0));
        assert_eq!((t.won, t.primary_errors), (0, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn b01_with_hedge_on_error_and_an_empty_budget_a_failing_primary_returns_at_once() {
    let mut rig = rig(3, true).await;
    rig.without_budget();
    let call = Call::idempotent().deadline(15_000 * MS);
    let all = [
        Does::Fails(4, Retryable),
        Does::Answers(1),
        Does::Answers(1),
    ];
    let (outcome, took) = call_as(&rig, call, all).await;
    assert_eq!(outcome, failed(0, Retryable));
    assert!(took < 6 * MS, "{took:?}");
    assert_eq!(
        (rig.totals().hedges(), rig.totals().further_refused),
        (0, 1)
    );
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn b04_an_empty_budget_suppresses_the_second_hedge_and_nothing_else() {
    let mut rig = rig(3, false).await;
    rig.without_budget();
    rig.direct(|d| d.live.budget = Budget::clamped(0.25));
    rig.earn(4);
    let all = [Does::Answers(250), Does::Never, Does::Answers(1)];
    let t = play(&mut rig, all, Ok(0), 250).await;
    assert_eq!((t.hedged, t.hedged_again, t.further_refused), (1, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn b18_hedge_on_error_never_repeats_what_was_not_marked() {
    let mut rig = rig(3, true).await;
    for does in [Does::Fails(5, Retryable), Does::Fails(900, Retryable)] {
        let all = [does, Does::Answers(1), Does::Answers(1)];
        let (outcome, _) = call_as(&rig, Call::not_idempotent(), all).await;
        assert_eq!(outcome, failed(0, Retryable));
    }
    let t = rig.totals();
    assert_eq!((t.not_eligible, t.hedges(), t.further_refused), (2, 0, 0));
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn held_out_calls_and_hedges_of_a_caller_further_up_are_not_repeated_on_error() {
    let all = [
        Does::Fails(5, Retryable),
        Does::Answers(1),
        Does::Answers(1),
    ];
    let mut rig = rig(3, true).await;
    let (outcome, _) = call_as(&rig, Call::idempotent().already_hedge(true), all).await;
    assert_eq!(outcome, failed(0, Retryable));
    rig.direct(|d| d.standing.holdout = Ratio::ONE);
    assert_eq!(
        call_as(&rig, Call::idempotent(), all).await.0,
        failed(0, Retryable)
    );
    assert_eq!(
        (rig.totals().hedges(), rig.totals().further_refused),
        (0, 2)
    );
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn c10_no_further_copy_that_cannot_finish() {
    let mut rig = rig(3, true).await;
    for _ in 0..300 {
        let _ = call_as(&rig, Call::idempotent(), [Does::Answers(50); 3]).await;
    }
    sleep(2000 * MS).await;
    // It takes 50 ms, and 30 are left.
    let call = Call::idempotent().deadline(90 * MS);
    let all = [
        Does::Fails(60, Retryable),
        Does::Answers(1),
        Does::Answers(1),
    ];
    let (outcome, took) = call_as(&rig, call, all).await;
    assert_eq!(outcome, failed(0, Retryable));
    assert!(took < 64 * MS, "{took:?}");
    // The first hedge at 100 ms can finish, a second at 200 ms could not.
    let call = Call::idempotent().deadline(240 * MS);
    let _ = call_as(&rig, call, [Does::Never; 3]).await;
    let t = rig.totals();
    assert_eq!((t.hedged, t.hedged_again, t.hedged_on_error), (1, 0, 0));
    assert_eq!(t.further_refused, 2);
    let further = rig.route.snapshot().further_refused;
    assert_eq!(further.of(Refusal::Deadline), 2);
    assert_eq!(further.of(Refusal::Budget), 0);
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn c11_cancelled_losers_of_three_are_in_no_error_rate() {
    let mut rig = rig(3, true).await;
    for _ in 0..50 {
        rig.earn(50);
        let late = Does::Fails(900, Retryable);
        let (outcome, _) = call_as(&rig, Call::idempotent(), [late, late, Does::Answers(20)]).await;
        assert_eq!(outcome, Ok(2));
    }
    let t = rig.totals();
    assert_eq!((t.hedged, t.hedged_again, t.won), (50, 50, 50));
    assert_eq!((t.primary_finished, t.primary_errors), (0, 0));
    assert_eq!((t.hedge_finished, t.hedge_errors, t.failed), (50, 0, 0));
    rig.assert_at_rest().await;
    let report = rig.report();
    let (primary, hedge) = (&report.primary, &report.hedge);
    assert_eq!(primary.done.count() + primary.censored.count(), 50);
    assert_eq!(hedge.done.count() + hedge.censored.count(), 100);
}

#[tokio::test(start_paused = true)]
async fn c15_second_hedges_and_hedges_on_error_are_marked_on_the_wire() {
    let rig = rig(3, true).await;
    for fails in [false, true] {
        let seen = Mutex::new(vec![]);
        let attempts = |attempt: Attempt| {
            let nth = seen.lock().len();
            seen.lock().push(attempt.headers().collect::<Vec<_>>());
            async move {
                let _permit = attempt;
                match nth {
                    2 => Ok(()),
                    _ if fails => Err(()),
                    _ => std::future::pending().await,
                }
            }
        };
        rig.route.call(Call::idempotent(), attempts).await.unwrap();
        let mark = vec![(HEDGE_HEADER, HEDGE_MARK)];
        assert_eq!(*seen.lock(), [vec![], mark.clone(), mark]);
    }
    assert_eq!(
        (rig.totals().hedged_again, rig.totals().hedged_on_error),
        (1, 2)
    );
}

#[tokio::test(start_paused = true)]
async fn b16_three_attempts_together_stay_within_the_limit() {
    let names = ["a:1", "b:1", "c:1"].map(|name| (name, None));
    for calls in [2, 3, 5, 9, 12] {
        let replicas = Replicas::new(names).unwrap();
        let mut rig = Rig::with(|route| {
            let route = route.replicas(replicas).max_in_flight(10);
            route.max_hedges_in_flight(10)
        })
        .await;
        rig.direct(|d| d.standing.attempts = AttemptLimit::new(3).unwrap());
        rig.earn(1000);
        let (alive, most) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
        let attempts = |attempt: Attempt| {
            let (alive, most) = (alive.clone(), most.clone());
            async move {
                let _permit = attempt;
                most.fetch_max(alive.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                sleep(500 * MS).await;
                alive.fetch_sub(1, Ordering::Relaxed);
                Ok::<_, ()>(())
            }
        };
        let all = (0..calls).map(|_| rig.route.call(Call::idempotent(), attempts));
        futures::future::join_all(all).await;
        assert_eq!(most.load(Ordering::Relaxed), (3 * calls).min(10).max(calls));
        rig.assert_at_rest().await;
    }
}

/// All success for long, then every attempt fails: what is sent on error is bounded by what finished
/// calls earn and the cap, and ends with the agent's own switch-off.
#[tokio::test(start_paused = true)]
async fn b29_when_everything_fails_hedges_on_error_stop_within_the_bucket() {
    let mut rig = rig(3, true).await;
    rig.direct(|d| d.live.cap = 3.0);
    for _ in 0..500 {
        let _ = call_as(&rig, Call::idempotent(), [Does::Answers(5); 3]).await;
    }
    let before = rig.totals();
    let fails = [Does::Fails(5, Retryable); 3];
    let mut last = 0;
    for second in 0..10 {
        for _ in 0..200 {
            let (outcome, took) = call_as(&rig, Call::idempotent(), fails).await;
            assert_eq!(outcome, failed(0, Retryable));
            assert!(took < 30 * MS, "no call waits for a hedge it does not get");
        }
        let grown = rig.totals().since(&before).unwrap();
        let allowed = 0.08 * grown.finished as f64 + 3.0;
        assert!(
            grown.hedges() as f64 <= allowed,
            "second {second}: {grown:?}"
        );
        if second >= 4 {
            assert_eq!(grown.hedges(), last, "off, and nothing more is sent");
        }
        last = grown.hedges();
    }
    assert!(last > 0 && matches!(rig.report().effective.mode, Mode::Off(_)));
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn x01_three_attempts_and_two_replicas_are_two_attempts() {
    let mut rig = Rig::with(|route| route).await;
    rig.direct(|d| d.standing.attempts = AttemptLimit::new(3).unwrap());
    rig.earn(1000);
    let t = play(
        &mut rig,
        [Does::Answers(350), Does::Never, Does::Never],
        Ok(0),
        350,
    )
    .await;
    assert_eq!((t.hedged, t.hedged_again, t.further_refused), (1, 0, 1));
    // Nor is a failed one asked again.
    rig.direct(|d| d.standing.hedge_on_error = true);
    let t = play(
        &mut rig,
        [Does::Fails(5, Retryable); 3],
        failed(0, Retryable),
        10,
    )
    .await;
    assert_eq!((t.hedged_on_error, t.further_refused), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn x19_a_hedge_on_error_that_is_slow_itself_is_followed_by_one_more_and_the_report_stands() {
    let mut rig = rig(3, true).await;
    let all = [Does::Fails(5, Retryable), Does::Never, Does::Answers(20)];
    let t = play(&mut rig, all, Ok(2), 125).await;
    assert_eq!((t.hedged_on_error, t.hedged_again, t.won), (1, 1, 1));
    assert_eq!(
        (t.crossed, t.hedged),
        (0, 0),
        "it failed before it was slow"
    );
    // Checked as a controller checks it.
    assert_eq!(rig.report().totals.hedges(), 2);
}
