//! The policy form: values and what they mean, errors beside their field, a diff before saving, and
//! earlier revisions to go back to.

mod draft;
pub(crate) mod rollout;

use askama::Template;
use axum::Extension;
use axum::extract::{Form, Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use hedgerow_core::effect::OrderError;
use hedgerow_core::event::KillScope;
use hedgerow_core::view::FleetSnapshot;
use hedgerow_protocol::ids::Revision;
use hedgerow_protocol::policy::{Intent, Policy, PolicyScope, ScopeError};
use serde::Deserialize;

use super::error;
use super::frame::Frame;
use super::state::{policy_address, route_address};
use crate::backend::{ActError, Backend, PolicyRevision, Role};
use crate::format::url_part;
use crate::format::{Time, percent};
use crate::fragment::html;
use crate::guard::Viewer;
use crate::router::App;
use draft::{Change, Checked, Typed, aim_words, changes};
use rollout::Rollout;

#[derive(Debug, Template)]
#[template(path = "policy.html", blocks = ["page", "review"])]
struct PolicyPage {
    frame: Frame,
    scope: PolicyScope,
    address: String,
    /// Its routes, to go back to.
    routes: Vec<(String, String)>,
    typed: Typed,
    checked: Checked,
    /// The revision the form was filled from.
    expected: Option<u64>,
    in_force: Option<InForce>,
    changes: Vec<Change>,
    /// Why the last attempt to save did not succeed.
    problem: Option<String>,
    /// What somebody else changed meanwhile.
    meanwhile: Vec<Change>,
    no_effect: Vec<String>,
    history: Vec<HistoryRow>,
    history_problem: Option<String>,
    can_edit: bool,
    /// How far the newest revision has got, where it is put in force in steps.
    rollout: Rollout,
    /// The share of the agents that has it so far.
    share: Option<String>,
    can_take_back: bool,
}

#[derive(Debug)]
struct InForce {
    revision: u64,
    since: Time,
}

#[derive(Debug)]
struct HistoryRow {
    revision: u64,
    at: Time,
    actor: String,
    via: &'static str,
    reason: String,
    changes: Vec<Change>,
    current: bool,
}

/// What the page is built from, beside the snapshot.
struct Parts {
    typed: Typed,
    expected: Option<u64>,
    problem: Option<String>,
    meanwhile: Vec<Change>,
}

impl Parts {
    fn new(typed: Typed, expected: Option<u64>) -> Self {
        Self {
            typed,
            expected,
            problem: None,
            meanwhile: Vec::new(),
        }
    }
}

impl PolicyPage {
    async fn load<B: Backend>(
        app: &App<B>,
        viewer: &Viewer,
        scope: PolicyScope,
        parts: Parts,
    ) -> Self {
        let snapshot = app.backend.snapshot();
        let history = app.backend.policy_history(&scope).await;
        let (history, history_problem) = match history {
            Ok(history) => (history, None),
            Err(problem) => (Vec::new(), Some(problem.to_string())),
        };
        let in_force = snapshot.policies.get(&scope);
        let current = base_policy(&snapshot, &scope);
        let checked = parts.typed.check(&scope);
        Self {
            frame: Frame::new(
                format!("Policy of {scope}"),
                "overview",
                viewer,
                &snapshot,
                &format!("page=policy&dependency={}", url_part(&scope.to_string())),
            ),
            address: policy_address(&scope),
            routes: snapshot
                .routes
                .keys()
                .filter(|r| scope.covers(r))
                .map(|r| (r.operation.to_string(), route_address(r)))
                .collect(),
            changes: checked
                .policy
                .as_ref()
                .map_or_else(Vec::new, |p| changes(&current, p)),
            no_effect: no_effect(&snapshot, &scope, checked.policy.as_ref()),
            in_force: in_force.map(|p| InForce {
                revision: p.revision.0,
                since: Time::near(p.since, snapshot.at),
            }),
            history: history_rows(&scope, &history, in_force.map(|p| p.revision)),
            history_problem,
            can_edit: viewer.operator.role >= Role::Editor,
            can_take_back: viewer.operator.role >= Role::Operator,
            rollout: Rollout::new(&snapshot, &scope),
            share: Rollout::share(&snapshot, &scope),
            expected: parts.expected,
            problem: parts.problem,
            meanwhile: parts.meanwhile,
            typed: parts.typed,
            checked,
            scope,
        }
    }

    fn percentile_means(&self) -> String {
        let Some(policy) = &self.checked.policy else {
            return String::new();
        };
        match (policy.pool(), policy.goal()) {
            (Some(pool), _) => format!("hedges what its share of pool {pool} allows"),
            (None, Some(_)) => format!("hedges at most {}", percent(policy.budget().get())),
            (None, None) => format!("aims at {} of calls hedged", percent(policy.target_rate())),
        }
    }

    /// A goal that the form has no choice of its own for, and its name.
    fn other_goal(&self) -> Option<(&str, String)> {
        let typed = self.typed.goal.trim();
        let other = !["", "0.99", "0.999"].contains(&typed);
        other.then(|| {
            let words = typed.parse().ok().map(|goal| aim_words(Some(goal)));
            (typed, words.unwrap_or_else(|| typed.to_owned()))
        })
    }
}

/// The policy in force, or the one every dependency begins with.
fn base_policy(snapshot: &FleetSnapshot, scope: &PolicyScope) -> Policy {
    snapshot
        .policies
        .get(scope)
        .map_or_else(|| Policy::observing(scope.clone()), |p| p.policy.clone())
}

/// What a revision says: where it took the policy away, what everything begins with.
fn written(revision: &PolicyRevision, scope: &PolicyScope) -> Policy {
    let policy = revision.policy.clone();
    policy.unwrap_or_else(|| Policy::observing(scope.clone()))
}

fn history_rows(
    scope: &PolicyScope,
    history: &[PolicyRevision],
    current: Option<Revision>,
) -> Vec<HistoryRow> {
    history
        .iter()
        .enumerate()
        .map(|(i, r)| {
            let before = history.get(i + 1).map_or_else(
                || Policy::observing(scope.clone()),
                |older| written(older, scope),
            );
            HistoryRow {
                revision: r.revision.0,
                at: Time::full(r.at),
                actor: r.actor.name.clone(),
                via: r.actor.via.as_str(),
                reason: r.reason.clone(),
                changes: changes(&before, &written(r, scope)),
                current: current == Some(r.revision),
            }
        })
        .collect()
}

/// Why saving this would change nothing, or nothing yet.
fn no_effect(
    snapshot: &FleetSnapshot,
    scope: &PolicyScope,
    policy: Option<&Policy>,
) -> Vec<String> {
    let mut why = Vec::new();
    if policy.is_none_or(|p| p.intent() != Intent::Hedge) {
        return why;
    }
    for kill in snapshot.kills.iter().filter(|k| k.state.engaged) {
        match &kill.state.scope {
            KillScope::Everything => why.push(format!(
                "no effect while the kill switch for everything is on, by {}",
                kill.state.actor.name
            )),
            KillScope::Dependency(name) if Some(name) == scope.dependency() => why.push(format!(
                "no effect while its kill switch is on, by {}",
                kill.state.actor.name
            )),
            KillScope::Dependency(_) => {}
        }
    }
    let mut routes = snapshot
        .routes
        .values()
        .filter(|v| scope.covers(&v.route))
        .peekable();
    if routes.peek().is_none() {
        why.push("no effect yet: no agent has reported this dependency".into());
    }
    for view in routes.filter(|v| v.words.starts_with("no effect")) {
        why.push(format!("{}: {}", view.route.operation, view.words));
    }
    why
}

fn scope_of(text: &str) -> Result<PolicyScope, Box<Response>> {
    text.parse().map_err(|problem: ScopeError| {
        Box::new(error::plain(
            StatusCode::NOT_FOUND,
            "No such policy",
            &format!("The address names what the policy is for, and {problem}."),
        ))
    })
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PageQuery {
    /// Fill the form from this revision instead of the one in force.
    revision: Option<u64>,
}

/// GET /policies/{scope}
pub(crate) async fn page<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    Path(scope): Path<String>,
    Query(query): Query<PageQuery>,
) -> Response {
    let scope = match scope_of(&scope) {
        Ok(name) => name,
        Err(response) => return *response,
    };
    let snapshot = app.backend.snapshot();
    let expected = snapshot.policies.get(&scope).map(|p| p.revision.0);
    let mut typed = Typed::from_policy(&base_policy(&snapshot, &scope));
    if let Some(wanted) = query.revision {
        match app.backend.policy_history(&scope).await {
            Ok(history) => match history.into_iter().find(|r| r.revision.0 == wanted) {
                Some(found) => typed = Typed::from_policy(&written(&found, &scope)),
                None => return no_revision(&scope, wanted),
            },
            Err(problem) => return error::store(&problem),
        }
    }
    let parts = Parts::new(typed, expected);
    html(
        StatusCode::OK,
        &PolicyPage::load(&app, &viewer, scope, parts).await,
    )
}

fn no_revision(scope: &PolicyScope, wanted: u64) -> Response {
    error::plain(
        StatusCode::NOT_FOUND,
        "No such revision",
        &format!("{scope} has no revision {wanted}; its policy's page lists all it has."),
    )
}

/// POST /policies/{scope}/check: what would change, for the open form.
pub(crate) async fn check<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    Path(scope): Path<String>,
    Form(typed): Form<Typed>,
) -> Response {
    let scope = match scope_of(&scope) {
        Ok(name) => name,
        Err(response) => return *response,
    };
    let expected = typed.expected();
    let page = PolicyPage::load(&app, &viewer, scope, Parts::new(typed, expected)).await;
    html(StatusCode::OK, &page.as_review())
}

