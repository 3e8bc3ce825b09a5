//! What lasts: policies with all their revisions, kill switches, modes, the record, alerts and
//! their notices, history, accounts. One SQLite file.
//!
//! Invariant: everything that belongs together is written in one transaction, and a transaction is
//! on disk before [`Store::write`] returns. `kill -9` leaves the file before or after a change,
//! never between (P19).
//!
//! Invariant: no transaction is held open across anything but the next statement, neither for
//! reading nor for writing; so the write-ahead log stays short (B75).

pub(crate) mod accounts;
mod claim;
mod error;
mod history;
mod minutes;
mod open;
pub(crate) mod outbox;
mod prune;
mod record;
mod restore;
mod rollout;
pub(crate) mod sessions;
mod silences;
pub(crate) mod single_sign_on;
mod tokens;
mod write;

use sqlx::SqlitePool;

pub use accounts::{Account, ApiToken, role_name, role_named};
pub use claim::Claim;
pub use error::StoreError;
pub(crate) use history::POINTS_MAX;
pub use minutes::MINUTES_KEPT;
pub(crate) use open::known_migrations;
pub use prune::{HISTORY_KEPT, RESOLVED_KEPT};
pub use tokens::{AgentToken, StoredAgentToken, sha256_hex};
pub(crate) use tokens::{sha256, sha256_from_hex};

/// The store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    /// Any statement; several connections.
    pool: SqlitePool,
    /// What the core wants written, in its order: one connection, so that nothing overtakes.
    writer: SqlitePool,
}

impl Store {
    /// For reading, and for single statements or short `BEGIN IMMEDIATE` transactions that need no
    /// order among the core's writes.
    pub fn pool(&self) -> &SqlitePool {
        &self.pool
    }

    /// How large it is on disk, in bytes: the file, and its write-ahead log.
    pub async fn bytes(&self) -> Result<u64, StoreError> {
        let file: String =
            sqlx::query_scalar("SELECT file FROM pragma_database_list WHERE name = 'main'")
                .fetch_one(self.pool())
                .await?;
        let mut bytes = 0;
        for path in [file.clone(), format!("{file}-wal")] {
            // Without a log nothing has been written since the last one was taken in.
            if let Ok(found) = tokio::fs::metadata(path).await {
                bytes += found.len();
            }
        }
        Ok(bytes)
    }

    /// Closes the file; waits for what is under way.
    pub async fn close(&self) {
        self.writer.close().await;
        self.pool.close().await;
    }
}
