//! One replica is what is bad.

use std::time::Duration;

use hedgerow_protocol::directive::Mode;
use hedgerow_protocol::ids::ReplicaName;

use super::load::{Does, MS, NEVER, S, Service, policy, usual};

fn bad(replica: &ReplicaName, takes: Duration) -> Duration {
    if replica.as_str() == "r2:1" {
        takes
    } else {
        usual()
    }
}

fn mean(each: &[usize]) -> f64 {
    each.iter().sum::<usize>() as f64 / each.len() as f64
}

/// When, from second `from` on, `r2:1` was put on probation.
fn named_after(service: &Service, from: usize) -> usize {
    let on = |second: &super::load::Second| !second.probation.is_empty();
    service.since(from).iter().position(on).unwrap()
}

#[tokio::test(start_paused = true)]
async fn b08_one_dead_of_three_costs_a_tenth_at_most_once_it_is_named_and_comes_back() {
    for (workers, deadline) in [(20, 2 * S), (60, 5 * S), (100, 10 * S)] {
        let mut service = Service::new(3, deadline, policy(|_| {})).await;
        let before = mean(&service.work(workers, 20, |_| usual()).await[10..]);
        let (healthy, from) = (service.threshold(), service.now());

        let during = service
            .work(workers, 60, |replica| bad(replica, NEVER))
            .await;
        let named = named_after(&service, from);
        let rest = mean(&during[named + deadline.as_secs() as usize + 1..]);
        assert!(
            rest >= 0.9 * before,
            "{rest} of {before}, {workers} workers, {deadline:?}"
        );
        for second in service.since(from) {
            let threshold = second.threshold.unwrap();
            assert!(threshold <= 2 * healthy, "{healthy:?} became {threshold:?}");
            assert_eq!(second.mode, Mode::On);
        }
        service.assert_within_budget();

        let from = service.now();
        let after = service.work(workers, 120, |_| usual()).await;
        let back = service
            .since(from)
            .iter()
            .position(|second| second.probation.is_empty());
        assert!(back.unwrap() <= 70, "{back:?}");
        assert!(service.last().named.is_empty());
        assert!(mean(&after[100..]) >= 0.97 * before);
    }
}

#[tokio::test(start_paused = true)]
async fn b08_one_of_three_dead_from_the_start_is_found_all_the_same() {
    for deadline in [S, 3 * S] {
        let mut service = Service::new(3, deadline, policy(|_| {})).await;
        service.offer(100, 60, |replica| bad(replica, NEVER)).await;
        assert_eq!(service.last().probation.len(), 1, "{:?}", service.last());
        assert!(service.threshold() < 200 * MS);
        service.assert_within_budget();
    }
}

