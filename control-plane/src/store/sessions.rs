//! Sessions in the store.

use std::time::Duration;

use hedgerow_core::effect::AuditRow;
use hedgerow_core::moment::Moment;
use hedgerow_dashboard::backend::Operator;
use sqlx::{Row as _, SqliteConnection};

use super::accounts::{ago, millis, operator};
use super::write::write_audit;
use super::{Store, StoreError};

/// How long a session lasts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionLimits {
    /// Without being used.
    pub(crate) idle: Duration,
    /// In all.
    pub(crate) absolute: Duration,
    /// Most sessions of one operator; the oldest go first.
    pub(crate) per_operator: u32,
}

/// How exactly a session's last use is kept: more exactly would be a write for each page.
const SEEN_EVERY: Duration = Duration::from_mins(1);

impl Store {
    /// Keeps a session, and forgets those that are over and those beyond the operator's number.
    pub(crate) async fn session_add(
        &self,
        token_sha256: &str,
        name: &str,
        limits: SessionLimits,
        audit: &AuditRow,
    ) -> Result<(), StoreError> {
        let mut tx = self.pool().begin_with("BEGIN IMMEDIATE").await?;
        insert(&mut tx, token_sha256, name, limits, audit).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Whose session this is, if it is not over; keeps that it was used.
    pub(crate) async fn session_operator(
        &self,
        token_sha256: &str,
        now: Moment,
        limits: SessionLimits,
    ) -> Result<Option<Operator>, StoreError> {
        let row = sqlx::query(
            "SELECT o.name, o.role, s.seen FROM sessions s JOIN operators o ON o.name = s.operator
             WHERE s.token_sha256 = $1 AND s.seen > $2 AND s.created > $3",
        )
        .bind(token_sha256)
        .bind(ago(now, limits.idle))
        .bind(ago(now, limits.absolute))
        .fetch_optional(self.pool())
        .await?;
        let Some(row) = row else { return Ok(None) };
        if row.try_get::<i64, _>("seen")? <= ago(now, SEEN_EVERY) {
            let seen =
                sqlx::query("UPDATE sessions SET seen = $2 WHERE token_sha256 = $1 AND seen < $2")
                    .bind(token_sha256)
                    .bind(millis(now))
                    .execute(self.pool())
                    .await;
            // A store that takes no writes is what people want to look at the pages for.
            if let Err(error) = seen {
                let error = StoreError::from(error).in_full();
                tracing::warn!(error, "a session's last use was not saved");
            }
        }
        operator(&row).map(Some)
    }

    /// Ends a session.
    pub(crate) async fn session_end(&self, token_sha256: &str) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM sessions WHERE token_sha256 = $1")
            .bind(token_sha256)
            .execute(self.pool())
            .await?;
        Ok(())
    }
}

/// [`Store::session_add`] within a transaction.
pub(super) async fn insert(
    connection: &mut SqliteConnection,
    token_sha256: &str,
    name: &str,
    limits: SessionLimits,
    audit: &AuditRow,
) -> Result<(), StoreError> {
    let now = audit.at;
    sqlx::query("DELETE FROM sessions WHERE seen <= $1 OR created <= $2")
        .bind(ago(now, limits.idle))
        .bind(ago(now, limits.absolute))
        .execute(&mut *connection)
        .await?;
    sqlx::query("DELETE FROM login_links WHERE expires <= $1")
        .bind(millis(now))
        .execute(&mut *connection)
        .await?;
    sqlx::query(
        "INSERT INTO sessions (token_sha256, operator, created, seen) VALUES ($1, $2, $3, $3)",
    )
    .bind(token_sha256)
    .bind(name)
    .bind(millis(now))
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "DELETE FROM sessions WHERE token_sha256 IN (
             SELECT token_sha256 FROM sessions WHERE operator = $1
             ORDER BY created DESC, token_sha256 LIMIT -1 OFFSET $2)",
    )
    .bind(name)
    .bind(i64::from(limits.per_operator))
    .execute(&mut *connection)
    .await?;
    write_audit(connection, audit).await
}
