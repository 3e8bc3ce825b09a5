//! What holds after the agent's shutdown.

use hedgerow_protocol::directive::Mode;

use super::load::{MS, NEVER, S, Service, percent, policy, usual};

#[tokio::test(start_paused = true)]
async fn after_shutdown_calls_go_on_and_nothing_is_hedged() {
    let mut service = Service::new(3, 2 * S, policy(|_| {})).await;
    service
        .offer(200, 30, |replica| {
            if replica.as_str() == "r2:1" {
                NEVER
            } else {
                usual()
            }
        })
        .await;
    assert_eq!(
        (service.last().mode, service.last().probation.len()),
        (Mode::On, 1)
    );
    service.agent.shutdown().await;
    let before = service.route.snapshot();
    assert_eq!(before.effective.mode, Mode::Observing);
    assert_eq!(
        before.effective.threshold, None,
        "a threshold that nobody renews is none"
    );
    assert!(before.probation.is_empty(), "nobody would lift it");
    service
        .offer(200, 30, |_| if percent(5) { 900 * MS } else { usual() })
        .await;
    let grown = service
        .route
        .snapshot()
        .totals
        .since(&before.totals)
        .unwrap();
    assert_eq!(grown.hedged, 0);
    assert!(
        grown.started == 6000 && grown.treated_finished > 5800,
        "{grown:?}"
    );
    assert_eq!(service.last().mode, Mode::Observing);
    // A route built then is no other.
    let late = service
        .agent
        .route("catalog", "list")
        .hedge_standalone(policy(|_| {}));
    assert_eq!(
        late.build().unwrap().snapshot().effective.mode,
        Mode::Observing
    );
}
