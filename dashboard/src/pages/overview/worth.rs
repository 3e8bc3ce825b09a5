//! What is grave and what is not: the order of rows, and the line that says what needs a person.

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use askama::filters::HtmlSafe;
use hedgerow_core::event::KillScope;
use hedgerow_core::view::{AgentState, AlertPhase, AlertRule, AlertView, FleetSnapshot, RouteView};
use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::ids::RouteKey;

use crate::pages::state::{kill_address, route_address};

/// Places in the order, gravest first.
pub(super) mod rank {
    /// An alert fires, or hedging is off for a fault.
    pub(crate) const FAULT: u8 = 0;
    /// A person switched it off.
    pub(crate) const KILLED: u8 = 1;
    /// Trying again.
    pub(crate) const PROBING: u8 = 2;
    /// A replica is named, an agent refused, an alert is pending.
    pub(crate) const WARN: u8 = 3;
    /// Allowed, but to no effect, or without figures.
    pub(crate) const DULL: u8 = 4;
    /// As it should be.
    pub(crate) const CALM: u8 = 5;
}

/// What there is to say of routes besides what their views say, found once for all of them.
#[derive(Debug)]
pub(super) struct Standing<'a> {
    alerts: BTreeMap<&'a RouteKey, Vec<&'a AlertView>>,
}

impl<'a> Standing<'a> {
    pub(super) fn new(snapshot: &'a FleetSnapshot) -> Self {
        let mut alerts: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for alert in &snapshot.alerts {
            if alert.phase != AlertPhase::Resolved {
                alerts.entry(&alert.state.route).or_default().push(alert);
            }
        }
        Self { alerts }
    }

    fn alerts_of(&self, view: &RouteView) -> &[&'a AlertView] {
        self.alerts.get(&view.route).map_or(&[], Vec::as_slice)
    }

    /// Whether an alert fires, or is about to.
    pub(super) fn alerts_on(&self, view: &RouteView) -> bool {
        !self.alerts_of(view).is_empty()
    }

    /// Rules that fire, or are about to, where the row does not say why already.
    pub(super) fn rules_of(&self, view: &RouteView) -> Vec<String> {
        if view.mode.reason().is_some() {
            return Vec::new();
        }
        let rules = self.alerts_of(view).iter().map(|a| {
            let rule = a.state.rule.as_str();
            match a.phase {
                AlertPhase::Pending => format!("{rule} pending"),
                AlertPhase::Firing | AlertPhase::Resolved => rule.to_owned(),
            }
        });
        rules.collect()
    }

    /// A route's place in the order. Figures that change every second are not in it, so that rows
    /// stay where they are while nothing happens.
    pub(super) fn rank_of(&self, view: &RouteView) -> u8 {
        let alert = |phase| self.alerts_of(view).iter().any(|a| a.phase == phase);
        match view.mode {
            Mode::Off(OffReason::KillSwitch) => rank::KILLED,
            Mode::Off(OffReason::Policy) => rank::CALM,
            Mode::Off(_) => rank::FAULT,
            Mode::Probing(_) => rank::PROBING,
            _ if alert(AlertPhase::Firing) => rank::FAULT,
            _ if alert(AlertPhase::Pending)
                || !view.refusals.is_empty()
                || view.replicas.iter().any(|r| r.named.is_some()) =>
            {
                rank::WARN
            }
            _ if view.figures.is_none() || view.words.starts_with("no effect") => rank::DULL,
            Mode::Observing | Mode::On => rank::CALM,
        }
    }
}

/// The line above the table.
#[derive(Debug, Template)]
#[template(path = "parts/needs.html")]
pub(super) struct Needs {
    items: Vec<Need>,
    more: usize,
    calm: String,
}

impl HtmlSafe for Needs {}

#[derive(Debug)]
struct Need {
    class: &'static str,
    glyph: &'static str,
    head: String,
    words: String,
    address: String,
}

/// More than these are told by their number only: the table below has them all.
const NEEDS_SHOWN: usize = 5;

impl Needs {
    pub(super) fn new(snapshot: &FleetSnapshot) -> Self {
        let mut items = Vec::new();
        alerts(snapshot, &mut items);
        stuck(snapshot, &mut items);
        kills(snapshot, &mut items);
        agents(snapshot, &mut items);
        refusals(snapshot, &mut items);
        let more = items.len().saturating_sub(NEEDS_SHOWN);
        items.truncate(NEEDS_SHOWN);
        Self {
            items,
            more,
            calm: calm_words(snapshot),
        }
    }
}

