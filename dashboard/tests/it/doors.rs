//! The stage's doors: who may come in, and by whom.

use std::time::Duration;

use hedgerow_core::effect::OrderError;
use hedgerow_core::moment::Moment;
use hedgerow_dashboard::backend::{
    AccessChange, AccessChanged, AccessView, ActError, AgentTokenView, ApiTokenView, OperatorView,
    Role, Session, SignInError, SignOnBegun, SignOnEnded,
};

use crate::fleet;
use crate::stage::State;

/// What is shown once.
pub(crate) const TOKEN: &str = "hgr_shown-once";
/// The same, as the path of a link.
pub(crate) const NEW_LINK: &str = "/login/link?token=shown-once";
/// What the provider sends back for somebody it lets in.
pub(crate) const CODE: &str = "good-code";

/// Two people, a program whose token is over, and a service.
pub(crate) fn somebody() -> AccessView {
    let created = Moment::from_millis(fleet::START.as_millis() - 86_400_000);
    let person = |name: &str, role, single_sign_on| OperatorView {
        name: name.into(),
        role,
        has_password: false,
        single_sign_on,
        created,
        sessions: 2,
    };
    AccessView {
        operators: vec![
            person("ada", Role::Administrator, false),
            person("sven@example.org", Role::Viewer, true),
        ],
        api_tokens: vec![ApiTokenView {
            name: "ci".into(),
            role: Role::Editor,
            created,
            expires: created,
        }],
        agent_tokens: vec![AgentTokenView {
            id: "0123456789ab".into(),
            service: "shop".into(),
            created,
        }],
    }
}

pub(crate) fn change(
    state: &mut State,
    change: AccessChange,
    reason: &str,
) -> Result<AccessChanged, ActError> {
    let last = |name: &str| {
        let words = format!("{name} is the last administrator: make another one first");
        Err(OrderError::NotNow(words).into())
    };
    let changed = match &change {
        AccessChange::SetRole { name, .. } | AccessChange::RemoveOperator { name }
            if name == "ada" =>
        {
            return last(name);
        }
        AccessChange::AddApiToken { days, .. } if !(1..=366).contains(days) => {
            return Err(ActError::Invalid {
                field: "days",
                problem: format!("{days} is out of range: expected 1 to 366 days"),
            });
        }
        AccessChange::AddOperator { .. } | AccessChange::LoginLink { .. } => {
            AccessChanged::Link(NEW_LINK.into())
        }
        AccessChange::AddApiToken { .. } | AccessChange::AddAgentToken { .. } => {
            AccessChanged::Token(TOKEN.into())
        }
        _ => AccessChanged::Done,
    };
    state.asked.push((change, reason.into()));
    Ok(changed)
}

/// The browser keeps the state and the way back, as they are.
pub(crate) fn begin(next: &str) -> Result<SignOnBegun, SignInError> {
    if next == "/away" {
        let words = "the provider's discovery document could not be connected to";
        return Err(SignInError::Provider(words.into()));
    }
    let way = next.replace('/', "~");
    Ok(SignOnBegun {
        address: "https://id.example.org/authorize?state=s-1".into(),
        keep: format!("s-1{way}"),
        lasts: Duration::from_mins(10),
    })
}

pub(crate) fn end(
    code: &str,
    state: &str,
    kept: &str,
    session: Session,
) -> Result<SignOnEnded, SignInError> {
    let way = kept.strip_prefix("s-1").filter(|_| state == "s-1");
    let next = way.ok_or(SignInError::NotBegun)?.replace('~', "/");
    match code {
        CODE => Ok(SignOnEnded { session, next }),
        "taken" => Err(SignInError::NameTaken("dana".into())),
        _ => Err(SignInError::NotAllowed("<dana>".into())),
    }
}
