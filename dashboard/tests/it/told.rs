//! What was told and written in the realistic fleet: alerts, deliveries, the record.

use hedgerow_core::effect::{AlertState, AuditRow};
use hedgerow_core::event::{Actor, Via};
use hedgerow_core::moment::Moment;
use hedgerow_core::view::{AlertPhase, AlertRule, AlertView};
use hedgerow_dashboard::backend::{Delivery, ReceiverView};

use crate::fleet;

fn ago(now: Moment, seconds: u64) -> Moment {
    Moment::from_millis(now.as_millis() - seconds * 1000)
}

/// Episode, rule, route, replica, summary, since and resolved (seconds ago).
type Alert = (
    &'static str,
    AlertRule,
    (&'static str, &'static str),
    Option<&'static str>,
    &'static str,
    u64,
    Option<u64>,
);

const ALERTS: [Alert; 5] = [
    (
        "a-1",
        AlertRule::SharedSlowdown,
        ("search", "query"),
        None,
        "9 of 10 replicas are slow together (median 4.6 times its base): a second replica is as slow as the first. Hedging is off.",
        72,
        None,
    ),
    (
        "a-2",
        AlertRule::HedgingDisabled,
        ("checkout", "charge"),
        None,
        "hedging is off: error rate 6.1 % > 5 % over 2 s",
        211,
        None,
    ),
    (
        "a-3",
        AlertRule::HedgeRateHigh,
        ("sessions", "get"),
        None,
        "demand 14.2 % > 10 % of eligible calls for 10 s; the budget holds what is sent at 8 %",
        138,
        None,
    ),
    (
        "a-4",
        AlertRule::ReplicaSlow,
        ("catalog", "list"),
        Some("catalog-4"),
        "catalog-4 crosses 21 % where the others cross 4 %: eject it",
        9,
        None,
    ),
    (
        "a-0",
        AlertRule::SharedSlowdown,
        ("recommendations", "rank"),
        None,
        "8 of 10 replicas were slow together",
        185,
        Some(20),
    ),
];

pub(crate) fn alerts(now: Moment) -> Vec<AlertView> {
    ALERTS
        .iter()
        .map(
            |&(id, rule, (dependency, operation), replica, summary, since, resolved)| AlertView {
                state: AlertState {
                    id: id.into(),
                    rule,
                    route: fleet::route(dependency, operation),
                    replica: replica.map(Into::into),
                    summary: summary.into(),
                    since: ago(now, since),
                    resolved: resolved.map(|s| ago(now, s)),
                },
                phase: match (resolved, rule) {
                    (Some(_), _) => AlertPhase::Resolved,
                    (None, AlertRule::ReplicaSlow) => AlertPhase::Pending,
                    (None, _) => AlertPhase::Firing,
                },
                silenced: None,
                acknowledged: None,
            },
        )
        .collect()
}

/// Number, episode, kind, receiver, state, tries, last error, written (seconds ago).
type Notice = (
    i64,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    u32,
    &'static str,
    u64,
);

const NOTICES: [Notice; 7] = [
    (7, "a-1", "firing", "on-call", "delivered", 1, "", 72),
    (
        6,
        "a-1",
        "firing",
        "chat",
        "waiting",
        4,
        "connection refused; next try in 8 s",
        72,
    ),
    (
        5,
        "a-2",
        "firing",
        "on-call",
        "delivered",
        2,
        "answered 503",
        211,
    ),
    (4, "a-3", "firing", "on-call", "delivered", 1, "", 138),
    (3, "a-0", "resolved", "on-call", "delivered", 1, "", 20),
    (2, "a-0", "firing", "on-call", "delivered", 1, "", 185),
    (
        1,
        "a-older",
        "firing",
        "chat",
        "given_up",
        12,
        "answered 410",
        9000,
    ),
];

pub(crate) fn deliveries(now: Moment) -> Vec<Delivery> {
    NOTICES
        .iter()
        .map(
            |&(id, alert, kind, receiver, state, attempts, error, written)| Delivery {
                id,
                alert: alert.into(),
                kind: kind.into(),
                receiver: receiver.into(),
                state: state.into(),
                attempts,
                last_error: (!error.is_empty()).then(|| error.into()),
                at: ago(now, written),
                done: (state != "waiting").then(|| ago(now, written - 1)),
            },
        )
        .collect()
}

/// One that delivers, one that fails, one that was never used.
pub(crate) fn receivers(now: Moment) -> Vec<ReceiverView> {
    let view = |name: &str, kind: &str, to: &str| ReceiverView {
        name: name.into(),
        kind: kind.into(),
        to: to.into(),
        waiting: 0,
        given_up: 0,
        delivered: None,
        last_error: None,
    };
    vec![
        ReceiverView {
            waiting: 1,
            given_up: 1,
            last_error: Some("connection refused; next try in 8 s".into()),
            ..view("chat", "slack", "hooks.slack.example")
        },
        ReceiverView {
            delivered: Some(ago(now, 20)),
            ..view("on-call", "pagerduty", "events.pagerduty.example")
        },
        view("team-mail", "email", "shop.example"),
    ]
}

/// Seconds ago, who, from where, what, on what, before, after, why.
type Line = (
    u64,
    &'static str,
    Via,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const LINES: [Line; 5] = [
    (
        74,
        "controller",
        Via::Controller,
        "mode.off",
        "search query",
        "on",
        "off: shared_slowdown",
        "median / base 4.6 x > 2.5 x over 3 s; hedges answered / expected 0.12 < 0.3",
    ),
    (
        212,
        "controller",
        Via::Controller,
        "mode.off",
        "checkout charge",
        "on",
        "off: errors",
        "error rate 6.1 % > 5 % over 2 s, 192 primaries",
    ),
    (
        480,
        "dana",
        Via::Page,
        "policy.set",
        "catalog",
        r#"{"dependency":"catalog","intent":"hedge","percentile":0.97,"budget":0.08,"holdout":0.01}"#,
        r#"{"dependency":"catalog","intent":"hedge","percentile":0.95,"budget":0.08,"holdout":0.01}"#,
        "after the cache change",
    ),
    (
        5000,
        "ada",
        Via::CommandLine,
        "kill.off",
        "everything",
        "engaged",
        "released",
        "the drill is over",
    ),
    (
        5300,
        "ada",
        Via::Api,
        "kill.on",
        "everything",
        "released",
        "engaged",
        "game day drill",
    ),
];

/// Sixty lines, newest first: the same five days of work over and over.
pub(crate) fn record() -> Vec<(i64, AuditRow)> {
    let rounds = (0..12u64).flat_map(|round| LINES.iter().map(move |line| (round, line)));
    (1..=60)
        .rev()
        .zip(rounds)
        .map(
            |(number, (round, &(seconds, name, via, action, target, before, after, reason)))| {
                let row = AuditRow {
                    at: ago(fleet::START, seconds + round * 6000),
                    actor: Actor {
                        name: name.into(),
                        via,
                    },
                    action: action.into(),
                    target: target.into(),
                    before: before.into(),
                    after: after.into(),
                    reason: reason.into(),
                };
                (number, row)
            },
        )
        .collect()
}
