//! Notices on their way to receivers.

use std::collections::BTreeMap;

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

/// How a receiver does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OutboxState {
    /// Notices that wait for it.
    pub(crate) waiting: u64,
    /// Notices given up.
    pub(crate) given_up: u64,
    /// When one was delivered last.
    pub(crate) delivered: Option<Moment>,
    /// What keeps a notice waiting that was tried, or ended the newest that was given up since.
    pub(crate) last_error: Option<String>,
}

impl Store {
    /// For each episode the first notice that `receiver` has not had yet, the most urgent first,
    /// at most `limit`. A later notice of the same episode is not among them: firing goes before
    /// resolved, however long it takes (B77). With `by_subject`, for each rule and what it is about:
    /// nor is the next episode's.
    pub(crate) async fn outbox_next(
        &self,
        receiver: &str,
        by_subject: bool,
        limit: u32,
    ) -> Result<Vec<Notice>, StoreError> {
        let by_episode = "SELECT id, kind, json, attempts, next_at, at FROM outbox
             WHERE id IN (SELECT min(id) FROM outbox
                          WHERE receiver = $1 AND state = 'waiting' GROUP BY alert)
             ORDER BY next_at, id LIMIT $2";
        let of_subjects = "SELECT id, kind, json, attempts, next_at, at FROM outbox
             WHERE id IN (SELECT min(outbox.id) FROM outbox JOIN alerts ON alerts.id = alert
                          WHERE receiver = $1 AND state = 'waiting'
                          GROUP BY rule, dependency, operation, replica)
             ORDER BY next_at, id LIMIT $2";
        let rows = query(if by_subject { of_subjects } else { by_episode })
            .bind(receiver)
            .bind(i64::from(limit))
            .fetch_all(self.pool())
            .await?;
        rows.iter().map(notice).collect()
    }

    /// The episodes that go on and that `receiver` was told the beginning of.
    pub(crate) async fn outbox_standing(
        &self,
        receiver: &str,
    ) -> Result<Vec<AlertState>, StoreError> {
        let rows = query(
            "SELECT outbox.id, json FROM alerts JOIN outbox ON outbox.alert = alerts.id
             WHERE resolved IS NULL AND receiver = $1 AND kind = 'firing' AND state = 'delivered'
             ORDER BY outbox.id",
        )
        .bind(receiver)
        .fetch_all(self.pool())
        .await?;
        rows.iter()
            .map(|row| {
                let id: i64 = row.try_get("id")?;
                parsed(TABLE, &format!("notice {id}"), row.try_get("json")?)
            })
            .collect()
    }

    /// How each receiver does that has notices, by name.
    pub(crate) async fn outbox_states(&self) -> Result<BTreeMap<String, OutboxState>, StoreError> {
        let rows = query(
            "WITH sums AS (
                 SELECT receiver, count(*) FILTER (WHERE state = 'waiting') AS waiting,
                        count(*) FILTER (WHERE state = 'given_up') AS given_up,
                        max(done) FILTER (WHERE state = 'delivered') AS delivered
                 FROM outbox GROUP BY receiver)
             SELECT *, (SELECT last_error FROM outbox
                        WHERE receiver = sums.receiver AND last_error IS NOT NULL
                              AND (state = 'waiting' OR state = 'given_up'
                                   AND (delivered IS NULL OR done > delivered))
                        ORDER BY coalesce(done, next_at) DESC, id DESC LIMIT 1) AS error
             FROM sums",
        )
        .fetch_all(self.pool())
        .await?;
        rows.iter()
            .map(|row| {
                let delivered: Option<i64> = row.try_get("delivered")?;
                let state = OutboxState {
                    waiting: row.try_get::<i64, _>("waiting")?.unsigned_abs(),
                    given_up: row.try_get::<i64, _>("given_up")?.unsigned_abs(),
                    delivered: delivered
                        .map(|_| moment(TABLE, row, "delivered"))
                        .transpose()?,
                    last_error: row.try_get("error")?,
                };
                Ok((row.try_get("receiver")?, state))
            })
            .collect()
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
        self.deliveries_to(None, None, limit).await
    }

    /// Notices for one receiver or all, newest first, at most `limit`; of those, older than the
    /// notice of the number `before`.
    pub async fn deliveries_to(
        &self,
        receiver: Option<&str>,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<Delivery>, StoreError> {
        let rows = query(
            "SELECT id, alert, kind, receiver, state, attempts, last_error, at, done
             FROM outbox WHERE id < $1 AND ($2 IS NULL OR receiver = $2)
             ORDER BY id DESC LIMIT $3",
        )
        .bind(before.unwrap_or(i64::MAX))
        .bind(receiver)
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
