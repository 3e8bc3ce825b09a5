//! The kill switch: what it would stop, one confirmation with a reason, and how far it has got.

use askama::Template;
use axum::Extension;
use axum::extract::{Form, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use hedgerow_core::event::KillScope;
use hedgerow_core::view::{AgentState, FleetSnapshot, KillView};
use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::ids::{DependencyName, RouteKey};
use serde::Deserialize;

use super::error;
use super::frame::Frame;
use super::state::kill_address;
use crate::backend::{Backend, Role};
use crate::format::Time;
use crate::fragment::{Fragment, html};
use crate::guard::Viewer;
use crate::router::App;

/// Agents named that have not confirmed yet; further ones are told by number.
const PENDING_SHOWN: usize = 50;
/// Other switches listed; the rest are found by typing their names.
const OTHERS_SHOWN: usize = 60;

/// What the switch is for, as it stands in the address.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct KillQuery {
    pub(crate) scope: String,
    pub(crate) dependency: String,
}

impl KillQuery {
    fn scope(&self) -> Result<KillScope, String> {
        match (self.scope.as_str(), self.dependency.trim()) {
            ("" | "everything", "") => Ok(KillScope::Everything),
            ("" | "dependency", name) => DependencyName::new(name)
                .map(KillScope::Dependency)
                .map_err(|problem| format!("dependency {problem}")),
            (other, _) => Err(format!(
                "{other:?} is not a scope: expected everything, or dependency and its name"
            )),
        }
    }
}

/// What a scope covers at present.
#[derive(Debug, Template)]
#[template(path = "parts/reach.html")]
struct Reach {
    engaged: bool,
    routes: usize,
    dependencies: usize,
    agents: usize,
    hedging: usize,
}

impl Reach {
    fn new(snapshot: &FleetSnapshot, scope: &KillScope) -> Self {
        let engaged = |k: &KillView| k.state.engaged && k.state.scope == *scope;
        let routes: Vec<_> = snapshot
            .routes
            .values()
            .filter(|v| covers(scope, &v.route))
            .collect();
        let mut dependencies: Vec<_> = routes.iter().map(|v| &v.route.dependency).collect();
        dependencies.dedup();
        Self {
            engaged: snapshot.kills.iter().any(engaged),
            dependencies: dependencies.len(),
            hedging: routes.iter().filter(|v| v.mode.hedges()).count(),
            routes: routes.len(),
            agents: snapshot
                .agents
                .iter()
                .filter(|a| matches!(a.state, AgentState::Live | AgentState::Stale))
                .filter(|a| a.routes.iter().any(|r| covers(scope, &r.route)))
                .count(),
        }
    }
}

impl askama::filters::HtmlSafe for Reach {}

fn covers(scope: &KillScope, route: &RouteKey) -> bool {
    match scope {
        KillScope::Everything => true,
        KillScope::Dependency(name) => route.dependency == *name,
    }
}

/// How far an engaged switch has got.
#[derive(Debug, Template)]
#[template(path = "parts/progress.html")]
pub(crate) struct Progress {
    engaged: Option<Engaged>,
}

impl askama::filters::HtmlSafe for Progress {}

#[derive(Debug)]
struct Engaged {
    by: String,
    via: &'static str,
    since: Time,
    reason: String,
    acked: u64,
    of: u64,
    pending: Vec<String>,
    more: usize,
}

impl Progress {
    fn new(snapshot: &FleetSnapshot, scope: &KillScope) -> Self {
        let kill = snapshot
            .kills
            .iter()
            .find(|k| k.state.engaged && k.state.scope == *scope);
        let engaged = kill.map(|kill| {
            let mut pending: Vec<String> = snapshot
                .agents
                .iter()
                .filter(|a| a.state != AgentState::Left)
                .filter(|a| {
                    a.routes.iter().any(|r| {
                        covers(scope, &r.route) && r.mode != Mode::Off(OffReason::KillSwitch)
                    })
                })
                .map(|a| format!("{} {} ({})", a.service, a.instance, a.peer))
                .collect();
            let more = pending.len().saturating_sub(PENDING_SHOWN);
            pending.truncate(PENDING_SHOWN);
            Engaged {
                by: kill.state.actor.name.clone(),
                via: kill.state.actor.via.as_str(),
                since: Time::near(kill.state.at, snapshot.at),
                reason: kill.state.reason.clone(),
                acked: kill.acked.n,
                of: kill.acked.m,
                pending,
                more,
            }
        });
        Self { engaged }
    }
}

#[derive(Debug, Template)]
#[template(path = "kill.html", blocks = ["page"])]
struct KillPage {
    frame: Frame,
    scope: KillScope,
    what: String,
    reach: Reach,
    progress: Progress,
    engaged: bool,
    /// Every dependency's name, to choose one by typing.
    names: Vec<String>,
    /// Dependencies with their addresses: those whose switch is engaged, then the first of the
    /// others.
    others: Vec<(String, String, bool)>,
    more: usize,
    reason: String,
    problem: Option<String>,
    can_act: bool,
    /// To be typed before hedging goes on again.
    word: String,
}

