//! Letting go of old history.

use std::time::Duration;

use hedgerow_core::moment::Moment;

use crate::store::{Store, StoreError};

/// How long history is kept.
pub const HISTORY_KEPT: Duration = Duration::from_hours(7 * 24);

/// Rows in one transaction: some milliseconds, so that no other write waits for long (B75).
const BATCH: i64 = 500;

impl Store {
    /// Deletes history older than [`HISTORY_KEPT`] in small transactions; says how many rows went.
    pub async fn prune(&self, now: Moment) -> Result<u64, StoreError> {
        let kept_from = now
            .as_millis()
            .saturating_sub(u64::try_from(HISTORY_KEPT.as_millis()).unwrap_or(0));
        let kept_from = i64::try_from(kept_from).unwrap_or(i64::MAX);
        let mut gone = 0;
        loop {
            let deleted = sqlx::query(
                "DELETE FROM history WHERE id IN \
                 (SELECT id FROM history WHERE at < $1 ORDER BY at LIMIT $2)",
            )
            .bind(kept_from)
            .bind(BATCH)
            .execute(&self.writer)
            .await?
            .rows_affected();
            gone += deleted;
            if deleted < BATCH.unsigned_abs() {
                return Ok(gone);
            }
            // The writer's connection is free between two batches; let whoever waits have it.
            tokio::task::yield_now().await;
        }
    }
}

impl Store {
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
