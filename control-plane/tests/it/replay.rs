//! What a policy would have done: from the store's minutes, by the real binary and over the API.

use std::process::Stdio;
use std::time::Duration;

use hedgerow_control_plane::store::{MINUTES_KEPT, Store};
use hedgerow_core::effect::{ModeState, Record};
use hedgerow_core::minute::{Known, Minute};
use hedgerow_core::moment::Moment;
use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::ids::ModeSequence;
use hedgerow_protocol::latency::{SparseHistogram, bucket_of};
use serde_json::Value;
use tempfile::TempDir;

use crate::process::command;
use crate::running::{hedging, route};

fn now() -> u64 {
    jiff::Timestamp::now().as_millisecond() as u64
}

/// A minute that ended so many minutes ago: a thousand calls, 6 % of them stalled for 200 ms.
fn minute(ago: u64) -> Minute {
    let bucket = |ms| bucket_of(Duration::from_millis(ms)) as u16;
    let calls = [(bucket(10), 500), (bucket(12), 440), (bucket(200), 60)];
    Minute {
        at: Moment::from_millis(now() - ago * 60_000),
        span: Duration::from_mins(1),
        calls: 1_000,
        hedged: 0,
        done: SparseHistogram::try_from_pairs(calls).unwrap(),
        censored: SparseHistogram::default(),
        known: Known {
            errors: Some(0.001),
            phi: Some(0.1),
            off: (10..15).contains(&ago).then_some(OffReason::SharedSlowdown),
        },
    }
}

fn stored(minute: Minute) -> Record {
    Record::Minute {
        route: route(),
        minute: Box::new(minute),
    }
}

/// A store with two hours of `catalog get`, whose policy hedges at p95 within 8 %.
pub(crate) async fn two_hours() -> TempDir {
    let folder = TempDir::new().unwrap();
    let store = Store::open(&folder.path().join("hedgerow.db"))
        .await
        .unwrap();
    let mut records: Vec<_> = (1..=120).rev().map(|ago| stored(minute(ago))).collect();
    records.push(Record::Mode(ModeState {
        route: route(),
        mode: Mode::Observing,
        since: Moment::from_millis(now()),
        sequence: ModeSequence(1),
    }));
    records.push(Record::Policy {
        revision: hedgerow_protocol::ids::Revision(1),
        policy: Box::new(hedging(0.08)),
        actor: hedgerow_core::event::Actor::controller(),
        reason: "a test".into(),
        at: Moment::from_millis(now()),
    });
    store.write(&records, &[]).await.unwrap();
    store.close().await;
    folder
}

fn replay(folder: &TempDir, arguments: &[&str]) -> (bool, String, String) {
    let output = command()
        .current_dir(folder.path())
        .args(["replay", "--store", "hedgerow.db"])
        .args(arguments)
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    (
        output.status.success(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

const CATALOG: [&str; 4] = ["--dependency", "catalog", "--operation", "get"];

#[tokio::test]
async fn minutes_come_back_as_they_were_and_go_after_a_day() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(&folder.path().join("hedgerow.db"))
        .await
        .unwrap();
    let day = MINUTES_KEPT.as_secs() / 60;
    let kept = [minute(day + 5), minute(day - 5), minute(12)];
    store.write(&kept.clone().map(stored), &[]).await.unwrap();
    let read = |store: Store| async move {
        store
            .minutes(&route(), Moment::from_millis(0))
            .await
            .unwrap()
    };
    assert_eq!(read(store.clone()).await, kept);
    store.prune(Moment::from_millis(now())).await.unwrap();
    assert_eq!(read(store).await, kept[1..]);
}

#[tokio::test]
async fn b72_a_minute_that_cannot_be_read_is_left_out_and_the_others_stand() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(&folder.path().join("hedgerow.db"))
        .await
        .unwrap();
    let records: Vec<_> = (1..=3).rev().map(|ago| stored(minute(ago))).collect();
    store.write(&records, &[]).await.unwrap();
    for damage in [
        "UPDATE minutes SET done = x'ff' WHERE id = 1",
        "UPDATE minutes SET layout = 2 WHERE id = 2",
    ] {
        sqlx::query(damage).execute(store.pool()).await.unwrap();
    }
    let left = store
        .minutes(&route(), Moment::from_millis(0))
        .await
        .unwrap();
    assert_eq!(left.len(), 1);
}

#[tokio::test]
async fn the_command_says_what_a_policy_would_have_done() {
    let folder = two_hours().await;
    let (ok, said, error) = replay(&folder, &[&CATALOG[..], &["--json"]].concat());
    assert!(ok, "{error}");
    let replayed: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(replayed["minutes"], 120);
    assert_eq!(replayed["minutes_off"], 5);
    assert_eq!(replayed["hedge_rate_then"], 0);
    let number = |value: &Value| value.as_f64().unwrap();
    let rate = number(&replayed["hedge_rate"]);
    assert!((0.02..0.08).contains(&rate), "{rate}");

    std::fs::write(
        folder.path().join("policy.toml"),
        "percentile = 0.94\nholdout = 0\nbudget = 0.1\n",
    )
    .unwrap();
    let (ok, said, error) = replay(
        &folder,
        &[&CATALOG[..], &["--policy", "policy.toml", "--hours", "1.5"]].concat(),
    );
    assert!(ok, "{error}");
    assert!(said.starts_with("catalog get: "), "{said}");
    for expected in [
        "replayed with hedge at p94",
        "off        5 minutes",
        "off: shared_slowdown",
        "█",
        "░",
    ] {
        assert!(said.contains(expected), "{expected} in {said}");
    }
}

#[tokio::test]
async fn b60_what_the_command_cannot_do_it_says_with_what_was_expected() {
    let folder = two_hours().await;
    std::fs::write(folder.path().join("wrong.toml"), "percentile = 95\n").unwrap();
    std::fs::write(folder.path().join("other.toml"), "dependency = \"cart\"\n").unwrap();
    std::fs::write(folder.path().join("typo.toml"), "percentil = 0.95\n").unwrap();
    let with = |more: &[&'static str]| [&CATALOG[..], more].concat();
    for (arguments, expected) in [
        (with(&["--hours", "25"]), "at most 24"),
        (with(&["--hours", "nan"]), "at most 24"),
        (with(&["--policy", "wrong.toml"]), "from 0.92 to 0.999"),
        (with(&["--policy", "other.toml"]), "expected catalog"),
        (with(&["--policy", "typo.toml"]), "percentil"),
        (with(&["--policy", "none.toml"]), "cannot be read"),
        (
            vec!["--dependency", "catalog", "--operation", "put"],
            "nothing is stored of catalog put",
        ),
    ] {
        let (ok, said, error) = replay(&folder, &arguments);
        assert!(!ok && said.is_empty(), "{arguments:?}: {said}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}
