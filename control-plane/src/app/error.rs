//! Why the controller does not start, or does not go on.

use crate::agents::ServerError;
use crate::alerts::ReceiverError;
use crate::auth::AccountError;
use crate::engine::EngineError;
use crate::listen::{BindError, PemError};
use crate::store::StoreError;

/// Why the controller does not start, or does not go on.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A certificate or key.
    #[error(transparent)]
    Pem(#[from] PemError),
    /// An address.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A receiver that cannot be used.
    #[error("[[receiver]] {name:?} {field}: {problem}")]
    Receiver {
        /// Which.
        name: String,
        /// The setting.
        field: &'static str,
        /// What is wrong with it. Not a source: its text is in this one's.
        problem: ReceiverError,
    },
    /// The client of single sign-on could not be made.
    #[error("[oidc]: the client of single sign-on could not be set up")]
    SingleSignOn(#[source] reqwest::Error),
    /// A policy of the settings could not be put in force.
    #[error("a [[policy]] of the settings could not be put in force")]
    Seed(#[from] EngineError),
    /// The first administrator could not be made.
    #[error("the first administrator could not be made")]
    FirstAdministrator(#[from] AccountError),
    /// The agents' listener.
    #[error(transparent)]
    Agents(#[from] ServerError),
    /// A part ended that should not.
    #[error("a part of the controller ended: {problem}")]
    Ended {
        /// How.
        problem: String,
    },
}
