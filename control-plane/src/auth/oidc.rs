//! Single sign-on by OpenID Connect: the authorization code flow with PKCE (S256), state and nonce.
//!
//! Invariant: what the provider says is believed only in an ID token whose signature, issuer,
//! audience, expiry and nonce hold; nothing is taken from the browser but the code and the state of a
//! sign-in that this process began in it.
//!
//! Invariant: every address that is connected to is checked as receivers' are, also those that the
//! discovery document names (S8).

mod claims;
mod provider;
mod signed;
mod ticket;

use std::collections::BTreeMap;
use std::time::Duration;

use hedgerow_core::moment::Moment;
use hedgerow_dashboard::backend::Role;
use reqwest::Url;
use secrecy::SecretString;

use claims::Expected;
use provider::Provider;
use ticket::Tickets;

pub use provider::AddressProblem;
pub use ticket::TICKET_LASTS;

/// A provider, and what its people may do here.
#[derive(Debug, Clone)]
pub struct Oidc {
    /// Its issuer, letter by letter as its discovery document and its tokens have it.
    pub issuer: String,
    /// What this controller is called there.
    pub client_id: String,
    /// What it shows that it is; None: a public client, by PKCE alone.
    pub client_secret: Option<SecretString>,
    /// The provider's name, for the button.
    pub name: String,
    /// What is asked for, `openid` among it.
    pub scopes: Vec<String>,
    /// The claim that decides the role: a text or a list of texts; dots lead into objects.
    pub role_claim: String,
    /// The role for each value of that claim. Of several the greatest holds.
    pub roles: BTreeMap<String, Role>,
    /// The role without any of these values; None: they are not let in.
    pub default_role: Option<Role>,
    /// The claim that names people; None: `preferred_username`, or `email`.
    pub username_claim: Option<String>,
    /// Whether its addresses may be private, and without TLS.
    pub allow_private: bool,
}

/// Why somebody is not signed on. Nothing in it is secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SignOnError {
    /// The state is not that of a sign-in begun here.
    #[error("it was not begun in this browser, is over, or has been used")]
    NotBegun,
    /// The provider does not answer as one does.
    #[error("{0}")]
    Provider(String),
    /// Its ID token does not hold.
    #[error("the provider's ID token does not hold: {0}")]
    Token(&'static str),
    /// No claim of theirs is worth a role.
    #[error("{name} has no role here")]
    NoRole {
        /// The provider's name for them.
        name: String,
        /// Issuer and subject.
        identity: String,
    },
}

/// Somebody the provider vouches for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Person {
    /// Issuer and subject: theirs alone, for ever.
    pub(crate) identity: String,
    /// What they are called.
    pub(crate) name: String,
    /// What they may do.
    pub(crate) role: Role,
}

/// A sign-in begun: where to send the browser, and what it is to keep.
pub(crate) struct Begun {
    pub(crate) address: String,
    pub(crate) keep: String,
}

/// Single sign-on by one provider.
#[derive(Debug)]
pub struct SingleSignOn {
    settings: Oidc,
    /// Where the provider sends people back to.
    back: String,
    provider: Provider,
    tickets: Tickets,
}

impl SingleSignOn {
    /// `base`: the address people reach the dashboard by, ending in a slash.
    pub fn new(settings: Oidc, base: &str) -> Result<Self, reqwest::Error> {
        Ok(Self {
            provider: Provider::new(&settings)?,
            back: format!("{base}login/sso/back"),
            settings,
            tickets: Tickets::default(),
        })
    }

    /// Whether an issuer may be connected to, as far as its address tells.
    pub fn check_issuer(issuer: &str, allow_private: bool) -> Result<(), AddressProblem> {
        provider::check(issuer, allow_private).map(|_| ())
    }

    pub(crate) fn name(&self) -> &str {
        &self.settings.name
    }

    /// Begins a sign-in that ends at `next`, a path on this site.
    pub(crate) async fn begin(&self, next: &str, now: Moment) -> Result<Begun, SignOnError> {
        let document = self.provider.document().await?;
        let ticket = self.tickets.issue(next, now);
        let mut address = document.authorization_endpoint.clone();
        address
            .query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.settings.client_id)
            .append_pair("redirect_uri", &self.back)
            .append_pair("scope", &self.settings.scopes.join(" "))
            .append_pair("state", &ticket.state)
            .append_pair("nonce", &ticket.nonce)
            .append_pair("code_challenge", &ticket.challenge)
            .append_pair("code_challenge_method", "S256");
        Ok(Begun {
            address: Url::into(address),
            keep: ticket.keep,
        })
    }

    /// Ends it: who they are, and where they wanted to go.
    pub(crate) async fn end(
        &self,
        code: &str,
        state: &str,
        kept: &str,
        now: Moment,
    ) -> Result<(Person, String), SignOnError> {
        let begun = self.tickets.redeem(state, kept, now)?;
        let token = self
            .provider
            .exchange(&self.settings, code, &self.back, &begun.verifier)
            .await?;
        let claims = self.provider.verified(&token).await?;
        let expected = Expected {
            issuer: &self.settings.issuer,
            client_id: &self.settings.client_id,
            nonce: &begun.nonce,
            now,
        };
        claims.check(&expected).map_err(SignOnError::Token)?;
        Ok((claims.person(&self.settings)?, begun.next))
    }
}

/// How long a sign-in may take at the provider.
pub(crate) const fn lasts() -> Duration {
    TICKET_LASTS
}
