//! Silences and acknowledgements in the store: append only, over a restart, and who is told when.

use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::time::Duration;

use hedgerow_control_plane::store::{RESOLVED_KEPT, Store};
use hedgerow_core::effect::{AlertState, Record, Restored, SilenceDraft, SilenceId};
use hedgerow_core::event::{Actor, Via};
use hedgerow_core::moment::Moment;
use hedgerow_core::view::{Acknowledgement, AlertRule, SilenceView};
use hedgerow_protocol::ids::{DependencyName, OperationName};
use tempfile::TempDir;

use crate::running::route;

/// Times are in milliseconds.
const SINCE: u64 = 60_000;

async fn store() -> (TempDir, PathBuf, Store) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("hedgerow.db");
    let store = Store::open(&path).await.unwrap();
    (folder, path, store)
}

async fn opened_again(store: Store, path: &Path) -> (Store, Restored) {
    store.close().await;
    let store = Store::open(path).await.unwrap();
    let restored = store.restore().await.unwrap();
    (store, restored)
}

fn actor() -> Actor {
    Actor {
        name: "ada".into(),
        via: Via::Page,
    }
}

pub(crate) fn alert(resolved: Option<u64>) -> AlertState {
    AlertState {
        id: "e1".into(),
        rule: AlertRule::BudgetExhausted,
        route: route(),
        replica: None,
        summary: "the budget refuses most".into(),
        since: Moment::from_millis(SINCE),
        resolved: resolved.map(Moment::from_millis),
    }
}

pub(crate) fn silence(id: u64, matches: SilenceDraft, since: Moment) -> SilenceView {
    SilenceView {
        id: SilenceId(id),
        ends: since.plus(matches.lasts),
        matches,
        actor: actor(),
        reason: "a test".into(),
        since,
    }
}

fn draft() -> SilenceDraft {
    SilenceDraft {
        lasts: Duration::from_hours(1),
        ..SilenceDraft::default()
    }
}

fn acknowledged(name: &str, until: Option<u64>) -> Record {
    Record::Acknowledged {
        alert: "e1".into(),
        by: Acknowledgement {
            actor: Actor {
                name: name.into(),
                via: Via::Api,
            },
            comment: "on it".into(),
            at: Moment::from_millis(70_000),
            until: until.map(Moment::from_millis),
        },
    }
}

/// Kinds of notices and their receivers, oldest first.
async fn notices(store: &Store) -> Vec<(String, String)> {
    let mut all = store.deliveries(100).await.unwrap();
    all.reverse();
    all.into_iter().map(|it| (it.kind, it.receiver)).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(kind, receiver): &(&str, &str)| ((*kind).into(), (*receiver).into());
    pairs.iter().map(owned).collect()
}

#[tokio::test]
async fn b69_silences_are_found_again_but_for_those_that_were_ended() {
    let (_folder, path, store) = store().await;
    let since = Moment::from_millis(SINCE);
    let whole = SilenceDraft {
        rule: Some(AlertRule::AgentsStale),
        dependency: Some(DependencyName::new("catalog").unwrap()),
        operation: Some(OperationName::new("get").unwrap()),
        replica: Some("r0".into()),
        ..draft()
    };
    let (all, one) = (silence(1, draft(), since), silence(3, whole, since));
    let records = [
        Record::Silence(all.clone()),
        Record::Silence(silence(2, draft(), since)),
        Record::Silence(one.clone()),
        Record::SilenceEnded {
            id: SilenceId(2),
            at: Moment::from_millis(SINCE + 5),
        },
    ];
    store.write(&records, &[]).await.unwrap();
    let (store, restored) = opened_again(store, &path).await;
    assert_eq!(restored.silences, [all, one]);
    assert_eq!(restored.last_silence, SilenceId(3));
    let end = Record::SilenceEnded {
        id: SilenceId(3),
        at: Moment::from_millis(SINCE + 9),
    };
    store.write(&[end], &[]).await.unwrap();
    let (_, restored) = opened_again(store, &path).await;
    assert_eq!(restored.silences.len(), 1);
    assert_eq!(restored.last_silence, SilenceId(3), "used once and for all");
}

