//! Opening the file and bringing it up to date.

use std::path::Path;
use std::time::Duration;

use sqlx::Connection as _;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

use crate::store::{Store, StoreError};

static MIGRATIONS: Migrator = sqlx::migrate!("../migrations/sqlite");

/// How long a statement waits for another connection's write: longer than any of ours takes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections for reading; pages and the API share them. A read takes well under a millisecond.
const READERS: u32 = 4;
/// How long to wait for a free connection before saying that the store does not answer.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// The write-ahead log is cut back to this after a checkpoint.
const JOURNAL_BYTES: &str = "16777216";

/// SQLite's "file is not a database" and "database disk image is malformed".
const NOT_A_DATABASE: [&str; 2] = ["26", "11"];

/// The migrations this program knows, by number.
pub(crate) fn known_migrations() -> impl Iterator<Item = i64> {
    MIGRATIONS.iter().map(|migration| migration.version)
}

impl Store {
    /// Opens the file, makes it where there is none, and migrates it.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        make_private(path);
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // FULL: an acknowledged kill switch must also outlive a power cut. There are a few
            // transactions a second, so its cost does not show.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT)
            .pragma("journal_size_limit", JOURNAL_BYTES);
        let pools = SqlitePoolOptions::new()
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .idle_timeout(None)
            .after_release(|connection, _| {
                Box::pin(async move {
                    // SQLite ends a transaction by itself where the disk is full; the rollback that
                    // follows finds none and fails, and the connection counts it as open for ever.
                    // Such a connection is closed, and the next write gets a new one. The ping
                    // waits for a rollback that is under way.
                    connection.ping().await?;
                    Ok(!connection.is_in_transaction())
                })
            });
        let writer = pools
            .clone()
            .max_connections(1)
            .connect_with(options.clone())
            .await
            .map_err(|source| opening(path, source))?;
        MIGRATIONS
            .run(&writer)
            .await
            .map_err(|source| migrating(path, source))?;
        let pool = pools
            .max_connections(READERS)
            .connect_with(options)
            .await
            .map_err(|source| opening(path, source))?;
        Ok(Self { pool, writer })
    }
}

/// Whoever reads the file reads policies, names and the hashes of credentials: a new one is its
/// owner's alone. SQLite gives its log the same rights. Where this fails, opening says why.
fn make_private(path: &Path) {
    use std::os::unix::fs::OpenOptionsExt as _;
    let _ = std::fs::File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
}

fn opening(path: &Path, source: sqlx::Error) -> StoreError {
    let path = path.to_owned();
    if is_not_a_database(&source) {
        StoreError::NotAStore { path, source }
    } else {
        StoreError::Open { path, source }
    }
}

fn migrating(path: &Path, source: MigrateError) -> StoreError {
    match source {
        MigrateError::VersionMissing(version) => StoreError::Newer {
            path: path.to_owned(),
            version,
        },
        MigrateError::Execute(source) => opening(path, source),
        source => StoreError::Migrate {
            path: path.to_owned(),
            source,
        },
    }
}

fn is_not_a_database(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .and_then(|e| e.code().map(|code| NOT_A_DATABASE.contains(&code.as_ref())))
        .unwrap_or(false)
}
