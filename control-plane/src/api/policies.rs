//! Policies: reading, setting, revisions.

mod plan;
mod read;

use std::cmp::Ordering;
use std::fmt;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use hedgerow_core::view::{FleetSnapshot, PolicyView};
use hedgerow_dashboard::backend::{Operator, PolicyRevision, RolloutStep, Saved};
use hedgerow_protocol::ids::Revision;
use hedgerow_protocol::policy::{Policy, PolicyScope};
use serde::Serialize;

use super::ApiState;
use super::body::Object;
use super::caller::Caller;
use super::look::Scope;
use super::page::{self, Asked, Page, PageQuery};
use super::problem::Problem;

pub(super) use plan::{plan, revert};
pub(super) use read::policy;
use read::rollout;

/// GET /api/v1/policies
pub(super) async fn list(
    State(state): State<ApiState>,
    Asked(asked): Asked<PageQuery>,
) -> Result<Json<Page<PolicyView>>, Problem> {
    let limit = page::limit(asked.limit)?;
    let after: Option<PolicyScope> = page::read("after", asked.after.as_deref())?;
    let fleet = state.engine.snapshot();
    let key = |it: &(&PolicyScope, &PolicyView)| it.0.clone();
    let page = page::cut(&fleet.policies, key, after.as_ref(), limit, |it| {
        it.1.clone()
    });
    Ok(Json(page))
}

/// GET /api/v1/policies/{scope}: the policy in force, its revision as ETag.
pub(super) async fn show(
    State(state): State<ApiState>,
    Scope(scope): Scope,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let policy = in_force(&state.engine.snapshot(), &scope)?;
    let tag = etag(policy.revision);
    let held = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok());
    let same = held.is_some_and(|list| list.split(',').any(|held| held.trim() == tag));
    let mut response = if same {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        Json(policy).into_response()
    };
    let tag = HeaderValue::from_str(&tag).expect("a number in quotes is a header's value");
    response.headers_mut().insert(header::ETAG, tag);
    Ok(response)
}

/// GET /api/v1/policies/{scope}/history
pub(super) async fn history(
    State(state): State<ApiState>,
    Scope(scope): Scope,
    Asked(asked): Asked<PageQuery>,
) -> Result<Json<Page<PolicyRevision>>, Problem> {
    let limit = page::limit(asked.limit)?;
    let after: Option<u64> = page::read("after", asked.after.as_deref())?;
    let revisions = state.store.policy_history(&scope).await?;
    if revisions.is_empty() {
        // Known, and never set: an empty list. Unknown: not found.
        in_force(&state.engine.snapshot(), &scope)?;
    }
    let key = |it: &PolicyRevision| NewestFirst(it.revision.0);
    let after = after.map(NewestFirst);
    let page = page::cut(revisions, key, after.as_ref(), limit, |it| it);
    Ok(Json(page))
}

/// A revision's place in a history.
#[derive(Debug, PartialEq, Eq)]
struct NewestFirst(u64);

impl Ord for NewestFirst {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.cmp(&self.0)
    }
}

