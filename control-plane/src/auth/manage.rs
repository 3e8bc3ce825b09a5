//! Making and removing operators, links and tokens. Page and API come here by way of `acts`, which
//! checks the role; the command line comes directly, beside a running controller or without one:
//! whoever can write the store's file may do all of this anyway.
//!
//! Invariant: nobody can be removed or demoted here unless an administrator stays whose account is
//! the controller's own. Those of single sign-on do not count: their provider may demote them.

use std::time::Duration;

use hedgerow_core::effect::AuditRow;
use hedgerow_core::event::{Actor, Via};
use hedgerow_core::moment::Moment;
use hedgerow_dashboard::backend::Role;
use hedgerow_protocol::ids::ServiceName;
use secrecy::{ExposeSecret as _, SecretString};

use super::clock::WallClock;
use super::password::{self, PasswordError};
use super::{SESSIONS, token};
use crate::store::accounts::OperatorChange;
use crate::store::{Account, AgentToken, ApiToken, Store, StoreError, role_name, sha256};

/// Longest name of an operator or a token.
const NAME_LEN_MAX: usize = 64;
/// How long an API token lasts where nothing else is said.
const TOKEN_LASTS_DEFAULT: Duration = Duration::from_hours(90 * 24);
/// The longest an API token can last: ten years.
const TOKEN_LASTS_MAX: Duration = Duration::from_hours(10 * 365 * 24);

/// Why an account was not changed.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// A name that cannot be used.
    #[error(
        "{name:?} is not a name: expected 1 to {NAME_LEN_MAX} letters, digits and . _ - @, and not `controller`"
    )]
    Name {
        /// What was given.
        name: String,
    },
    /// There is nobody of that name.
    #[error("there is no operator {name:?}; `hedgerow operator list` shows those there are")]
    UnknownOperator {
        /// What was given.
        name: String,
    },
    /// There is no such credential of agents.
    #[error("there is no agents' token {id:?}; `hedgerow agent-token list` shows those there are")]
    UnknownAgentToken {
        /// What was given.
        id: String,
    },
    /// There is no token of that name.
    #[error("there is no API token {name:?}; `hedgerow api-token list` shows those there are")]
    UnknownToken {
        /// What was given.
        name: String,
    },
    /// Nobody would be left to manage who comes in.
    #[error("{name} is the last administrator: make another operator administrator first")]
    LastAdministrator {
        /// Who.
        name: String,
    },
    /// The provider of single sign-on decides that.
    #[error(
        "{name} comes in by single sign-on, which decides their role at each sign-in and lets them in without a password or link: change it at the provider"
    )]
    SingleSignOn {
        /// Who.
        name: String,
    },
    /// The name is taken.
    #[error("the name {name:?} is taken: expected one that is not in use")]
    Taken {
        /// What was given.
        name: String,
    },
    /// A password that cannot be used.
    #[error(transparent)]
    Password(#[from] PasswordError),
    /// The store did not take it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Accounts and tokens of a store, and who changes them: what each line of the record says.
#[derive(Debug, Clone)]
pub struct Accounts<'a> {
    store: &'a Store,
    at: Moment,
    actor: Actor,
    reason: String,
}

impl<'a> Accounts<'a> {
    /// Changed from the command line, now.
    pub fn by_command_line(store: &'a Store, reason: &str) -> Self {
        let actor = Actor {
            name: "command line".into(),
            via: Via::CommandLine,
        };
        Self::by(store, WallClock::default().now(), actor, reason)
    }

    pub(crate) fn by(store: &'a Store, at: Moment, actor: Actor, reason: &str) -> Self {
        Self {
            store,
            at,
            actor,
            reason: reason.into(),
        }
    }

    /// All operators, by name.
    pub async fn operators(&self) -> Result<Vec<Account>, StoreError> {
        self.store.accounts_at(self.at, SESSIONS).await
    }

    /// Adds an operator; without a password they sign in by one-time link.
    pub async fn add_operator(
        &self,
        name: &str,
        role: Role,
        password: Option<SecretString>,
    ) -> Result<(), AccountError> {
        check_name(name)?;
        let hash = match password {
            Some(password) => Some(hashed(password).await?),
            None => None,
        };
        let audit = self.row("operator.add", name, role_name(role).into());
        let added = self
            .store
            .operator_add(name, role, hash.as_deref(), &audit)
            .await?;
        if added {
            Ok(())
        } else {
            Err(AccountError::Taken { name: name.into() })
        }
    }

    /// Gives an operator another role, which their open sessions have at once.
    pub async fn set_role(&self, name: &str, role: Role) -> Result<(), AccountError> {
        let audit = self.row("operator.role", name, role_name(role).into());
        changed(self.store.operator_set_role(name, role, audit).await?, name)
    }

    /// Gives an operator a password, and ends their sessions.
    pub async fn set_password(
        &self,
        name: &str,
        password: SecretString,
    ) -> Result<(), AccountError> {
        let hash = hashed(password).await?;
        let audit = self.row("operator.password", name, "a new password".into());
        let change = self.store.operator_set_password(name, &hash, &audit);
        changed(change.await?, name)
    }

    /// Removes an operator, with their sessions and links.
    pub async fn remove_operator(&self, name: &str) -> Result<(), AccountError> {
        let audit = self.row("operator.remove", name, String::new());
        changed(self.store.operator_remove(name, audit).await?, name)
    }

    /// Makes a one-time link's token for an operator, valid for `valid`. Only a hash of it is kept.
    pub async fn new_login_link(
        &self,
        operator: &str,
        valid: Duration,
    ) -> Result<SecretString, AccountError> {
        let token = token::generate("");
        let words = format!("valid for {} min", valid.as_secs().div_ceil(60));
        let audit = self.row("login_link.new", operator, words);
        let digest = token::digest_of(&token);
        let expires = self.at.plus(valid);
        let change = self.store.link_add(&digest, operator, expires, &audit);
        changed(change.await?, operator).map(|()| token)
    }

