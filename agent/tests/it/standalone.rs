//! An agent without a controller, over real sockets: the pieces of `examples/standalone.rs`.

use std::path::Path;
use std::time::{Duration, Instant};

use hedgerow_agent::protocol::directive::{Mode, OffReason};
use hedgerow_agent::{Agent, NamedFor, Route, RouteSnapshot};
use tokio::time::sleep;

#[path = "../../examples/standalone.rs"]
#[allow(dead_code, reason = "its main is not run here")]
mod example;

async fn eventually(route: &Route, what: &str, holds: impl Fn(&RouteSnapshot) -> bool) {
    let began = Instant::now();
    while !holds(&route.snapshot()) {
        let waited = began.elapsed();
        assert!(
            waited < Duration::from_mins(1),
            "{what}: {:?}",
            route.snapshot().effective
        );
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b08_the_example_finds_its_threshold_names_the_slow_server_and_follows_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policies.toml");
    std::fs::write(&path, example::POLICY).unwrap();
    let mut servers = vec![];
    for _ in 0..3 {
        servers.push(example::Server::start().await.unwrap());
    }
    let agent = example::agent(&path).await.unwrap();
    let route = example::route(&agent, &servers).unwrap();
    let before = route.snapshot().totals;
    let load = tokio::spawn(example::load(route.clone()));
    eventually(&route, "a threshold", |now| {
        now.effective.threshold.is_some()
    })
    .await;
    let line = example::line(&before, &route.snapshot());
    assert!(
        line.starts_with("on  ") && line.contains("threshold "),
        "{line}"
    );

    servers[2].slow_down(10);
    let slow = servers[2].address.to_string();
    eventually(&route, "named and on probation", |now| {
        let named = now.named.iter().any(|named| {
            named.replica.as_str() == slow && named.why == NamedFor::Slow && named.share > 0.5
        });
        named && now.probation.iter().any(|on| on.as_str() == slow)
    })
    .await;
    let line = example::line(&before, &route.snapshot());
    assert!(line.contains(&format!("{slow} is slow: ")), "{line}");

    replace(&path, &example::POLICY.replace("\"hedge\"", "\"off\""));
    let off = Mode::Off(OffReason::Policy);
    eventually(&route, "off, as the file says", |now| {
        now.effective.mode == off
    })
    .await;
    let hedged = route.snapshot().totals.hedged;
    assert!(hedged > 0);
    sleep(Duration::from_secs(1)).await;
    let now = route.snapshot();
    assert_eq!(now.totals.hedged, hedged);
    assert!(now.probation.is_empty(), "off is off for that, too");
    load.abort();
}

fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}

/// An error with all of its causes.
fn whole(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

#[tokio::test]
async fn a_policy_file_that_cannot_stand_is_an_error_at_connect_that_says_where() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policies.toml");
    let refused = async || {
        let agent = Agent::builder().service("shop").policy_file(&path);
        whole(&agent.connect().await.err().unwrap())
    };
    let error = refused().await;
    assert!(error.starts_with("policy_file: cannot read "), "{error}");
    std::fs::write(
        &path,
        "[[policy]]\ndependency = \"catalog\"\nbudget = 0.9\n",
    )
    .unwrap();
    let error = refused().await;
    let expected = "line 1, column 1: [[policy]] for \"catalog\": budget: ";
    assert!(
        error.contains(expected) && error.contains("0.25"),
        "{error}"
    );
    std::fs::write(
        &path,
        "[[policy]]\ndependency = \"catalog\"\npercentil = 0.9\n",
    )
    .unwrap();
    let error = refused().await;
    assert!(
        error.contains("line 3, column 1: unknown field `percentil`"),
        "{error}"
    );
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let error = refused().await;
    assert!(
        error.ends_with("not a regular file; expected one"),
        "{error}"
    );
}

#[tokio::test]
async fn a_policy_file_and_a_controller_exclude_each_other() {
    let agent = Agent::builder()
        .controller("http://127.0.0.1:7420")
        .token("token".to_owned().into())
        .policy_file("/nowhere/policies.toml");
    let error = agent.connect().await.err().unwrap().to_string();
    assert!(
        error.starts_with("policy_file: the agent has a controller"),
        "{error}"
    );
}

#[tokio::test]
async fn the_policy_file_shows_in_the_hosts_registry() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policies.toml");
    std::fs::write(&path, example::POLICY).unwrap();
    let registry = prometheus::Registry::new();
    let agent = Agent::builder()
        .service("shop")
        .policy_file(&path)
        .registry(registry.clone());
    let agent = agent.connect().await.unwrap();
    let _route = agent.route("catalog", "get").build().unwrap();
    let text = prometheus::TextEncoder::new()
        .encode_to_string(&registry.gather())
        .unwrap();
    let route = r#"dependency="catalog",operation="get""#;
    for line in [
        "hedgerow_policy_file_policies 1".to_owned(),
        "hedgerow_policy_file_refused_total 0".to_owned(),
        format!(r#"hedgerow_mode{{{route},mode="on",reason=""}} 1"#),
        format!(r#"hedgerow_no_effect{{{route},because="no_replicas"}} 1"#),
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "{line} is not in\n{text}"
        );
    }
}
