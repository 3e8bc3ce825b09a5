//! Sessions that begin by single sign-on.

use std::net::IpAddr;
use std::time::Instant;

use hedgerow_core::effect::AuditRow;
use hedgerow_core::event::{Actor, Via};
use hedgerow_core::moment::Moment;
use hedgerow_dashboard::backend::{Session, SignInError, SignOnBegun, SignOnEnded};
use secrecy::ExposeSecret as _;

use super::oidc::{self, Person, SignOnError, SingleSignOn};
use super::{Auth, SESSIONS, token, unreadable};
use crate::store::single_sign_on::{SignedOn, Vouched};

impl Auth {
    /// What the sign-in page offers besides a password.
    pub fn single_sign_on(&self) -> Option<String> {
        self.provider.as_ref().map(|it| it.name().to_owned())
    }

    /// Begins a sign-in by the provider that leads to `next`, a path on this site.
    pub async fn begin_single_sign_on(&self, next: &str) -> Result<SignOnBegun, SignInError> {
        let begun = self.provider()?.begin(next, self.clock.now()).await;
        let begun = begun.map_err(|error| SignInError::Provider(error.to_string()))?;
        Ok(SignOnBegun {
            address: begun.address,
            keep: begun.keep,
            lasts: oidc::lasts(),
        })
    }

    /// Ends it with what came back.
    pub async fn end_single_sign_on(
        &self,
        code: &str,
        state: &str,
        kept: &str,
        peer: Option<IpAddr>,
    ) -> Result<SignOnEnded, SignInError> {
        let provider = self.provider()?;
        // Before anything is asked of the provider: a flood here would be one there.
        self.attempts
            .begin(Instant::now(), None, peer)
            .map_err(|again| SignInError::TooMany { again })?;
        let now = self.clock.now();
        let (person, next) = match provider.end(code, state, kept, now).await {
            Ok(ended) => ended,
            Err(error) => return Err(self.not_signed_on(provider, error, peer).await),
        };
        let session = self.sign_on(provider, &person, now).await?;
        self.attempts.succeeded(None, peer);
        Ok(SignOnEnded { session, next })
    }

    fn provider(&self) -> Result<&SingleSignOn, SignInError> {
        let none = || SignInError::Provider("none is set up here; the setting is [oidc]".into());
        self.provider.as_deref().ok_or_else(none)
    }

    /// Account, role, session and their lines of the record, all at once.
    async fn sign_on(
        &self,
        provider: &SingleSignOn,
        person: &Person,
        now: Moment,
    ) -> Result<Session, SignInError> {
        let token = token::generate("");
        let who = Vouched {
            identity: &person.identity,
            name: &person.name,
            role: person.role,
        };
        let row = |action: &str, target: &str, before: &str, after: &str| {
            line(provider, now, action, target, before, after)
        };
        let signed_on = self
            .store
            .sign_on(who, &token::digest_of(&token), SESSIONS, row)
            .await
            .map_err(|e| unreadable(&e))?;
        match signed_on {
            SignedOn::Done(operator) => Ok(Session {
                cookie: token.expose_secret().to_owned(),
                lasts: SESSIONS.absolute,
                operator,
            }),
            SignedOn::NameTaken => {
                self.tried(&person.identity)?;
                tracing::warn!(
                    operator.name = person.name,
                    "single sign-on refused: the name is another account's"
                );
                Err(SignInError::NameTaken(person.name.clone()))
            }
        }
    }

    /// Counts a try of somebody whom the provider knows and this controller does not let in: by
    /// account too, since they may come from many addresses.
    fn tried(&self, identity: &str) -> Result<(), SignInError> {
        self.attempts
            .begin(Instant::now(), Some(identity), None)
            .map_err(|again| SignInError::TooMany { again })
    }

    async fn not_signed_on(
        &self,
        provider: &SingleSignOn,
        error: SignOnError,
        peer: Option<IpAddr>,
    ) -> SignInError {
        tracing::warn!(peer = peer.map(tracing::field::display), problem = %error, "single sign-on refused");
        match error {
            SignOnError::NotBegun => SignInError::NotBegun,
            SignOnError::NoRole { name, identity } => {
                if let Err(error) = self.tried(&identity) {
                    return error;
                }
                let now = self.clock.now();
                let row = |action: &str, target: &str, before: &str, after: &str| {
                    line(provider, now, action, target, before, after)
                };
                // Whoever had a role here and has none any more is out, also where they are in.
                match self.store.sign_on_refused(&identity, row).await {
                    Ok(_) => SignInError::NotAllowed(name),
                    Err(error) => unreadable(&error),
                }
            }
            error => SignInError::Provider(error.to_string()),
        }
    }
}

fn line(
    provider: &SingleSignOn,
    at: Moment,
    action: &str,
    target: &str,
    before: &str,
    after: &str,
) -> AuditRow {
    AuditRow {
        at,
        actor: Actor {
            name: target.into(),
            via: Via::Page,
        },
        action: action.into(),
        target: target.into(),
        before: before.into(),
        after: after.into(),
        reason: format!("by single sign-on, {}", provider.name()),
    }
}
