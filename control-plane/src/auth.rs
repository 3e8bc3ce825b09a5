//! Who somebody is, and what they may do: operators and their sessions, one-time login links, single
//! sign-on, API tokens.
//!
//! Invariant: no account has a password that somebody else chose; the first administrator has none
//! at all and comes in by a one-time link (S11).
//!
//! Invariant: the store never holds what signs somebody in, only its hash; and what holds it in
//! memory prints nothing (S9).

mod attempts;
mod clock;
mod manage;
mod oidc;
mod password;
mod sign_on;
mod token;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hedgerow_core::effect::AuditRow;
use hedgerow_core::event::{Actor, Via};
use hedgerow_dashboard::backend::{Operator, Role, Session, SignInError};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::Notify;

use crate::store::sessions::SessionLimits;
use crate::store::{Store, StoreError, role_name};
use attempts::Attempts;
use password::Passwords;

pub use clock::WallClock;
pub use manage::{
    AccountError, Accounts, add_operator, new_agent_token, new_api_token, new_login_link,
    set_password,
};
pub use oidc::{AddressProblem, Oidc, SingleSignOn, TICKET_LASTS};
pub use password::{PASSWORD_LEN_MAX, PASSWORD_LEN_MIN, PasswordError};

/// How long a login link can be used.
pub const LINK_VALID: Duration = Duration::from_mins(15);
/// The first administrator's name.
pub const FIRST_ADMINISTRATOR: &str = "admin";

const SESSIONS: SessionLimits = SessionLimits {
    idle: Duration::from_hours(12),
    absolute: Duration::from_hours(24),
    per_operator: 64,
};

/// Knows operators. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Auth {
    store: Store,
    clock: WallClock,
    attempts: Arc<Attempts>,
    passwords: Passwords,
    provider: Option<Arc<SingleSignOn>>,
    /// Rings when agents' credentials were changed in this process.
    agent_tokens_changed: Arc<Notify>,
}

/// The administrator made on the first start, and the way in.
#[derive(Debug)]
pub struct FirstAdministrator {
    /// Their name.
    pub name: String,
    /// The token of a one-time link that is valid for [`LINK_VALID`]. For the terminal alone.
    pub token: SecretString,
}