/// POST /policies/{scope}
pub(crate) async fn save<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    Path(scope): Path<String>,
    Form(typed): Form<Typed>,
) -> Response {
    let scope = match scope_of(&scope) {
        Ok(name) => name,
        Err(response) => return *response,
    };
    let expected = typed.expected();
    let checked = typed.check(&scope);
    let review = typed.step == "review";
    let parts = Parts::new(typed, expected);
    let (Some(policy), false) = (checked.policy, review) else {
        let status = if review {
            StatusCode::OK
        } else {
            StatusCode::UNPROCESSABLE_ENTITY
        };
        return html(status, &PolicyPage::load(&app, &viewer, scope, parts).await);
    };
    let reason = parts.typed.reason.trim().to_owned();
    let expected = expected.map(Revision);
    let plan = parts.typed.plan();
    let saved = app
        .backend
        .set_policy(&viewer.operator, policy, expected, plan, &reason)
        .await;
    match saved {
        Ok(_) => Redirect::to(&policy_address(&scope)).into_response(),
        Err(problem) => refused(&app, &viewer, scope, parts, &problem).await,
    }
}

/// The form again, with what was typed and why it was not saved.
async fn refused<B: Backend>(
    app: &App<B>,
    viewer: &Viewer,
    scope: PolicyScope,
    mut parts: Parts,
    problem: &ActError,
) -> Response {
    let (status, _) = error::describe(problem);
    parts.problem = Some(problem.to_string());
    if let ActError::Refused(OrderError::Stale { expected, current }) = problem {
        parts.meanwhile = since(app, &scope, *expected, *current).await;
        // Saved again, knowingly, it goes over the one in force now.
        parts.expected = Some(current.0);
    }
    html(status, &PolicyPage::load(app, viewer, scope, parts).await)
}

