//! Making and removing operators, links and tokens. From the command line, beside a running
//! controller or without one: whoever can write the store's file may do all of this anyway.

use std::time::Duration;

use hedgerow_core::effect::AuditRow;
use hedgerow_core::event::{Actor, Via};
use hedgerow_core::moment::Moment;
use hedgerow_dashboard::backend::Role;
use hedgerow_protocol::ids::ServiceName;
use secrecy::{ExposeSecret as _, SecretString};

use super::clock::WallClock;
use super::password::{self, PasswordError};
use super::token;
use crate::store::{AgentToken, ApiToken, Store, StoreError, role_name, sha256};

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
    /// There is no token of that name.
    #[error("there is no API token {name:?}; `hedgerow api-token list` shows those there are")]
    UnknownToken {
        /// What was given.
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

/// Makes a one-time link's token for an operator, valid for `valid`: the page `/login/link` takes
/// it. Only a hash of it is kept.
pub async fn new_login_link(
    store: &Store,
    operator: &str,
    valid: Duration,
) -> Result<String, AccountError> {
    let token = login_link_at(
        store,
        WallClock::default().now(),
        &command_line(),
        operator,
        valid,
    )
    .await?;
    Ok(token.expose_secret().to_owned())
}

pub(super) async fn login_link_at(
    store: &Store,
    now: Moment,
    actor: &Actor,
    operator: &str,
    valid: Duration,
) -> Result<SecretString, AccountError> {
    let token = token::generate("");
    let audit = AuditRow {
        at: now,
        actor: actor.clone(),
        action: "login_link.new".into(),
        target: operator.into(),
        before: String::new(),
        after: format!("valid for {} min", valid.as_secs().div_ceil(60)),
        reason: String::new(),
    };
    let digest = token::digest_of(&token);
    if store
        .link_add(&digest, operator, now.plus(valid), &audit)
        .await?
    {
        Ok(token)
    } else {
        Err(AccountError::UnknownOperator {
            name: operator.into(),
        })
    }
}

/// Makes an API token, which is shown once and kept as a hash. It lasts for `lasts`, 90 days where
/// nothing is said, at most ten years.
pub async fn new_api_token(
    store: &Store,
    name: &str,
    role: Role,
    lasts: Option<Duration>,
) -> Result<SecretString, AccountError> {
    check_name(name)?;
    let now = WallClock::default().now();
    let lasts = lasts.unwrap_or(TOKEN_LASTS_DEFAULT).min(TOKEN_LASTS_MAX);
    let token = token::generate(token::API_TOKEN_PREFIX);
    let kept = ApiToken {
        name: name.into(),
        role,
        created: now,
        expires: now.plus(lasts),
    };
    let days = lasts.as_secs().div_ceil(24 * 3600);
    let audit = row(
        now,
        "api_token.new",
        name,
        "",
        format!("{}, {days} d", role_name(role)),
    );
    if store
        .api_token_add(&kept, &token::digest_of(&token), &audit)
        .await?
    {
        Ok(token)
    } else {
        Err(AccountError::Taken { name: name.into() })
    }
}

/// Makes a token for the agents of a service, which is shown once and kept as a hash. A controller
/// that runs on the store takes it at once.
pub async fn new_agent_token(
    store: &Store,
    service: ServiceName,
) -> Result<SecretString, StoreError> {
    let token = token::generate("");
    let now = WallClock::default().now();
    let audit = row(now, "agent_token.new", service.as_str(), "", String::new());
    let sha256 = sha256(token.expose_secret().as_bytes());
    store
        .agent_token_add(&AgentToken { sha256, service }, &audit)
        .await?;
    Ok(token)
}

/// Removes an API token: from now on it opens nothing.
pub async fn revoke_api_token(store: &Store, name: &str) -> Result<(), AccountError> {
    let audit = row(
        WallClock::default().now(),
        "api_token.revoke",
        name,
        "",
        String::new(),
    );
    if store.api_token_remove(name, &audit).await? {
        Ok(())
    } else {
        Err(AccountError::UnknownToken { name: name.into() })
    }
}

/// Adds an operator; without a password they sign in by one-time link.
pub async fn add_operator(
    store: &Store,
    name: &str,
    role: Role,
    password: Option<SecretString>,
) -> Result<(), AccountError> {
    check_name(name)?;
    let hash = match password {
        Some(password) => Some(hashed(password).await?),
        None => None,
    };
    let now = WallClock::default().now();
    let audit = row(now, "operator.add", name, "", role_name(role).into());
    if store
        .operator_add(name, role, hash.as_deref(), &audit)
        .await?
    {
        Ok(())
    } else {
        Err(AccountError::Taken { name: name.into() })
    }
}

/// Gives an operator a password, and ends their sessions.
pub async fn set_password(
    store: &Store,
    name: &str,
    password: SecretString,
) -> Result<(), AccountError> {
    let hash = hashed(password).await?;
    let audit = row(
        WallClock::default().now(),
        "operator.password",
        name,
        "",
        "a new password".into(),
    );
    if store.operator_set_password(name, &hash, &audit).await? {
        Ok(())
    } else {
        Err(AccountError::UnknownOperator { name: name.into() })
    }
}

/// Removes an operator, with their sessions and links.
pub async fn remove_operator(store: &Store, name: &str) -> Result<(), AccountError> {
    let audit = row(
        WallClock::default().now(),
        "operator.remove",
        name,
        "",
        String::new(),
    );
    if store.operator_remove(name, &audit).await? {
        Ok(())
    } else {
        Err(AccountError::UnknownOperator { name: name.into() })
    }
}

async fn hashed(password: SecretString) -> Result<String, PasswordError> {
    tokio::task::spawn_blocking(move || password::hash(&password))
        .await
        .unwrap_or(Err(PasswordError::NotHashed))
}

fn command_line() -> Actor {
    Actor {
        name: "command line".into(),
        via: Via::CommandLine,
    }
}

fn row(at: Moment, action: &str, target: &str, before: &str, after: String) -> AuditRow {
    AuditRow {
        at,
        actor: command_line(),
        action: action.into(),
        target: target.into(),
        before: before.into(),
        after,
        reason: String::new(),
    }
}

fn check_name(name: &str) -> Result<(), AccountError> {
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
