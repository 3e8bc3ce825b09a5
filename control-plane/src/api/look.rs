//! Reading: the fleet, a route, agents, the record.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use hedgerow_core::moment::Moment;
use hedgerow_core::view::{
    Acked, AgentView, Evidence, Figures, FleetSnapshot, KillView, NoData, Point, RouteView,
};
use hedgerow_protocol::directive::{Mode, Stamp};
use hedgerow_protocol::ids::{DependencyName, RouteKey};
use hedgerow_protocol::policy::{PolicyScope, ScopeError};
use serde::{Deserialize, Serialize};

use super::ApiState;
use super::page::{self, Asked, Page, PageQuery};
use super::problem::{FieldProblem, Problem};
use crate::store::{HISTORY_KEPT, POINTS_MAX};

/// A dependency's name in the address.
#[derive(Debug)]
pub(super) struct Dependency(pub(super) DependencyName);

/// What a policy is for, in the address: `catalog`, `catalog%20get-item`, `cat*`.
#[derive(Debug)]
pub(super) struct Scope(pub(super) PolicyScope);

impl<S: Send + Sync> FromRequestParts<S> for Scope {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(text) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|_| Problem::malformed("the address: expected what a policy is for in it"))?;
        text.parse().map(Self).map_err(|e: ScopeError| {
            Problem::invalid(vec![FieldProblem::new("dependency", e.to_string())])
        })
    }
}

/// A route in the address. A slash in the operation's name is written `%2F`.
#[derive(Debug)]
pub(super) struct Route(pub(super) RouteKey);

impl<S: Send + Sync> FromRequestParts<S> for Dependency {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(name) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|_| Problem::malformed("the address: expected a dependency's name in it"))?;
        DependencyName::new(&name)
            .map(Self)
            .map_err(|e| Problem::invalid(vec![FieldProblem::new("dependency", e.to_string())]))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Route {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path((dependency, operation)) =
            Path::<(String, String)>::from_request_parts(parts, state)
                .await
                .map_err(|_| {
                    Problem::malformed("the address: expected a dependency and an operation in it")
                })?;
        RouteKey::new(&dependency, &operation)
            .map(Self)
            .map_err(|e| Problem::invalid(vec![FieldProblem::new("route", e.to_string())]))
    }
}

/// GET /api/v1/fleet: the whole snapshot.
pub(super) async fn fleet(State(state): State<ApiState>) -> Result<Response, Problem> {
    let fleet = state.engine.snapshot();
    // A large fleet is megabytes: not on a thread that serves others.
    let written = tokio::task::spawn_blocking(move || serde_json::to_vec(&*fleet)).await;
    match written {
        Ok(Ok(body)) => Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response()),
        other => {
            tracing::error!(outcome = ?other.map(|it| it.map(|_| ())), "the fleet was not written");
            Err(Problem::internal())
        }
    }
}

/// GET /api/v1/routes/{dependency}/{operation}
pub(super) async fn route(
    State(state): State<ApiState>,
    Route(route): Route,
) -> Result<Json<Arc<RouteView>>, Problem> {
    state
        .engine
        .snapshot()
        .routes
        .get(&route)
        .cloned()
        .map(Json)
        .ok_or_else(|| {
            Problem::not_found(format!(
                "no route {route} is known; it appears when an agent reports it"
            ))
        })
}

/// Which routes.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RoutesQuery {
    limit: Option<usize>,
    after: Option<String>,
    /// Only those whose name has this in it.
    q: Option<String>,
    /// Only those in this mode: `off`, `observing`, `probing`, `on`.
    state: Option<String>,
}

/// A route without its course: what a list is for.
#[derive(Debug, Serialize)]
pub(super) struct RouteLine {
    route: RouteKey,
    stamp: Stamp,
    mode: Mode,
    since: Moment,
    words: String,
    evidence: Vec<Evidence>,
    tries_again: Option<Moment>,
    figures: Option<Figures>,
    no_data: Option<NoData>,
    acked: Acked,
    refusals: usize,
    /// What the policy in force is for; null: nobody set one that covers it.
    policy: Option<PolicyScope>,
}

