//! Alerts: what fires, since when, whether anybody was told, and who works on it.

pub(crate) mod acts;
mod silences;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use askama::filters::HtmlSafe;
use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use hedgerow_core::view::{AlertPhase, AlertView, FleetSnapshot};

use super::frame::Frame;
use super::state::{Badge, route_address};
use crate::assets::short_id;
use crate::backend::{Backend, Delivery, Role};
use crate::format::{Time, span, url_part};
use crate::fragment::{Fragment, html};
use crate::guard::Viewer;
use crate::router::App;
use silences::{SilenceForm, Silences};

/// Notices read for those of earlier alerts; older ones are in the store only.
const DELIVERIES: u32 = 200;
/// Alerts of one group that are shown; further ones are told by number.
const SHOWN: usize = 100;

/// Groups, in their order: what nobody has taken on yet comes first.
const GROUPS: [(Group, &str, &str); 5] = [
    (Group::Firing, "Firing", "g-firing"),
    (Group::Pending, "Pending", "g-pending"),
    (Group::Acknowledged, "Acknowledged", "g-acknowledged"),
    (Group::Silenced, "Silenced", "g-silenced"),
    (Group::Resolved, "Resolved in the last hour", "g-resolved"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Firing,
    Pending,
    Acknowledged,
    Silenced,
    Resolved,
}

impl Group {
    fn of(alert: &AlertView) -> Self {
        match alert.phase {
            AlertPhase::Resolved => Self::Resolved,
            _ if alert.silenced.is_some() => Self::Silenced,
            _ if alert.acknowledged.is_some() => Self::Acknowledged,
            AlertPhase::Pending => Self::Pending,
            AlertPhase::Firing => Self::Firing,
        }
    }
}

#[derive(Debug, Template)]
#[template(path = "parts/alerts.html")]
pub(crate) struct AlertList {
    groups: Vec<AlertGroup>,
    silences: Silences,
    /// Notices about episodes that ended longer ago than the list above reaches.
    older: Vec<DeliveryRow>,
    problem: Option<String>,
    can_act: bool,
}

impl HtmlSafe for AlertList {}

#[derive(Debug)]
struct AlertGroup {
    id: &'static str,
    title: &'static str,
    count: usize,
    more: usize,
    alerts: Vec<AlertRow>,
}

#[derive(Debug)]
struct AlertRow {
    /// Of its elements.
    id: String,
    episode: String,
    badge: Badge,
    tone: &'static str,
    rule: &'static str,
    dependency: String,
    operation: String,
    address: String,
    /// Its charts, at that time.
    chart: String,
    /// The form of a silence that is to hold more than this one.
    wider: String,
    replica: Option<String>,
    summary: String,
    since: Time,
    lasted: String,
    resolved: Option<Time>,
    acknowledged: Option<Acknowledged>,
    silenced: Option<u64>,
    /// Whether it can be silenced and acknowledged.
    open: bool,
    deliveries: Vec<DeliveryRow>,
}

#[derive(Debug)]
struct Acknowledged {
    by: String,
    at: Time,
    until: Option<Time>,
    comment: String,
}

#[derive(Debug)]
struct DeliveryRow {
    alert: String,
    receiver: String,
    kind: String,
    badge: Badge,
    attempts: u32,
    error: Option<String>,
    at: Time,
    done: Option<Time>,
}

impl DeliveryRow {
    fn new(d: &Delivery, snapshot: &FleetSnapshot) -> Self {
        Self {
            alert: d.alert.clone(),
            receiver: d.receiver.clone(),
            kind: d.kind.clone(),
            badge: match d.state.as_str() {
                "delivered" => Badge::new("on", "delivered"),
                "given_up" => Badge::new("off", "given up"),
                _ => Badge::new("probing", "waiting"),
            },
            attempts: d.attempts,
            error: d.last_error.clone(),
            at: Time::near(d.at, snapshot.at),
            done: d.done.map(|at| Time::near(at, snapshot.at)),
        }
    }
}

impl AlertRow {
    fn new(a: &AlertView, deliveries: &[&Delivery], snapshot: &FleetSnapshot) -> Self {
        let (badge, tone) = match a.phase {
            AlertPhase::Firing => (Badge::new("off", "firing"), "bad"),
            AlertPhase::Pending => (Badge::new("probing", "pending"), "warn"),
            AlertPhase::Resolved => (Badge::new("on", "resolved"), "ok"),
        };
        let taken = a.silenced.is_some() || a.acknowledged.is_some();
        let end = a.state.resolved.unwrap_or(snapshot.at);
        let address = route_address(&a.state.route);
        Self {
            id: format!("a-{}", short_id(&a.state.id)),
            episode: a.state.id.clone(),
            badge,
            tone: if taken { "quiet" } else { tone },
            rule: a.state.rule.as_str(),
            dependency: a.state.route.dependency.to_string(),
            operation: a.state.route.operation.to_string(),
            chart: format!("{address}?at={}#charts", a.state.since.as_millis()),
            address,
            wider: format!(
                "/alerts?rule={}&dependency={}#new-silence",
                a.state.rule.as_str(),
                url_part(a.state.route.dependency.as_str())
            ),
            replica: a.state.replica.clone(),
            summary: a.state.summary.clone(),
            since: Time::near(a.state.since, snapshot.at),
            lasted: span(end.since(a.state.since)),
            resolved: a.state.resolved.map(|at| Time::near(at, snapshot.at)),
            acknowledged: a.acknowledged.as_ref().map(|it| Acknowledged {
                by: it.actor.name.clone(),
                at: Time::near(it.at, snapshot.at),
                until: it.until.map(|at| Time::near(at, snapshot.at)),
                comment: it.comment.clone(),
            }),
            silenced: a.silenced.map(|it| it.0),
            open: a.phase != AlertPhase::Resolved,
            deliveries: deliveries
                .iter()
                .map(|d| DeliveryRow::new(d, snapshot))
                .collect(),
        }
    }

    fn route(&self) -> String {
        format!("{} {}", self.dependency, self.operation)
    }
}

/// Alerts, group by group, the newest first.
fn in_order(snapshot: &FleetSnapshot) -> Vec<&AlertView> {
    let mut views: Vec<&AlertView> = snapshot.alerts.iter().collect();
    views.sort_by_key(|a| (Group::of(a), Reverse(a.state.since)));
    views
}

fn of_group<'a>(views: &[&'a AlertView], group: Group) -> impl Iterator<Item = &'a AlertView> {
    views.iter().copied().filter(move |a| Group::of(a) == group)
}

