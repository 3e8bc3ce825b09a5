//! The controller is gone.

use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::report::LinkState;
use hedgerow_protocol::units::Threshold;
use tokio::time::{Duration, sleep};

use super::rig::{D, Does, MS, Rig};
use crate::attempt::AttemptKind;

const S: Duration = Duration::from_secs(1);

/// A rig whose controller has just said its last word.
async fn left_alone() -> Rig {
    let mut rig = Rig::hedging().await;
    rig.direct(|d| d.standing.lease = 30 * S);
    rig
}

/// Calls for so many seconds: none fails, none waits.
async fn seconds_of_calls(rig: &Rig, seconds: u32) {
    for _ in 0..seconds {
        for _ in 0..100 {
            let (outcome, took) = rig.call(Does::Answers(10), Does::Never).await;
            assert_eq!(outcome, Ok(AttemptKind::Primary));
            assert!(took < 13 * MS);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn p01_while_the_lease_holds_calls_notice_nothing_and_all_is_as_directed() {
    let rig = left_alone().await;
    let directed = rig.route.snapshot().effective;
    seconds_of_calls(&rig, 25).await;
    let leased = rig.route.snapshot();
    assert_eq!(leased.effective.budget, directed.budget);
    assert_eq!(leased.effective.threshold.map(Threshold::get), Some(D));
    assert_eq!(leased.link, Some(LinkState::Stale));
}

#[tokio::test(start_paused = true)]
async fn p02_after_the_lease_the_budget_decays_and_the_threshold_is_the_agents_own() {
    let rig = left_alone().await;
    seconds_of_calls(&rig, 45).await;
    let decaying = rig.route.snapshot().effective.budget.get();
    assert!(decaying < 0.08 && decaying > 0.02, "{decaying}");

    seconds_of_calls(&rig, 60).await;
    let alone = rig.route.snapshot();
    assert_eq!(
        (alone.effective.budget.get(), alone.link),
        (0.02, Some(LinkState::Fallback))
    );
    let own = alone.effective.threshold.unwrap().get();
    assert!(own < 15 * MS, "from its own figures: {own:?}");
    assert_eq!(alone.effective.mode, Mode::On);
    let before = alone.totals.hedged;
    let (outcome, took) = rig.call(Does::Answers(900), Does::Answers(5)).await;
    assert_eq!(outcome, Ok(AttemptKind::Hedge));
    assert!(took < 30 * MS);
    assert_eq!(rig.totals().hedged, before + 1);
}

#[tokio::test(start_paused = true)]
async fn p02_an_off_outlives_its_lease() {
    let mut rig = left_alone().await;
    rig.direct(|d| d.mode = Mode::Off(OffReason::KillSwitch));
    for _ in 0..4 {
        sleep(Duration::from_mins(10)).await;
        let (outcome, _) = rig.call(Does::Answers(300), Does::Answers(1)).await;
        assert_eq!(outcome, Ok(AttemptKind::Primary));
    }
    assert_eq!(rig.totals().hedged, 0);
    assert_eq!(
        rig.route.snapshot().effective.mode,
        Mode::Off(OffReason::KillSwitch)
    );
}

#[tokio::test(start_paused = true)]
async fn p01_one_word_and_all_is_as_directed_again() {
    let mut rig = left_alone().await;
    seconds_of_calls(&rig, 100).await;
    assert_eq!(rig.route.snapshot().effective.budget.get(), 0.02);
    rig.heard();
    let effective = rig.route.snapshot().effective;
    assert_eq!(effective.budget.get(), 0.08);
    assert_eq!(effective.threshold.map(Threshold::get), Some(D));
    rig.assert_at_rest().await;
}
