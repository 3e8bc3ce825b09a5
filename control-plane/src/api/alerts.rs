//! Alerts: what fires and who was told, who works on it, and what is silenced.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
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
use super::problem::{FieldProblem, Problem};
use super::steer::Done;

/// Items in one answer, where nothing else is said, and at most.
const ITEMS_DEFAULT: usize = 100;
const ITEMS_MAX: usize = 1000;
/// Minutes a silence or an acknowledgement may last; the core has the last word.
const MINUTES: &str = "minutes, 1 to 43200";

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PageQuery {
    limit: Option<usize>,
    after: Option<String>,
}

/// A part of a list.
#[derive(Debug, Serialize)]
pub(super) struct Items<T> {
    items: Vec<T>,
    /// What to give as `after` for the items behind these; null at the end.
    next: Option<String>,
}

/// The part of `all`, in their order, that is asked for; `place` is where an item stands, as text
/// that names its place also when the item is gone.
fn page<T, K: Ord>(
    query: Result<Query<PageQuery>, QueryRejection>,
    all: Vec<T>,
    place: impl Fn(&T) -> K,
    read: impl Fn(&str) -> Option<K>,
    write: impl Fn(&K) -> String,
) -> Result<Items<T>, Problem> {
    let Query(query) = query.map_err(|e| {
        let said = e.body_text();
        Problem::malformed(format!(
            "{said}; expected limit=1 to {ITEMS_MAX}, after=TEXT, or none of them"
        ))
    })?;
    let limit = query.limit.unwrap_or(ITEMS_DEFAULT);
    if !(1..=ITEMS_MAX).contains(&limit) {
        let message = format!("{limit} is out of range: expected 1 to {ITEMS_MAX}");
        return Err(Problem::invalid(vec![FieldProblem::new("limit", message)]));
    }
    let after = query.after.as_deref().filter(|it| !it.is_empty());
    let after = match after.map(|text| read(text).ok_or(text)).transpose() {
        Ok(after) => after,
        Err(text) => {
            let message = format!("{text:?} is no place: expected what an answer had as `next`");
            return Err(Problem::invalid(vec![FieldProblem::new("after", message)]));
        }
    };
    let behind = |item: &T| after.as_ref().is_none_or(|after| place(item) > *after);
    let mut items: Vec<T> = all.into_iter().filter(behind).collect();
    let more = items.len() > limit;
    items.truncate(limit);
    let last = items.last().filter(|_| more);
    let next = last.map(|item| write(&place(item)));
    Ok(Items { items, next })
}

/// Where an alert stands in the list: what fires first, of these the newest.
type Place = (AlertPhase, Reverse<Moment>, String);

fn place(alert: &AlertView) -> Place {
    let state = &alert.state;
    (alert.phase, Reverse(state.since), state.id.clone())
}

const PHASES: [(AlertPhase, &str); 3] = [
    (AlertPhase::Firing, "firing"),
    (AlertPhase::Pending, "pending"),
    (AlertPhase::Resolved, "resolved"),
];

fn place_from(text: &str) -> Option<Place> {
    let mut parts = text.splitn(3, '.');
    let phase = parts.next()?;
    let (phase, _) = PHASES.iter().find(|(_, name)| *name == phase)?;
    let since = parts.next()?.parse().ok()?;
    let id = parts.next()?.to_owned();
    Some((*phase, Reverse(Moment::from_millis(since)), id))
}

fn place_to((phase, Reverse(since), id): &Place) -> String {
    let name = PHASES.iter().find(|(it, _)| it == phase);
    let name = name.map_or("", |(_, name)| name);
    format!("{name}.{}.{id}", since.as_millis())
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
    query: Result<Query<PageQuery>, QueryRejection>,
) -> Result<Json<Items<Alert>>, Problem> {
    let mut alerts = state.engine.snapshot().alerts.clone();
    alerts.sort_by_cached_key(place);
    let Items { items, next } = page(query, alerts, place, place_from, place_to)?;
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
    Ok(Json(Items {
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
    query: Result<Query<PageQuery>, QueryRejection>,
) -> Result<Json<Items<SilenceView>>, Problem> {
    let silences = state.engine.snapshot().silences.clone();
    let read = |text: &str| text.parse().ok();
    page(query, silences, |it| it.id.0, read, u64::to_string).map(Json)
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
