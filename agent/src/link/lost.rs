//! Why there is no stream.

use std::time::Duration;

use hedgerow_protocol::session::{ComeBack, ComeBackReason};
use tonic::{Code, Status};

use super::state::{GREETING_MAX, SILENCE_MAX};

/// Why a stream ended, or never began. None of them changes how calls are hedged.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum Lost {
    /// No connection: refused, no such host, a certificate that does not verify.
    #[error("no connection to the controller: {0}")]
    Unreachable(String),
    /// The credential is not good here.
    #[error("the controller refused the agent's token: {0}; expected one it was configured with")]
    TokenRefused(String),
    /// Connected, and silent.
    #[error("the controller did not answer the greeting within {GREETING_MAX:?}")]
    NoWelcome,
    /// Half open: writes may still succeed, answers no longer come.
    #[error("no word from the controller for {0:?}")]
    Silent(Duration),
    /// Heartbeats are answered, reports are not.
    #[error("the controller did not acknowledge a report within {SILENCE_MAX:?}")]
    ReportUnanswered,
    /// We write faster than it reads.
    #[error("the controller does not read what the agent sends")]
    NotReading,
    /// Something came before welcome.
    #[error("the controller's first message was neither welcome nor come back")]
    OutOfTurn,
    /// The stream was closed without an error.
    #[error("the controller closed the stream")]
    Closed,
    /// A status, or a broken connection.
    #[error("the stream failed: {0}")]
    Failed(String),
    /// A message that breaks the contract.
    #[error("the controller sent what cannot be read: {0}")]
    Unreadable(String),
    /// Not here, not now.
    #[error("the controller sent the agent away for {:?} ({})", .0.after, .0.reason.as_str())]
    SentAway(ComeBack),
}

impl Lost {
    /// One word for logs, and to tell episodes apart.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "unreachable",
            Self::TokenRefused(_) => "token_refused",
            Self::NoWelcome => "no_welcome",
            Self::Silent(_) => "silent",
            Self::ReportUnanswered => "report_unanswered",
            Self::NotReading => "not_reading",
            Self::OutOfTurn => "out_of_turn",
            Self::Closed => "closed",
            Self::Failed(_) => "failed",
            Self::Unreadable(_) => "unreadable",
            Self::SentAway(_) => "sent_away",
        }
    }

    /// Whether the controller meant it, as part of its own work: nothing for a person to look at.
    pub(crate) const fn is_planned(&self) -> bool {
        match self {
            Self::SentAway(come_back) => !matches!(come_back.reason, ComeBackReason::Busy),
            _ => false,
        }
    }
}

impl From<Status> for Lost {
    fn from(status: Status) -> Self {
        // The controller's text ends up in the service's log: one line, bounded, printable.
        let text = hedgerow_protocol::session::Text::lossy(status.message());
        match status.code() {
            Code::Unauthenticated | Code::PermissionDenied => {
                Self::TokenRefused(text.as_str().to_owned())
            }
            code => Self::Failed(format!("{code:?}: {text}")),
        }
    }
}