impl AlertList {
    async fn load<B: Backend>(backend: &B, snapshot: &FleetSnapshot, can_act: bool) -> Self {
        let views = in_order(snapshot);
        let shown: Vec<&str> = GROUPS
            .iter()
            .flat_map(|&(group, ..)| of_group(&views, group).take(SHOWN))
            .map(|a| a.state.id.as_str())
            .collect();
        // By themselves: what others were told since must not push theirs out.
        let own = backend.deliveries_of(&shown).await;
        let newest = backend.deliveries(DELIVERIES).await;
        let (mut own, newest, problem) = match (own, newest) {
            (Ok(own), Ok(newest)) => (own, newest, None),
            (Err(problem), _) | (_, Err(problem)) => {
                (Vec::new(), Vec::new(), Some(problem.to_string()))
            }
        };
        own.reverse();
        let mut list = Self::new(snapshot, &views, &own, can_act);
        let known: BTreeSet<&str> = views.iter().map(|a| a.state.id.as_str()).collect();
        list.older = newest
            .iter()
            .filter(|d| !known.contains(d.alert.as_str()))
            .map(|d| DeliveryRow::new(d, snapshot))
            .collect();
        list.problem = problem;
        list
    }

    fn new(
        snapshot: &FleetSnapshot,
        views: &[&AlertView],
        deliveries: &[Delivery],
        can_act: bool,
    ) -> Self {
        let mut told: BTreeMap<&str, Vec<&Delivery>> = BTreeMap::new();
        for delivery in deliveries {
            told.entry(delivery.alert.as_str())
                .or_default()
                .push(delivery);
        }
        let groups = GROUPS.iter().map(|&(group, title, id)| {
            let mine: Vec<_> = of_group(views, group).collect();
            let rows = mine.iter().take(SHOWN).map(|a| {
                let told = told.get(a.state.id.as_str()).map_or(&[][..], Vec::as_slice);
                AlertRow::new(a, told, snapshot)
            });
            AlertGroup {
                id,
                title,
                count: mine.len(),
                more: mine.len().saturating_sub(SHOWN),
                alerts: rows.collect(),
            }
        });
        let groups = groups.filter(|group| group.count > 0).collect();
        Self {
            groups,
            silences: Silences::new(snapshot, can_act),
            older: Vec::new(),
            problem: None,
            can_act,
        }
    }
}

#[derive(Debug, Template)]
#[template(path = "alerts.html", blocks = ["page"])]
struct AlertsPage {
    frame: Frame,
    list: AlertList,
    form: SilenceForm,
    /// Why an act was not done.
    problem: Option<String>,
}

fn can_act(viewer: &Viewer) -> bool {
    viewer.operator.role >= Role::Operator
}

async fn show<B: Backend>(
    app: &App<B>,
    viewer: &Viewer,
    form: SilenceForm,
    problem: Option<(StatusCode, String)>,
) -> Response {
    let snapshot = app.backend.snapshot();
    let (status, problem) = problem.map_or((StatusCode::OK, None), |(s, p)| (s, Some(p)));
    let page = AlertsPage {
        frame: Frame::new("Alerts", "alerts", viewer, &snapshot, "page=alerts"),
        list: AlertList::load(&app.backend, &snapshot, can_act(viewer)).await,
        form,
        problem,
    };
    html(status, &page)
}

/// GET /alerts
pub(crate) async fn page<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    Query(form): Query<SilenceForm>,
) -> Response {
    show(&app, &viewer, form, None).await
}

/// The page's parts for an open stream.
pub(crate) async fn fragments<B: Backend>(
    backend: &B,
    snapshot: &FleetSnapshot,
    viewer: &Viewer,
) -> Vec<Fragment> {
    vec![Fragment::inner(
        "alertlist",
        &AlertList::load(backend, snapshot, can_act(viewer)).await,
    )]
}