/// Alerts that nobody has taken on yet, and how many there are besides.
fn alerts(snapshot: &FleetSnapshot, items: &mut Vec<Need>) {
    let firing: Vec<_> = snapshot
        .alerts
        .iter()
        .filter(|a| a.phase == AlertPhase::Firing)
        .collect();
    let shared: BTreeSet<&RouteKey> = firing
        .iter()
        .filter(|a| a.state.rule == AlertRule::SharedSlowdown)
        .map(|a| &a.state.route)
        .collect();
    let mut taken = 0;
    for alert in firing {
        // A shared slowdown is why it is off: told once.
        if alert.state.rule == AlertRule::HedgingDisabled && shared.contains(&alert.state.route) {
            continue;
        }
        if alert.silenced.is_some() || alert.acknowledged.is_some() {
            taken += 1;
            continue;
        }
        items.push(Need {
            class: "bad",
            glyph: "▲",
            head: format!("{} {}", alert.state.rule.as_str(), alert.state.route),
            words: alert.state.summary.clone(),
            address: route_address(&alert.state.route),
        });
    }
    if taken > 0 {
        items.push(Need {
            class: "quiet",
            glyph: "–",
            head: format!("{taken} alert{}", if taken == 1 { "" } else { "s" }),
            words: "acknowledged or silenced".into(),
            address: "/alerts".into(),
        });
    }
}

fn stuck(snapshot: &FleetSnapshot, items: &mut Vec<Need>) {
    let stuck = snapshot
        .routes
        .values()
        .filter(|view| view.mode == Mode::Off(OffReason::TooManyChanges));
    for view in stuck {
        items.push(Need {
            class: "bad",
            glyph: "■",
            head: view.route.to_string(),
            words: "changed too often by itself and stays off until a person releases it".into(),
            address: route_address(&view.route),
        });
    }
}

fn kills(snapshot: &FleetSnapshot, items: &mut Vec<Need>) {
    for kill in snapshot.kills.iter().filter(|k| k.state.engaged) {
        let (what, address) = match &kill.state.scope {
            KillScope::Everything => ("everything".to_owned(), "/kill".to_owned()),
            KillScope::Dependency(name) => (name.to_string(), kill_address(name)),
        };
        items.push(Need {
            class: "warn",
            glyph: "✕",
            head: format!("Kill switch on {what}"),
            words: format!(
                "by {}: {} (acked {} of {})",
                kill.state.actor.name, kill.state.reason, kill.acked.n, kill.acked.m
            ),
            address,
        });
    }
}

fn agents(snapshot: &FleetSnapshot, items: &mut Vec<Need>) {
    let in_state = |state| snapshot.agents.iter().filter(|a| a.state == state).count();
    for (state, words) in [
        (AgentState::Stale, "attached but silent for two heartbeats"),
        (
            AgentState::Lost,
            "gone without a goodbye; they fall back to a small budget of their own",
        ),
    ] {
        let n = in_state(state);
        if n > 0 {
            items.push(Need {
                class: "warn",
                glyph: "◐",
                head: if n == 1 {
                    "1 agent".into()
                } else {
                    format!("{n} agents")
                },
                words: words.into(),
                address: "/agents".into(),
            });
        }
    }
}

fn refusals(snapshot: &FleetSnapshot, items: &mut Vec<Need>) {
    for view in snapshot.routes.values() {
        if let Some((_, reason)) = view.refusals.first() {
            items.push(Need {
                class: "warn",
                glyph: "◐",
                head: view.route.to_string(),
                words: format!(
                    "{} agents refused the newest directive: {reason}",
                    view.refusals.len()
                ),
                address: route_address(&view.route),
            });
        }
    }
}

/// What to say where nothing needs a person.
fn calm_words(snapshot: &FleetSnapshot) -> String {
    let hedging = snapshot
        .routes
        .values()
        .filter(|v| v.mode == Mode::On)
        .count();
    let observing = snapshot
        .routes
        .values()
        .filter(|v| v.mode == Mode::Observing)
        .count();
    let s = if hedging == 1 { "" } else { "s" };
    format!("{hedging} route{s} hedging, {observing} observing")
}
