//! Silences: those in force, and the form of a new one.

use std::time::Duration;

use askama::Template;
use askama::filters::HtmlSafe;
use hedgerow_core::effect::SilenceDraft;
use hedgerow_core::view::{AlertPhase, AlertRule, FleetSnapshot, SilenceView};
use hedgerow_protocol::ids::{DependencyName, OperationName};
use serde::Deserialize;

use crate::format::{Time, span};

/// How long a silence may last, minutes: a minute to 30 days.
const MINUTES: std::ops::RangeInclusive<u64> = 1..=43_200;
/// Offered without typing a number.
pub(super) const OFFERED: [(&str, &str); 6] = [
    ("30", "30 minutes"),
    ("60", "1 hour"),
    ("240", "4 hours"),
    ("1440", "1 day"),
    ("10080", "7 days"),
    ("43200", "30 days"),
];

#[derive(Debug, Template)]
#[template(path = "parts/silences.html")]
pub(super) struct Silences {
    rows: Vec<SilenceRow>,
    can_act: bool,
}

impl HtmlSafe for Silences {}

#[derive(Debug)]
struct SilenceRow {
    id: u64,
    what: String,
    by: String,
    reason: String,
    since: Time,
    ends: Time,
    left: String,
    /// Alerts it keeps quiet now.
    holds: usize,
}

impl Silences {
    pub(super) fn new(snapshot: &FleetSnapshot, can_act: bool) -> Self {
        let rows = snapshot.silences.iter().map(|it| SilenceRow {
            id: it.id.0,
            what: what(it),
            by: it.actor.name.clone(),
            reason: it.reason.clone(),
            since: Time::near(it.since, snapshot.at),
            ends: Time::near(it.ends, snapshot.at),
            left: span(it.ends.since(snapshot.at)),
            holds: snapshot
                .alerts
                .iter()
                .filter(|a| a.silenced == Some(it.id) && a.phase != AlertPhase::Resolved)
                .count(),
        });
        Self {
            rows: rows.collect(),
            can_act,
        }
    }
}

/// What a silence matches, in words.
fn what(silence: &SilenceView) -> String {
    let it = &silence.matches;
    let mut words = Vec::new();
    if let Some(rule) = it.rule {
        words.push(rule.as_str().to_owned());
    }
    match (&it.dependency, &it.operation) {
        (Some(dependency), Some(operation)) => words.push(format!("on {dependency} {operation}")),
        (Some(dependency), None) => words.push(format!("on {dependency}")),
        _ => {}
    }
    if let Some(replica) = &it.replica {
        words.push(format!("replica {replica}"));
    }
    if words.is_empty() {
        "every alert".into()
    } else {
        words.join(", ")
    }
}

/// A silence as it was typed, or as an alert's link fills it in.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SilenceForm {
    pub(super) rule: String,
    pub(super) dependency: String,
    pub(super) operation: String,
    pub(super) replica: String,
    pub(super) minutes: String,
    pub(super) reason: String,
    /// Set where somebody means every alert.
    pub(super) everything: Option<String>,
}

impl SilenceForm {
    /// Every rule, and whether it is the chosen one.
    pub(super) fn rules(&self) -> Vec<(&'static str, bool)> {
        let rules = rules();
        rules
            .into_iter()
            .map(|rule| (rule, rule == self.rule))
            .collect()
    }

    pub(super) fn offered(&self) -> Vec<(&'static str, &'static str, bool)> {
        let chosen = if self.minutes.is_empty() {
            "60"
        } else {
            self.minutes.as_str()
        };
        OFFERED
            .into_iter()
            .map(|(value, words)| (value, words, value == chosen))
            .collect()
    }

    /// What it asks for, or what was expected.
    pub(super) fn draft(&self) -> Result<SilenceDraft, String> {
        let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let rule = given(&self.rule)
            .map(|name| {
                rule_named(&name).ok_or_else(|| {
                    let known = rules().join(", ");
                    format!("rule {name:?} is not known: expected one of {known}, or none")
                })
            })
            .transpose()?;
        let dependency = given(&self.dependency)
            .map(|name| DependencyName::new(&name).map_err(|e| format!("dependency {e}")))
            .transpose()?;
        let operation = given(&self.operation)
            .map(|name| OperationName::new(&name).map_err(|e| format!("operation {e}")))
            .transpose()?;
        if operation.is_some() && dependency.is_none() {
            return Err("an operation needs its dependency: expected both, or neither".into());
        }
        let replica = given(&self.replica);
        let names_nothing = rule.is_none() && dependency.is_none() && replica.is_none();
        if names_nothing && self.everything.is_none() {
            return Err(
                "it names nothing and would silence every alert: name a rule, a dependency or a \
                 replica, or say that every alert is meant"
                    .into(),
            );
        }
        Ok(SilenceDraft {
            rule,
            dependency,
            operation,
            replica,
            lasts: minutes(&self.minutes)?,
        })
    }
}

/// For so long.
pub(super) fn minutes(text: &str) -> Result<Duration, String> {
    let (least, most) = (MINUTES.start(), MINUTES.end());
    let minutes: Option<u64> = text.trim().parse().ok();
    minutes
        .filter(|minutes| MINUTES.contains(minutes))
        .map(|minutes| Duration::from_secs(minutes * 60))
        .ok_or_else(|| {
            format!("minutes is {text:?}: expected a whole number from {least} to {most}")
        })
}

fn rules() -> Vec<&'static str> {
    AlertRule::ALL.iter().map(|rule| rule.as_str()).collect()
}

fn rule_named(name: &str) -> Option<AlertRule> {
    AlertRule::ALL
        .into_iter()
        .find(|rule| rule.as_str() == name)
}
