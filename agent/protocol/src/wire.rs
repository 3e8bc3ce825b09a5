//! Protobuf to domain and back.
//!
//! Out by [`From`], which cannot fail. In by [`TryFrom`], or by [`agent_message`] and
//! [`controller_message`] for what a stream yields; whatever is refused names its field and what
//! was expected. The .proto file (`proto/hedgerow/v1/fleet.proto`) states the protocol itself.
//!
//! Three kinds of failure, kept apart because different things follow from them:
//!
//! | what cannot stand | what is returned | what follows |
//! |---|---|---|
//! | a message | [`WireError`] | the stream ends with INVALID_ARGUMENT |
//! | a report | [`RefusedReport`] | it is acknowledged with the reason, and the stream goes on |
//! | a set, or a directive in it | [`RefusedSet`], [`RefusedDirective`] | it is answered with `Refused`, and the last good one stays |

mod agent;
pub mod codec;
mod controller;
mod directive;
mod field;
mod report;
mod values;

use std::fmt;

pub use crate::session::{
    AgentMessage, ControllerMessage, DecodedSet, ReceivedAgentMessage, ReceivedControllerMessage,
    RefusedDirective, RefusedReport, RefusedSet,
};
pub use agent::agent_message;
pub use controller::controller_message;

/// The generated messages, client and server. Written by `tests/it/generated.rs`.
#[allow(
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    unused_qualifications,
    unreachable_pub,
    missing_debug_implementations,
    missing_docs,
    reason = "generated code follows its generator's rules"
)]
pub mod proto {
    include!("generated/hedgerow.v1.rs");
}

/// Why a message cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireError {
    /// The field, as a path in the .proto file's names: `routes[2].totals`. Empty: the message
    /// itself.
    pub field: String,
    /// What is wrong and what was expected.
    pub problem: String,
}

impl WireError {
    fn new(field: impl Into<String>, problem: impl fmt::Display) -> Self {
        Self {
            field: field.into(),
            problem: problem.to_string(),
        }
    }

    /// From an error of the domain whose message begins with its field, as all of
    /// [`DirectiveError`](crate::directive::DirectiveError)'s and
    /// [`ReportError`](crate::report::ReportError)'s do.
    fn from_check(error: &impl fmt::Display) -> Self {
        let message = error.to_string();
        match message.split_once(": ") {
            Some((field, problem)) => Self::new(field, problem),
            None => Self::new("", message),
        }
    }

    /// The same error, seen from the message that holds this one in its field `outer`.
    #[must_use]
    fn within(mut self, outer: impl fmt::Display) -> Self {
        self.field = match self.field.as_str() {
            "" => outer.to_string(),
            inner => format!("{outer}.{inner}"),
        };
        self
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            f.write_str(&self.problem)
        } else {
            write!(f, "{}: {}", self.field, self.problem)
        }
    }
}

impl std::error::Error for WireError {}

impl From<WireError> for tonic::Status {
    fn from(error: WireError) -> Self {
        Self::invalid_argument(error.to_string())
    }
}