impl PartialOrd for NewestFirst {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for NewestFirst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Set {
    revision: Revision,
    changed: bool,
}

/// PUT /api/v1/policies/{scope}: puts a whole policy in force; fields left out take the
/// defaults of a new dependency, as in the configuration file. With `If-Match` only over that
/// revision. With `"rollout": {"stages": [0.05, 0.25, 1], "stay_s": 120}`, each of whose fields may
/// be left out, in steps; otherwise for all agents at once.
pub(super) async fn set(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    Scope(scope): Scope,
    headers: HeaderMap,
    mut body: Object,
) -> Result<Response, Problem> {
    let expected = if_match(&headers, &state.engine.snapshot(), &scope)?;
    let mut errors = Vec::new();
    let reason = body.take_reason(&mut errors);
    let rollout = rollout(&mut body.0, &mut errors);
    let policy = policy(body.0, &scope, &mut errors);
    let Some(policy) = policy.filter(|_| errors.is_empty()) else {
        return Err(Problem::invalid(errors));
    };
    let acting = state.acting(&operator);
    let saved = acting
        .set_policy(policy, expected, rollout, &reason)
        .await?;
    Ok(answer(saved))
}

pub(super) fn answer(saved: Saved) -> Response {
    let tag = HeaderValue::from_str(&etag(saved.revision)).expect("a number in quotes");
    let answer = Json(Set {
        revision: saved.revision,
        changed: saved.changed,
    });
    ([(header::ETAG, tag)], answer).into_response()
}

/// DELETE /api/v1/policies/{scope}: takes it away. With `If-Match` only this revision.
pub(super) async fn remove(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    Scope(scope): Scope,
    headers: HeaderMap,
    body: Object,
) -> Result<Response, Problem> {
    let expected = if_match(&headers, &state.engine.snapshot(), &scope)?;
    let reason = body.only_reason()?;
    let acting = state.acting(&operator);
    let saved = acting.remove_policy(scope, expected, &reason).await?;
    Ok(answer(saved))
}

/// DELETE /api/v1/policies/{scope}/rollout: takes it back. With `If-Match` only that of this
/// revision.
pub(super) async fn take_back(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    Scope(scope): Scope,
    headers: HeaderMap,
    body: Object,
) -> Result<Response, Problem> {
    let step = RolloutStep::Back;
    step_rollout(&state, &operator, scope, &headers, body, step).await
}

/// POST /api/v1/policies/{scope}/rollout/advance: the next step, without waiting for it.
pub(super) async fn advance(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    Scope(scope): Scope,
    headers: HeaderMap,
    body: Object,
) -> Result<Response, Problem> {
    let step = RolloutStep::On;
    step_rollout(&state, &operator, scope, &headers, body, step).await
}

async fn step_rollout(
    state: &ApiState,
    operator: &Operator,
    scope: PolicyScope,
    headers: &HeaderMap,
    body: Object,
    step: RolloutStep,
) -> Result<Response, Problem> {
    let expected = if_match(headers, &state.engine.snapshot(), &scope)?;
    let reason = body.only_reason()?;
    let saved = state
        .acting(operator)
        .step_rollout(scope, expected, step, &reason)
        .await?;
    Ok(answer(saved))
}

/// The scope's own policy; where it has none and agents report what it covers, the one that holds
/// there, with revision 0.
pub(super) fn in_force(fleet: &FleetSnapshot, scope: &PolicyScope) -> Result<PolicyView, Problem> {
    if let Some(view) = fleet.policies.get(scope) {
        return Ok(view.clone());
    }
    if let Some(route) = fleet.routes.keys().find(|route| scope.covers(route)) {
        let wider = fleet.policy_for(route).map(|view| view.policy.clone());
        let policy = wider.unwrap_or_else(|| Policy::observing(scope.clone()));
        return Ok(PolicyView {
            revision: Revision(0),
            policy: policy.for_scope(scope.clone()),
            since: fleet.started,
            rollout: None,
        });
    }
    Err(Problem::not_found(format!(
        "{scope} is not known; it appears when an agent reports it or a policy is set for it"
    )))
}

fn etag(revision: Revision) -> String {
    format!("\"{revision}\"")
}

fn if_match(
    headers: &HeaderMap,
    fleet: &FleetSnapshot,
    scope: &PolicyScope,
) -> Result<Option<Revision>, Problem> {
    let Some(value) = headers.get(header::IF_MATCH) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        // Any revision, as long as there is one.
        let set = fleet.policies.get(scope).map(|view| view.revision);
        return set.map(Some).ok_or_else(|| {
            Problem::not_found(format!(
                "no policy has been set for {scope}: nothing matches *"
            ))
        });
    }
    text.strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .and_then(|text| text.parse().ok())
        .map(|revision| Some(Revision(revision)))
        .ok_or_else(|| {
            Problem::malformed(
                "If-Match: expected the ETag of the policy you edited, such as \"7\", or nothing",
            )
        })
}
