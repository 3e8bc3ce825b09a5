//! The dependency fails or pushes back: the agent's own switch.

use hedgerow_protocol::directive::{Mode, OffReason};

use super::load::{Does, S, Second, Service, percent, policy, usual};

#[tokio::test(start_paused = true)]
async fn thirty_percent_errors_switch_off_within_five_seconds_and_on_again_after() {
    for rate in [100, 1000] {
        let mut service = Service::new(3, 10 * S, policy(|_| {})).await;
        service.offer(rate, 30, |_| usual()).await;
        let from = service.now();
        service
            .offer(rate, 30, |_| Does {
                takes: usual(),
                fails: percent(30),
            })
            .await;
        let off = |second: &Second| second.mode == Mode::Off(OffReason::Errors);
        let took = service.since(from).iter().position(off).unwrap();
        assert!(took <= 5, "{took} s at {rate} calls/s");
        assert!(
            service.since(from + took).iter().all(off),
            "it stays off while they last"
        );
        assert!(service.last().named.is_empty() && service.last().probation.is_empty());
        let hedged = service.since(from + took)[0].totals.hedged;
        assert_eq!(service.last().totals.hedged, hedged);
        let well = service.now();
        service
            .offer(
                rate,
                30,
                |_| if percent(5) { usual() * 10 } else { usual() },
            )
            .await;
        let on = service
            .since(well)
            .iter()
            .position(|second| second.mode == Mode::On);
        assert!(on.is_some_and(|on| on <= 15), "{on:?}");
        assert!(service.last().totals.hedged > hedged);
        service.assert_within_budget();
    }
}
