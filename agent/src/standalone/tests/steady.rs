//! Nothing happens: the hedge rate is what it is meant to be.

use hedgerow_protocol::directive::Mode;
use tokio::time::sleep;

use super::load::{MS, S, Service, percent, policy, usual};
use crate::chance;

/// Five calls in a hundred take ten times as long.
fn stragglers() -> std::time::Duration {
    if percent(5) { usual() * 10 } else { usual() }
}

#[tokio::test(start_paused = true)]
async fn c07_ten_minutes_with_cancelled_losers_keep_the_rate_within_half_a_point() {
    for (rate, replicas) in [(200, 2), (50, 3), (20, 3)] {
        let policy = policy(|_| {});
        let target = policy.target_rate();
        let mut service = Service::new(replicas, 10 * S, policy).await;
        service.offer(rate, 660, |_| stragglers()).await;
        // The first minute is left out: it has to learn first.
        let hedged = service.hedge_rate(60);
        assert!(
            (hedged - target).abs() <= 0.005,
            "{rate} calls/s, {replicas} replicas: {hedged} for a target of {target}"
        );
        assert!(
            service
                .since(30)
                .iter()
                .all(|second| second.probation.is_empty())
        );
        assert!(
            service
                .since(0)
                .iter()
                .all(|second| second.mode == Mode::On)
        );
        service.assert_within_budget();
    }
}

#[tokio::test(start_paused = true)]
async fn c07_the_rate_holds_however_many_stragglers_there_are() {
    // About as many as may cross: the quantile is in the gap, or chance takes it there.
    for (seed, per_mille) in [
        (1, 40),
        (2, 45),
        (3, 50),
        (4, 55),
        (5, 60),
        (6, 70),
        (7, 100),
    ] {
        let policy = policy(|_| {});
        let target = policy.target_rate();
        let mut service = Service::new(3, 10 * S, policy).await;
        chance::seed(seed);
        let does = |_: &_| {
            let straggles = chance::below(1000) < per_mille;
            if straggles { usual() * 10 } else { usual() }
        };
        service.offer(300, 360, does).await;
        let hedged = service.hedge_rate(60);
        // Fewer stragglers than may cross: between them and usual answers the rate is theirs.
        let plateau = (per_mille as f64 / 1e3 * (1.0 - 0.01)).min(target);
        assert!(
            (plateau - 0.003..=target + 0.003).contains(&hedged),
            "{per_mille} per mille: {hedged} for a target of {target}"
        );
        service.assert_within_budget();
    }
}

#[tokio::test(start_paused = true)]
async fn b46_none_of_the_first_two_hundred_calls_is_hedged() {
    let mut service = Service::new(3, 10 * S, policy(|_| {})).await;
    service
        .offer(50, 20, |_| if percent(20) { usual() * 20 } else { usual() })
        .await;
    let early = service
        .since(0)
        .iter()
        .take_while(|second| second.totals.started <= 200);
    assert_eq!(early.clone().count(), 5);
    assert!(
        early
            .clone()
            .all(|second| second.totals.hedged == 0 && second.totals.crossed == 0)
    );
    assert!(service.last().totals.hedged > 0);
    service.assert_within_budget();
}

#[tokio::test(start_paused = true)]
async fn b42_without_traffic_the_last_good_threshold_is_kept() {
    let mut service = Service::new(3, 10 * S, policy(|_| {})).await;
    service.offer(200, 20, |_| usual()).await;
    // What is under way ends, and leaves the windows, while they still hold enough.
    service.offer(1, 62, |_| usual()).await;
    let before = service.threshold();
    assert!((130 * MS..160 * MS).contains(&before), "{before:?}");
    sleep(3600 * S).await;
    service.offer(1, 60, |_| usual() * 3).await;
    assert_eq!(
        service.threshold(),
        before,
        "sixty calls are no reason either"
    );
}
