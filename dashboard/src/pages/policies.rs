//! Every policy in force, the narrowest last, and what has none of its own.

mod rows;

use askama::Template;
use askama::filters::HtmlSafe;
use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use futures::stream::{self, StreamExt as _};
use hedgerow_core::view::FleetSnapshot;
use hedgerow_protocol::policy::{PolicyScope, ScopeError};
use serde::Deserialize;

use super::frame::Frame;
use super::state::policy_address;
use crate::assets::short_id;
use crate::backend::{Backend, Role};
use crate::format::url_part;
use crate::fragment::{Fragment, html};
use crate::guard::Viewer;
use crate::router::App;
use rows::{Group, Observed, Progress, Row};

/// Policies on a page: by whom and why is looked up for each.
const ROWS: usize = 60;
/// Look-ups at once.
const LOOKUPS: usize = 8;
/// Dependencies without a policy that are shown; the filter finds the others.
const OBSERVED: usize = 100;
/// Names offered while one types.
const OFFERED: usize = 200;

/// What the address says.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PoliciesQuery {
    /// Only scopes with these words in them.
    pub(crate) q: String,
    /// From 0.
    pub(crate) page: usize,
    /// Which policies there were as the page was made.
    pub(crate) seen: String,
    /// To be gone to: what a new policy is for.
    pub(crate) dependency: String,
    /// One of its operations, or nothing.
    pub(crate) operation: String,
}

impl PoliciesQuery {
    fn shows(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let mut words = self.q.split_whitespace().map(str::to_lowercase);
        words.all(|word| text.contains(&word))
    }

    /// The same on another page.
    fn address(&self, page: usize) -> String {
        format!("/policies?q={}&page={page}", url_part(&self.q))
    }
}

#[derive(Debug, Template)]
#[template(path = "policies.html", blocks = ["page"])]
struct PoliciesPage {
    frame: Frame,
    query: PoliciesQuery,
    groups: Vec<Group>,
    /// All that the filter shows.
    count: usize,
    total: usize,
    newer: Option<String>,
    older: Option<String>,
    observed: Vec<Observed>,
    more_observed: usize,
    /// Names to choose from.
    dependencies: Vec<String>,
    operations: Vec<String>,
    errors: NewErrors,
    news: News,
    can_edit: bool,
}

/// What is wrong with what a new policy is to be for.
#[derive(Debug, Default)]
struct NewErrors {
    dependency: String,
    operation: String,
}

/// That the list is not the newest.
#[derive(Debug, Clone, Copy, Template)]
#[template(
    ext = "html",
    source = r#"{% if differs %}<p class="note-box" role="status">Policies have been set or taken away since this page was opened. <a href="/policies">Look again</a></p>{% endif %}"#
)]
struct News {
    differs: bool,
}

impl HtmlSafe for News {}

/// All scopes and their revisions, as a short word.
fn seen(snapshot: &FleetSnapshot) -> String {
    use std::fmt::Write as _;
    let mut all = String::new();
    for (scope, view) in &snapshot.policies {
        let _ = write!(all, "{scope} {};", view.revision);
    }
    short_id(&all)
}

/// The scopes that a query shows, the widest first, an operation after its dependency.
fn shown<'a>(snapshot: &'a FleetSnapshot, query: &PoliciesQuery) -> Vec<&'a PolicyScope> {
    let scopes = snapshot.policies.keys();
    let mut shown: Vec<_> = scopes.filter(|it| query.shows(&it.to_string())).collect();
    shown.sort_by(|a, b| match (a.pattern(), b.pattern()) {
        (Some(_), Some(_)) => a.rank().cmp(&b.rank()).then_with(|| b.cmp(a)),
        (Some(_), None) => std::cmp::Ordering::Less,
        (None, Some(_)) => std::cmp::Ordering::Greater,
        (None, None) => a
            .dependency()
            .cmp(&b.dependency())
            .then_with(|| a.operation().cmp(&b.operation())),
    });
    shown
}

/// Those of the query's page.
fn on_page<'a>(all: &[&'a PolicyScope], query: &PoliciesQuery) -> Vec<&'a PolicyScope> {
    let from = query.page.saturating_mul(ROWS);
    all.iter().skip(from).take(ROWS).copied().collect()
}

impl PoliciesPage {
    async fn load<B: Backend>(
        app: &App<B>,
        viewer: &Viewer,
        query: PoliciesQuery,
        errors: NewErrors,
    ) -> Self {
        let snapshot = app.backend.snapshot();
        let all = shown(&snapshot, &query);
        let count = all.len();
        let page: Vec<PolicyScope> = on_page(&all, &query).into_iter().cloned().collect();
        let newest: Vec<_> = stream::iter(page.clone())
            .map(|scope| {
                let backend = app.backend.clone();
                async move {
                    let history = backend.policy_history(&scope).await;
                    history.ok().and_then(|it| it.into_iter().next())
                }
            })
            .buffered(LOOKUPS)
            .collect()
            .await;
        let reach = rows::reach(&snapshot);
        let rows = page
            .iter()
            .zip(newest)
            .map(|(scope, newest)| Row::new(&snapshot, scope, &reach, newest));
        let groups = Group::all(rows.collect());
        let mut observed = rows::observed(&snapshot, |name| query.shows(name));
        let more_observed = observed.len().saturating_sub(OBSERVED);
        observed.truncate(OBSERVED);
        let live = format!(
            "page=policies&q={}&sort={}&seen={}",
            url_part(&query.q),
            query.page,
            seen(&snapshot)
        );
        let (dependencies, operations) = rows::names(&snapshot, OFFERED);
        let further = (query.page + 1).saturating_mul(ROWS) < count;
        Self {
            frame: Frame::new("Policies", "policies", viewer, &snapshot, &live),
            groups,
            count,
            total: snapshot.policies.len(),
            newer: (query.page > 0).then(|| query.address(query.page - 1)),
            older: further.then(|| query.address(query.page + 1)),
            observed,
            more_observed,
            dependencies,
            operations,
            errors,
            news: News { differs: false },
            can_edit: viewer.operator.role >= Role::Editor,
            query,
        }
    }
}

/// GET /policies, and from its form to a policy that is not set yet.
pub(crate) async fn page<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<PoliciesQuery>,
) -> Response {
    let mut errors = NewErrors::default();
    let asked = !query.dependency.trim().is_empty() || !query.operation.trim().is_empty();
    if asked {
        match PolicyScope::new(&query.dependency, Some(&query.operation)) {
            Ok(scope) => return Redirect::to(&policy_address(&scope)).into_response(),
            Err(ScopeError::Dependency(problem)) => errors.dependency = problem.to_string(),
            Err(ScopeError::Operation(problem)) => errors.operation = problem.to_string(),
            Err(problem @ ScopeError::PatternOfOperations(_)) => {
                errors.operation = problem.to_string();
            }
        }
    }
    let status = if asked {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    html(
        status,
        &PoliciesPage::load(&app, &viewer, query, errors).await,
    )
}

/// The page's parts for an open stream.
pub(crate) fn fragments(snapshot: &FleetSnapshot, query: &PoliciesQuery) -> Vec<Fragment> {
    let differs = !query.seen.is_empty() && seen(snapshot) != query.seen;
    let mut out = vec![Fragment::inner("news", &News { differs })];
    let reach = rows::reach(snapshot);
    let all = shown(snapshot, query);
    out.extend(
        on_page(&all, query)
            .into_iter()
            .filter_map(|scope| Progress::new(snapshot, scope, &reach))
            .map(|it| Fragment::inner(it.id(), &it)),
    );
    out
}
