//! Who may come in: people, programs and services' agents. For administrators.
//!
//! What is shown once is in the answer to the form that made it and nowhere else: there is no address
//! to come back to.

use askama::Template;
use axum::Extension;
use axum::extract::{Form, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use hedgerow_core::moment::Moment;
use serde::Deserialize;

use super::error;
use super::frame::{Frame, role_name};
use crate::backend::{AccessChange, AccessChanged, AccessView, ActError, Backend, Role};
use crate::format::Time;
use crate::fragment::html;
use crate::guard::{Viewer, host};
use crate::router::App;

const ROLES: [Role; 4] = [
    Role::Viewer,
    Role::Operator,
    Role::Editor,
    Role::Administrator,
];

#[derive(Debug, Template)]
#[template(path = "access.html", blocks = ["page"])]
struct AccessPage {
    frame: Frame,
    operators: Vec<OperatorRow>,
    api_tokens: Vec<ApiTokenRow>,
    agent_tokens: Vec<AgentTokenRow>,
    /// Whether people may come in by a provider.
    sso: Option<String>,
    typed: Typed,
    problem: Option<String>,
    once: Option<Once>,
}

impl AccessPage {
    /// What was typed into the form of this act, if it was that form.
    fn was(&self, act: &str) -> Typed {
        if self.typed.act == act {
            self.typed.clone()
        } else {
            Typed::default()
        }
    }
}

/// Names of the roles, each with whether it is the one that is chosen.
fn roles(chosen: &str) -> [(&'static str, bool); 4] {
    ROLES.map(|it| (role_name(it), role_name(it) == chosen))
}

#[derive(Debug)]
struct OperatorRow {
    name: String,
    role: &'static str,
    by: &'static str,
    /// Whether role and way in are decided here.
    ours: bool,
    since: Time,
    sessions: u64,
}

#[derive(Debug)]
struct ApiTokenRow {
    name: String,
    role: &'static str,
    since: Time,
    until: Time,
    over: bool,
}

#[derive(Debug)]
struct AgentTokenRow {
    id: String,
    service: String,
    since: Time,
}

/// What is shown this once.
struct Once {
    title: String,
    value: String,
    note: &'static str,
}

impl std::fmt::Debug for Once {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Once")
            .field("title", &self.title)
            .finish_non_exhaustive()
    }
}

/// A form of this page, as it was sent.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Typed {
    act: String,
    name: String,
    role: String,
    days: String,
    service: String,
    id: String,
    reason: String,
}

impl Typed {
    /// What is wanted; what cannot stand is told by its field.
    fn change(&self) -> Result<AccessChange, ActError> {
        let name = || self.name.trim().to_owned();
        Ok(match self.act.as_str() {
            "add-operator" => AccessChange::AddOperator {
                name: name(),
                role: self.role()?,
            },
            "set-role" => AccessChange::SetRole {
                name: name(),
                role: self.role()?,
            },
            "remove-operator" => AccessChange::RemoveOperator { name: name() },
            "link" => AccessChange::LoginLink { name: name() },
            "add-token" => AccessChange::AddApiToken {
                name: name(),
                role: self.role()?,
                days: self.days()?,
            },
            "revoke-token" => AccessChange::RevokeApiToken { name: name() },
            "add-agent-token" => AccessChange::AddAgentToken {
                service: self.service.trim().to_owned(),
            },
            "revoke-agent-token" => AccessChange::RevokeAgentToken {
                id: self.id.trim().to_owned(),
            },
            _ => {
                return Err(ActError::Invalid {
                    field: "act",
                    problem: "expected one of this page's forms".into(),
                });
            }
        })
    }

    fn role(&self) -> Result<Role, ActError> {
        let named = ROLES.into_iter().find(|it| role_name(*it) == self.role);
        named.ok_or_else(|| ActError::Invalid {
            field: "role",
            problem: "expected viewer, operator, editor or administrator".into(),
        })
    }

    fn days(&self) -> Result<u32, ActError> {
        self.days.trim().parse().map_err(|_| ActError::Invalid {
            field: "days",
            problem: "expected a number of days, 1 to 366".into(),
        })
    }
}

