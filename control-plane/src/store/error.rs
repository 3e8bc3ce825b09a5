//! What can go wrong with the store.

use std::path::PathBuf;

/// The store refused, or could not be read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be opened or made.
    #[error(
        "the store {} cannot be opened: expected a file that this process may read and write, or a path in an existing, writable folder where it can make one",
        .path.display()
    )]
    Open {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: sqlx::Error,
    },
    /// The file is something else.
    #[error(
        "{} is not a store of Hedgerow, or is damaged: expected an SQLite database made by `hedgerow serve`; restore a copy, or name another path with --store",
        .path.display()
    )]
    NotAStore {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: sqlx::Error,
    },
    /// A newer release has migrated it.
    #[error(
        "the store {} was written by a newer release (it has migration {version}, which this one does not know): expected a store of this release or an older one; nothing was changed",
        .path.display()
    )]
    Newer {
        /// Where.
        path: PathBuf,
        /// The unknown migration.
        version: i64,
    },
    /// A migration does not apply.
    #[error("the store {} cannot be brought up to date; nothing was changed", .path.display())]
    Migrate {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: sqlx::migrate::MigrateError,
    },
    /// Another controller has it.
    #[error(
        "the store {} is in use by another controller: expected to be the only one; stop it, or name another path with --store",
        .path.display()
    )]
    InUse {
        /// Where.
        path: PathBuf,
    },
    /// The lock beside the store cannot be made.
    #[error("the lock {} beside the store cannot be taken: expected a writable folder", .path.display())]
    Lock {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A row does not read as what it should be.
    #[error("the store's {table} holds something unreadable at {row}: {problem}")]
    Unreadable {
        /// Which table.
        table: &'static str,
        /// Which row, for people.
        row: String,
        /// What is wrong, and what was expected.
        problem: String,
    },
    /// A value does not fit into a column.
    #[error("{what} does not fit into the store: expected at most 2^63 - 1")]
    TooLarge {
        /// Which value.
        what: &'static str,
    },
    /// There is no room for what is to be written.
    #[error(
        "database or disk is full: expected room for the store and its log; free some and try again, nothing was changed"
    )]
    Full,
    /// A statement failed.
    #[error("the store did not answer as expected")]
    Database(#[source] sqlx::Error),
}

/// SQLite's "database or disk is full".
const FULL: &str = "13";

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let code = error
            .as_database_error()
            .and_then(sqlx::error::DatabaseError::code);
        if code.as_deref() == Some(FULL) {
            Self::Full
        } else {
            Self::Database(error)
        }
    }
}

impl StoreError {
    /// With its sources, in one line: for where a person reads a string and nothing else.
    pub fn in_full(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        text
    }
}
