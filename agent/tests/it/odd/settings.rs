//! Settings and files as nobody meant them.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use hedgerow_agent::{Agent, Call, NoEffect, Replicas};
use prometheus::{Registry, TextEncoder};
use tokio::time::{sleep, timeout};

use super::{MS, route};

#[tokio::test]
async fn x40_an_agent_built_anew_finds_room_in_the_same_registry() {
    let registry = Registry::new();
    for _ in 0..3 {
        let agent = Agent::builder().registry(registry.clone());
        let agent = agent.connect().await.unwrap();
        let _route = agent.route("catalog", "get").build().unwrap();
        agent.shutdown().await;
        assert!(!registry.gather().is_empty());
    }
    assert!(registry.gather().is_empty());
}

#[tokio::test]
async fn x41_a_device_without_end_is_no_token_and_no_certificate() {
    let builder = || Agent::builder().controller("http://127.0.0.1:1");
    let token = builder().token_file("/dev/zero");
    let certificate = builder()
        .token("token".to_owned().into())
        .ca_certificate_file("/dev/zero");
    for builder in [token, certificate] {
        let connected = timeout(Duration::from_secs(20), builder.connect()).await;
        let error = connected.unwrap().unwrap_err().to_string();
        assert!(error.ends_with("cannot read /dev/zero"), "{error}");
    }
}

#[tokio::test]
async fn x42_a_budget_that_is_too_small_for_the_bucket_is_shown_as_no_effect() {
    for budget in [f64::MIN_POSITIVE, 1e-12, 5e-8] {
        let (_agent, route, _) = route(|policy| policy.budget = budget).await;
        assert_eq!(
            route.snapshot().no_effect,
            Some(NoEffect::Budget),
            "{budget}"
        );
    }
    let (_agent, route, _) = route(|policy| policy.budget = 1e-6).await;
    assert_eq!(route.snapshot().no_effect, None);
}

fn refused(registry: &Registry) -> u64 {
    let text = TextEncoder::new()
        .encode_to_string(&registry.gather())
        .unwrap();
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix("hedgerow_policy_file_refused_total "));
    line.unwrap().parse().unwrap()
}

type Make<'a> = &'a dyn Fn(&Path);

/// Puts what the command makes at `path` in its place, at once.
fn put(path: &Path, make: impl FnOnce(&Path)) {
    let new = path.with_extension("new");
    make(&new);
    if path.is_dir() {
        std::fs::remove_dir(path).unwrap();
    }
    if new.is_dir() {
        std::fs::remove_file(path).unwrap();
    }
    std::fs::rename(new, path).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x43_whatever_takes_the_policy_files_place_the_last_good_policy_holds() {
    const GOOD: &str = "[[policy]]\ndependency = \"catalog\"\nintent = \"hedge\"\nbudget = 0.07\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policies.toml");
    std::fs::write(&path, GOOD).unwrap();
    let registry = Registry::new();
    let agent = Agent::builder()
        .policy_file(&path)
        .registry(registry.clone())
        .connect()
        .await
        .unwrap();
    let route = agent.route("catalog", "get").build().unwrap();
    let places: [(&str, Make<'_>); 6] = [
        ("a pipe", &|path| {
            assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        }),
        ("a link to nowhere", &|path| {
            std::os::unix::fs::symlink("/nowhere", path).unwrap();
        }),
        ("a folder", &|path| std::fs::create_dir(path).unwrap()),
        ("a link to itself", &|path| {
            std::os::unix::fs::symlink("policies.toml", path).unwrap();
        }),
        ("a device", &|path| {
            std::os::unix::fs::symlink("/dev/zero", path).unwrap();
        }),
        ("ten megabytes", &|path| {
            std::fs::write(path, vec![b'#'; 10 << 20]).unwrap();
        }),
    ];
    for (nth, (what, make)) in (1..).zip(places) {
        put(&path, make);
        let began = Instant::now();
        while refused(&registry) < nth {
            assert!(began.elapsed() < Duration::from_secs(40), "{what}");
            sleep(50 * MS).await;
        }
        assert_eq!(route.snapshot().effective.budget.get(), 0.07, "{what}");
    }
    put(&path, |path| {
        std::fs::write(path, GOOD.replace("0.07", "0.06")).unwrap();
    });
    let began = Instant::now();
    while route.snapshot().effective.budget.get() != 0.06 {
        assert!(began.elapsed() < Duration::from_secs(40));
        sleep(50 * MS).await;
    }
}

#[tokio::test(start_paused = true)]
async fn x44_deadlines_and_thresholds_at_their_extremes() {
    for threshold in [0.1, 3_600_000.0] {
        let (_agent, route, _) = route(|policy| {
            policy.threshold_min_ms = Some(threshold);
            policy.threshold_max_ms = Some(threshold);
        })
        .await;
        for deadline in [
            Duration::ZERO,
            Duration::from_nanos(1),
            Duration::from_hours(24),
            Duration::MAX,
        ] {
            for _ in 0..100 {
                let call = Call::idempotent().deadline(deadline);
                let answers = route.call(call.clone(), async |_| Ok::<_, ()>(())).await;
                assert!(answers.is_ok(), "what is there at once is in time");
                if deadline < Duration::from_hours(1) {
                    let never = route.call(call, |_| std::future::pending::<Result<(), ()>>());
                    assert!(never.await.is_err());
                }
            }
        }
        let now = route.snapshot();
        assert_eq!(now.totals.started, 600);
        assert_eq!(
            now.attempts_in_flight,
            u64::from(now.effective.watched_losers)
        );
    }
}

#[tokio::test]
async fn x45_names_made_of_anything_are_refused_and_routes_without_number_work() {
    let agent = Agent::builder().connect().await.unwrap();
    let long = "x".repeat(10_000);
    for name in [
        "a\"b",
        "a\nb",
        "a b",
        "\u{202e}a",
        "ä",
        "{}",
        "a,b",
        &long,
        "",
        "..",
    ] {
        assert!(agent.route(name, "get").build().is_err(), "{name:?}");
        assert!(agent.route("catalog", name).build().is_err(), "{name:?}");
        assert!(Replicas::new([(name, None)]).is_err(), "{name:?}");
        assert!(Replicas::new([("a:1", Some(name))]).is_err(), "{name:?}");
    }
    assert!(Replicas::new(std::iter::repeat(("a:1", None))).is_err());
    for nth in 0..3_000 {
        let replicas = Replicas::new([("a:1", None), ("b:1", None)]).unwrap();
        let route = agent.route("catalog", &format!("user-{nth}"));
        let route = route.replicas(replicas).build().unwrap();
        for _ in 0..3 {
            let answer = route
                .call(Call::idempotent(), move |_| async move { Ok::<_, ()>(nth) })
                .await;
            assert_eq!(answer, Ok(nth));
        }
    }
    let json = serde_json::to_string(&agent.snapshot()).unwrap();
    assert!(json.len() < 200_000, "{} bytes", json.len());
}
