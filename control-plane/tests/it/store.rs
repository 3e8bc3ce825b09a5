//! The store's file: append only, one controller, old and new releases, notices with what they
//! tell of.

use std::path::PathBuf;

use hedgerow_control_plane::store::{Claim, HISTORY_KEPT, RESOLVED_KEPT, Store, StoreError};
use hedgerow_core::effect::{
    AlertState, AuditRow, KillState, ModeState, Record, RestoredPolicy, RolloutState,
};
use hedgerow_core::event::{Actor, KillScope, Via};
use hedgerow_core::moment::Moment;
use hedgerow_core::rollout::RolloutPlan;
use hedgerow_core::view::{AlertRule, Point};
use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::ids::{Epoch, ModeSequence, Revision};
use hedgerow_protocol::policy::Policy;
use tempfile::TempDir;

use crate::logged::Log;
use crate::running::{hedging, route};

async fn store() -> (TempDir, PathBuf, Store) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("hedgerow.db");
    let store = Store::open(&path).await.unwrap();
    (folder, path, store)
}

fn actor() -> Actor {
    Actor {
        name: "ada".into(),
        via: Via::Page,
    }
}

fn audit() -> Record {
    Record::Audit(AuditRow {
        at: Moment::from_millis(5),
        actor: actor(),
        action: "policy.set".into(),
        target: "catalog".into(),
        before: String::new(),
        after: "{}".into(),
        reason: "a test".into(),
    })
}

fn policy(revision: u64, budget: f64) -> Record {
    Record::Policy {
        revision: Revision(revision),
        policy: Box::new(hedging(budget)),
        actor: actor(),
        reason: "a test".into(),
        at: Moment::from_millis(1_000 + revision),
    }
}

fn alert(resolved: Option<u64>) -> Record {
    Record::Alert(AlertState {
        id: "SharedSlowdown/catalog get/7".into(),
        rule: AlertRule::SharedSlowdown,
        route: route(),
        replica: None,
        summary: "slow together".into(),
        since: Moment::from_millis(7),
        resolved: resolved.map(Moment::from_millis),
    })
}

/// A policy as it is found when a controller starts.
fn stands(revision: u64, policy: Policy, since: Moment) -> RestoredPolicy {
    RestoredPolicy {
        scope: policy.scope().clone(),
        revision: Revision(revision),
        policy: Some(policy),
        since,
    }
}

#[tokio::test]
async fn b69_everything_written_is_found_again() {
    let (_folder, path, store) = store().await;
    let kill = KillState {
        scope: KillScope::Dependency(route().dependency),
        engaged: true,
        actor: actor(),
        reason: "fire".into(),
        at: Moment::from_millis(9),
    };
    let mode = ModeState {
        route: route(),
        mode: Mode::Off(OffReason::Errors),
        since: Moment::from_millis(8),
        sequence: ModeSequence(4),
    };
    let records = [
        Record::Epoch(Epoch(3)),
        policy(1, 0.08),
        policy(2, 0.05),
        Record::Kill(kill.clone()),
        Record::Mode(mode.clone()),
        alert(None),
        audit(),
    ];
    store.write(&records, &[]).await.unwrap();
    store.close().await;

    let restored = Store::open(&path).await.unwrap().restore().await.unwrap();
    assert_eq!(restored.epoch, Epoch(3));
    assert_eq!(
        restored.policies,
        [stands(2, hedging(0.05), Moment::from_millis(1_002))],
        "the newest revision alone"
    );
    assert_eq!(restored.kills, [kill]);
    assert_eq!(restored.modes, [mode]);
    assert_eq!(
        restored.alerts.iter().map(|it| it.rule).collect::<Vec<_>>(),
        [AlertRule::SharedSlowdown]
    );
}

#[tokio::test]
async fn p19_a_write_that_fails_leaves_nothing_of_itself() {
    let (_folder, _path, store) = store().await;
    store.write(&[policy(1, 0.08)], &[]).await.unwrap();
    // The second record breaks the key: the first must not stay.
    let refused = store.write(&[audit(), policy(1, 0.05)], &[]).await;
    assert!(refused.is_err());
    let lines: i64 = sqlx::query_scalar("SELECT count(*) FROM audit")
        .fetch_one(store.pool())
        .await
        .unwrap();
    assert_eq!(lines, 0);
}

