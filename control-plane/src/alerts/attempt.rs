//! What came of one attempt to hand a message over. For people: it names neither the receiver's
//! address nor what it answered beside the status.

use std::error::Error;
use std::time::Duration;

use crate::outward::AddressError;

/// The receiver has it: the answer's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Taken(pub(super) u16);

/// Why the receiver does not have it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum AttemptError {
    /// It answered, but did not take it.
    #[error("answered {status}")]
    Status {
        /// With what.
        status: u16,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// It did not answer in time.
    #[error("did not answer within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// No connection.
    #[error("could not be connected to")]
    Connect,
    /// Its address is none to connect to.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The connection ended.
    #[error("ended the connection without an answer")]
    Broken,
    /// The connection could not be encrypted.
    #[error(
        "could not be spoken to in secret: expected a certificate that holds, for its host and by a known authority (`ca_file` for one's own)"
    )]
    Tls,
    /// A mail server that has no STARTTLS.
    #[error(
        "does not offer STARTTLS: expected that, or `tls = \"tls\"` or `\"none\"` for this receiver"
    )]
    NoStartTls,
    /// A mail server that takes no password in a way that is known here.
    #[error("takes no user name and password: expected PLAIN or LOGIN to be offered")]
    NoLogin,
    /// It cannot be written as the receiver's kind wants it.
    #[error("the message could not be written: {0}")]
    Unwritable(String),
}

impl AttemptError {
    /// When the receiver wants to be asked again, if it says.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// Whether an error is one of encryption. I/O errors hide what they wrap from `source`, and wrap each
/// other.
pub(super) fn is_of_tls(error: &(dyn Error + 'static)) -> bool {
    if error.is::<rustls::Error>() {
        return true;
    }
    let wrapped = error
        .downcast_ref::<std::io::Error>()
        .and_then(std::io::Error::get_ref);
    wrapped.is_some_and(|it| is_of_tls(it))
}