#[tokio::test]
async fn s13_silences_and_acknowledgements_cannot_be_changed() {
    let (_folder, _path, store) = store().await;
    let records = [
        Record::Silence(silence(1, draft(), Moment::from_millis(SINCE))),
        Record::SilenceEnded {
            id: SilenceId(1),
            at: Moment::from_millis(SINCE + 5),
        },
        acknowledged("ada", None),
    ];
    store.write(&records, &[]).await.unwrap();
    for statement in [
        "UPDATE silences SET actor = 'nobody'",
        "DELETE FROM silences",
        "INSERT OR REPLACE INTO silences VALUES (1, NULL, NULL, NULL, NULL, 'a', 'api', 'r', 1, 2)",
        "UPDATE silence_ends SET at = 7",
        "DELETE FROM silence_ends",
        "UPDATE acknowledgements SET actor = 'nobody'",
    ] {
        let refused = sqlx::query(statement).execute(store.pool()).await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("append only"), "{statement}: {refused}");
    }
    // An operation without its dependency, and an end before the beginning.
    for values in [
        "(2, NULL, NULL, 'get', NULL, 'a', 'api', 'r', 1, 2)",
        "(2, NULL, NULL, NULL, NULL, 'a', 'api', 'r', 2, 2)",
        "(0, NULL, NULL, NULL, NULL, 'a', 'api', 'r', 1, 2)",
    ] {
        let statement = format!("INSERT INTO silences VALUES {values}");
        let written = sqlx::query(sqlx::AssertSqlSafe(statement)).execute(store.pool());
        assert!(written.await.is_err(), "{values}");
    }
}

#[tokio::test]
async fn p15_receivers_are_told_of_a_silenced_episode_when_it_is_told_and_once() {
    let (_folder, path, store) = store().await;
    let (pager, chat) = (
        ["pager".to_owned()],
        ["pager".to_owned(), "chat".to_owned()],
    );
    store
        .write(&[Record::AlertSilenced(alert(None))], &pager)
        .await
        .unwrap();
    let (store, restored) = opened_again(store, &path).await;
    assert_eq!(restored.alerts, [alert(None)]);
    assert!(restored.untold.contains("e1"));
    assert!(notices(&store).await.is_empty());
    let told = Record::AlertTold {
        alert: alert(None),
        at: Moment::from_millis(SINCE + 3_600_000),
    };
    // Who is configured then is told; a write that is made again tells nobody twice.
    store.write(from_ref(&told), &pager).await.unwrap();
    store.write(&[told], &pager).await.unwrap();
    assert_eq!(notices(&store).await, pairs(&[("firing", "pager")]));
    let written = store.deliveries(1).await.unwrap()[0].at;
    assert_eq!(written, Moment::from_millis(SINCE + 3_600_000));
    let (store, restored) = opened_again(store, &path).await;
    assert!(restored.untold.is_empty());
    let over = Record::Alert(alert(Some(SINCE + 3_700_000)));
    store.write(&[over], &chat).await.unwrap();
    assert_eq!(
        notices(&store).await,
        pairs(&[("firing", "pager"), ("resolved", "pager")])
    );
}

#[tokio::test]
async fn b77_nobody_is_told_that_it_fires_once_it_is_over() {
    let (_folder, path, store) = store().await;
    let pager = ["pager".to_owned()];
    let records = [
        Record::AlertSilenced(alert(None)),
        Record::Alert(alert(Some(SINCE + 9))),
        Record::AlertTold {
            alert: alert(None),
            at: Moment::from_millis(SINCE + 10),
        },
    ];
    store.write(&records, &pager).await.unwrap();
    assert!(notices(&store).await.is_empty());
    let (_, restored) = opened_again(store, &path).await;
    assert!(restored.alerts.is_empty() && restored.untold.is_empty());
}

#[tokio::test]
async fn the_newest_word_on_a_firing_alert_is_found_again_and_goes_with_the_alert() {
    let (_folder, path, store) = store().await;
    let early = [acknowledged("ann", None), Record::Alert(alert(None))];
    store.write(&early, &[]).await.unwrap();
    let newest = acknowledged("bob", Some(90_000));
    store.write(from_ref(&newest), &[]).await.unwrap();
    let (store, restored) = opened_again(store, &path).await;
    let Record::Acknowledged { alert: id, by } = newest else {
        unreachable!()
    };
    assert_eq!(restored.acknowledgements, [(id, by)]);
    let over = Record::Alert(alert(Some(100_000)));
    store.write(&[over], &[]).await.unwrap();
    let (store, restored) = opened_again(store, &path).await;
    assert!(restored.acknowledgements.is_empty());
    let long_after = Moment::from_millis(100_001).plus(RESOLVED_KEPT);
    assert_eq!(store.prune(long_after).await.unwrap(), 1);
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM acknowledgements")
        .fetch_one(store.pool())
        .await
        .unwrap();
    assert_eq!(left, 0);
}
