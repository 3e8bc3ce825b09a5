//! Alerts: what fires and who was told, who works on it, and what is silenced.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use hedgerow_core::effect::{SilenceDraft, SilenceId};
use hedgerow_core::moment::Moment;
use hedgerow_core::view::{AlertPhase, AlertRule, AlertView, SilenceView};
use hedgerow_dashboard::backend::Delivery;
use hedgerow_protocol::ids::{DependencyName, NameError, OperationName, ReplicaName};
use serde::de::IntoDeserializer as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ApiState;
use super::body::Object;
use super::caller::Caller;
use super::page::{self, Asked, Page, PageQuery};
use super::problem::{FieldProblem, Problem};
use super::steer::Done;

/// Minutes a silence or an acknowledgement may last; the core has the last word.
const MINUTES: &str = "minutes, 1 to 43200";

/// Where an alert stands in the list: what fires first, of these the newest. As text, a cursor that
/// names its place also when it is gone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place(AlertPhase, Reverse<Moment>, String);

impl Place {
    fn of(alert: &AlertView) -> Self {
        let state = &alert.state;
        Self(alert.phase, Reverse(state.since), state.id.clone())
    }
}

const PHASES: [(AlertPhase, &str); 3] = [
    (AlertPhase::Firing, "firing"),
    (AlertPhase::Pending, "pending"),
    (AlertPhase::Resolved, "resolved"),
];

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let mut parts = text.splitn(3, '.');
            let phase = parts.next()?;
            let (phase, _) = PHASES.iter().find(|(_, name)| *name == phase)?;
            let since = parts.next()?.parse().ok()?;
            let id = parts.next()?.to_owned();
            Some(Self(*phase, Reverse(Moment::from_millis(since)), id))
        };
        read().ok_or_else(|| format!("{text:?} is no place: expected what an answer had as `next`"))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(phase, Reverse(since), id) = self;
        let name = PHASES.iter().find(|(it, _)| it == phase);
        let name = name.map_or("", |(_, name)| name);
        write!(f, "{name}.{}.{id}", since.as_millis())
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Alert {
    #[serde(flatten)]
    alert: AlertView,
    deliveries: Vec<Delivery>,
}

/// GET /api/v1/alerts?limit=&after=: those that fire, those that are pending, and those resolved in
/// the last hour, each with what its receivers got.
pub(super) async fn list(
    State(state): State<ApiState>,
    Asked(asked): Asked<PageQuery>,
) -> Result<Json<Page<Alert>>, Problem> {
    let limit = page::limit(asked.limit)?;
    let after = page::read("after", asked.after.as_deref())?;
    let mut alerts = state.engine.snapshot().alerts.clone();
    alerts.sort_by_cached_key(Place::of);
    let Page { items, next } = page::cut(alerts, Place::of, after.as_ref(), limit, |it| it);
    let ids: Vec<&str> = items.iter().map(|it| it.state.id.as_str()).collect();
    let mut sent: HashMap<String, Vec<Delivery>> = HashMap::new();
    for delivery in state.store.deliveries_of(&ids).await? {
        sent.entry(delivery.alert.clone())
            .or_default()
            .push(delivery);
    }
    let items = items.into_iter().map(|alert| Alert {
        deliveries: sent.remove(&alert.state.id).unwrap_or_default(),
        alert,
    });
    Ok(Json(Page {
        items: items.collect(),
        next,
    }))
}

/// POST /api/v1/alerts/{id}/acknowledge: who works on an alert that fires, as `comment` says, for
/// `minutes`, or until it is over.
pub(super) async fn acknowledge(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    alert: Result<Path<String>, PathRejection>,
    mut body: Object,
) -> Result<Json<Done>, Problem> {
    let alert = id(alert)?;
    let mut errors = Vec::new();
    let comment = body.take_words("comment", &mut errors);
    // Null is as good as nothing.
    let lasts = match body.0.get("minutes") {
        None | Some(Value::Null) => {
            body.0.remove("minutes");
            None
        }
        Some(_) => take_minutes(&mut body, &mut errors),
    };
    body.nothing_else(&["comment", "minutes"], &mut errors);
    if !errors.is_empty() {
        return Err(Problem::invalid(errors));
    }
    let acting = state.acting(&operator);
    acting.acknowledge(&alert, lasts, &comment).await?;
    Ok(Json(Done { done: true }))
}

