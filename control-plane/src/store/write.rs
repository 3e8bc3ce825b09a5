//! Writing what the core wants written.

use hedgerow_core::effect::{AlertState, AuditRow, KillState, ModeState, Record, Transition};
use hedgerow_core::event::{Actor, KillScope};
use hedgerow_core::moment::Moment;
use hedgerow_core::view::Point;
use hedgerow_protocol::ids::{Epoch, Revision, RouteKey};
use hedgerow_protocol::policy::{Policy, PolicyScope};
use serde::Serialize;
use sqlx::SqliteConnection;

use crate::store::minutes::write_minute;
use crate::store::{Store, StoreError, rollout, silences};

impl Store {
    /// Writes all of it, or nothing, and returns when it is on disk. A newly firing alert gets a
    /// notice for each of `receivers`; a resolved one for each receiver that has a firing notice.
    pub async fn write(&self, records: &[Record], receivers: &[String]) -> Result<(), StoreError> {
        self.write_batch(&[records], receivers).await
    }

    /// Several writes, in their order, as one transaction.
    pub(crate) async fn write_batch(
        &self,
        writes: &[&[Record]],
        receivers: &[String],
    ) -> Result<(), StoreError> {
        // IMMEDIATE: a transaction that began by reading could be refused when it wants to write.
        let mut transaction = self.writer.begin_with("BEGIN IMMEDIATE").await?;
        for records in writes {
            for record in *records {
                write_one(&mut transaction, record, receivers).await?;
            }
        }
        transaction.commit().await?;
        Ok(())
    }
}

async fn write_one(
    connection: &mut SqliteConnection,
    record: &Record,
    receivers: &[String],
) -> Result<(), StoreError> {
    match record {
        Record::Policy {
            revision,
            policy,
            actor,
            reason,
            at,
        } => {
            let of = (policy.scope(), *revision);
            write_policy(connection, of, Some(policy), actor, reason, *at).await
        }
        Record::PolicyRemoved {
            revision,
            scope,
            actor,
            reason,
            at,
        } => write_policy(connection, (scope, *revision), None, actor, reason, *at).await,
        Record::Kill(kill) => write_kill(connection, kill).await,
        Record::Mode(mode) => write_mode(connection, mode).await,
        Record::Rollout(state) => rollout::write(connection, state).await,
        Record::TrialMode { revision, state } => {
            rollout::write_mode(connection, *revision, state).await
        }
        Record::RolloutEnded(scope) => rollout::end(connection, scope).await,
        Record::Transition(transition) => write_transition(connection, transition).await,
        Record::Audit(row) => write_audit(connection, row).await,
        Record::Alert(alert) => write_alert(connection, alert, receivers).await,
        Record::AlertSilenced(alert) => write_episode(connection, alert, false).await,
        Record::AlertTold { alert, at } => silences::tell(connection, alert, *at, receivers).await,
        Record::Silence(silence) => silences::write(connection, silence).await,
        Record::SilenceEnded { id, at } => silences::end(connection, *id, *at).await,
        Record::Acknowledged { alert, by } => silences::acknowledge(connection, alert, by).await,
        Record::History { route, point } => write_history(connection, route, point).await,
        Record::Minute { route, minute } => write_minute(connection, route, minute).await,
        Record::Epoch(epoch) => write_epoch(connection, *epoch).await,
    }
}

async fn write_epoch(connection: &mut SqliteConnection, epoch: Epoch) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO meta (id, epoch) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET epoch = $1",
    )
    .bind(integer("the epoch", epoch.0)?)
    .execute(connection)
    .await?;
    Ok(())
}

