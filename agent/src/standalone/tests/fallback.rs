//! A controller was there, and is gone.

use std::time::Duration;

use hedgerow_protocol::directive::{Directive, LiveValues, Mode, Stamp, Standing};
use hedgerow_protocol::ids::{Epoch, ModeSequence, ReplicaName, Revision, Tick};
use hedgerow_protocol::units::{AttemptLimit, Budget, Quantile, Ratio, Threshold};
use tokio::time::Instant;

use super::load::{MS, S, Service, usual};
use crate::Agent;
use crate::host::Host;

fn directive(service: &Service, tick: u64, probation: &[&str]) -> Directive {
    let (threshold, budget) = (Threshold::new(145 * MS).ok(), Budget::clamped(0.08));
    Directive {
        route: service.route.key().clone(),
        stamp: Stamp {
            epoch: Epoch(1),
            revision: Revision(1),
            mode_sequence: ModeSequence(1),
        },
        mode: Mode::On,
        live: LiveValues::new(Tick(tick), threshold, Ratio::ONE, budget, 8.0).unwrap(),
        standing: Standing {
            percentile: Quantile::new(0.95).unwrap(),
            holdout: Ratio::ZERO,
            error_limit: Ratio::clamped(0.05),
            threshold_min: None,
            threshold_max: None,
            lease: 30 * S,
            attempts: AttemptLimit::default(),
            hedge_on_error: false,
        },
        probation: probation.iter().map(|name| name.parse().unwrap()).collect(),
        start_credit: 0.0,
    }
}

fn slow(replica: &ReplicaName, which: &[&str]) -> Duration {
    if which.contains(&replica.as_str()) {
        usual() * 10
    } else {
        usual()
    }
}

#[tokio::test(start_paused = true)]
async fn p02_a_controllers_probation_ends_without_it_where_own_figures_say_so() {
    let agent = Agent::builder().service("shop");
    let mut service = Service::build(agent, 6, |route| route.deadline(10 * S)).await;
    let shared = service.agent.keeper.shared.clone();
    let direct = |directive: Directive| {
        shared.heard(Instant::now());
        shared.apply(directive, Instant::now()).unwrap();
    };
    direct(directive(&service, 1, &["r0:1", "r1:1"]));
    // The controller is wrong about the second, or no longer right: it decides all the same.
    service
        .offer(600, 30, |replica| slow(replica, &["r0:1"]))
        .await;
    let named = |names: &[&str]| {
        names
            .iter()
            .map(|name| name.parse().unwrap())
            .collect::<Vec<ReplicaName>>()
    };
    assert_eq!(service.last().probation, named(&["r0:1", "r1:1"]));
    // Gone: what is well comes back, what is not stays; and nobody else is put there, as nobody
    // knows whether the policy would allow it.
    service
        .offer(600, 60, |replica| slow(replica, &["r0:1", "r2:1"]))
        .await;
    assert_eq!(service.last().probation, named(&["r0:1"]));
    assert!(
        service
            .last()
            .named
            .iter()
            .any(|named| named.starts_with("r2:1 is slow"))
    );
    service.offer(600, 60, |_| usual()).await;
    assert!(service.last().probation.is_empty(), "not for ever");
    // And there again: what it says holds from its first word on.
    direct(directive(&service, 2, &["r3:1"]));
    assert_eq!(service.route.snapshot().probation, named(&["r3:1"]));
}
