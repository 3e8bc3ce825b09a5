//! Saving, going back, taking away: what the form and the buttons do.

use axum::Extension;
use axum::extract::{Form, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use hedgerow_core::effect::OrderError;
use hedgerow_protocol::ids::Revision;
use hedgerow_protocol::policy::PolicyScope;
use serde::Deserialize;

use super::checking::base_policy;
use super::diff::{Change, changes};
use super::draft::Typed;
use super::versions::{standing, usual_reason, written};
use super::view::{Parts, PolicyPage};
use super::{no_revision, scope_of};
use crate::backend::{ActError, Backend, Saved};
use crate::fragment::html;
use crate::guard::Viewer;
use crate::pages::error;
use crate::pages::state::policy_address;
use crate::router::App;

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
    let look = matches!(typed.step.as_str(), "review" | "replay");
    let parts = Parts::new(typed, expected.unwrap_or_default());
    let (Some(policy), false) = (checked.policy, look) else {
        let status = if look {
            StatusCode::OK
        } else {
            StatusCode::UNPROCESSABLE_ENTITY
        };
        return html(status, &PolicyPage::load(&app, &viewer, scope, parts).await);
    };
    let reason = parts.typed.reason.trim().to_owned();
    let expected = expected.map(Revision);
    let saved = app
        .backend
        .set_policy(&viewer.operator, policy, expected, checked.plan, &reason)
        .await;
    match saved {
        Ok(saved) => back(&scope, saved),
        Err(problem) => refused(&app, &viewer, scope, parts, &problem).await,
    }
}

/// To the page, which says so where nothing was changed.
fn back(scope: &PolicyScope, saved: Saved) -> Response {
    let address = policy_address(scope);
    let address = if saved.changed {
        address
    } else {
        format!("{address}?unchanged=yes")
    };
    Redirect::to(&address).into_response()
}

/// The form again, with what was typed and why nothing was done.
pub(super) async fn refused<B: Backend>(
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
        parts.expected = current.0;
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
    let at = |revision| history.iter().find(|r| r.revision == revision);
    let Some(new) = at(to) else {
        return Vec::new();
    };
    let observing = || hedgerow_protocol::policy::Policy::observing(scope.clone());
    let old = at(from).map_or_else(observing, |r| written(r, scope));
    let mut all = changes(&old, &written(new, scope));
    if new.policy.is_none() {
        all.insert(
            0,
            Change {
                field: "Policy",
                before: format!("revision {from}"),
                after: "taken away".into(),
            },
        );
    }
    all
}

/// The form as it is without anything typed.
pub(super) async fn untouched<B: Backend>(app: &App<B>, scope: &PolicyScope) -> Parts {
    let snapshot = app.backend.snapshot();
    let history = app.backend.policy_history(scope).await.unwrap_or_default();
    let typed = Typed::from_policy(&base_policy(&snapshot, scope));
    Parts::new(typed, standing(&snapshot, scope, &history).0)
}

#[derive(Debug, Deserialize)]
pub(crate) struct RevertForm {
    revision: u64,
    #[serde(default)]
    expected: String,
    /// Absent: the usual words, which the form shows.
    #[serde(default)]
    reason: Option<String>,
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
    let reason = form.reason.map_or_else(
        || usual_reason(form.revision),
        |reason| reason.trim().to_owned(),
    );
    let typed = Typed::from_policy(&written(&old, &scope)).with_reason(reason.clone());
    let expected = form.expected.trim().parse().ok();
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
        Ok(saved) => back(&scope, saved),
        Err(problem) => {
            let parts = Parts::new(typed, expected.unwrap_or_default());
            refused(&app, &viewer, scope, parts, &problem).await
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct RemoveForm {
    #[serde(default)]
    expected: String,
    #[serde(default)]
    reason: String,
}

/// POST /policies/{scope}/remove
pub(crate) async fn remove<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    Path(scope): Path<String>,
    Form(form): Form<RemoveForm>,
) -> Response {
    let scope = match scope_of(&scope) {
        Ok(name) => name,
        Err(response) => return *response,
    };
    let expected = form.expected.trim().parse().ok().map(Revision);
    let removed = app
        .backend
        .remove_policy(
            &viewer.operator,
            scope.clone(),
            expected,
            form.reason.trim(),
        )
        .await;
    match removed {
        Ok(saved) => back(&scope, saved),
        Err(problem) => {
            let parts = untouched(&app, &scope).await;
            refused(&app, &viewer, scope, parts, &problem).await
        }
    }
}
