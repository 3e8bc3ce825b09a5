//! The first threshold comes with the calls, not with the second.

use std::cell::RefCell;

use tokio::time::sleep;

use super::load::{MS, S, Service, percent, policy, usual};

/// Finished, hedged and crossed calls, and whether there was a threshold.
type Look = (u64, u64, u64, bool);

/// What there was in each millisecond of the first second.
async fn first_second(service: &mut Service, rate: u32) -> Vec<Look> {
    let route = service.route.clone();
    let looks = RefCell::new(vec![]);
    let looking = async {
        loop {
            let snapshot = route.snapshot();
            let totals = &snapshot.totals;
            let has = snapshot.effective.threshold.is_some();
            let look = (totals.finished, totals.hedged, totals.crossed, has);
            looks.borrow_mut().push(look);
            sleep(MS).await;
        }
    };
    tokio::select! {
        () = looking => unreachable!("it goes on"),
        () = service.offer(rate, 1, |_| if percent(2) { usual() * 20 } else { usual() }) => {}
    }
    looks.into_inner()
}

#[tokio::test(start_paused = true)]
async fn b46_at_a_thousand_calls_a_second_it_comes_with_the_two_hundredth_and_not_before() {
    let mut service = Service::new(3, 10 * S, policy(|_| {})).await;
    let looks = first_second(&mut service, 1000).await;
    let first = looks.iter().position(|(.., has)| *has).unwrap();
    let (finished, ..) = looks[first];
    // Looks are 10 ms apart, which is ten calls.
    assert!((200..=220).contains(&finished), "{finished}");
    for (_, hedged, crossed, _) in &looks[..first] {
        assert_eq!((*hedged, *crossed), (0, 0));
    }
    assert!(service.last().totals.hedged > 0, "within the first second");
    let early = service.threshold();
    assert!((120 * MS..220 * MS).contains(&early), "{early:?}");
    service
        .offer(
            1000,
            30,
            |_| if percent(2) { usual() * 20 } else { usual() },
        )
        .await;
    service.assert_within_budget();
    let rate = service.hedge_rate(10);
    assert!((rate - 0.0495).abs() < 0.01, "{rate}");
    let nobody = |second: &super::load::Second| second.probation.is_empty();
    assert!(service.since(0).iter().all(nobody));
}
