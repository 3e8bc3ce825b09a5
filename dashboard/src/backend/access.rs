//! Who may come in, and how.

use std::time::Duration;

use hedgerow_core::moment::Moment;
use serde::Serialize;

use super::{Role, Session};

/// Who may come in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AccessView {
    /// People, by name.
    pub operators: Vec<OperatorView>,
    /// Programs, by name.
    pub api_tokens: Vec<ApiTokenView>,
    /// Credentials of services' agents, by service.
    pub agent_tokens: Vec<AgentTokenView>,
}

/// A person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OperatorView {
    /// Their name.
    pub name: String,
    /// What they may do.
    pub role: Role,
    /// Whether they can sign in by password.
    pub has_password: bool,
    /// Whether they come in by single sign-on: their role is the provider's to say, and who is
    /// removed here comes in again as long as the provider gives them one.
    pub single_sign_on: bool,
    /// Since when.
    pub created: Moment,
    /// Sessions open.
    pub sessions: u64,
}

/// A program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApiTokenView {
    /// Its name.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// Since when.
    pub created: Moment,
    /// Until when.
    pub expires: Moment,
}

/// A service's credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AgentTokenView {
    /// Its identity, the first letters of its hash: nothing can be told from it.
    pub id: String,
    /// The service its agents speak for.
    pub service: String,
    /// Since when.
    pub created: Moment,
}

/// A change of who may come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessChange {
    /// A new person; the answer is a one-time link, by which they choose nothing and are let in.
    AddOperator {
        /// Their name.
        name: String,
        /// What they may do.
        role: Role,
    },
    /// Another role. Open sessions and streams have it at once.
    SetRole {
        /// Whose.
        name: String,
        /// Which.
        role: Role,
    },
    /// Their sessions end, and they do not come in again.
    RemoveOperator {
        /// Who.
        name: String,
    },
    /// A one-time link for somebody who is known.
    LoginLink {
        /// For whom.
        name: String,
    },
    /// A token for a program.
    AddApiToken {
        /// Its name.
        name: String,
        /// What it may do.
        role: Role,
        /// How many days it lasts, 1 to 366.
        days: u32,
    },
    /// It is over at once.
    RevokeApiToken {
        /// Its name.
        name: String,
    },
    /// A credential for a service's agents.
    AddAgentToken {
        /// The service.
        service: String,
    },
    /// It is over at once, also for streams that are open.
    RevokeAgentToken {
        /// See [`AgentTokenView::id`].
        id: String,
    },
}

/// What a change of access brought; a secret in it is shown once and known to nobody after.
#[derive(Clone, PartialEq, Eq)]
pub enum AccessChanged {
    /// Nothing to show.
    Done,
    /// A token.
    Token(String),
    /// A path on this site, with a one-time token in it.
    Link(String),
}

impl std::fmt::Debug for AccessChanged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Done => "Done",
            Self::Token(_) => "Token([hidden])",
            Self::Link(_) => "Link([hidden])",
        })
    }
}

/// A sign-in by a provider, begun.
#[derive(Clone, PartialEq, Eq)]
pub struct SignOnBegun {
    /// Where to send the browser.
    pub address: String,
    /// A cookie's value for the way back.
    pub keep: String,
    /// How long the cookie is good.
    pub lasts: Duration,
}

impl std::fmt::Debug for SignOnBegun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignOnBegun").finish_non_exhaustive()
    }
}

/// A sign-in by a provider, done.
#[derive(Debug, Clone)]
pub struct SignOnEnded {
    /// The session.
    pub session: Session,
    /// Where they wanted to go: a path on this site.
    pub next: String,
}