#[tokio::test]
async fn s13_the_record_and_old_policies_cannot_be_changed() {
    let (_folder, _path, store) = store().await;
    store.write(&[audit(), policy(1, 0.08)], &[]).await.unwrap();
    for statement in [
        "UPDATE audit SET actor = 'nobody'",
        "DELETE FROM audit",
        "UPDATE policies SET json = '{}'",
        "DELETE FROM policies",
    ] {
        let refused = sqlx::query(statement)
            .execute(store.pool())
            .await
            .unwrap_err();
        assert!(
            refused.to_string().contains("append only"),
            "{statement}: {refused}"
        );
    }
}

#[tokio::test]
async fn b60_rows_with_nothing_in_them_are_refused_where_they_are_written() {
    let (_folder, _path, store) = store().await;
    for statement in [
        "INSERT INTO policies VALUES ('', 1, '{}', 'a', 'api', 'r', 1)",
        "INSERT INTO policies VALUES ('catalog', 0, '{}', 'a', 'api', 'r', 1)",
        "INSERT INTO policies VALUES ('catalog', 1, NULL, 'a', 'api', 'r', 1)",
        "INSERT INTO policies VALUES ('catalog', 1, 'not json', 'a', 'api', 'r', 1)",
        "INSERT INTO kills VALUES ('everywhere', '', 1, 'a', 'api', 'r', 1)",
        "INSERT INTO modes VALUES ('catalog', 'get', NULL, 1, 1)",
    ] {
        assert!(
            sqlx::query(statement).execute(store.pool()).await.is_err(),
            "{statement}"
        );
    }
    // One that a shell got in all the same is not put in force; the log says where it is and what
    // is wrong with it.
    let log = Log::default();
    let _guard = log.capture();
    sqlx::query(
        "INSERT INTO policies VALUES ('catalog', 1, \
         '{\"dependency\":\"catalog\",\"intent\":\"hedge\",\"percentile\":95,\"budget\":0}', \
         'a', 'api', 'r', 1)",
    )
    .execute(store.pool())
    .await
    .unwrap();
    let restored = store.restore().await.unwrap();
    let observing = Policy::observing(route().dependency.into());
    let at = Moment::from_millis(1);
    assert_eq!(restored.policies, [stands(1, observing, at)]);
    let error = log.text();
    for part in [
        "ERROR",
        "policies",
        "catalog",
        "percentile",
        "0.92 to 0.999",
        "budget",
    ] {
        assert!(error.contains(part), "{part} in: {error}");
    }
}

#[tokio::test]
async fn a_store_of_a_newer_release_is_refused_and_left_alone() {
    let (_folder, path, store) = store().await;
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         VALUES (9999, 'from the future', 1, x'00', 0)",
    )
    .execute(store.pool())
    .await
    .unwrap();
    store.close().await;
    let error = Store::open(&path).await.unwrap_err();
    assert!(
        matches!(error, StoreError::Newer { version: 9999, .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("newer release"), "{error}");
}

#[tokio::test]
async fn what_cannot_be_a_store_is_refused_with_what_was_expected() {
    let folder = TempDir::new().unwrap();
    let other = folder.path().join("notes.txt");
    std::fs::write(
        &other,
        "these are not the bytes of a database, and there are many of them\n".repeat(99),
    )
    .unwrap();
    let before = std::fs::read(&other).unwrap();
    for (path, part) in [
        (other.clone(), "not a store of Hedgerow"),
        (folder.path().to_owned(), "expected a file"),
        (
            folder.path().join("nowhere").join("hedgerow.db"),
            "existing, writable folder",
        ),
    ] {
        let error = Store::open(&path).await.unwrap_err().to_string();
        assert!(error.contains(part), "{part} in: {error}");
    }
    assert_eq!(std::fs::read(&other).unwrap(), before, "left as it was");
}

#[tokio::test]
async fn a_new_store_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_folder, path, _store) = store().await;
    for suffix in ["", "-wal", "-shm"] {
        let path = format!("{}{suffix}", path.display());
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{path}: {mode:o}");
    }
}

#[tokio::test]
async fn a_store_has_one_controller() {
    let (folder, path, _store) = store().await;
    let first = Claim::take(&path).unwrap();
    let error = Claim::take(&path).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error:?}");
    let alias = folder.path().join("alias.db");
    std::os::unix::fs::symlink(&path, &alias).unwrap();
    let error = Claim::take(&alias).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error:?}");
    drop(first);
    Claim::take(&path).unwrap();
}

