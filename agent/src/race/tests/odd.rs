//! What callers, runtimes and clocks do that nobody plans for.

use std::future::{Future, poll_fn};
use std::task::{Context, Waker};
use std::time::Duration;

use futures::FutureExt as _;
use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::report::Refusal;
use hedgerow_protocol::units::AttemptLimit;
use tokio::time::{sleep, sleep_until, timeout};

use super::rig::{D, Does, MS, Rig};
use crate::attempt::{Attempt, AttemptKind};
use crate::eligibility::{Call, Verdict};
use crate::error::CallError;
use crate::replicas::Replicas;

use AttemptKind::{Hedge, Primary};

#[tokio::test(start_paused = true)]
async fn x04_a_call_that_is_never_polled_never_was() {
    let mut rig = Rig::hedging().await;
    drop(rig.call(Does::Answers(1), Does::Never));
    assert_eq!(rig.totals().started, 0);
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn x05_a_primary_that_is_always_busy_keeps_neither_hedge_nor_deadline_away() {
    let mut rig = Rig::hedging().await;
    let busy = |attempt: Attempt| async move {
        if attempt.kind() == Hedge {
            return Ok::<_, ()>(());
        }
        loop {
            tokio::time::advance(MS).await;
        }
    };
    rig.route.call(Call::idempotent(), busy).await.unwrap();
    assert_eq!(rig.totals().won, 1);
    rig.direct(|d| d.mode = Mode::Observing);
    let call = Call::idempotent().deadline(300 * MS);
    let outcome = rig.route.call(call, busy).await;
    assert_eq!(outcome, Err(CallError::DeadlineExceeded));
    rig.assert_at_rest().await;
}

/// A process that was stopped, or a poll that blocked its thread: crossing, second hedge and deadline
/// have all gone by at once.
#[tokio::test(start_paused = true)]
async fn x06_after_a_standstill_nothing_is_sent_that_is_too_late() {
    let mut rig = Rig::hedging().await;
    rig.direct(|d| d.standing.attempts = AttemptLimit::new(3).unwrap());
    let route = rig.route.clone();
    let call = tokio::spawn(async move {
        let attempts = |_: Attempt| std::future::pending::<Result<(), ()>>();
        let call = Call::idempotent().deadline(500 * MS);
        route.call(call, attempts).await
    });
    sleep(MS).await;
    tokio::time::advance(Duration::from_hours(1)).await;
    let outcome = call.await.unwrap();
    assert_eq!(outcome, Err(CallError::DeadlineExceeded));
    let t = rig.totals();
    assert_eq!((t.crossed, t.hedges(), t.failed), (1, 0, 1), "{t:?}");
    assert_eq!(t.refused_for(Refusal::Deadline), 1);
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn x07_an_answer_found_after_the_deadline_by_the_same_poll_is_an_answer() {
    let mut rig = Rig::hedging().await;
    let attempts = |attempt: Attempt| async move {
        let _permit = attempt;
        // It holds up its thread.
        tokio::time::advance(700 * MS).now_or_never();
        Ok::<_, ()>(7)
    };
    let call = Call::idempotent().deadline(500 * MS);
    assert_eq!(rig.route.call(call, attempts).await, Ok(7));
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn x08_an_off_that_comes_before_the_threshold_holds_for_calls_under_way() {
    let mut rig = Rig::hedging().await;
    let route = rig.route.clone();
    let call = tokio::spawn(async move {
        let attempts = |attempt: Attempt| async move {
            let _permit = attempt;
            sleep(3 * D).await;
            Ok::<_, ()>(())
        };
        route.call(Call::idempotent(), attempts).await
    });
    sleep(D / 2).await;
    rig.direct(|d| d.mode = Mode::Off(OffReason::KillSwitch));
    call.await.unwrap().unwrap();
    let t = rig.totals();
    assert_eq!(
        (t.crossed, t.hedges(), t.refused_for(Refusal::Mode)),
        (1, 0, 1)
    );
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn x09_the_list_of_replicas_changes_under_a_call() {
    let replicas = Replicas::new([("a:1", None), ("b:1", None)]).unwrap();
    for (becomes, expected) in [
        (vec!["c:1"], Some("c:1")),
        (vec!["a:1"], None),
        (vec!["a:1", "d:1"], Some("d:1")),
    ] {
        replicas.replace([("a:1", None)]).unwrap();
        let mut rig = Rig::with(|route| route.replicas(replicas.clone())).await;
        rig.direct(|_| {});
        rig.earn(1000);
        let attempts = |attempt: Attempt| {
            let at = attempt.replica().to_string();
            async move {
                let hedge = attempt.kind() == Hedge;
                sleep(if hedge { MS } else { 3 * D }).await;
                Ok::<_, ()>(hedge.then_some(at))
            }
        };
        let call = rig.route.call(Call::idempotent(), attempts);
        let changed = async {
            sleep(D / 2).await;
            replicas
                .replace(becomes.iter().map(|name| (*name, None)))
                .unwrap();
        };
        let (answered, ()) = tokio::join!(call, changed);
        assert_eq!(answered.unwrap().as_deref(), expected, "{becomes:?}");
        rig.assert_at_rest().await;
    }
}

#[tokio::test(start_paused = true)]
async fn x10_a_deadline_at_the_threshold_is_no_crossing_and_just_after_it_is() {
    let mut rig = Rig::hedging().await;
    for (deadline, crossed) in [(D, 0), (99 * MS, 0), (D + 2 * MS, 1)] {
        let before = rig.totals();
        let call = Call::idempotent().deadline(deadline);
        let (outcome, took) = rig.call_as(call, Does::Never, Does::Never).await;
        assert_eq!(outcome, Err(CallError::DeadlineExceeded));
        assert!(took <= deadline + 2 * MS, "{took:?}");
        let t = rig.totals().since(&before).unwrap();
        assert_eq!(
            (t.crossed, t.threshold_past_deadline),
            (crossed, 1 - crossed)
        );
    }
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn x11_a_pinned_primary_is_never_its_own_hedge() {
    let mut rig = Rig::hedging().await;
    for (pin, others) in [("a:1", vec!["b:1"]), ("z:1", vec!["a:1", "b:1"])] {
        for _ in 0..20 {
            rig.earn(20);
            let attempts = |attempt: Attempt| {
                let (at, kind) = (attempt.replica().to_string(), attempt.kind());
                async move {
                    sleep(if kind == Hedge { MS } else { 5 * D }).await;
                    Ok::<_, ()>(at)
                }
            };
            let call = Call::idempotent().pinned(pin.parse().unwrap());
            let at = rig.route.call(call, attempts).await.unwrap();
            assert!(others.contains(&at.as_str()), "{pin}: {at}");
        }
    }
    rig.assert_at_rest().await;
}

/// A future is polled by one task, then given to another: whoever polled it last must be woken.
#[tokio::test(start_paused = true)]
async fn x12_a_call_that_moves_to_another_task_is_still_woken() {
    let mut rig = Rig::hedging().await;
    for (primary, hedge) in [
        (Does::Answers(50), Does::Never),
        (Does::Never, Does::Answers(50)),
        (Does::Fails(120, Verdict::Retryable), Does::Answers(90)),
    ] {
        let mut call = Box::pin(rig.call(primary, hedge));
        // By somebody who will not be there when it is ready.
        let nobody = &mut Context::from_waker(Waker::noop());
        assert!(call.as_mut().poll(nobody).is_pending());
        sleep(20 * MS).await;
        assert!(call.as_mut().poll(nobody).is_pending());
        let (outcome, _) = timeout(Duration::from_secs(5), call).await.unwrap();
        assert!(outcome.is_ok());
    }
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn x13_spurious_wakes_change_nothing() {
    let mut rig = Rig::hedging().await;
    let mut call = Box::pin(rig.call(Does::Answers(250), Does::Fails(20, Verdict::Retryable)));
    let mut polls = 0;
    let (outcome, took) = poll_fn(|cx| {
        polls += 1;
        let polled = call.as_mut().poll(cx);
        if polled.is_pending() && polls % 64 != 0 {
            cx.waker().wake_by_ref();
        }
        polled
    })
    .await;
    drop(call);
    assert_eq!(outcome, Ok(Primary));
    assert!(took < 254 * MS && polls > 100, "{took:?} {polls}");
    assert_eq!((rig.totals().crossed, rig.totals().hedged), (1, 1));
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn x14_a_call_within_an_attempt_of_the_same_route_neither_hangs_nor_takes_a_permit_twice() {
    let mut rig = Rig::with(|route| route.max_in_flight(2)).await;
    rig.direct(|_| {});
    rig.earn(1000);
    let route = rig.route.clone();
    let attempts = |outer: Attempt| {
        let route = route.clone();
        async move {
            let inner = |attempt: Attempt| async move {
                let _permit = attempt;
                sleep(2 * D).await;
                Ok::<_, ()>(())
            };
            let answered = route.call(Call::idempotent(), inner).await;
            drop(outer);
            answered.map_err(drop)
        }
    };
    rig.route.call(Call::idempotent(), attempts).await.unwrap();
    let t = rig.totals();
    assert_eq!((t.started, t.failed), (2, 0));
    assert!(
        t.refused_for(Refusal::NoPermit) > 0,
        "two are all there is: {t:?}"
    );
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn x17_an_answer_that_comes_with_the_deadline_is_an_answer() {
    // Not so often that the agent learns how long this takes, and sends no hedge that is so late.
    for answers in [Primary, Hedge].repeat(50) {
        let mut rig = Rig::hedging().await;
        let attempts = |attempt: Attempt| async move {
            if attempt.kind() == answers {
                sleep_until(attempt.deadline()).await;
                return Ok::<_, ()>(answers);
            }
            std::future::pending().await
        };
        let call = Call::idempotent().deadline(150 * MS);
        assert_eq!(rig.route.call(call, attempts).await, Ok(answers));
        rig.assert_at_rest().await;
    }
}

#[tokio::test(start_paused = true)]
async fn x18_a_leaked_attempt_costs_its_own_permit_and_no_other() {
    let mut rig = Rig::with(|route| route.max_in_flight(3)).await;
    rig.direct(|_| {});
    rig.earn(1000);
    let attempts = |attempt: Attempt| {
        std::mem::forget(attempt.hold());
        async { Ok::<_, ()>(()) }
    };
    rig.route.call(Call::idempotent(), attempts).await.unwrap();
    assert_eq!(rig.route.snapshot().attempts_in_flight, 1, "it is seen");
    // Two are left: a primary and a hedge.
    assert_eq!(rig.call(Does::Never, Does::Answers(1)).await.0, Ok(Hedge));
    for _ in 0..20 {
        assert!(rig.call(Does::Answers(1), Does::Never).await.0.is_ok());
    }
}

/// A client whose errors come as answers, as HTTP's do.
#[tokio::test(start_paused = true)]
async fn x20_an_ok_that_is_a_failure_is_given_to_the_caller_as_it_is() {
    let mut rig = Rig::hedging().await;
    let classify = |result: &Result<u16, u16>| match result {
        Ok(503) => Verdict::Retryable,
        Ok(_) | Err(404) => Verdict::Good,
        Err(_) => Verdict::Fatal,
    };
    let answers = |primary: Result<u16, u16>, hedge| {
        let attempts = move |attempt: Attempt| {
            let kind = attempt.kind();
            async move {
                let _permit = attempt;
                sleep(5 * MS).await;
                if kind == Primary { primary } else { hedge }
            }
        };
        rig.route.call_with(Call::idempotent(), classify, attempts)
    };
    assert_eq!(answers(Ok(503), Ok(200)).await, Ok(503));
    assert_eq!(
        answers(Err(404), Ok(200)).await,
        Err(CallError::Failed(404))
    );
    let t = rig.totals();
    assert_eq!((t.failed, t.primary_errors, t.primary_finished), (1, 1, 2));
    rig.direct(|d| d.standing.hedge_on_error = true);
    let answers = |primary: Result<u16, u16>, hedge: Result<u16, u16>| {
        let attempts = move |attempt: Attempt| async move {
            let _permit = &attempt;
            if attempt.kind() == Primary {
                primary
            } else {
                hedge
            }
        };
        rig.route.call_with(Call::idempotent(), classify, attempts)
    };
    assert_eq!(answers(Ok(503), Ok(200)).await, Ok(200));
    assert_eq!(
        answers(Ok(503), Err(400)).await,
        Ok(503),
        "the primary's, word for word"
    );
    rig.assert_at_rest().await;
}
