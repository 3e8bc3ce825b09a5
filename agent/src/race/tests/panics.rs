//! A service's own code that panics.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::time::sleep;

use super::rig::{D, Does, MS, Rig};
use crate::attempt::{Attempt, AttemptKind};
use crate::eligibility::{Call, Verdict};

use AttemptKind::{Hedge, Primary};

/// Panics in one attempt, answers late in the other.
async fn panics_in(rig: &Rig, kind: AttemptKind, after: Duration) -> bool {
    let attempts = |attempt: Attempt| async move {
        let _permit = &attempt;
        if attempt.kind() == kind {
            sleep(after).await;
            panic!("the service's own code, in its {}", kind.as_str());
        }
        sleep(5 * D).await;
        Ok::<_, ()>(())
    };
    let call = rig.route.call(Call::idempotent(), attempts);
    AssertUnwindSafe(call).catch_unwind().await.is_err()
}

#[tokio::test(start_paused = true)]
async fn x02_a_panic_in_an_attempt_is_its_callers_and_leaves_nothing() {
    let mut rig = Rig::hedging().await;
    for round in 0..40 {
        rig.earn(20);
        assert!(panics_in(&rig, Primary, D / 2).await, "{round}");
        assert!(
            panics_in(&rig, Primary, 2 * D).await,
            "with a hedge in flight"
        );
        assert!(panics_in(&rig, Hedge, D / 2).await);
    }
    rig.assert_at_rest().await;
    let t = rig.totals();
    assert_eq!((t.started, t.abandoned, t.failed), (120, 120, 0));
    assert!(rig.call(Does::Never, Does::Answers(1)).await.0.is_ok());
}

#[tokio::test(start_paused = true)]
async fn x03_a_panic_in_the_classifier_or_before_the_attempt_leaves_nothing() {
    let mut rig = Rig::hedging().await;
    let classify = |_: &Result<(), ()>| -> Verdict { panic!("no idea") };
    for takes in [Duration::ZERO, MS, 2 * D] {
        let attempts = |attempt: Attempt| async move {
            let _permit = attempt;
            sleep(takes).await;
            Ok(())
        };
        let call = rig.route.call_with(Call::idempotent(), classify, attempts);
        assert!(AssertUnwindSafe(call).catch_unwind().await.is_err());
    }
    for kind in [Primary, Hedge] {
        let attempts = |attempt: Attempt| {
            assert_ne!(attempt.kind(), kind, "cannot be made");
            std::future::pending::<Result<(), ()>>()
        };
        let call = rig.route.call(Call::idempotent(), attempts);
        assert!(AssertUnwindSafe(call).catch_unwind().await.is_err());
    }
    rig.assert_at_rest().await;
}
