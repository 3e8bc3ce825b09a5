//! What can be wrong with settings. Each says where, and what was expected.

use std::net::SocketAddr;
use std::path::PathBuf;

use hedgerow_protocol::policy::PolicyErrors;

/// Settings that cannot stand.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("{what} {} cannot be read", .path.display())]
    Read {
        /// What it is for.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is not TOML, or has a key or a type that is not expected. Says nothing of the line's
    /// text, which may hold a secret.
    #[error("{} line {line}, column {column}: {problem}", .path.display())]
    Parse {
        /// Which file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What is wrong and what was expected.
        problem: String,
    },
    /// A value that is out of range or contradicts another.
    #[error("{key}: {problem}")]
    Value {
        /// Which, as in the file.
        key: String,
        /// What is wrong and what was expected.
        problem: String,
    },
    /// A `[[policy]]` that cannot stand.
    #[error("[[policy]] number {entry} ({dependency:?}): {errors}")]
    Policy {
        /// From 1, in the file's order.
        entry: usize,
        /// As it is written.
        dependency: String,
        /// Every field that cannot stand.
        errors: PolicyErrors,
    },
    /// Plaintext where others could read it.
    #[error(
        "{listener} = {address} is not loopback and has no TLS, so tokens and sessions would cross the network readable: expected either a certificate ({listener}_tls.certificate and {listener}_tls.key, or --{listener}-tls-certificate and --{listener}-tls-key), or allow_plaintext_beyond_loopback = true where the network itself is trusted"
    )]
    Plaintext {
        /// `http` or `grpc`.
        listener: &'static str,
        /// Its address.
        address: SocketAddr,
    },
}

impl ConfigError {
    pub(super) fn value(key: impl Into<String>, problem: impl Into<Problem>) -> Self {
        Self::Value {
            key: key.into(),
            problem: problem.into().0,
        }
    }
}

/// What is wrong with a value: words of ours, or the error of its type.
pub(super) struct Problem(String);

impl<T: std::fmt::Display> From<T> for Problem {
    fn from(problem: T) -> Self {
        Self(problem.to_string())
    }
}