/// What changed between two revisions.
async fn since<B: Backend>(
    app: &App<B>,
    scope: &PolicyScope,
    from: Revision,
    to: Revision,
) -> Vec<Change> {
    let history = app.backend.policy_history(scope).await.unwrap_or_default();
    let at = |revision| {
        history
            .iter()
            .find(|r| r.revision == revision)
            .map(|r| written(r, scope))
    };
    match at(to) {
        Some(new) => {
            let old = at(from).unwrap_or_else(|| Policy::observing(scope.clone()));
            changes(&old, &new)
        }
        None => Vec::new(),
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct RevertForm {
    revision: u64,
    #[serde(default)]
    expected: String,
    #[serde(default)]
    reason: String,
}

/// POST /policies/{scope}/revert
pub(crate) async fn revert<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    Path(scope): Path<String>,
    Form(form): Form<RevertForm>,
) -> Response {
    let scope = match scope_of(&scope) {
        Ok(name) => name,
        Err(response) => return *response,
    };
    let history = match app.backend.policy_history(&scope).await {
        Ok(history) => history,
        Err(problem) => return error::store(&problem),
    };
    let Some(old) = history.into_iter().find(|r| r.revision.0 == form.revision) else {
        return no_revision(&scope, form.revision);
    };
    let reason = match form.reason.trim() {
        "" => format!("back to revision {}", form.revision),
        reason => reason.to_owned(),
    };
    let expected = form.expected.trim().parse().ok();
    let typed = Typed::from_policy(&written(&old, &scope)).with_reason(reason.clone());
    let (backend, by, expected_revision) = (&app.backend, &viewer.operator, expected.map(Revision));
    let saved = match old.policy {
        Some(policy) => {
            backend
                .set_policy(by, policy, expected_revision, None, &reason)
                .await
        }
        None => {
            backend
                .remove_policy(by, scope.clone(), expected_revision, &reason)
                .await
        }
    };
    match saved {
        Ok(_) => Redirect::to(&policy_address(&scope)).into_response(),
        Err(problem) => {
            let parts = Parts::new(typed, expected);
            refused(&app, &viewer, scope, parts, &problem).await
        }
    }
}
