//! Agents: what each holds against what it should hold, and how it stands.

use askama::Template;
use askama::filters::HtmlSafe;
use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use hedgerow_core::view::{AgentRouteView, AgentState, AgentView, FleetSnapshot, Sync};
use serde::Deserialize;

use super::frame::Frame;
use super::state::{Badge, route_address};
use crate::assets::short_id;
use crate::backend::Backend;
use crate::format::{Figure, Time, percent, significant, span, url_part};
use crate::fragment::{Fragment, Partial, html};
use crate::guard::Viewer;
use crate::router::App;

/// Rows on the page; those in trouble come first, the filter finds the rest.
const SHOWN: usize = 200;
/// A wall clock further off than this is worth saying, milliseconds.
const SKEW_NOTABLE_MS: i64 = 2_000;

/// The filter, as it stands in the address.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AgentsQuery {
    pub(crate) q: String,
}

#[derive(Debug, Template)]
#[template(path = "parts/agents.html")]
pub(crate) struct AgentList {
    rows: Vec<AgentRow>,
    matching: usize,
    all: usize,
    summary: String,
    q: String,
}

impl HtmlSafe for AgentList {}

#[derive(Debug)]
struct AgentRow {
    id: String,
    service: String,
    instance: String,
    short: String,
    zone: String,
    version: String,
    peer: String,
    badge: Badge,
    tone: &'static str,
    grave: u8,
    connected: Time,
    heard: String,
    reported: Figure,
    skew: Figure,
    refused: u64,
    last_refusal: String,
    duplicate: u64,
    sync: String,
    in_sync: bool,
    routes: Vec<AgentRoute>,
}

#[derive(Debug)]
struct AgentRoute {
    name: String,
    address: String,
    mode: Badge,
    own_off: bool,
    held: String,
    wanted: String,
    sync: String,
    applied: bool,
    threshold: Figure,
    budget: String,
    tokens: String,
    link: &'static str,
    replicas: u32,
}

impl AgentRoute {
    fn new(r: &AgentRouteView) -> Self {
        Self {
            name: r.route.to_string(),
            address: route_address(&r.route),
            mode: Badge::mode(r.mode),
            own_off: r.own_off,
            held: r.held.to_string(),
            wanted: r.wanted.to_string(),
            applied: r.sync == Sync::Applied,
            sync: match &r.sync {
                Sync::Applied => "applied".into(),
                Sync::Pending => "pending".into(),
                Sync::Refused(reason) => format!("refused: {reason}"),
            },
            threshold: Figure::millis(r.threshold, "no threshold yet"),
            budget: percent(r.budget),
            tokens: significant(r.tokens),
            link: r.link.as_str(),
            replicas: r.replicas,
        }
    }
}

impl AgentRow {
    fn new(a: &AgentView, snapshot: &FleetSnapshot) -> Self {
        let applied = a.routes.iter().filter(|r| r.sync == Sync::Applied).count();
        let refused = a.routes.iter().any(|r| matches!(r.sync, Sync::Refused(_)));
        let (badge, tone, mut grave) = match a.state {
            AgentState::Live => (Badge::new("on", "live"), "ok", 4),
            AgentState::Stale => (Badge::new("probing", "stale"), "warn", 1),
            AgentState::Lost => (Badge::new("off", "lost"), "bad", 0),
            AgentState::Left => (Badge::new("quiet", "left"), "quiet", 5),
        };
        if refused || a.refused_reports > 0 {
            grave = grave.min(2);
        } else if applied < a.routes.len() {
            grave = grave.min(3);
        }
        Self {
            id: format!(
                "a-{}",
                short_id(&format!("{} {}", a.instance, a.connection.0))
            ),
            service: a.service.to_string(),
            // The random end tells instances apart; the beginning is the time they were made.
            short: a
                .instance
                .to_string()
                .rsplit('-')
                .next()
                .unwrap_or_default()
                .to_owned(),
            instance: a.instance.to_string(),
            zone: a
                .zone
                .as_ref()
                .map_or_else(|| "–".into(), ToString::to_string),
            version: a.version.clone(),
            peer: a.peer.clone(),
            badge,
            tone,
            grave,
            connected: Time::near(a.connected, snapshot.at),
            heard: span(snapshot.at.since(a.heard)),
            reported: a.reported.map_or_else(
                || Figure::none("no report yet"),
                |at| {
                    let ago = span(snapshot.at.since(at));
                    Figure::new(ago, crate::format::date(at))
                },
            ),
            skew: skew(a.skew_ms),
            refused: a.refused_reports,
            last_refusal: a.last_refusal.clone().unwrap_or_default(),
            duplicate: a.duplicate_reports,
            sync: format!("{applied}/{}", a.routes.len()),
            in_sync: applied == a.routes.len(),
            routes: a.routes.iter().map(AgentRoute::new).collect(),
        }
    }

