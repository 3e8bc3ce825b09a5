//! What surrounds every page: navigation, kill switch, the live pill, the controller's own state.

use askama::Template;
use askama::filters::HtmlSafe;
use hedgerow_core::event::KillScope;
use hedgerow_core::view::{AlertPhase, FleetSnapshot};

use super::state::kill_address;
use crate::assets;
use crate::backend::{Operator, Role};
use crate::format::{Time, count, grouped, significant, span};
use crate::fragment::Fragment;
use crate::guard::Viewer;

/// What `layout.html` needs.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) title: String,
    /// Which entry of the navigation is this page.
    pub(crate) current: &'static str,
    pub(crate) operator: Operator,
    /// The event stream's address.
    pub(crate) live: String,
    /// The id of the element that holds the stream: another one for another address, so that a
    /// page morphed to another filter drops the old stream and opens its own.
    pub(crate) live_id: String,
    pub(crate) kills: Kills,
    pub(crate) alert_count: AlertCount,
    pub(crate) controller: Controller,
    pub(crate) css: &'static str,
    pub(crate) js: &'static str,
    pub(crate) early: &'static str,
    pub(crate) htmx: &'static str,
    pub(crate) icon: &'static str,
}

impl Frame {
    /// `live`: the page's part of the stream's address, as `page=overview&q=`.
    pub(crate) fn new(
        title: impl Into<String>,
        current: &'static str,
        viewer: &Viewer,
        snapshot: &FleetSnapshot,
        live: &str,
    ) -> Self {
        Self {
            title: title.into(),
            current,
            operator: viewer.operator.clone(),
            live: format!("/live?{live}"),
            live_id: format!("live-{}", assets::short_id(live)),
            kills: Kills::new(snapshot),
            alert_count: AlertCount::new(snapshot),
            controller: Controller::new(snapshot),
            css: assets::address("app.css"),
            js: assets::address("app.js"),
            early: assets::address("early.js"),
            htmx: assets::address("vendor/htmx-4.0.1-sse.js"),
            icon: assets::address("icon.svg"),
        }
    }

    pub(crate) fn role(&self) -> &'static str {
        role_name(self.operator.role)
    }

    /// Whether they decide who comes in.
    pub(crate) fn administers(&self) -> bool {
        self.operator.role >= Role::Administrator
    }

    /// The navigation: address, label, whether it is this page, and the key that follows `g`.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let all = [
            ("/", "Overview", "overview", 'o'),
            ("/policies", "Policies", "policies", 'p'),
            ("/agents", "Agents", "agents", 'a'),
            ("/alerts", "Alerts", "alerts", 'l'),
            ("/receivers", "Receivers", "receivers", 'v'),
            ("/record", "Record", "record", 'r'),
            ("/controller", "Controller", "controller", 'c'),
            ("/access", "Access", "access", 'x'),
        ];
        all.into_iter()
            .filter(|(_, _, page, _)| *page != "access" || self.administers())
            .map(|(address, label, page, key)| Entry {
                address,
                label,
                key,
                here: page == self.current,
            })
            .collect()
    }
}

/// A page in the navigation.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) address: &'static str,
    pub(crate) label: &'static str,
    pub(crate) key: char,
    pub(crate) here: bool,
}

/// A role's name, in pages and forms.
pub(crate) const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Viewer => "viewer",
        Role::Operator => "operator",
        Role::Editor => "editor",
        Role::Administrator => "administrator",
    }
}

/// The parts of the frame that change by themselves.
pub(crate) fn fragments(snapshot: &FleetSnapshot) -> Vec<Fragment> {
    vec![
        Fragment::inner("kills", &Kills::new(snapshot)),
        Fragment::inner("alert-count", &AlertCount::new(snapshot)),
        Fragment::inner("controller", &Controller::new(snapshot)),
    ]
}

/// Engaged kill switches, as a bar under the header.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/kills.html")]
pub(crate) struct Kills {
    engaged: Vec<Engaged>,
    /// Engaged ones besides.
    more: usize,
}

/// Engaged switches told on every page; of further ones their number, with a way to them.
const KILLS_SHOWN: usize = 5;

impl HtmlSafe for Kills {}

#[derive(Debug, Clone)]
struct Engaged {
    what: String,
    by: String,
    reason: String,
    since: Time,
    acked: u64,
    of: u64,
    address: String,
}

impl Kills {
    fn new(snapshot: &FleetSnapshot) -> Self {
        let all = || snapshot.kills.iter().filter(|k| k.state.engaged);
        let more = all().count().saturating_sub(KILLS_SHOWN);
        // The one over everything is the first of them.
        let engaged = all()
            .take(KILLS_SHOWN)
            .map(|k| Engaged {
                what: match &k.state.scope {
                    KillScope::Everything => "all dependencies".into(),
                    KillScope::Dependency(name) => name.to_string(),
                },
                by: k.state.actor.name.clone(),
                reason: k.state.reason.clone(),
                since: Time::near(k.state.at, snapshot.at),
                acked: k.acked.n,
                of: k.acked.m,
                address: match &k.state.scope {
                    KillScope::Everything => "/kill".into(),
                    KillScope::Dependency(name) => kill_address(name),
                },
            })
            .collect();
        Self { engaged, more }
    }
}

/// How many alerts fire that nobody has taken on, beside the navigation's word.
#[derive(Debug, Clone, Copy, Template)]
#[template(
    ext = "html",
    source = r#"{% if firing > 0 %}<span class="count">{{ firing }}<span class="sr"> firing</span></span>{% endif %}"#
)]
pub(crate) struct AlertCount {
    firing: usize,
}

impl HtmlSafe for AlertCount {}

impl AlertCount {
    fn new(snapshot: &FleetSnapshot) -> Self {
        Self {
            firing: snapshot
                .alerts
                .iter()
                .filter(|a| a.phase == AlertPhase::Firing)
                .filter(|a| a.silenced.is_none() && a.acknowledged.is_none())
                .count(),
        }
    }
}

/// The controller itself, at every page's foot.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/controller.html")]
pub(crate) struct Controller {
    at: Time,
    up: String,
    agents: String,
    reports_per_s: String,
    reports: String,
    took: String,
    refused: u64,
    duplicate: u64,
    undecodable: u64,
    pending: u64,
    problem: Option<String>,
    beyond_cap: u64,
    epoch: u64,
    tick: String,
}

impl HtmlSafe for Controller {}

impl Controller {
    fn new(snapshot: &FleetSnapshot) -> Self {
        let c = &snapshot.controller;
        let took_ms = c.tick_took.as_secs_f64() * 1e3;
        Self {
            at: Time::full(snapshot.at),
            up: span(snapshot.at.since(snapshot.started)),
            agents: count(snapshot.agents.len() as u64),
            reports_per_s: significant(c.reports_per_s),
            reports: grouped(c.reports),
            took: significant(took_ms),
            refused: c.reports_refused,
            duplicate: c.reports_duplicate,
            undecodable: c.undecodable,
            pending: c.writes_pending,
            problem: c.write_problem.clone(),
            beyond_cap: c.routes_beyond_cap,
            epoch: snapshot.epoch.0,
            tick: grouped(snapshot.tick),
        }
    }
}
