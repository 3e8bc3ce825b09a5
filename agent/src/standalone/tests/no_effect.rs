//! Policies that are valid and can do nothing.

use std::time::Duration;

use super::load::{MS, S, Service, policy, usual};

#[tokio::test(start_paused = true)]
async fn b23_what_can_do_nothing_says_so_in_the_snapshot_and_in_the_metrics() {
    let rows = [
        (3, 10 * S, 0.0, None),
        (
            1,
            10 * S,
            0.0,
            Some("no effect, because there is only one replica"),
        ),
        // Found before there is any call: the policy's own least threshold is past the deadline.
        (
            3,
            S,
            2000.0,
            Some("no effect, because calls may be hedged after 2s, and end at"),
        ),
        (
            3,
            160 * MS,
            0.0,
            Some("no effect, because a hedge sent at "),
        ),
    ];
    for (replicas, deadline, threshold_min_ms, expected) in rows {
        let policy = policy(|draft| {
            draft.threshold_min_ms = Some(threshold_min_ms).filter(|ms| *ms > 0.0);
        });
        let registry = prometheus::Registry::new();
        let agent = crate::Agent::builder()
            .service("shop")
            .registry(registry.clone());
        let route = |route: crate::RouteBuilder| route.deadline(deadline).hedge_standalone(policy);
        let mut service = Service::build(agent, replicas, route).await;
        service.offer(100, 10, |_| usual()).await;
        let found = service.route.snapshot().no_effect;
        let said = found.map(|why| why.to_string());
        match expected {
            None => assert_eq!(said, None),
            Some(expected) => assert!(said.clone().unwrap().starts_with(expected), "{said:?}"),
        }
        let families = registry.gather();
        let shown = families
            .iter()
            .find(|family| family.name() == "hedgerow_no_effect");
        assert_eq!(shown.is_some(), expected.is_some());
        assert_eq!(
            service.last().totals.hedged == 0,
            expected.is_some(),
            "{said:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn b23_a_route_that_observes_or_is_off_is_not_told_that_it_has_no_effect() {
    for intent in [crate::Intent::Observe, crate::Intent::Off] {
        let policy = policy(|draft| draft.intent = intent);
        let service = Service::new(1, Duration::from_secs(1), policy).await;
        assert_eq!(service.route.snapshot().no_effect, None);
    }
}