    fn matches(&self, q: &str) -> bool {
        let mut text = format!(
            "{} {} {} {} {} {}",
            self.service, self.instance, self.zone, self.version, self.peer, self.badge
        );
        for route in &self.routes {
            text.push(' ');
            text.push_str(&route.name);
            text.push(' ');
            text.push_str(&route.sync);
        }
        let text = text.to_ascii_lowercase();
        q.to_ascii_lowercase()
            .split_whitespace()
            .all(|word| text.contains(word))
    }
}

/// Clock skew: seconds, or a dash where the agent does not say.
fn skew(ms: Option<i64>) -> Figure {
    match ms {
        None => Figure::none("the agent has not told its time"),
        Some(ms) if ms.abs() < SKEW_NOTABLE_MS => Figure::new("0", format!("{ms} ms")),
        Some(ms) => Figure::new(
            format!("{:+.0}", ms as f64 / 1000.0),
            format!("{ms} ms; shown only, nothing is decided by it"),
        ),
    }
}

impl AgentList {
    fn new(snapshot: &FleetSnapshot, query: &AgentsQuery) -> Self {
        let mut rows: Vec<AgentRow> = snapshot
            .agents
            .iter()
            .map(|a| AgentRow::new(a, snapshot))
            .filter(|row| row.matches(&query.q))
            .collect();
        rows.sort_by(|a, b| {
            (a.grave, &a.service, &a.instance).cmp(&(b.grave, &b.service, &b.instance))
        });
        let matching = rows.len();
        rows.truncate(SHOWN);
        Self {
            rows,
            matching,
            all: snapshot.agents.len(),
            summary: summary(snapshot),
            q: query.q.clone(),
        }
    }
}

/// `198 live, 2 stale`.
fn summary(snapshot: &FleetSnapshot) -> String {
    let states = [
        (AgentState::Live, "live"),
        (AgentState::Stale, "stale"),
        (AgentState::Lost, "lost"),
        (AgentState::Left, "left"),
    ];
    states
        .into_iter()
        .filter_map(|(state, word)| {
            let n = snapshot.agents.iter().filter(|a| a.state == state).count();
            (n > 0).then(|| format!("{n} {word}"))
        })
        .collect::<Vec<_>>()
        .join(", ")
}

#[derive(Debug, Template)]
#[template(path = "agents.html", blocks = ["page"])]
struct AgentsPage {
    frame: Frame,
    list: AgentList,
}

/// GET /agents
pub(crate) async fn page<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    partial: Partial,
    Query(query): Query<AgentsQuery>,
) -> Response {
    let snapshot = app.backend.snapshot();
    let live = format!("page=agents&q={}", url_part(&query.q));
    let page = AgentsPage {
        frame: Frame::new("Agents", "agents", &viewer, &snapshot, &live),
        list: AgentList::new(&snapshot, &query),
    };
    if partial.0 {
        html(StatusCode::OK, &page.as_page())
    } else {
        html(StatusCode::OK, &page)
    }
}

/// The page's parts for an open stream.
pub(crate) fn fragments(snapshot: &FleetSnapshot, query: &AgentsQuery) -> Vec<Fragment> {
    vec![Fragment::inner(
        "agentlist",
        &AgentList::new(snapshot, query),
    )]
}