/// Why a bearer token does not open anything.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Unknown, revoked or over: which of them is not said.
    #[error("the token is not known, or is over")]
    Unknown,
    /// Too many wrong ones.
    #[error("too many attempts; try again in {} s", .again.as_secs().max(1))]
    TooMany {
        /// When to try again.
        again: Duration,
    },
    /// The store is away.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Auth {
    /// Over a store, by the machine's clock.
    pub fn new(store: Store) -> Self {
        Self::with_clock(store, WallClock::default())
    }

    /// Over a store, by a clock of the caller's.
    pub fn with_clock(store: Store, clock: WallClock) -> Self {
        Self {
            store,
            clock,
            attempts: Arc::default(),
            passwords: Passwords::default(),
            provider: None,
            agent_tokens_changed: Arc::default(),
        }
    }

    /// The same, with single sign-on.
    #[must_use]
    pub fn with_single_sign_on(self, provider: SingleSignOn) -> Self {
        Self {
            provider: Some(Arc::new(provider)),
            ..self
        }
    }

    /// Rings when agents' credentials were changed in this process.
    pub fn agent_tokens_changed(&self) -> Arc<Notify> {
        Arc::clone(&self.agent_tokens_changed)
    }

    /// Accounts and tokens, changed by somebody who may: the role is checked in `acts`.
    pub(crate) fn accounts(&self, actor: Actor, reason: &str) -> Accounts<'_> {
        Accounts::by(&self.store, self.clock.now(), actor, reason)
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Makes the first administrator where there is no operator yet, without a password, and a
    /// one-time link for them. `None`: there are operators.
    pub async fn bootstrap(&self) -> Result<Option<FirstAdministrator>, AccountError> {
        if self.store.operators_count().await? > 0 {
            return Ok(None);
        }
        let audit = AuditRow {
            at: self.clock.now(),
            actor: Actor::controller(),
            action: "operator.add".into(),
            target: FIRST_ADMINISTRATOR.into(),
            before: String::new(),
            after: "administrator".into(),
            reason: "the store had no operators".into(),
        };
        let role = Role::Administrator;
        if !self
            .store
            .operator_add(FIRST_ADMINISTRATOR, role, None, &audit)
            .await?
        {
            return Ok(None);
        }
        let accounts = self.accounts(Actor::controller(), "");
        let token = accounts
            .new_login_link(FIRST_ADMINISTRATOR, LINK_VALID)
            .await?;
        Ok(Some(FirstAdministrator {
            name: FIRST_ADMINISTRATOR.into(),
            token,
        }))
    }

    /// Signs in by name and password.
    pub async fn sign_in(
        &self,
        name: &str,
        password: &str,
        peer: Option<IpAddr>,
    ) -> Result<Session, SignInError> {
        self.attempts
            .begin(Instant::now(), Some(name), peer)
            .map_err(|again| SignInError::TooMany { again })?;
        let known = self
            .store
            .operator_by_name(name)
            .await
            .map_err(|e| unreadable(&e))?;
        let (operator, hash) = known.map_or((None, None), |(o, hash)| (Some(o), hash));
        let good = self.passwords.verify(password, hash).await;
        let operator = operator.filter(|_| good).ok_or_else(|| {
            // Not the name: people type their password into the wrong field.
            tracing::warn!(peer = peer.map(tracing::field::display), "sign-in refused");
            SignInError::Wrong
        })?;
        self.attempts.succeeded(Some(name), peer);
        self.begin_session(operator, "by password").await
    }

    /// Signs in by a one-time link's token, which is used up whatever happens afterwards.
    pub async fn sign_in_by_link(
        &self,
        token: &str,
        peer: Option<IpAddr>,
    ) -> Result<Session, SignInError> {
        let now = self.clock.now();
        let operator = match token::digest(token) {
            Some(digest) => self
                .store
                .link_take(&digest, now)
                .await
                .map_err(|e| unreadable(&e))?,
            None => None,
        };
        match operator {
            Some(operator) => self.begin_session(operator, "by one-time link").await,
            None => Err(self
                .guessed(peer, "login link refused")
                .map_or(SignInError::LinkSpent, |again| SignInError::TooMany {
                    again,
                })),
        }
    }

    /// Counts a token that is none. Only after it was looked up: 256 bits are not guessed, so a
    /// good token always opens, also behind a proxy that others guess through. `Some`: it was one
    /// too many, and when to come again.
    fn guessed(&self, peer: Option<IpAddr>, what: &'static str) -> Option<Duration> {
        let again = self.attempts.begin(Instant::now(), None, peer).err();
        if again.is_none() {
            tracing::warn!(peer = peer.map(tracing::field::display), "{what}");
        }
        again
    }

    async fn begin_session(&self, operator: Operator, how: &str) -> Result<Session, SignInError> {
        let token = token::generate("");
        let now = self.clock.now();
        let audit = AuditRow {
            at: now,
            actor: Actor {
                name: operator.name.clone(),
                via: Via::Page,
            },
            action: "session.begin".into(),
            target: operator.name.clone(),
            before: String::new(),
            after: role_name(operator.role).into(),
            reason: how.into(),
        };
        self.store
            .session_add(&token::digest_of(&token), &operator.name, SESSIONS, &audit)
            .await
            .map_err(|e| unreadable(&e))?;
        let cookie = token.expose_secret().to_owned();
        Ok(Session {
            cookie,
            lasts: SESSIONS.absolute,
            operator,
        })
    }

    /// Whose session this is; `None`: nobody's, or no longer.
    pub async fn session(&self, cookie: &str) -> Result<Option<Operator>, StoreError> {
        match token::digest(cookie) {
            Some(digest) => {
                self.store
                    .session_operator(&digest, self.clock.now(), SESSIONS)
                    .await
            }
            None => Ok(None),
        }
    }

    /// Ends a session.
    pub async fn sign_out(&self, cookie: &str) -> Result<(), StoreError> {
        match token::digest(cookie) {
            Some(digest) => self.store.session_end(&digest).await,
            None => Ok(()),
        }
    }

    /// Who an API token stands for. The record names it `token:` and its name; no operator's name
    /// has a colon.
    pub async fn bearer(&self, token: &str, peer: Option<IpAddr>) -> Result<Operator, TokenError> {
        let known = match token::digest(token) {
            Some(digest) => self.store.api_token(&digest, self.clock.now()).await?,
            None => None,
        };
        let known = known.ok_or_else(|| {
            self.guessed(peer, "API token refused")
                .map_or(TokenError::Unknown, |again| TokenError::TooMany { again })
        })?;
        Ok(Operator {
            name: format!("token:{}", known.name),
            role: known.role,
        })
    }
}

fn unreadable(error: &StoreError) -> SignInError {
    hedgerow_dashboard::backend::StoreError(error.in_full()).into()
}