#[test]
fn a_store_that_a_link_leads_to_has_one_controller_before_it_is_made() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("later.db");
    let alias = folder.path().join("alias.db");
    std::os::unix::fs::symlink("later.db", &alias).unwrap();
    let _first = Claim::take(&alias).unwrap();
    let error = Claim::take(&path).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error:?}");
}

#[tokio::test]
async fn b69_a_policy_that_cannot_be_read_is_observing_and_its_number_stays() {
    let (_folder, _path, store) = store().await;
    store.write(&[policy(1, 0.08)], &[]).await.unwrap();
    sqlx::query(
        "INSERT INTO policies (dependency, revision, json, actor, via, reason, at) \
         VALUES ('catalog', 2, '{\"intent\": \"guess\"}', 'ada', 'page', 'by hand', 1002)",
    )
    .execute(store.pool())
    .await
    .unwrap();
    let restored = store.restore().await.unwrap();
    let observing = Policy::observing(route().dependency.into());
    let at = Moment::from_millis(1_002);
    assert_eq!(restored.policies, [stands(2, observing, at)]);
    let readable = store
        .policy_history(&route().dependency.into())
        .await
        .unwrap();
    let numbers: Vec<_> = readable.iter().map(|it| it.revision).collect();
    assert_eq!(numbers, [Revision(1)]);
}

#[tokio::test]
async fn p15_one_firing_and_one_resolved_notice_for_each_receiver_that_was_told() {
    let (_folder, _path, store) = store().await;
    let receivers = ["pager".to_owned(), "chat".to_owned()];
    store.write(&[alert(None)], &receivers).await.unwrap();
    // Said again, as after a restart, and with another receiver by now.
    let later = ["pager".to_owned(), "mail".to_owned()];
    store.write(&[alert(None)], &later[..1]).await.unwrap();
    store.write(&[alert(Some(90))], &later).await.unwrap();
    store.write(&[alert(Some(90))], &later).await.unwrap();
    let notices: Vec<(String, String)> =
        sqlx::query_as("SELECT receiver, kind FROM outbox ORDER BY receiver, kind")
            .fetch_all(store.pool())
            .await
            .unwrap();
    let expected = [
        ("chat", "firing"),
        ("chat", "resolved"),
        ("pager", "firing"),
        ("pager", "resolved"),
    ];
    assert_eq!(
        notices,
        expected.map(|(receiver, kind)| (receiver.into(), kind.into()))
    );
    assert!(store.restore().await.unwrap().alerts.is_empty());
}

#[tokio::test]
async fn b75_history_is_let_go_of_in_small_steps_and_readers_hold_nothing_up() {
    let (_folder, path, store) = store().await;
    let now = Moment::from_millis(1_000_000_000_000);
    let old = now.as_millis() - HISTORY_KEPT.as_millis() as u64;
    let point = |at: u64| Record::History {
        route: route(),
        point: Point {
            at: Moment::from_millis(at),
            ..Point::default()
        },
    };
    let points: Vec<Record> = (0..3_000).map(|n| point(old - 1_500 + n)).collect();
    store.write(&points, &[]).await.unwrap();

    // Somebody reads, and does not let go.
    let mut reader = store.pool().begin().await.unwrap();
    let seen: i64 = sqlx::query_scalar("SELECT count(*) FROM history")
        .fetch_one(&mut *reader)
        .await
        .unwrap();
    assert_eq!(seen, 3_000);
    assert_eq!(store.prune(now).await.unwrap(), 1_500);
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM history")
        .fetch_one(store.pool())
        .await
        .unwrap();
    assert_eq!(left, 1_500, "the newest stay");
    reader.rollback().await.unwrap();

    for n in 0..200 {
        store
            .write(&[point(now.as_millis() + n)], &[])
            .await
            .unwrap();
    }
    let log = std::fs::metadata(path.with_extension("db-wal"))
        .unwrap()
        .len();
    assert!(log < 16 << 20, "{log} bytes of log");
}

