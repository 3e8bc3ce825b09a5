//! Letting go of what is old: history, and alerts that are over with their notices.

use std::time::Duration;

use hedgerow_core::moment::Moment;

use super::accounts::ago;
use super::{MINUTES_KEPT, Store, StoreError};

/// How long history is kept.
pub const HISTORY_KEPT: Duration = Duration::from_hours(7 * 24);

/// How long an alert that is over is kept, with its notices.
pub const RESOLVED_KEPT: Duration = Duration::from_hours(30 * 24);

/// Rows in one transaction: some milliseconds, so that no other write waits for long (B75).
const BATCH: i64 = 500;

impl Store {
    /// Deletes history older than [`HISTORY_KEPT`], minutes older than [`MINUTES_KEPT`], and alerts that ended longer than
    /// [`RESOLVED_KEPT`] ago with their notices, in small transactions; says how many rows
    /// went.
    pub async fn prune(&self, now: Moment) -> Result<u64, StoreError> {
        let mut gone = 0;
        loop {
            let points = self.prune_history(ago(now, HISTORY_KEPT)).await?;
            let minutes = self.prune_minutes(ago(now, MINUTES_KEPT)).await?;
            let alerts = self.prune_alerts(ago(now, RESOLVED_KEPT)).await?;
            gone += points + minutes + alerts;
            if points.max(minutes).max(alerts) < BATCH.unsigned_abs() {
                return Ok(gone);
            }
            // The writer's connection is free between two batches; let whoever waits have it.
            tokio::task::yield_now().await;
        }
    }

    /// One batch of points.
    async fn prune_history(&self, before: i64) -> Result<u64, StoreError> {
        let deleted = sqlx::query(
            "DELETE FROM history WHERE id IN \
             (SELECT id FROM history WHERE at < $1 ORDER BY at LIMIT $2)",
        )
        .bind(before)
        .bind(BATCH)
        .execute(&self.writer)
        .await?;
        Ok(deleted.rows_affected())
    }

    /// One batch of minutes.
    async fn prune_minutes(&self, before: i64) -> Result<u64, StoreError> {
        let deleted = sqlx::query(
            "DELETE FROM minutes WHERE id IN \
             (SELECT id FROM minutes WHERE at < $1 ORDER BY at LIMIT $2)",
        )
        .bind(before)
        .bind(BATCH)
        .execute(&self.writer)
        .await?;
        Ok(deleted.rows_affected())
    }

    /// One batch of alerts that are over. One with a notice still on its way stays.
    async fn prune_alerts(&self, before: i64) -> Result<u64, StoreError> {
        let over: Vec<String> = sqlx::query_scalar(
            "SELECT id FROM alerts WHERE resolved < $1 AND NOT EXISTS \
                 (SELECT 1 FROM outbox WHERE alert = alerts.id AND state = 'waiting') \
             ORDER BY resolved LIMIT $2",
        )
        .bind(before)
        .bind(BATCH)
        .fetch_all(&self.pool)
        .await?;
        if over.is_empty() {
            return Ok(0);
        }
        let ids = serde_json::to_string(&over).expect("names are text");
        let mut transaction = self.writer.begin_with("BEGIN IMMEDIATE").await?;
        for statement in [
            "DELETE FROM outbox WHERE alert IN (SELECT value FROM json_each($1))",
            "DELETE FROM acknowledgements WHERE alert IN (SELECT value FROM json_each($1))",
            "DELETE FROM alerts WHERE id IN (SELECT value FROM json_each($1))",
        ] {
            sqlx::query(statement)
                .bind(&ids)
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(over.len() as u64)
    }

    /// Takes the right to write and gives it back: an error where the file is read-only, locked for
    /// long, or gone.
    pub async fn check_writable(&self) -> Result<(), StoreError> {
        self.pool
            .begin_with("BEGIN IMMEDIATE")
            .await?
            .rollback()
            .await?;
        Ok(())
    }
}
