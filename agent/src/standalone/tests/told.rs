//! What the log says, once each: switch-offs, named replicas, policies without a route.

use std::fmt::{Debug, Write};
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use super::load::{Does, S, Service, percent, policy, usual};
use crate::agent::Agent;

/// What was logged: level, message and fields of each event in a line.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// Events of which a line contains this.
    fn with(&self, part: &str) -> Vec<String> {
        let lines = self.0.lock();
        let found = lines.iter().filter(|line| line.contains(part));
        found.cloned().collect()
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let _ = write!(self.0, " {}={value}", field.name());
    }
}

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Log {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().push(line.0);
    }
}

fn log() -> (Log, tracing::subscriber::DefaultGuard) {
    let log = Log::default();
    let guard = tracing_subscriber::registry()
        .with(log.clone())
        .set_default();
    (log, guard)
}

fn failing(share: usize) -> Does {
    Does {
        takes: usual(),
        fails: percent(share),
    }
}

#[tokio::test(start_paused = true)]
async fn a_switch_off_is_told_once_with_its_figures_and_so_is_its_end() {
    let (log, _guard) = log();
    let mut service = Service::new(3, 10 * S, policy(|_| {})).await;
    service.offer(300, 10, |_| usual()).await;
    assert!(
        log.with("hedging")
            .iter()
            .all(|line| !line.starts_with("WARN"))
    );
    service.offer(300, 30, |_| failing(30)).await;
    let [off] = &log.with("hedging switched off")[..] else {
        panic!("{:?}", log.with("hedging"));
    };
    assert!(
        off.starts_with("WARN") && off.contains("route=catalog"),
        "{off}"
    );
    assert!(off.contains("reason=errors"), "{off}");
    assert!(off.contains("error_limit=5.0 %"), "{off}");
    let share = off.split("failing_primaries=").nth(1).unwrap();
    let share: f64 = share.split(' ').next().unwrap().parse().unwrap();
    assert!((15.0..45.0).contains(&share), "{off}");
    assert!(log.with("hedging is on again").is_empty());
    service.offer(300, 30, |_| usual()).await;
    let on = log.with("hedging is on again");
    assert!(on.len() == 1 && on[0].starts_with("INFO"), "{on:?}");
    assert_eq!(log.with("hedging switched off").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_route_that_observes_has_nothing_to_switch_off() {
    let (log, _guard) = log();
    let agent = Agent::builder().service("shop");
    let mut service = Service::build(agent, 3, |route| route.deadline(10 * S)).await;
    service.offer(300, 20, |_| failing(30)).await;
    assert!(log.with("hedging switched off").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_replica_named_without_probation_is_told_once_and_when_it_is_well() {
    let (log, _guard) = log();
    let without = policy(|draft| draft.probation = false);
    let mut service = Service::new(3, 10 * S, without).await;
    service.offer(300, 20, |_| usual()).await;
    let slow = |replica: &hedgerow_protocol::ids::ReplicaName| {
        let times = if replica.as_str() == "r0:1" { 10 } else { 1 };
        usual() * times
    };
    service.offer(300, 30, slow).await;
    let [named] = &log.with("replica named")[..] else {
        panic!("{:?}", log.with("replica"));
    };
    assert!(named.starts_with("WARN"), "{named}");
    assert!(named.contains("why=r0:1 is slow: "), "{named}");
    service.offer(300, 30, |_| usual()).await;
    assert!(log.with("no longer named").is_empty(), "not for a while");
    service.offer(300, 60, |_| usual()).await;
    let well = log.with("no longer named");
    assert!(
        well.len() == 1 && well[0].contains("replica=r0:1"),
        "{well:?}"
    );
    assert_eq!(log.with("probation").len(), 1, "the words of the warning");
}

#[tokio::test(start_paused = true)]
async fn a_replica_on_probation_is_told_of_by_that_alone() {
    let (log, _guard) = log();
    let mut service = Service::new(3, 10 * S, policy(|_| {})).await;
    service.offer(300, 20, |_| usual()).await;
    let slow = |replica: &hedgerow_protocol::ids::ReplicaName| {
        let times = if replica.as_str() == "r0:1" { 10 } else { 1 };
        usual() * times
    };
    service.offer(300, 30, slow).await;
    assert_eq!(log.with("replica put on probation").len(), 1);
    assert!(log.with("replica named").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_policy_for_a_dependency_without_a_route_is_warned_of_once() {
    let (log, _guard) = log();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policies.toml");
    let catalogue = "[[policy]]\ndependency = \"catalogue\"\nintent = \"hedge\"\n";
    std::fs::write(&path, catalogue).unwrap();
    let agent = Agent::builder().service("shop").policy_file(&path);
    let mut service = Service::build(agent, 3, |route| route.deadline(10 * S)).await;
    let taken = log.with("policy taken");
    assert!(
        taken.len() == 1 && taken[0].contains("dependency=catalogue"),
        "{taken:?}"
    );
    service.offer(10, 5, |_| usual()).await;
    let warned = || log.with("that no route has");
    assert!(warned().is_empty(), "routes may still be built");
    service.offer(10, 30, |_| usual()).await;
    let [once] = &warned()[..] else {
        panic!("{:?}", warned());
    };
    assert!(
        once.starts_with("WARN") && once.contains("dependencies=catalogue"),
        "{once}"
    );
    assert!(once.contains("routes=catalog"), "{once}");
    let source = service.route.snapshot().policy.source;
    assert_eq!(
        source.as_str(),
        "none",
        "and the route says that nobody named it"
    );

    // Mended: nothing to say. Broken again: said again.
    std::fs::write(&path, catalogue.replace("catalogue", "catalog")).unwrap();
    service.offer(10, 30, |_| usual()).await;
    assert_eq!(warned().len(), 1);
    assert_eq!(service.route.snapshot().policy.source.as_str(), "file");
    std::fs::write(&path, catalogue).unwrap();
    service.offer(10, 30, |_| usual()).await;
    assert_eq!(warned().len(), 2);
    assert_eq!(log.with("policy no longer in the file").len(), 2);
}