/// A revision of a scope's policy; without one: it is taken away. The column that is called
/// `dependency` holds the scope.
async fn write_policy(
    connection: &mut SqliteConnection,
    (scope, revision): (&PolicyScope, Revision),
    policy: Option<&Policy>,
    actor: &Actor,
    reason: &str,
    at: Moment,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO policies (dependency, revision, json, actor, via, reason, at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(scope.to_string())
    .bind(integer("a revision", revision.0)?)
    .bind(json("policies", &policy)?)
    .bind(&actor.name)
    .bind(actor.via.as_str())
    .bind(reason)
    .bind(time(at)?)
    .execute(connection)
    .await?;
    Ok(())
}

async fn write_kill(connection: &mut SqliteConnection, kill: &KillState) -> Result<(), StoreError> {
    let (scope, dependency) = match &kill.scope {
        KillScope::Everything => ("everything", ""),
        KillScope::Dependency(name) => ("dependency", name.as_str()),
    };
    sqlx::query(
        "INSERT INTO kills (scope, dependency, engaged, actor, via, reason, at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7) \
         ON CONFLICT (scope, dependency) DO UPDATE \
         SET engaged = $3, actor = $4, via = $5, reason = $6, at = $7",
    )
    .bind(scope)
    .bind(dependency)
    .bind(kill.engaged)
    .bind(&kill.actor.name)
    .bind(kill.actor.via.as_str())
    .bind(&kill.reason)
    .bind(time(kill.at)?)
    .execute(connection)
    .await?;
    Ok(())
}

async fn write_mode(connection: &mut SqliteConnection, mode: &ModeState) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO modes (dependency, operation, mode, since, sequence) \
         VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (dependency, operation) DO UPDATE SET mode = $3, since = $4, sequence = $5",
    )
    .bind(mode.route.dependency.as_str())
    .bind(mode.route.operation.as_str())
    .bind(json("modes", &mode.mode)?)
    .bind(time(mode.since)?)
    .bind(integer("a mode's number", mode.sequence.0)?)
    .execute(connection)
    .await?;
    Ok(())
}

async fn write_transition(
    connection: &mut SqliteConnection,
    transition: &Transition,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO transitions (dependency, operation, at, json) VALUES ($1, $2, $3, $4)",
    )
    .bind(transition.route.dependency.as_str())
    .bind(transition.route.operation.as_str())
    .bind(time(transition.at)?)
    .bind(json("transitions", transition)?)
    .execute(connection)
    .await?;
    Ok(())
}

pub(crate) async fn write_audit(
    connection: &mut SqliteConnection,
    row: &AuditRow,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO audit (at, actor, via, action, target, before_value, after_value, reason) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(time(row.at)?)
    .bind(&row.actor.name)
    .bind(row.actor.via.as_str())
    .bind(&row.action)
    .bind(&row.target)
    .bind(&row.before)
    .bind(&row.after)
    .bind(&row.reason)
    .execute(connection)
    .await?;
    Ok(())
}

async fn write_alert(
    connection: &mut SqliteConnection,
    alert: &AlertState,
    receivers: &[String],
) -> Result<(), StoreError> {
    write_episode(connection, alert, true).await?;
    match alert.resolved {
        None => write_firing_notices(connection, alert, alert.since, receivers).await,
        Some(resolved) => write_resolved_notices(connection, alert, resolved).await,
    }
}

/// `told`: whether receivers are told that it begins; nothing that is known of it before changes.
async fn write_episode(
    connection: &mut SqliteConnection,
    alert: &AlertState,
    told: bool,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO alerts \
         (id, rule, dependency, operation, replica, summary, since, resolved, told) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
         ON CONFLICT (id) DO UPDATE SET summary = $6, resolved = $8",
    )
    .bind(&alert.id)
    .bind(alert.rule.as_str())
    .bind(alert.route.dependency.as_str())
    .bind(alert.route.operation.as_str())
    .bind(&alert.replica)
    .bind(&alert.summary)
    .bind(time(alert.since)?)
    .bind(alert.resolved.map(time).transpose()?)
    .bind(told)
    .execute(connection)
    .await?;
    Ok(())
}