    /// Makes an API token, which is shown once and kept as a hash. It lasts for `lasts`, 90 days
    /// where nothing is said, at most ten years.
    pub async fn new_api_token(
        &self,
        name: &str,
        role: Role,
        lasts: Option<Duration>,
    ) -> Result<SecretString, AccountError> {
        check_name(name)?;
        let lasts = lasts.unwrap_or(TOKEN_LASTS_DEFAULT).min(TOKEN_LASTS_MAX);
        let token = token::generate(token::API_TOKEN_PREFIX);
        let kept = ApiToken {
            name: name.into(),
            role,
            created: self.at,
            expires: self.at.plus(lasts),
        };
        let days = lasts.as_secs().div_ceil(24 * 3600);
        let words = format!("{}, {days} d", role_name(role));
        let audit = self.row("api_token.new", name, words);
        let digest = token::digest_of(&token);
        if self.store.api_token_add(&kept, &digest, &audit).await? {
            Ok(token)
        } else {
            Err(AccountError::Taken { name: name.into() })
        }
    }

    /// Removes an API token: from now on it opens nothing.
    pub async fn revoke_api_token(&self, name: &str) -> Result<(), AccountError> {
        let audit = self.row("api_token.revoke", name, String::new());
        if self.store.api_token_remove(name, audit).await? {
            Ok(())
        } else {
            Err(AccountError::UnknownToken { name: name.into() })
        }
    }

    /// Makes a token for the agents of a service, which is shown once and kept as a hash. A
    /// controller that runs on the store takes it at once.
    pub async fn new_agent_token(&self, service: ServiceName) -> Result<SecretString, StoreError> {
        let token = token::generate("");
        let sha256 = sha256(token.expose_secret().as_bytes());
        let kept = AgentToken { sha256, service };
        let audit = self.row("agent_token.new", kept.service.as_str(), kept.id());
        self.store.agent_token_add(&kept, &audit).await?;
        Ok(token)
    }

    /// Removes a credential of agents by its [`AgentToken::id`]: streams that came by it end, at the
    /// latest when a controller next looks into the store.
    pub async fn revoke_agent_token(&self, id: &str) -> Result<(), AccountError> {
        let audit = self.row("agent_token.revoke", "", String::new());
        if self.store.agent_token_remove(id, audit).await? {
            Ok(())
        } else {
            Err(AccountError::UnknownAgentToken { id: id.into() })
        }
    }

    fn row(&self, action: &str, target: &str, after: String) -> AuditRow {
        AuditRow {
            at: self.at,
            actor: self.actor.clone(),
            action: action.into(),
            target: target.into(),
            before: String::new(),
            after,
            reason: self.reason.clone(),
        }
    }
}

fn changed(change: OperatorChange, name: &str) -> Result<(), AccountError> {
    let name = name.to_owned();
    match change {
        OperatorChange::Done => Ok(()),
        OperatorChange::Unknown => Err(AccountError::UnknownOperator { name }),
        OperatorChange::LastAdministrator => Err(AccountError::LastAdministrator { name }),
        OperatorChange::SingleSignOn => Err(AccountError::SingleSignOn { name }),
    }
}

/// [`Accounts::new_login_link`] from the command line; the page `/login/link` takes the token.
pub async fn new_login_link(
    store: &Store,
    operator: &str,
    valid: Duration,
) -> Result<String, AccountError> {
    let accounts = Accounts::by_command_line(store, "");
    let token = accounts.new_login_link(operator, valid).await?;
    Ok(token.expose_secret().to_owned())
}

/// [`Accounts::new_api_token`] from the command line.
pub async fn new_api_token(
    store: &Store,
    name: &str,
    role: Role,
    lasts: Option<Duration>,
) -> Result<SecretString, AccountError> {
    let accounts = Accounts::by_command_line(store, "");
    accounts.new_api_token(name, role, lasts).await
}

/// [`Accounts::new_agent_token`] from the command line.
pub async fn new_agent_token(
    store: &Store,
    service: ServiceName,
) -> Result<SecretString, StoreError> {
    let accounts = Accounts::by_command_line(store, "");
    accounts.new_agent_token(service).await
}

/// [`Accounts::add_operator`] from the command line.
pub async fn add_operator(
    store: &Store,
    name: &str,
    role: Role,
    password: Option<SecretString>,
) -> Result<(), AccountError> {
    let accounts = Accounts::by_command_line(store, "");
    accounts.add_operator(name, role, password).await
}

/// [`Accounts::set_password`] from the command line.
pub async fn set_password(
    store: &Store,
    name: &str,
    password: SecretString,
) -> Result<(), AccountError> {
    let accounts = Accounts::by_command_line(store, "");
    accounts.set_password(name, password).await
}

async fn hashed(password: SecretString) -> Result<String, PasswordError> {
    tokio::task::spawn_blocking(move || password::hash(&password))
        .await
        .unwrap_or(Err(PasswordError::NotHashed))
}

pub(super) fn check_name(name: &str) -> Result<(), AccountError> {
    let good = (1..=NAME_LEN_MAX).contains(&name.len())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-@".contains(c))
        && name != Actor::controller().name;
    if good {
        Ok(())
    } else {
        Err(AccountError::Name { name: name.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_be_taken_for_another_are_refused() {
        for name in [
            "",
            "controller",
            "token:ci",
            "ada lovelace",
            "<b>",
            &"x".repeat(65),
        ] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in ["admin", "ada@example.org", "ci-1"] {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
    }
}