/// GET /access
pub(crate) async fn page<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
) -> Response {
    show(&app, &viewer, StatusCode::OK, Typed::default(), None, None).await
}

/// POST /access
pub(crate) async fn change<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    headers: HeaderMap,
    uri: Uri,
    Form(typed): Form<Typed>,
) -> Response {
    let changed = match typed.change() {
        Ok(change) => {
            let (operator, reason) = (&viewer.operator, typed.reason.trim());
            app.backend.change_access(operator, change, reason).await
        }
        Err(error) => Err(error),
    };
    let once = match changed {
        Ok(AccessChanged::Done) => return Redirect::to("/access").into_response(),
        Ok(AccessChanged::Token(token)) => Once {
            title: match typed.act.as_str() {
                "add-agent-token" => format!("Token for agents of {}", typed.service.trim()),
                _ => format!("API token {}", typed.name.trim()),
            },
            value: token,
            note: "Copy it now: only a hash of it is kept, and nobody can show it again.",
        },
        Ok(AccessChanged::Link(path)) => Once {
            title: format!("Sign-in link for {}", typed.name.trim()),
            value: absolute(&app, &headers, &uri, &path),
            note: "It works once, for 15 minutes. Hand it over by a way that nobody else reads; \
                   it is not shown again.",
        },
        Err(error @ ActError::Forbidden { .. }) => return error::act(&error),
        Err(problem) => {
            let (status, _) = error::describe(&problem);
            let words = problem.to_string();
            return show(&app, &viewer, status, typed, Some(words), None).await;
        }
    };
    show(
        &app,
        &viewer,
        StatusCode::OK,
        Typed::default(),
        None,
        Some(once),
    )
    .await
}

/// A path of these pages, as it is sent to somebody: by the name that they were asked for.
fn absolute<B>(app: &App<B>, headers: &HeaderMap, uri: &Uri, path: &str) -> String {
    let scheme = if app.settings.secure_cookies {
        "https"
    } else {
        "http"
    };
    host(headers, uri).map_or_else(
        || path.to_owned(),
        |host| format!("{scheme}://{host}{path}"),
    )
}

async fn show<B: Backend>(
    app: &App<B>,
    viewer: &Viewer,
    status: StatusCode,
    typed: Typed,
    problem: Option<String>,
    once: Option<Once>,
) -> Response {
    let access = match app.backend.access(&viewer.operator).await {
        Ok(access) => access,
        Err(error) => return error::act(&error),
    };
    let snapshot = app.backend.snapshot();
    let (operators, api_tokens, agent_tokens) = rows(access, snapshot.at);
    let page = AccessPage {
        frame: Frame::new("Access", "access", viewer, &snapshot, "page=frame"),
        operators,
        api_tokens,
        agent_tokens,
        sso: app.backend.single_sign_on(),
        typed,
        problem,
        once,
    };
    html(status, &page)
}

fn rows(
    access: AccessView,
    now: Moment,
) -> (Vec<OperatorRow>, Vec<ApiTokenRow>, Vec<AgentTokenRow>) {
    let operators = access.operators.into_iter().map(|it| OperatorRow {
        role: role_name(it.role),
        by: match (it.single_sign_on, it.has_password) {
            (true, _) => "single sign-on",
            (false, true) => "password or link",
            (false, false) => "link",
        },
        ours: !it.single_sign_on,
        since: Time::full(it.created),
        sessions: it.sessions,
        name: it.name,
    });
    let api_tokens = access.api_tokens.into_iter().map(|it| ApiTokenRow {
        role: role_name(it.role),
        since: Time::full(it.created),
        until: Time::full(it.expires),
        over: it.expires <= now,
        name: it.name,
    });
    let agent_tokens = access.agent_tokens.into_iter().map(|it| AgentTokenRow {
        id: it.id,
        service: it.service,
        since: Time::full(it.created),
    });
    (
        operators.collect(),
        api_tokens.collect(),
        agent_tokens.collect(),
    )
}