#[tokio::test]
async fn alerts_that_are_over_are_let_go_of_with_their_notices_after_thirty_days() {
    let (_folder, _path, store) = store().await;
    let now = Moment::from_millis(1_000_000_000_000);
    let line = now.as_millis() - RESOLVED_KEPT.as_millis() as u64;
    let state = |id: &str, resolved: Option<u64>| {
        Record::Alert(AlertState {
            id: id.into(),
            resolved: resolved.map(Moment::from_millis),
            since: Moment::from_millis(7),
            rule: AlertRule::SharedSlowdown,
            route: route(),
            replica: None,
            summary: "slow together".into(),
        })
    };
    let receivers = ["pager".to_owned()];
    let ids: Vec<String> = (0..1_200).map(|n| format!("old-{n}")).collect();
    let ends = [
        ("recent", Some(line + 1)),
        ("on its way", Some(line - 1)),
        ("firing", None),
    ];
    let mut records = Vec::new();
    for (id, end) in ids
        .iter()
        .map(|id| (id.as_str(), Some(line - 1)))
        .chain(ends)
    {
        records.extend([state(id, None), state(id, end)]);
    }
    store.write(&records, &receivers).await.unwrap();
    sqlx::query("UPDATE outbox SET state = 'delivered' WHERE alert <> 'on its way'")
        .execute(store.pool())
        .await
        .unwrap();

    assert_eq!(store.prune(now).await.unwrap(), 1_200);
    let left = async |sql: &'static str| {
        sqlx::query_scalar::<_, String>(sql)
            .fetch_all(store.pool())
            .await
            .unwrap()
    };
    let kept = ["firing", "on its way", "recent"];
    assert_eq!(left("SELECT id FROM alerts ORDER BY id").await, kept);
    assert_eq!(
        left("SELECT DISTINCT alert FROM outbox ORDER BY alert").await,
        kept
    );
}

#[tokio::test]
async fn the_newest_point_of_each_route_with_a_mode_is_found_again() {
    let (_folder, path, store) = store().await;
    let mode = Record::Mode(ModeState {
        route: route(),
        mode: Mode::On,
        since: Moment::from_millis(1),
        sequence: ModeSequence(1),
    });
    let point = |at, base| Point {
        at: Moment::from_millis(at),
        base_ms: Some(base),
        ..Point::default()
    };
    let history = |point| Record::History {
        route: route(),
        point,
    };
    let records = [
        mode,
        history(point(20_000, 2.5)),
        history(point(10_000, 1.5)),
    ];
    store.write(&records, &[]).await.unwrap();
    store.close().await;
    let restored = Store::open(&path).await.unwrap().restore().await.unwrap();
    assert_eq!(restored.points, [(route(), point(20_000, 2.5))]);
}

#[tokio::test]
async fn b69_a_rollout_is_found_again_until_it_is_over() {
    let (_folder, path, store) = store().await;
    let rollout = |revision: u64, stage: usize| RolloutState {
        scope: route().dependency.into(),
        revision: Revision(revision),
        base: Revision(revision - 1),
        plan: RolloutPlan::default(),
        stage,
        since: Moment::from_millis(50 + stage as u64),
        actor: actor(),
    };
    let trial_mode = |revision: u64, sequence: u64| Record::TrialMode {
        revision: Revision(revision),
        state: ModeState {
            route: route(),
            mode: Mode::On,
            since: Moment::from_millis(8),
            sequence: ModeSequence(sequence),
        },
    };
    let records = [
        policy(1, 0.08),
        policy(2, 0.05),
        Record::Rollout(rollout(2, 0)),
        trial_mode(2, 4),
        Record::Rollout(rollout(2, 1)),
        trial_mode(2, 5),
    ];
    store.write(&records, &[]).await.unwrap();
    store.close().await;

    let store = Store::open(&path).await.unwrap();
    let restored = store.restore().await.unwrap();
    assert_eq!(
        restored.policies[0].revision,
        Revision(2),
        "the newest, as ever"
    );
    let found = &restored.rollouts[0];
    assert_eq!(found.state, rollout(2, 1));
    let base = (hedging(0.08), Moment::from_millis(1_001));
    assert_eq!(found.base, Some((Some(base.0), base.1)));
    let sequences: Vec<_> = found.modes.iter().map(|it| it.sequence).collect();
    assert_eq!(sequences, [ModeSequence(5)], "the newest of the route");

    // Another one in its place: what was left of the first, and comes late, is not its own.
    let records = [
        policy(3, 0.06),
        Record::Rollout(rollout(3, 0)),
        trial_mode(2, 6),
    ];
    store.write(&records, &[]).await.unwrap();
    let found = store.restore().await.unwrap().rollouts.remove(0);
    assert_eq!((found.state.revision, found.modes.len()), (Revision(3), 0));

    let ended = [Record::RolloutEnded(route().dependency.into())];
    store.write(&ended, &[]).await.unwrap();
    assert!(store.restore().await.unwrap().rollouts.is_empty());
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM trial_modes")
        .fetch_one(store.pool())
        .await
        .unwrap();
    assert_eq!(left, 0);
}
