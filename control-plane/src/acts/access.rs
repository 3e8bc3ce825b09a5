//! Who may come in. Needs an administrator, also to look.
//!
//! Each change is one transaction of the store, with its line of the record in it; a role is read
//! with each request, so that another one holds from the next request on.

use std::time::Duration;

use hedgerow_core::effect::OrderError;
use hedgerow_core::event::Actor;
use hedgerow_dashboard::backend::{
    AccessChange, AccessChanged, AccessView, ActError, AgentTokenView, ApiTokenView, OperatorView,
    Role,
};
use hedgerow_protocol::ids::ServiceName;
use secrecy::ExposeSecret as _;

use super::{Acting, readable_reason};
use crate::auth::{AccountError, Accounts, Auth, LINK_VALID};
use crate::store::{Account, ApiToken, StoreError, StoredAgentToken};

/// How many days a token made on a page or by the API may last.
const DAYS: std::ops::RangeInclusive<u32> = 1..=366;

impl Acting<'_> {
    /// Everybody who may come in.
    pub(crate) async fn access(self, auth: &Auth) -> Result<AccessView, ActError> {
        self.needs(Role::Administrator)?;
        let failed = |error: StoreError| not_done(error.into());
        let store = auth.store();
        let accounts = self.accounts(auth, "").operators().await.map_err(failed)?;
        let api_tokens = store.api_tokens().await.map_err(failed)?;
        let agent_tokens = store.stored_agent_tokens().await.map_err(failed)?;
        Ok(AccessView {
            operators: accounts.into_iter().map(operator).collect(),
            api_tokens: api_tokens.into_iter().map(api_token).collect(),
            agent_tokens: agent_tokens.into_iter().map(agent_token).collect(),
        })
    }

    /// Changes who may come in.
    pub(crate) async fn change_access(
        self,
        auth: &Auth,
        change: AccessChange,
        reason: &str,
    ) -> Result<AccessChanged, ActError> {
        self.needs(Role::Administrator)?;
        let accounts = self.accounts(auth, readable_reason(reason)?);
        match change {
            AccessChange::AddOperator { name, role } => {
                let added = accounts.add_operator(&name, role, None).await;
                added.map_err(not_done)?;
                login_link(&accounts, &name).await
            }
            AccessChange::LoginLink { name } => login_link(&accounts, &name).await,
            AccessChange::SetRole { name, role } => done(accounts.set_role(&name, role).await),
            AccessChange::RemoveOperator { name } => done(accounts.remove_operator(&name).await),
            AccessChange::AddApiToken { name, role, days } => {
                add_api_token(&accounts, &name, role, days).await
            }
            AccessChange::RevokeApiToken { name } => done(accounts.revoke_api_token(&name).await),
            AccessChange::AddAgentToken { service } => {
                let added = add_agent_token(&accounts, &service).await?;
                auth.agent_tokens_changed().notify_one();
                Ok(added)
            }
            AccessChange::RevokeAgentToken { id } => {
                let revoked = done(accounts.revoke_agent_token(&id).await)?;
                auth.agent_tokens_changed().notify_one();
                Ok(revoked)
            }
        }
    }

    fn accounts<'a>(&self, auth: &'a Auth, reason: &str) -> Accounts<'a> {
        let actor = Actor {
            name: self.operator.name.clone(),
            via: self.via,
        };
        auth.accounts(actor, reason)
    }
}

async fn login_link(accounts: &Accounts<'_>, name: &str) -> Result<AccessChanged, ActError> {
    let token = accounts.new_login_link(name, LINK_VALID).await;
    let token = token.map_err(not_done)?;
    let path = format!("/login/link?token={}", token.expose_secret());
    Ok(AccessChanged::Link(path))
}

async fn add_agent_token(
    accounts: &Accounts<'_>,
    service: &str,
) -> Result<AccessChanged, ActError> {
    let service = ServiceName::new(service).map_err(|e| ActError::Invalid {
        field: "service",
        problem: e.to_string(),
    })?;
    let token = accounts.new_agent_token(service).await;
    let token = token.map_err(|e| not_done(e.into()))?;
    Ok(AccessChanged::Token(token.expose_secret().to_owned()))
}

async fn add_api_token(
    accounts: &Accounts<'_>,
    name: &str,
    role: Role,
    days: u32,
) -> Result<AccessChanged, ActError> {
    if !DAYS.contains(&days) {
        return Err(ActError::Invalid {
            field: "days",
            problem: format!(
                "{days} is out of range: expected {} to {} days",
                DAYS.start(),
                DAYS.end()
            ),
        });
    }
    let lasts = Duration::from_hours(24 * u64::from(days));
    let token = accounts.new_api_token(name, role, Some(lasts)).await;
    let token = token.map_err(not_done)?;
    Ok(AccessChanged::Token(token.expose_secret().to_owned()))
}

fn done(outcome: Result<(), AccountError>) -> Result<AccessChanged, ActError> {
    outcome.map(|()| AccessChanged::Done).map_err(not_done)
}

/// An error, as pages and API tell it.
fn not_done(error: AccountError) -> ActError {
    let problem = error.to_string();
    match error {
        AccountError::UnknownOperator { .. }
        | AccountError::UnknownToken { .. }
        | AccountError::UnknownAgentToken { .. } => ActError::Unknown(problem),
        AccountError::Name { .. } => ActError::Invalid {
            field: "name",
            problem,
        },
        AccountError::Password(_) => ActError::Invalid {
            field: "password",
            problem,
        },
        AccountError::Taken { .. }
        | AccountError::LastAdministrator { .. }
        | AccountError::SingleSignOn { .. } => OrderError::NotNow(problem).into(),
        AccountError::Store(error) => {
            let error = error.in_full();
            tracing::error!(error, "who may come in could not be read or changed");
            OrderError::NotPersisted("the store did not answer as expected".into()).into()
        }
    }
}

fn operator(account: Account) -> OperatorView {
    OperatorView {
        name: account.name,
        role: account.role,
        has_password: account.has_password,
        single_sign_on: account.single_sign_on,
        created: account.created,
        sessions: account.sessions,
    }
}

fn api_token(token: ApiToken) -> ApiTokenView {
    ApiTokenView {
        name: token.name,
        role: token.role,
        created: token.created,
        expires: token.expires,
    }
}

fn agent_token(stored: StoredAgentToken) -> AgentTokenView {
    AgentTokenView {
        id: stored.token.id(),
        service: stored.token.service.into(),
        created: stored.created,
    }
}