/// The table's key makes a second firing notice of the same episode impossible (P15).
pub(super) async fn write_firing_notices(
    connection: &mut SqliteConnection,
    alert: &AlertState,
    at: Moment,
    receivers: &[String],
) -> Result<(), StoreError> {
    let at = time(at)?;
    let state = json("outbox", alert)?;
    for receiver in receivers {
        sqlx::query(
            "INSERT INTO outbox (alert, kind, receiver, json, next_at, at) \
             VALUES ($1, 'firing', $2, $3, $4, $4) ON CONFLICT DO NOTHING",
        )
        .bind(&alert.id)
        .bind(receiver)
        .bind(&state)
        .bind(at)
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// To whoever was told, or is still to be told, that it fires; whoever is configured now. Not to a
/// receiver that the firing notice was given up for: it has no use for the end of what it never saw.
async fn write_resolved_notices(
    connection: &mut SqliteConnection,
    alert: &AlertState,
    resolved: Moment,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO outbox (alert, kind, receiver, json, next_at, at) \
         SELECT alert, 'resolved', receiver, $2, $3, $3 FROM outbox \
         WHERE alert = $1 AND kind = 'firing' AND state <> 'given_up' ON CONFLICT DO NOTHING",
    )
    .bind(&alert.id)
    .bind(json("outbox", alert)?)
    .bind(time(resolved)?)
    .execute(connection)
    .await?;
    Ok(())
}

async fn write_history(
    connection: &mut SqliteConnection,
    route: &RouteKey,
    point: &Point,
) -> Result<(), StoreError> {
    sqlx::query("INSERT INTO history (dependency, operation, at, json) VALUES ($1, $2, $3, $4)")
        .bind(route.dependency.as_str())
        .bind(route.operation.as_str())
        .bind(time(point.at)?)
        .bind(json("history", point)?)
        .execute(connection)
        .await?;
    Ok(())
}

pub(super) fn time(at: Moment) -> Result<i64, StoreError> {
    integer("a time", at.as_millis())
}

pub(super) fn integer(what: &'static str, value: u64) -> Result<i64, StoreError> {
    i64::try_from(value).map_err(|_| StoreError::TooLarge { what })
}

pub(super) fn json(table: &'static str, value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|e| StoreError::Unreadable {
        table,
        row: "a new row".into(),
        problem: e.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use hedgerow_core::event::Via;
    use tempfile::TempDir;

    use super::*;

    fn line(bytes: usize) -> [Record; 1] {
        [Record::Audit(AuditRow {
            at: Moment::from_millis(5),
            actor: Actor {
                name: "ada".into(),
                via: Via::Page,
            },
            action: "policy.set".into(),
            target: "catalog".into(),
            before: String::new(),
            after: String::new(),
            reason: "x".repeat(bytes),
        })]
    }

    #[tokio::test]
    async fn p19_a_full_disk_refuses_one_write_and_not_those_after_it() {
        let folder = TempDir::new().unwrap();
        let store = Store::open(&folder.path().join("hedgerow.db"))
            .await
            .unwrap();
        // A disk without room, as SQLite sees it: the file may not grow. The limit is the
        // connection's own.
        sqlx::query("PRAGMA max_page_count = 1")
            .execute(&store.writer)
            .await
            .unwrap();
        let refused = store.write(&line(1_000_000), &[]).await.unwrap_err();
        let text = refused.in_full();
        assert!(text.starts_with("database or disk is full"), "{text}");
        assert!(matches!(refused, StoreError::Full), "{refused:?}");
        sqlx::query("PRAGMA max_page_count = 1000000")
            .execute(&store.writer)
            .await
            .unwrap();
        for _ in 0..3 {
            store.write(&line(1_000_000), &[]).await.unwrap();
        }
        let lines: i64 = sqlx::query_scalar("SELECT count(*) FROM audit")
            .fetch_one(store.pool())
            .await
            .unwrap();
        assert_eq!(lines, 3, "nothing of the refused one");
    }
    #[tokio::test]
    async fn p19_a_transaction_that_sqlite_ended_by_itself_does_not_keep_the_next_ones_out() {
        let folder = TempDir::new().unwrap();
        let store = Store::open(&folder.path().join("hedgerow.db"))
            .await
            .unwrap();
        // As SQLite does where the disk is full in the midst of a transaction.
        for (statement, fails) in [
            (
                "CREATE TRIGGER ends BEFORE INSERT ON audit \
                 BEGIN SELECT RAISE(ROLLBACK, 'no room'); END",
                true,
            ),
            ("DROP TRIGGER ends", false),
        ] {
            sqlx::query(statement).execute(store.pool()).await.unwrap();
            for _ in 0..2 {
                let written = store.write(&line(1), &[]).await;
                let text = written.map_err(|it| it.in_full());
                assert_eq!(text.is_err(), fails, "{text:?}");
                assert!(!format!("{text:?}").contains("depth"), "{text:?}");
            }
        }
    }
}
