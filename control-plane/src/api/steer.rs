//! Kill switches and routes.

use axum::extract::State;
use axum::{Extension, Json};
use hedgerow_core::event::KillScope;
use hedgerow_core::view::{Acked, FleetSnapshot};
use hedgerow_protocol::ids::DependencyName;
use serde::Serialize;
use serde_json::Value;

use super::ApiState;
use super::body::Object;
use super::caller::Caller;
use super::look::Route;
use super::problem::{FieldProblem, Problem};

#[derive(Debug, Serialize)]
pub(super) struct Killed {
    changed: bool,
    /// How many agents have it in force so far; not said of a switch that is released.
    #[serde(skip_serializing_if = "Option::is_none")]
    acked: Option<Acked>,
    /// Whether an agent has reported the dependency, or somebody set a policy for it. A switch for
    /// one that nobody knows stands, and may be a slip of the pen.
    known: bool,
}

impl Killed {
    fn seen_in(fleet: &FleetSnapshot, scope: &KillScope, changed: bool) -> Self {
        let engaged = fleet.kills.iter().find(|kill| kill.state.scope == *scope);
        let known = match scope {
            KillScope::Everything => true,
            KillScope::Dependency(name) => {
                fleet
                    .policies
                    .keys()
                    .any(|scope| scope.dependency() == Some(name))
                    || fleet.routes.keys().any(|route| route.dependency == *name)
            }
        };
        Self {
            changed,
            acked: engaged.map(|kill| kill.acked),
            known,
        }
    }
}

/// POST /api/v1/kill
pub(super) async fn kill(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    mut body: Object,
) -> Result<Json<Killed>, Problem> {
    let mut errors = Vec::new();
    let reason = body.take_reason(&mut errors);
    let scope = scope(&mut body, &mut errors);
    let engaged = body.take("engaged", "true or false", &mut errors);
    body.nothing_else(&["scope", "dependency", "engaged", "reason"], &mut errors);
    let (Some(scope), Some(engaged), true) = (scope, engaged, errors.is_empty()) else {
        return Err(Problem::invalid(errors));
    };
    let acting = state.acting(&operator);
    let changed = acting.kill(scope.clone(), engaged, &reason).await?;
    let fleet = state.engine.snapshot();
    Ok(Json(Killed::seen_in(&fleet, &scope, changed)))
}

/// `"scope": "everything"`, or `"scope": "dependency", "dependency": NAME`.
fn scope(body: &mut Object, errors: &mut Vec<FieldProblem>) -> Option<KillScope> {
    const EXPECTED: &str = "\"everything\" or \"dependency\"";
    let scope: String = body.take("scope", EXPECTED, errors)?;
    match scope.as_str() {
        // Taken for granted to be about everything, a name that came along would be a mistake with
        // the widest effect there is.
        "everything" if body.0.get("dependency").is_none_or(Value::is_null) => {
            body.0.remove("dependency");
            Some(KillScope::Everything)
        }
        "everything" => {
            body.0.remove("dependency");
            let message = "expected nothing, since the scope is \"everything\"";
            errors.push(FieldProblem::new("dependency", message));
            None
        }
        "dependency" => {
            let name: String = body.take("dependency", "a dependency's name", errors)?;
            DependencyName::new(&name)
                .map(KillScope::Dependency)
                .map_err(|e| errors.push(FieldProblem::new("dependency", e.to_string())))
                .ok()
        }
        other => {
            let message = format!("{other:?} is no scope: expected {EXPECTED}");
            errors.push(FieldProblem::new("scope", message));
            None
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Done {
    pub(super) done: bool,
}

/// POST /api/v1/routes/{dependency}/{operation}/release
pub(super) async fn release(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    Route(route): Route,
    body: Object,
) -> Result<Json<Done>, Problem> {
    let reason = body.only_reason()?;
    let acting = state.acting(&operator);
    acting.release(route, &reason).await?;
    Ok(Json(Done { done: true }))
}

/// POST /api/v1/routes/{dependency}/{operation}/accept-base
pub(super) async fn accept_base(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    Route(route): Route,
    body: Object,
) -> Result<Json<Done>, Problem> {
    let reason = body.only_reason()?;
    let acting = state.acting(&operator);
    acting.accept_base(route, &reason).await?;
    Ok(Json(Done { done: true }))
}
