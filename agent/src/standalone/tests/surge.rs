//! The dependency as a whole becomes slower.

use std::cell::Cell;
use std::time::Duration;

use hedgerow_protocol::directive::Mode;

use super::load::{MS, S, Service, policy, usual};

#[tokio::test(start_paused = true)]
async fn c08_three_times_slower_at_once_stays_within_the_budget_and_the_threshold_follows() {
    for rate in [50, 200, 1000] {
        let mut service = Service::new(3, 10 * S, policy(|_| {})).await;
        service.offer(rate, 60, |_| usual()).await;
        let (slow_from, before) = (service.now(), service.threshold());
        service.offer(rate, 30, |_| usual() * 3).await;
        service.assert_within_budget();
        let after = service.threshold();
        assert!(
            (before * 27 / 10..before * 33 / 10).contains(&after),
            "{before:?} became {after:?}"
        );
        let within = |second: &super::load::Second| second.threshold.unwrap() > before * 27 / 10;
        let took = service.since(slow_from).iter().position(within).unwrap();
        // As long as it takes to see it: some hundred calls, and two seconds at least.
        let calls = took * rate as usize;
        assert!(took <= 3 || calls <= 400, "{took} s at {rate} calls/s");
        assert!(
            service
                .since(0)
                .iter()
                .all(|second| second.probation.is_empty()),
            "nobody alone is slow"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn b12_far_slower_at_once_stays_within_the_budget_in_every_second() {
    let mut service = Service::new(3, 10 * S, policy(|_| {})).await;
    service.offer(200, 30, |_| usual()).await;
    let from = service.now();
    service.offer(200, 30, |_| usual() + 2000 * MS).await;
    service.assert_within_budget();
    let follows = |second: &super::load::Second| second.threshold.unwrap() > 2000 * MS;
    assert!(service.since(from).iter().position(follows).unwrap() <= 5);
    let rate = service.hedge_rate(service.now() - 15);
    assert!(
        rate <= 0.06,
        "the threshold is there, so the rate is usual again: {rate}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_p95_that_drifts_from_180_to_400_ms_in_a_second_is_followed_within_seconds() {
    let mut service = Service::new(3, 10 * S, policy(|_| {})).await;
    // Uniform up to twice the mean, so that p95 is 1.9 times it.
    let drawn = |p95: Duration| p95.mul_f64(crate::chance::below(1000) as f64 / 950.0);
    service.offer(500, 40, |_| drawn(180 * MS)).await;
    let from = service.now();
    let calls = Cell::new(0_u32);
    service
        .offer(500, 1, |_| {
            calls.set(calls.get() + 1);
            drawn(180 * MS + 220 * MS * calls.get().min(500) / 500)
        })
        .await;
    service.offer(500, 29, |_| drawn(400 * MS)).await;
    service.assert_within_budget();
    let there = |second: &super::load::Second| second.threshold.unwrap() > 380 * MS;
    let took = service.since(from).iter().position(there).unwrap();
    assert!(took <= 5, "{took} s");
    let last = service.threshold();
    assert!((380 * MS..420 * MS).contains(&last), "{last:?}");
    assert!(
        service
            .since(0)
            .iter()
            .all(|second| second.mode == Mode::On)
    );
}
