//! Everything that can go wrong, by who has to act on it.

use std::path::PathBuf;

use hedgerow_protocol::ids::{NameError, RouteKey};

/// How a call ended without an answer.
///
/// ```
/// use hedgerow_agent::CallError;
///
/// fn status(error: &CallError<std::io::Error>) -> u16 {
///     match error {
///         CallError::DeadlineExceeded => 504,
///         CallError::Failed(_) => 502,
///         _ => 500, // kinds of a later version
///     }
/// }
/// # assert_eq!(status(&CallError::DeadlineExceeded), 504);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError<E> {
    /// The primary's own error, word for word, also where a hedge failed in another way.
    #[error("the call failed")]
    Failed(#[source] E),
    /// No attempt answered before the call's deadline.
    #[error("no answer before the deadline")]
    DeadlineExceeded,
}

impl<E> CallError<E> {
    /// The service's own error, where it is one. None where the deadline came first.
    pub fn into_failed(self) -> Option<E> {
        match self {
            Self::Failed(error) => Some(error),
            Self::DeadlineExceeded => None,
        }
    }
}

/// A setting of the agent, or of a route, that cannot stand. Found when it is built, never later.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A name that is no name.
    #[error("{field}: {value:?} {error}")]
    Name {
        /// Which setting.
        field: &'static str,
        /// As given.
        value: String,
        /// What is wrong with it.
        error: NameError,
    },
    /// A needed setting that is not there.
    #[error("{field}: missing; {expected}")]
    Missing {
        /// Which setting.
        field: &'static str,
        /// What was expected.
        expected: &'static str,
    },
    /// A value outside its range.
    #[error("{field}: {value} is out of range: expected {expected}")]
    Range {
        /// Which setting.
        field: &'static str,
        /// As given.
        value: String,
        /// The range.
        expected: &'static str,
    },
    /// Two settings that exclude each other.
    #[error("{field}: {conflict}")]
    Conflict {
        /// Which setting.
        field: &'static str,
        /// What it does not go with, and what to do.
        conflict: &'static str,
    },
    /// A file that could not be read.
    #[error("{field}: cannot read {}", path.display())]
    File {
        /// Which setting.
        field: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A policy file that cannot stand.
    #[error("policy_file: {} cannot be taken", path.display())]
    PolicyFile {
        /// The file.
        path: PathBuf,
        /// Where in it, what is wrong, and what was expected.
        #[source]
        error: crate::standalone::PolicyFileError,
    },
    /// The controller's address, token or certificate does not make a link.
    #[error(transparent)]
    Link(#[from] crate::link::LinkError),
    /// The host's registry did not take the agent's metrics.
    #[error("registry: the agent's metrics were not taken")]
    Metrics(#[from] prometheus::Error),
    /// The agent was to be built outside of a tokio runtime, which its tasks need.
    #[error("no tokio runtime: expected to be built on one, such as under #[tokio::main]")]
    NoRuntime,
    /// A route with this name was built before. A [`Route`](crate::Route) is cheap to clone.
    #[error("route {0} was built before; keep the first one and clone it")]
    DuplicateRoute(RouteKey),
}