impl KillPage {
    fn new(viewer: &Viewer, snapshot: &FleetSnapshot, scope: KillScope) -> Self {
        let (what, word, live) = match &scope {
            KillScope::Everything => (
                "everything".to_owned(),
                "everything".to_owned(),
                "page=kill".to_owned(),
            ),
            KillScope::Dependency(name) => (
                name.to_string(),
                name.to_string(),
                kill_address(name).replacen("/kill?", "page=kill&", 1),
            ),
        };
        let progress = Progress::new(snapshot, &scope);
        let mut names: Vec<_> = snapshot
            .routes
            .keys()
            .map(|r| r.dependency.clone())
            .collect();
        let policies = snapshot.policies.keys();
        names.extend(policies.filter_map(|scope| scope.dependency().cloned()));
        names.sort();
        names.dedup();
        let engaged_on = |name: &DependencyName| {
            snapshot
                .kills
                .iter()
                .any(|k| k.state.engaged && k.state.scope == KillScope::Dependency(name.clone()))
        };
        let mut others: Vec<_> = names
            .iter()
            .map(|n| (n.to_string(), kill_address(n), engaged_on(n)))
            .collect();
        others.sort_by_key(|(_, _, engaged)| !engaged);
        others.truncate(OTHERS_SHOWN);
        Self {
            frame: Frame::new(
                format!("Kill switch for {what}"),
                "kill",
                viewer,
                snapshot,
                &live,
            ),
            reach: Reach::new(snapshot, &scope),
            engaged: progress.engaged.is_some(),
            progress,
            names: names.iter().map(ToString::to_string).collect(),
            more: names.len().saturating_sub(OTHERS_SHOWN),
            others,
            reason: String::new(),
            problem: None,
            can_act: viewer.operator.role >= Role::Operator,
            what,
            word,
            scope,
        }
    }

    fn scope_word(&self) -> &'static str {
        match self.scope {
            KillScope::Everything => "everything",
            KillScope::Dependency(_) => "dependency",
        }
    }

    fn dependency(&self) -> &str {
        match &self.scope {
            KillScope::Everything => "",
            KillScope::Dependency(name) => name.as_str(),
        }
    }
}

fn bad_scope(problem: &str) -> Response {
    error::plain(
        StatusCode::BAD_REQUEST,
        "No such kill switch",
        &format!("{problem}."),
    )
}

/// GET /kill
pub(crate) async fn page<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<KillQuery>,
) -> Response {
    match query.scope() {
        Ok(scope) => html(
            StatusCode::OK,
            &KillPage::new(&viewer, &app.backend.snapshot(), scope),
        ),
        Err(problem) => bad_scope(&problem),
    }
}

/// The page's parts for an open stream.
pub(crate) fn fragments(snapshot: &FleetSnapshot, query: &KillQuery) -> Vec<Fragment> {
    query.scope().map_or_else(
        |_| Vec::new(),
        |scope| {
            vec![
                Fragment::inner("progress", &Progress::new(snapshot, &scope)),
                Fragment::inner("reach", &Reach::new(snapshot, &scope)),
            ]
        },
    )
}

#[derive(Debug, Deserialize)]
pub(crate) struct KillForm {
    #[serde(default)]
    scope: String,
    #[serde(default)]
    dependency: String,
    /// `on`: hedging goes off. `off`: the switch is released.
    #[serde(default)]
    engaged: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    confirm: String,
}

/// POST /kill
pub(crate) async fn throw<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    Form(form): Form<KillForm>,
) -> Response {
    let query = KillQuery {
        scope: form.scope,
        dependency: form.dependency,
    };
    let scope = match query.scope() {
        Ok(scope) => scope,
        Err(problem) => return bad_scope(&problem),
    };
    let engage = match form.engaged.as_str() {
        "on" => true,
        "off" => false,
        other => return bad_scope(&format!("engaged is {other:?}: expected on or off")),
    };
    let mut page = KillPage::new(&viewer, &app.backend.snapshot(), scope.clone());
    page.reason.clone_from(&form.reason);
    // Switching off is one step, since it is the safe side; switching on again asks for more.
    if !engage && form.confirm.trim() != page.word {
        page.problem = Some(format!("type {} to release the switch", page.word));
        return html(StatusCode::UNPROCESSABLE_ENTITY, &page);
    }
    match app
        .backend
        .kill(&viewer.operator, scope.clone(), engage, form.reason.trim())
        .await
    {
        Ok(()) => {
            let back = match &scope {
                KillScope::Everything => "/kill".to_owned(),
                KillScope::Dependency(name) => kill_address(name),
            };
            Redirect::to(&back).into_response()
        }
        Err(problem) => {
            page.problem = Some(problem.to_string());
            html(error::describe(&problem).0, &page)
        }
    }
}
