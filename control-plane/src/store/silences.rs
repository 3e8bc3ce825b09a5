//! Silences, and who works on which alert.

use std::collections::BTreeSet;

use hedgerow_core::effect::{AlertState, SilenceDraft, SilenceId};
use hedgerow_core::event::Actor;
use hedgerow_core::moment::Moment;
use hedgerow_core::view::{Acknowledgement, AlertRule, SilenceView};
use hedgerow_protocol::ids::{DependencyName, NameError, OperationName};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, SqliteConnection, query, query_scalar};

use super::restore::{counter, moment, named, unreadable, via};
use super::write::{integer, time, write_firing_notices};
use super::{Store, StoreError};

const TABLE: &str = "silences";

/// A silence begins.
pub(super) async fn write(
    connection: &mut SqliteConnection,
    silence: &SilenceView,
) -> Result<(), StoreError> {
    let matches = &silence.matches;
    query(
        "INSERT INTO silences \
         (id, rule, dependency, operation, replica, actor, via, reason, since, ends) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(integer("a silence's number", silence.id.0)?)
    .bind(matches.rule.map(AlertRule::as_str))
    .bind(matches.dependency.as_ref().map(DependencyName::as_str))
    .bind(matches.operation.as_ref().map(OperationName::as_str))
    .bind(&matches.replica)
    .bind(&silence.actor.name)
    .bind(silence.actor.via.as_str())
    .bind(&silence.reason)
    .bind(time(silence.since)?)
    .bind(time(silence.ends)?)
    .execute(connection)
    .await?;
    Ok(())
}

/// It ends before its time.
pub(super) async fn end(
    connection: &mut SqliteConnection,
    id: SilenceId,
    at: Moment,
) -> Result<(), StoreError> {
    query("INSERT INTO silence_ends (silence, at) VALUES ($1, $2)")
        .bind(integer("a silence's number", id.0)?)
        .bind(time(at)?)
        .execute(connection)
        .await?;
    Ok(())
}

/// Nothing silences an episode any longer: its firing notices, unless it is over already (B77).
pub(super) async fn tell(
    connection: &mut SqliteConnection,
    alert: &AlertState,
    at: Moment,
    receivers: &[String],
) -> Result<(), StoreError> {
    let told = query("UPDATE alerts SET told = 1 WHERE id = $1 AND resolved IS NULL")
        .bind(&alert.id)
        .execute(&mut *connection)
        .await?;
    if told.rows_affected() == 0 {
        return Ok(());
    }
    write_firing_notices(connection, alert, at, receivers).await
}

/// Somebody works on an alert.
pub(super) async fn acknowledge(
    connection: &mut SqliteConnection,
    alert: &str,
    by: &Acknowledgement,
) -> Result<(), StoreError> {
    query(
        "INSERT INTO acknowledgements (alert, actor, via, comment, at, until) \
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(alert)
    .bind(&by.actor.name)
    .bind(by.actor.via.as_str())
    .bind(&by.comment)
    .bind(time(by.at)?)
    .bind(by.until.map(time).transpose()?)
    .execute(connection)
    .await?;
    Ok(())
}

impl Store {
    /// Silences that nobody ended, also those whose time is over: what time it is the core says.
    pub(super) async fn silences(&self) -> Result<Vec<SilenceView>, StoreError> {
        let rows = query(
            "SELECT id, rule, dependency, operation, replica, actor, via, reason, since, ends \
             FROM silences WHERE id NOT IN (SELECT silence FROM silence_ends) ORDER BY id",
        )
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(silence).collect()
    }

    /// The last number a silence had; 0: there was none.
    pub(super) async fn last_silence(&self) -> Result<SilenceId, StoreError> {
        let row = query("SELECT coalesce(max(id), 0) AS id FROM silences")
            .fetch_one(&self.pool)
            .await?;
        Ok(SilenceId(counter(TABLE, &row, "id")?))
    }

    /// Firing alerts that no receiver was told of.
    pub(super) async fn untold(&self) -> Result<BTreeSet<String>, StoreError> {
        let ids: Vec<String> =
            query_scalar("SELECT id FROM alerts WHERE resolved IS NULL AND told = 0")
                .fetch_all(&self.pool)
                .await?;
        Ok(ids.into_iter().collect())
    }

    /// The newest word on each firing alert.
    pub(super) async fn acknowledgements(
        &self,
    ) -> Result<Vec<(String, Acknowledgement)>, StoreError> {
        let rows = query(
            "SELECT a.alert, a.actor, a.via, a.comment, a.at, a.until \
             FROM alerts JOIN acknowledgements a ON a.id = ( \
                 SELECT id FROM acknowledgements WHERE alert = alerts.id ORDER BY id DESC LIMIT 1) \
             WHERE alerts.resolved IS NULL ORDER BY a.id",
        )
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(acknowledgement).collect()
    }
}

fn silence(row: &SqliteRow) -> Result<SilenceView, StoreError> {
    let id = SilenceId(counter(TABLE, row, "id")?);
    let at = format!("silence {}", id.0);
    let rule: Option<String> = row.try_get("rule")?;
    let (since, ends) = (moment(TABLE, row, "since")?, moment(TABLE, row, "ends")?);
    Ok(SilenceView {
        id,
        matches: SilenceDraft {
            rule: rule.map(|name| named(TABLE, &at, name)).transpose()?,
            dependency: name(row, "dependency", DependencyName::new, &at)?,
            operation: name(row, "operation", OperationName::new, &at)?,
            replica: row.try_get("replica")?,
            lasts: ends.since(since),
        },
        actor: actor(TABLE, row)?,
        reason: row.try_get("reason")?,
        since,
        ends,
    })
}

fn name<T>(
    row: &SqliteRow,
    column: &str,
    parse: fn(&str) -> Result<T, NameError>,
    at: &str,
) -> Result<Option<T>, StoreError> {
    let text: Option<String> = row.try_get(column)?;
    let name = text.as_deref().map(parse).transpose();
    name.map_err(|problem| unreadable(TABLE, at, &problem))
}

fn acknowledgement(row: &SqliteRow) -> Result<(String, Acknowledgement), StoreError> {
    const TABLE: &str = "acknowledgements";
    let until: Option<i64> = row.try_get("until")?;
    let by = Acknowledgement {
        actor: actor(TABLE, row)?,
        comment: row.try_get("comment")?,
        at: moment(TABLE, row, "at")?,
        until: until.map(|_| moment(TABLE, row, "until")).transpose()?,
    };
    Ok((row.try_get("alert")?, by))
}

fn actor(table: &'static str, row: &SqliteRow) -> Result<Actor, StoreError> {
    Ok(Actor {
        name: row.try_get("actor")?,
        via: via(table, row)?,
    })
}
