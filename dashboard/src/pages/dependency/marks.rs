//! What happened to a route, each with the address of its record or its alert.

use std::time::Duration;

use hedgerow_core::effect::{AlertState, AuditRow};
use hedgerow_core::moment::Moment;
use hedgerow_core::view::{AlertView, MarkKind, RouteView};
use hedgerow_protocol::ids::RouteKey;

use crate::assets::short_id;
use crate::chart::Event;
use crate::format::{iso, url_part};

/// A mark and its record are of the same act when they are no further apart: the mark is set when
/// the act has been stored.
const SAME_ACT: Duration = Duration::from_secs(10);
/// Marks drawn on one chart: the newest; more could not be told apart.
pub(super) const MARKS: usize = 60;

/// What the store tells of a route's past.
#[derive(Debug, Clone, Default)]
pub(super) struct Past {
    /// Lines of the record, newest first.
    pub(super) record: Vec<(i64, AuditRow)>,
    pub(super) alerts: Vec<AlertState>,
}

/// What happened since a moment, oldest first. `live`: by the marks that the controller keeps; else by
/// the record.
pub(super) fn events(
    view: &RouteView,
    past: &Past,
    alerts: &[AlertView],
    since: Moment,
    live: bool,
) -> Vec<Event> {
    let mut events: Vec<Event> = if live {
        view.marks
            .iter()
            .map(|mark| Event {
                at: mark.at,
                kind: mark.kind,
                words: mark.words.clone(),
                href: match mark.kind {
                    MarkKind::Alert => alert_of(view, &mark.words, mark.at, alerts),
                    kind => line_of(&view.route, past, kind, mark.at),
                },
            })
            .collect()
    } else {
        recorded(&view.route, past).collect()
    };
    events.retain(|event| event.at >= since);
    events.sort_by_key(|event| event.at);
    events.drain(..events.len().saturating_sub(MARKS));
    events
}

/// What kind of mark a line of the record is.
fn kind_of(action: &str) -> MarkKind {
    match action.split('.').next().unwrap_or_default() {
        "mode" | "probation" => MarkKind::Mode,
        "agent" => MarkKind::Agent,
        _ => MarkKind::Policy,
    }
}

/// Whether a line is about a route: its own, its dependency's, or everything's.
fn concerns(row: &AuditRow, route: &RouteKey) -> bool {
    row.target == route.to_string()
        || row.target == route.dependency.as_str()
        || row.target == "everything"
}

fn recorded<'a>(route: &'a RouteKey, past: &'a Past) -> impl Iterator<Item = Event> + 'a {
    let lines = past.record.iter().filter(|(_, row)| concerns(row, route));
    let lines = lines.map(|(number, row)| Event {
        at: row.at,
        kind: kind_of(&row.action),
        words: line_words(row),
        href: line_address(*number),
    });
    let alerts = past.alerts.iter().flat_map(|alert| {
        let event = |at, verb: &str| Event {
            at,
            kind: MarkKind::Alert,
            words: format!("{} {verb}: {}", alert.rule.as_str(), alert.summary),
            href: alert_address(&alert.id),
        };
        let resolved = alert.resolved.map(|at| event(at, "resolved"));
        [Some(event(alert.since, "firing")), resolved]
    });
    lines.chain(alerts.flatten())
}

fn line_words(row: &AuditRow) -> String {
    let reason = match row.reason.as_str() {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    format!("{} by {}{reason}", row.action, row.actor.name)
}

/// The record from a line on, at the line.
fn line_address(number: i64) -> String {
    format!("/record?before={}#line-{number}", number.saturating_add(1))
}

/// Where an alert stands on its page.
fn alert_address(id: &str) -> String {
    format!("/alerts#a-{}", short_id(id))
}

fn apart(a: Moment, b: Moment) -> Duration {
    a.since(b).max(b.since(a))
}

/// The nearest line of the same kind; where none is near, the record of that time.
fn line_of(route: &RouteKey, past: &Past, kind: MarkKind, at: Moment) -> String {
    let near = past
        .record
        .iter()
        .filter(|(_, row)| kind_of(&row.action) == kind && concerns(row, route))
        .map(|(number, row)| (apart(row.at, at), *number))
        .filter(|(apart, _)| *apart <= SAME_ACT)
        .min();
    if let Some((_, number)) = near {
        return line_address(number);
    }
    let from = at.as_millis().saturating_sub(SAME_ACT.as_millis() as u64);
    format!(
        "/record?since={}&until={}",
        url_part(&iso(Moment::from_millis(from))),
        url_part(&iso(at.plus(SAME_ACT)))
    )
}

/// The alert that a mark tells of; the page of all where it is not among those known.
fn alert_of(view: &RouteView, words: &str, at: Moment, alerts: &[AlertView]) -> String {
    let found = alerts.iter().find(|alert| {
        let near = |it: Moment| apart(it, at) <= SAME_ACT;
        alert.state.route == view.route
            && words.starts_with(alert.state.rule.as_str())
            && (near(alert.state.since) || alert.state.resolved.is_some_and(near))
    });
    let by_rule = || {
        alerts.iter().find(|alert| {
            alert.state.route == view.route && words.starts_with(alert.state.rule.as_str())
        })
    };
    found
        .or_else(by_rule)
        .map_or_else(|| "/alerts".into(), |alert| alert_address(&alert.state.id))
}

#[cfg(test)]
mod tests {
    use hedgerow_core::event::Actor;

    use super::*;

    fn line(number: i64, at: u64, action: &str, target: &str) -> (i64, AuditRow) {
        let row = AuditRow {
            at: Moment::from_millis(at),
            actor: Actor::controller(),
            action: action.into(),
            target: target.into(),
            before: String::new(),
            after: String::new(),
            reason: "why".into(),
        };
        (number, row)
    }

    #[test]
    fn u04_a_mark_leads_to_the_line_of_its_own_act() {
        let route = RouteKey::new("catalog", "get").unwrap();
        let past = Past {
            record: vec![
                line(9, 100_000, "mode.off", "catalog get"),
                line(8, 99_000, "policy.set", "catalog"),
                line(7, 98_000, "policy.set", "cart"),
                line(6, 70_000, "kill.on", "everything"),
            ],
            alerts: Vec::new(),
        };
        let of = |kind, at| line_of(&route, &past, kind, Moment::from_millis(at));
        assert_eq!(of(MarkKind::Mode, 100_000), "/record?before=10#line-9");
        assert_eq!(of(MarkKind::Policy, 99_400), "/record?before=9#line-8");
        assert_eq!(of(MarkKind::Policy, 70_900), "/record?before=7#line-6");
        let none = of(MarkKind::Policy, 10_000);
        assert!(
            none.starts_with("/record?since=1970-01-01T00%3A00%3A00Z&until="),
            "{none}"
        );
        let all: Vec<_> = recorded(&route, &past).map(|it| it.href).collect();
        assert_eq!(all.len(), 3, "another dependency's is not marked: {all:?}");
    }
}
