//! What saving a policy would change, before it is saved; and an old revision put in force again.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::{Extension, Json};
use hedgerow_core::view::FleetSnapshot;
use hedgerow_dashboard::backend::Role;
use hedgerow_protocol::ids::Revision;
use hedgerow_protocol::policy::{Policy, PolicyDraft, PolicyScope};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{answer, if_match, policy, rollout};
use crate::api::ApiState;
use crate::api::body::Object;
use crate::api::caller::Caller;
use crate::api::look::Scope;
use crate::api::problem::{FieldProblem, Problem};
use crate::whatif::figures;

/// What saving would change.
#[derive(Debug, Serialize)]
pub(in crate::api) struct Plan {
    /// The scope's own policy; null: it has none.
    before: Option<PolicyDraft>,
    after: PolicyDraft,
    /// Field by field, against `before` or, without one, the defaults. Empty: saving changes nothing.
    changes: Vec<Change>,
    /// What a person should know before saving.
    notes: Vec<String>,
    /// The revision that `before` is, for `If-Match`; 0: none.
    revision: Revision,
}

#[derive(Debug, Serialize)]
struct Change {
    field: String,
    /// Null: not set.
    before: Value,
    after: Value,
}

/// POST /api/v1/policies/{scope}/plan with what a PUT would have, but for the reason: checks it, and
/// says what would change. Nothing does.
pub(in crate::api) async fn plan(
    State(state): State<ApiState>,
    Scope(scope): Scope,
    mut body: Object,
) -> Result<Json<Plan>, Problem> {
    let mut errors = Vec::new();
    body.0.remove("reason");
    let steps = rollout(&mut body.0, &mut errors);
    let policy = policy(body.0, &scope, &mut errors);
    let Some(policy) = policy.filter(|_| errors.is_empty()) else {
        return Err(Problem::invalid(errors));
    };
    let fleet = state.engine.snapshot();
    let own = fleet.policies.get(&scope);
    let before = own.map(|view| view.policy.clone());
    let mut notes = notes(&fleet, &scope, &policy);
    if steps.is_some() && scope.pattern().is_some() {
        notes.push("a pattern's policy cannot be put in force in steps".into());
    }
    let defaults = Policy::observing(scope);
    let mut changes = changes(own.map_or(&defaults, |view| &view.policy), &policy);
    if let Some(rollout) = own.and_then(|view| view.rollout.as_ref())
        && (steps.is_none() || !changes.is_empty())
    {
        changes.push(Change {
            field: "rollout".into(),
            before: format!("for {} of the agents", figures::percent(rollout.share)).into(),
            after: if steps.is_some() {
                "anew".into()
            } else {
                "for all agents at once".into()
            },
        });
    }
    Ok(Json(Plan {
        revision: own.map(|view| view.revision).unwrap_or_default(),
        before: before.map(Into::into),
        after: policy.into(),
        changes,
        notes,
    }))
}

fn changes(before: &Policy, after: &Policy) -> Vec<Change> {
    let fields = |policy: &Policy| match serde_json::to_value(policy) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let (before, after) = (fields(before), fields(after));
    let mut names: Vec<_> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let changed = names.into_iter().filter_map(|name| {
        let (before, after) = (before.get(name), after.get(name));
        (before != after).then(|| Change {
            field: name.clone(),
            before: before.cloned().unwrap_or_default(),
            after: after.cloned().unwrap_or_default(),
        })
    });
    changed.collect()
}

/// What the policy would not do, or would do beside what it says.
fn notes(fleet: &FleetSnapshot, scope: &PolicyScope, policy: &Policy) -> Vec<String> {
    let mut notes = Vec::new();
    let covered: Vec<_> = fleet.routes.keys().filter(|it| scope.covers(it)).collect();
    if covered.is_empty() {
        notes.push(format!("no agent has reported {scope} yet"));
    }
    let narrower = covered.iter().filter(|route| {
        let held = fleet.policy_for(route);
        held.is_some_and(|view| view.policy.scope().rank() > scope.rank())
    });
    let narrower = narrower.count();
    if narrower > 0 {
        notes.push(format!(
            "{narrower} of the {} routes it covers have a narrower policy, which stays",
            covered.len()
        ));
    }
    if policy.budget().get() < policy.target_rate() && policy.goal().is_none() {
        notes.push(format!(
            "the budget ({}) is below the rate the percentile aims at ({:.3}): hedges will be refused",
            policy.budget().get(),
            policy.target_rate()
        ));
    }
    notes
}

/// POST /api/v1/policies/{scope}/revert with {"revision": 3, "reason": "..."}: that revision's contents
/// as a new one; of a revision that took the policy away, takes it away. With `If-Match` only over
/// that revision.
pub(in crate::api) async fn revert(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    Scope(scope): Scope,
    headers: HeaderMap,
    mut body: Object,
) -> Result<Response, Problem> {
    let acting = state.acting(&operator);
    acting.needs(Role::Editor)?;
    let expected = if_match(&headers, &state.engine.snapshot(), &scope)?;
    let mut errors = Vec::new();
    let reason = body.take_reason(&mut errors);
    let wanted = body.0.remove("revision");
    let revision = wanted.as_ref().and_then(Value::as_u64);
    if revision.is_none() {
        let message = "expected the number of a revision, as the history has it";
        errors.push(FieldProblem::new("revision", message));
    }
    body.nothing_else(&["revision", "reason"], &mut errors);
    let (Some(revision), true) = (revision, errors.is_empty()) else {
        return Err(Problem::invalid(errors));
    };
    let history = state.store.policy_history(&scope).await?;
    let mut old = history.into_iter().filter(|it| it.revision.0 == revision);
    let Some(old) = old.next() else {
        return Err(Problem::not_found(format!(
            "{scope} has no revision {revision}; its history lists all it has"
        )));
    };
    let saved = match old.policy {
        Some(policy) => acting.set_policy(policy, expected, None, &reason).await?,
        None => acting.remove_policy(scope, expected, &reason).await?,
    };
    Ok(answer(saved))
}