/// GET /api/v1/routes?q=&state=
pub(super) async fn routes(
    State(state): State<ApiState>,
    Asked(asked): Asked<RoutesQuery>,
) -> Result<Json<Page<RouteLine>>, Problem> {
    const STATES: [&str; 4] = ["off", "observing", "probing", "on"];
    let limit = page::limit(asked.limit)?;
    let wanted = asked.state.as_deref().filter(|it| !it.is_empty());
    if let Some(wanted) = wanted.filter(|it| !STATES.contains(it)) {
        let message = format!("{wanted:?} is none: expected one of {}", STATES.join(", "));
        return Err(Problem::invalid(vec![FieldProblem::new("state", message)]));
    }
    let q = asked.q.unwrap_or_default();
    let fleet = state.engine.snapshot();
    let shown = fleet.routes.values().filter(|view| {
        wanted.is_none_or(|it| it == view.mode.as_str()) && view.route.to_string().contains(&q)
    });
    let after = asked.after.as_deref().map(str::to_owned);
    let mut shown: Vec<_> = shown.collect();
    shown.sort_by_key(|view| view.route.to_string());
    let key = |view: &&Arc<RouteView>| view.route.to_string();
    Ok(Json(page::cut(shown, key, after.as_ref(), limit, |view| {
        line(&fleet, view)
    })))
}

fn line(fleet: &FleetSnapshot, view: &RouteView) -> RouteLine {
    RouteLine {
        route: view.route.clone(),
        stamp: view.stamp,
        mode: view.mode,
        since: view.since,
        words: view.words.clone(),
        evidence: view.evidence.clone(),
        tries_again: view.tries_again,
        figures: view.figures,
        no_data: view.no_data,
        acked: view.acked,
        refusals: view.refusals.len(),
        policy: fleet
            .policy_for(&view.route)
            .map(|it| it.policy.scope().clone()),
    }
}

/// GET /api/v1/agents
pub(super) async fn agents(
    State(state): State<ApiState>,
    Asked(asked): Asked<PageQuery>,
) -> Result<Json<Page<AgentView>>, Problem> {
    let limit = page::limit(asked.limit)?;
    let after = page::read("after", asked.after.as_deref())?;
    let fleet = state.engine.snapshot();
    let mut agents: Vec<_> = fleet.agents.iter().collect();
    agents.sort_by_key(|agent| agent.instance);
    let key = |agent: &&AgentView| agent.instance;
    let page = page::cut(agents, key, after.as_ref(), limit, AgentView::clone);
    Ok(Json(page))
}

/// GET /api/v1/agents/{instance}
pub(super) async fn agent(
    State(state): State<ApiState>,
    Path(instance): Path<String>,
) -> Result<Json<AgentView>, Problem> {
    let fleet = state.engine.snapshot();
    let mut agents = fleet.agents.iter();
    let agent = agents.find(|agent| agent.instance.to_string() == instance);
    agent.cloned().map(Json).ok_or_else(|| {
        Problem::not_found("no such agent is attached, nor was one lost in the last minutes")
    })
}

/// GET /api/v1/kill: the switches that are engaged.
pub(super) async fn kills(State(state): State<ApiState>) -> Json<Page<KillView>> {
    Json(Page {
        items: state.engine.snapshot().kills.clone(),
        next: None,
    })
}

/// How far back, and how finely.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct HistoryQuery {
    hours: Option<f64>,
    points: Option<u32>,
}

/// GET /api/v1/routes/{dependency}/{operation}/history?hours=&points=: the stored course, oldest first.
pub(super) async fn history(
    State(state): State<ApiState>,
    Route(route): Route,
    Asked(asked): Asked<HistoryQuery>,
) -> Result<Json<Page<Point>>, Problem> {
    const HOURS: f64 = HISTORY_KEPT.as_secs() as f64 / 3600.0;
    let (hours, points) = (asked.hours.unwrap_or(24.0), asked.points.unwrap_or(500));
    let mut errors = Vec::new();
    if !(hours > 0.0 && hours <= HOURS) {
        let message = format!("{hours} is out of range: expected above 0 and at most {HOURS}");
        errors.push(FieldProblem::new("hours", message));
    }
    if !(1..=POINTS_MAX).contains(&points) {
        let message = format!("{points} is out of range: expected 1 to {POINTS_MAX}");
        errors.push(FieldProblem::new("points", message));
    }
    if !errors.is_empty() {
        return Err(Problem::invalid(errors));
    }
    let now = state.engine.clock().now();
    let since = now.as_millis().saturating_sub((hours * 3.6e6) as u64);
    let since = Moment::from_millis(since);
    let items = state.store.history(&route, since, now, points).await?;
    if items.is_empty() && !state.engine.snapshot().routes.contains_key(&route) {
        return Err(Problem::not_found(format!(
            "no route {route} is known; it appears when an agent reports it"
        )));
    }
    Ok(Json(Page { items, next: None }))
}
