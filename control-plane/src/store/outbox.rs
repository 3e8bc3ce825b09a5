//! Notices on their way to receivers.

use hedgerow_core::effect::AlertState;
use hedgerow_core::moment::Moment;
use hedgerow_dashboard::backend::Delivery;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, query};

use super::accounts::millis;
use super::restore::{moment, parsed};
use super::{Store, StoreError};

const TABLE: &str = "outbox";

/// A notice that waits for its receiver.
#[derive(Debug, Clone)]
pub(crate) struct Notice {
    /// Its number.
    pub(crate) id: i64,
    /// What it tells of, as it was when the notice was written.
    pub(crate) alert: AlertState,
    /// Whether it tells of the end.
    pub(crate) resolved: bool,
    /// Tries so far.
    pub(crate) attempts: u32,
    /// When to try next.
    pub(crate) next_at: Moment,
    /// When it was written.
    pub(crate) at: Moment,
}

impl Store {
    /// For each episode the first notice that `receiver` has not had yet, the most urgent first,
    /// at most `limit`. A later notice of the same episode is not among them: firing goes before
    /// resolved, however long it takes (B77).
    pub(crate) async fn outbox_next(
        &self,
        receiver: &str,
        limit: u32,
    ) -> Result<Vec<Notice>, StoreError> {
        let rows = query(
            "SELECT id, kind, json, attempts, next_at, at FROM outbox
             WHERE id IN (SELECT min(id) FROM outbox
                          WHERE receiver = $1 AND state = 'waiting' GROUP BY alert)
             ORDER BY next_at, id LIMIT $2",
        )
        .bind(receiver)
        .bind(i64::from(limit))
        .fetch_all(self.pool())
        .await?;
        rows.iter().map(notice).collect()
    }

    /// How many notices wait for `receiver`.
    pub(crate) async fn outbox_waiting(&self, receiver: &str) -> Result<i64, StoreError> {
        let waiting = sqlx::query_scalar(
            "SELECT count(*) FROM outbox WHERE receiver = $1 AND state = 'waiting'",
        )
        .bind(receiver)
        .fetch_one(self.pool())
        .await?;
        Ok(waiting)
    }

    /// How many notices wait, for whatever receiver.
    pub(crate) async fn outbox_depth(&self) -> Result<u64, StoreError> {
        let waiting: i64 =
            sqlx::query_scalar("SELECT count(*) FROM outbox WHERE state = 'waiting'")
                .fetch_one(self.pool())
                .await?;
        Ok(waiting.unsigned_abs())
    }

    /// The receiver took it.
    pub(crate) async fn outbox_delivered(&self, id: i64, now: Moment) -> Result<(), StoreError> {
        query(
            "UPDATE outbox SET state = 'delivered', attempts = attempts + 1, done = $2
             WHERE id = $1 AND state = 'waiting'",
        )
        .bind(id)
        .bind(millis(now))
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// It did not; it is tried again at `next_at`.
    pub(crate) async fn outbox_failed(
        &self,
        id: i64,
        next_at: Moment,
        error: &str,
    ) -> Result<(), StoreError> {
        query(
            "UPDATE outbox SET attempts = attempts + 1, next_at = $2, last_error = $3
             WHERE id = $1 AND state = 'waiting'",
        )
        .bind(id)
        .bind(millis(next_at))
        .bind(error)
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// It will not be tried again, and neither will what follows it in the same episode: a receiver
    /// that never saw the firing has no use for its end. Says how many notices that were.
    pub(crate) async fn outbox_give_up(
        &self,
        id: i64,
        now: Moment,
        error: &str,
    ) -> Result<u64, StoreError> {
        let done = query(
            "UPDATE outbox SET state = 'given_up', done = $2, last_error = $3
             WHERE state = 'waiting' AND (alert, receiver) =
                   (SELECT alert, receiver FROM outbox WHERE id = $1)",
        )
        .bind(id)
        .bind(millis(now))
        .bind(error)
        .execute(self.pool())
        .await?;
        Ok(done.rows_affected())
    }

    /// Gives up what was written before `before` for receivers that are not in `known`: they were
    /// taken out of the configuration. Says how many notices that were.
    pub(crate) async fn outbox_give_up_unknown(
        &self,
        known: &[&str],
        before: Moment,
        now: Moment,
    ) -> Result<u64, StoreError> {
        let known = serde_json::to_string(known).expect("names are text");
        let done = query(
            "UPDATE outbox SET state = 'given_up', done = $2,
                    last_error = 'no receiver of this name is configured'
             WHERE state = 'waiting' AND at <= $3
                   AND receiver NOT IN (SELECT value FROM json_each($1))",
        )
        .bind(known)
        .bind(millis(now))
        .bind(millis(before))
        .execute(self.pool())
        .await?;
        Ok(done.rows_affected())
    }

    /// Notices, newest first, at most `limit`.
    pub async fn deliveries(&self, limit: u32) -> Result<Vec<Delivery>, StoreError> {
        let rows = query(
            "SELECT id, alert, kind, receiver, state, attempts, last_error, at, done
             FROM outbox ORDER BY id DESC LIMIT $1",
        )
        .bind(i64::from(limit))
        .fetch_all(self.pool())
        .await?;
        rows.iter().map(delivery).collect()
    }

    /// The notices of these episodes, oldest first.
    pub async fn deliveries_of(&self, alerts: &[&str]) -> Result<Vec<Delivery>, StoreError> {
        let alerts = serde_json::to_string(alerts).expect("names are text");
        let rows = query(
            "SELECT id, alert, kind, receiver, state, attempts, last_error, at, done
             FROM outbox WHERE alert IN (SELECT value FROM json_each($1)) ORDER BY id",
        )
        .bind(alerts)
        .fetch_all(self.pool())
        .await?;
        rows.iter().map(delivery).collect()
    }
}

fn notice(row: &SqliteRow) -> Result<Notice, StoreError> {
    let id: i64 = row.try_get("id")?;
    Ok(Notice {
        id,
        alert: parsed(TABLE, &format!("notice {id}"), row.try_get("json")?)?,
        resolved: row.try_get::<String, _>("kind")? == "resolved",
        attempts: row.try_get("attempts")?,
        next_at: moment(TABLE, row, "next_at")?,
        at: moment(TABLE, row, "at")?,
    })
}

fn delivery(row: &SqliteRow) -> Result<Delivery, StoreError> {
    let done: Option<i64> = row.try_get("done")?;
    Ok(Delivery {
        id: row.try_get("id")?,
        alert: row.try_get("alert")?,
        kind: row.try_get("kind")?,
        receiver: row.try_get("receiver")?,
        state: row.try_get("state")?,
        attempts: row.try_get("attempts")?,
        last_error: row.try_get("last_error")?,
        at: moment(TABLE, row, "at")?,
        done: done.map(|_| moment(TABLE, row, "done")).transpose()?,
    })
}
