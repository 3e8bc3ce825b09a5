//! What people do to the fleet. Page, API and command line all come through here, and here the role
//! is checked (S12).

use hedgerow_core::effect::Done;
use hedgerow_core::event::{Actor, KillScope, Order, Via};
use hedgerow_dashboard::backend::{ActError, Operator, Role, Saved};
use hedgerow_protocol::ids::{Revision, RouteKey};
use hedgerow_protocol::policy::Policy;

use crate::engine::{Engine, EngineError};

/// Somebody who acts, and the way they came in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Acting<'a> {
    /// The core.
    pub(crate) engine: &'a Engine,
    /// Who.
    pub(crate) operator: &'a Operator,
    /// From where.
    pub(crate) via: Via,
}

impl Acting<'_> {
    /// Puts a policy in force. Needs an editor.
    pub(crate) async fn set_policy(
        self,
        policy: Policy,
        expected: Option<Revision>,
        reason: &str,
    ) -> Result<Saved, ActError> {
        self.needs(Role::Editor)?;
        let order = Order::SetPolicy {
            policy: Box::new(policy),
            expected,
        };
        match self.order(order, reason).await? {
            Done::Policy { revision, changed } => Ok(Saved { revision, changed }),
            other => Err(mismatched(&other)),
        }
    }

    /// Throws or releases a kill switch; whether that changed anything. Needs an operator.
    pub(crate) async fn kill(
        self,
        scope: KillScope,
        engaged: bool,
        reason: &str,
    ) -> Result<bool, ActError> {
        self.needs(Role::Operator)?;
        match self.order(Order::Kill { scope, engaged }, reason).await? {
            Done::Kill { changed } => Ok(changed),
            other => Err(mismatched(&other)),
        }
    }

    /// Lets a route decide again. Needs an operator.
    pub(crate) async fn release(self, route: RouteKey, reason: &str) -> Result<(), ActError> {
        self.needs(Role::Operator)?;
        self.order(Order::Release { route }, reason)
            .await
            .map(|_| ())
    }

    /// Makes the present speed the base of the all-slow test: it moves a limit, as a policy does.
    /// Needs an editor.
    pub(crate) async fn accept_base(self, route: RouteKey, reason: &str) -> Result<(), ActError> {
        self.needs(Role::Editor)?;
        self.order(Order::AcceptBase { route }, reason)
            .await
            .map(|_| ())
    }

    fn needs(self, needed: Role) -> Result<(), ActError> {
        let have = self.operator.role;
        if have >= needed {
            Ok(())
        } else {
            Err(ActError::Forbidden { needed, have })
        }
    }

    async fn order(self, order: Order, reason: &str) -> Result<Done, ActError> {
        let actor = Actor {
            name: self.operator.name.clone(),
            via: self.via,
        };
        self.engine
            .order(actor, reason.trim().into(), order)
            .await
            .map_err(|error| match error {
                EngineError::Refused(refused) => refused.into(),
                EngineError::Gone => ActError::NoAnswer,
            })
    }
}

/// The core answered another question than was asked: nothing can be said of what changed.
fn mismatched(done: &Done) -> ActError {
    tracing::error!(?done, "the core's answer does not belong to the order");
    ActError::NoAnswer
}
