//! The policy form: values and what they mean, errors beside their field, a diff and what it would do
//! before saving, and earlier revisions to go back to.

mod acts;
mod checking;
pub(crate) mod covered;
mod diff;
mod draft;
mod fields;
mod news;
pub(crate) mod notes;
mod replay;
pub(crate) mod rollout;
mod standing;
mod versions;
mod view;
mod whatif;

use askama::Template;
use axum::Extension;
use axum::extract::{Form, Path, Query, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use hedgerow_core::view::FleetSnapshot;
use hedgerow_protocol::policy::{PolicyScope, ScopeError};
use serde::Deserialize;

use super::error;
use crate::backend::Backend;
use crate::fragment::{Fragment, html};
use crate::guard::Viewer;
use crate::router::App;
pub(crate) use acts::{remove, revert, save};
use checking::{Checking, base_policy};
use draft::Typed;
use fields::NAMES;
use news::News;
use replay::Replayed;
use rollout::Rollout;
use standing::Standing;
use versions::written;
use view::{Parts, PolicyPage};
use whatif::WhatIf;

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
    /// The curve is of this route.
    route: String,
    /// Anything: a save before this page changed nothing.
    unchanged: String,
    /// Anything: all revisions are shown.
    all: String,
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
    let history = match app.backend.policy_history(&scope).await {
        Ok(history) => history,
        // The page says so itself; only an older revision cannot be done without it.
        Err(problem) if query.revision.is_some() => return error::store(&problem),
        Err(_) => Vec::new(),
    };
    let mut typed = Typed::from_policy(&base_policy(&snapshot, &scope));
    if let Some(wanted) = query.revision {
        match history.iter().find(|r| r.revision.0 == wanted) {
            Some(found) => typed = Typed::from_policy(&written(found, &scope)),
            None => return no_revision(&scope, wanted),
        }
    }
    typed.route = query.route;
    let standing = versions::standing(&snapshot, &scope, &history);
    let parts = Parts {
        unchanged: !query.unchanged.is_empty(),
        all_versions: !query.all.is_empty(),
        ..Parts::new(typed, standing.0)
    };
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

/// POST /policies/{scope}/check: what would change and what it would do, for the open form. The answer
/// is the form's own part; with it come the curve and what is to be said beside the fields.
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
    let snapshot = app.backend.snapshot();
    let checked = typed.check(&scope);
    let checking = Checking::new(&snapshot, &scope, &typed);
    let (route, policy) = (checking.route.as_ref(), checked.policy.as_ref());
    let mut parts = vec![Fragment::inner(
        "whatif",
        &WhatIf::load(&app.backend, &snapshot, route, policy).await,
    )];
    // The form of a pattern has no steps.
    let steps = |name: &&str| matches!(*name, "stages" | "stay_s");
    let names = NAMES.into_iter();
    let names = names.filter(|name| scope.pattern().is_none() || !steps(name));
    parts.extend(names.map(|name| {
        let words = checked.error(name).unwrap_or_default();
        Fragment::inner(format!("{name}-error"), &Words { words })
    }));
    let expected = typed.expected().unwrap_or_default();
    let page = PolicyPage::of(
        &viewer,
        &checking,
        Parts::new(typed, expected),
        checked,
        &[],
    );
    let mut answer = match page.as_review().render() {
        Ok(review) => review,
        Err(error) => {
            tracing::error!(error = %error, "the check could not be rendered");
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
    };
    for part in parts {
        part.write(&mut answer);
    }
    Html(answer).into_response()
}

/// A text by itself.
#[derive(Debug, Template)]
#[template(ext = "html", source = "{{ words }}")]
struct Words<'a> {
    words: &'a str,
}

/// POST /policies/{scope}/replay: what it would have done, for the open form.
pub(crate) async fn replayed<B: Backend>(
    State(app): State<App<B>>,
    Path(scope): Path<String>,
    Form(typed): Form<Typed>,
) -> Response {
    let scope = match scope_of(&scope) {
        Ok(name) => name,
        Err(response) => return *response,
    };
    let snapshot = app.backend.snapshot();
    let checked = typed.check(&scope);
    let checking = Checking::new(&snapshot, &scope, &typed);
    let (route, policy) = (checking.route.as_ref(), checked.policy.as_ref());
    let holds = route.and_then(|it| snapshot.policy_for(it));
    let holds = holds.map(|it| &it.policy);
    let replayed = Replayed::load(&app.backend, route, policy, holds, &typed.hours).await;
    html(StatusCode::OK, &replayed)
}

/// The page's parts for an open stream; `seen` as in its address.
pub(crate) fn fragments(
    snapshot: &FleetSnapshot,
    scope: &PolicyScope,
    viewer: &Viewer,
    seen: &str,
) -> Vec<Fragment> {
    vec![
        Fragment::inner("standing", &Standing::new(snapshot, scope)),
        Fragment::inner("news", &News::new(snapshot, scope, seen)),
        Fragment::inner(
            "rollout",
            &Rollout::new(snapshot, scope, viewer.operator.role),
        ),
    ]
}