#[tokio::test(start_paused = true)]
async fn b09_one_of_three_ten_times_slower_neither_moves_the_threshold_nor_switches_off() {
    for probation in [false, true] {
        let policy = policy(|draft| draft.probation = probation);
        let mut service = Service::new(3, 10 * S, policy).await;
        service.offer(300, 30, |_| usual()).await;
        let (healthy, from) = (service.threshold(), service.now());
        service
            .offer(300, 120, |replica| bad(replica, usual() * 10))
            .await;
        for second in service.since(from) {
            assert!(second.threshold.unwrap() <= healthy * 3 / 2, "{second:?}");
            assert_eq!(second.mode, Mode::On);
        }
        assert!(
            service.last().named[0].starts_with("r2:1 is slow: "),
            "{:?}",
            service.last().named
        );
        assert_eq!(service.last().probation.len(), usize::from(probation));
        service.assert_within_budget();
        let grown = service
            .last()
            .totals
            .since(&service.since(from + 30)[0].totals)
            .unwrap();
        let share = grown.crossed as f64 / grown.started as f64;
        if probation {
            assert!(
                share < 0.09,
                "the target, and a thirtieth of the calls: {share}"
            );
        } else {
            // The threshold stays, so what the slow one still gets crosses. It gets little: of two
            // different replicas it is the busier one.
            assert!((0.1..0.14).contains(&share), "{share}");
            assert!(grown.won * 2 > grown.hedged, "{grown:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_failing_of_three_is_put_on_probation_and_hedging_stays_on() {
    let registry = prometheus::Registry::new();
    let agent = crate::Agent::builder().registry(registry.clone());
    let own = policy(|_| {});
    let mut service = Service::build(agent, 3, |route| route.hedge_standalone(own)).await;
    let shown = || {
        let families = registry.gather();
        let named = families
            .into_iter()
            .find(|family| family.name() == "hedgerow_replica_named");
        named.map(|family| {
            let labels = family.get_metric()[0].get_label();
            labels
                .iter()
                .map(|label| label.value().to_owned())
                .collect::<Vec<_>>()
        })
    };
    assert_eq!(shown(), None);
    let does = |replica: &ReplicaName| Does {
        takes: usual(),
        fails: replica.as_str() == "r2:1",
    };
    service.offer(200, 10, |_| usual()).await;
    service.offer(200, 60, does).await;
    let last = service.last();
    assert_eq!(last.probation, ["r2:1".parse().unwrap()]);
    assert!(
        last.named[0].starts_with("r2:1 is failing: 100.0 %"),
        "{:?}",
        last.named
    );
    assert!(
        service
            .since(0)
            .iter()
            .all(|second| second.mode == Mode::On)
    );
    assert_eq!(shown().unwrap(), ["catalog", "get", "r2:1", "failing"]);
    // A tenth of a third.
    let before = &service.since(service.now() - 30)[0].totals;
    let grown = last.totals.since(before).unwrap();
    assert!(
        (grown.failed as f64) < 0.05 * grown.finished as f64,
        "{grown:?}"
    );
    service.offer(200, 60, |_| usual()).await;
    assert!(service.last().probation.is_empty());
}

#[tokio::test(start_paused = true)]
async fn p14_a_quiet_route_does_not_flap_over_its_bad_replica() {
    let mut service = Service::new(3, 10 * S, policy(|_| {})).await;
    service
        .offer(20, 1200, |replica| bad(replica, usual() * 10))
        .await;
    let changes = service.since(1).windows(2);
    let changes = changes
        .filter(|pair| pair[0].probation != pair[1].probation)
        .count();
    assert!(changes > 0 && changes <= 13, "{changes} in 20 minutes");
    // On probation, and on trial: its samples are in nobody's way.
    for second in service.since(90) {
        assert!(second.threshold.unwrap() < 200 * MS, "{second:?}");
    }
    let from = service.now();
    service.offer(20, 900, |_| usual()).await;
    let back = service
        .since(from)
        .iter()
        .position(|second| second.probation.is_empty());
    assert!(back.is_some_and(|back| back <= 605), "{back:?}");
    assert!(service.last().probation.is_empty());
}

/// A layer of the host's that looks at the route for each event, as a debug log might.
struct Looks(crate::route::Route);

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Looks {
    fn on_event(&self, _: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        let (route, (done, waits)) = (self.0.clone(), std::sync::mpsc::channel());
        std::thread::spawn(move || done.send(route.snapshot().probation.len()));
        let seen = waits.recv_timeout(Duration::from_secs(20));
        assert_eq!(seen, Ok(1), "nothing is locked while a change is told");
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_may_look_at_the_route_it_is_about() {
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::util::SubscriberInitExt;

    let mut service = Service::new(3, S, policy(|_| {})).await;
    service.offer(300, 5, |_| usual()).await;
    let host = tracing_subscriber::registry().with(Looks(service.route.clone()));
    let _host = host.set_default();
    service.offer(300, 20, |replica| bad(replica, NEVER)).await;
    assert_eq!(service.last().probation.len(), 1);
}