/// GET /api/v1/silences?limit=&after=: those in force, oldest first.
pub(super) async fn silences(
    State(state): State<ApiState>,
    Asked(asked): Asked<PageQuery>,
) -> Result<Json<Page<SilenceView>>, Problem> {
    let limit = page::limit(asked.limit)?;
    let after = page::read("after", asked.after.as_deref())?;
    let mut silences = state.engine.snapshot().silences.clone();
    silences.sort_by_key(|it| it.id);
    let page = page::cut(silences, |it| it.id.0, after.as_ref(), limit, |it| it);
    Ok(Json(page))
}

#[derive(Debug, Serialize)]
pub(super) struct Silenced {
    id: SilenceId,
}

/// POST /api/v1/silences: keeps firing notices of what matches all of `rule`, `dependency`,
/// `operation` and `replica` that are given from receivers, for `minutes`.
pub(super) async fn silence(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    mut body: Object,
) -> Result<Json<Silenced>, Problem> {
    let mut errors = Vec::new();
    let reason = body.take_reason(&mut errors);
    let lasts = take_minutes(&mut body, &mut errors);
    let replica = take_name(&mut body, "replica", ReplicaName::new, &mut errors);
    let draft = SilenceDraft {
        rule: take_rule(&mut body, &mut errors),
        dependency: take_name(&mut body, "dependency", DependencyName::new, &mut errors),
        operation: take_name(&mut body, "operation", OperationName::new, &mut errors),
        replica: replica.map(|name| name.to_string()),
        lasts: lasts.unwrap_or_default(),
    };
    body.nothing_else(
        &[
            "rule",
            "dependency",
            "operation",
            "replica",
            "minutes",
            "reason",
        ],
        &mut errors,
    );
    if !errors.is_empty() {
        return Err(Problem::invalid(errors));
    }
    let id = state.acting(&operator).silence(draft, &reason).await?;
    Ok(Json(Silenced { id }))
}

/// DELETE /api/v1/silences/{id}: ends it; what it alone kept and still fires is told then.
pub(super) async fn end_silence(
    State(state): State<ApiState>,
    Extension(Caller(operator)): Extension<Caller>,
    silence: Result<Path<String>, PathRejection>,
    body: Object,
) -> Result<Json<Done>, Problem> {
    let reason = body.only_reason()?;
    let id = id(silence)?;
    let id = id.parse().map(SilenceId).map_err(|_| {
        let message = format!("{id:?} is no silence: expected its number");
        Problem::invalid(vec![FieldProblem::new("id", message)])
    })?;
    state.acting(&operator).end_silence(id, &reason).await?;
    Ok(Json(Done { done: true }))
}

/// What stands in the address for one of a list.
fn id(path: Result<Path<String>, PathRejection>) -> Result<String, Problem> {
    path.map(|Path(id)| id)
        .map_err(|_| Problem::malformed("the address: expected what the list has as `id` in it"))
}

fn take_minutes(body: &mut Object, errors: &mut Vec<FieldProblem>) -> Option<Duration> {
    let minutes: f64 = body.take("minutes", MINUTES, errors)?;
    // The core says how many there may be; here only that it is a length of time.
    let lasts = Duration::try_from_secs_f64(minutes * 60.0);
    let wrong = |_| FieldProblem::new("minutes", format!("{minutes}: expected {MINUTES}"));
    lasts.map_err(|e| errors.push(wrong(e))).ok()
}

fn take_rule(body: &mut Object, errors: &mut Vec<FieldProblem>) -> Option<AlertRule> {
    let name = take_text(body, "rule", errors)?;
    let rule: Result<AlertRule, serde::de::value::Error> =
        AlertRule::deserialize(name.as_str().into_deserializer());
    let wrong = |_| {
        let rules = AlertRule::ALL.map(AlertRule::as_str).join(", ");
        let message = format!("{name:?} is no rule: expected one of {rules}, or nothing");
        FieldProblem::new("rule", message)
    };
    rule.map_err(|e| errors.push(wrong(e))).ok()
}

fn take_name<T>(
    body: &mut Object,
    field: &'static str,
    parse: fn(&str) -> Result<T, NameError>,
    errors: &mut Vec<FieldProblem>,
) -> Option<T> {
    let name = take_text(body, field, errors)?;
    let parsed = parse(&name);
    parsed
        .map_err(|e| errors.push(FieldProblem::new(field, e.to_string())))
        .ok()
}

/// A text that may be missing, or null.
fn take_text(
    body: &mut Object,
    field: &'static str,
    errors: &mut Vec<FieldProblem>,
) -> Option<String> {
    match body.0.remove(field)? {
        Value::Null => None,
        Value::String(text) => Some(text),
        _ => {
            let message = "is not a text: expected a name, or null for any";
            errors.push(FieldProblem::new(field, message));
            None
        }
    }
}
