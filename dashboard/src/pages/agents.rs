//! Agents: what each holds against what it should hold, and how it stands. Of thousands only one
//! page is made: filter, order and page stand in the address.

mod row;
mod select;

use askama::Template;
use askama::filters::HtmlSafe;
use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use hedgerow_core::view::{AgentView, FleetSnapshot};
use serde::Deserialize;

use super::frame::Frame;
use crate::backend::Backend;
use crate::format::{grouped, url_part};
use crate::fragment::{Fragment, Partial, html};
use crate::guard::Viewer;
use crate::router::App;
use row::AgentRow;
use select::{Sort, Which};

/// Rows on a page.
const PAGE: usize = 100;

/// Filter, order and page, as they stand in the address.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AgentsQuery {
    /// Words that all have to be found.
    pub(crate) q: String,
    /// See [`Which`].
    pub(crate) state: String,
    /// See [`Sort`].
    pub(crate) sort: String,
    /// Page, from 1 on; 0 is the first too.
    pub(crate) n: usize,
}

impl AgentsQuery {
    /// The address's part after the question mark, without what is usual.
    fn with(&self, sort: &str, state: &str, n: usize) -> String {
        let mut parts = Vec::new();
        for (name, value) in [("q", self.q.as_str()), ("state", state), ("sort", sort)] {
            if !value.is_empty() {
                parts.push(format!("{name}={}", url_part(value)));
            }
        }
        if n > 1 {
            parts.push(format!("n={n}"));
        }
        parts.join("&")
    }

    fn address(&self, sort: &str, state: &str, n: usize) -> String {
        match self.with(sort, state, n).as_str() {
            "" => "/agents".into(),
            query => format!("/agents?{query}"),
        }
    }
}

#[derive(Debug, Template)]
#[template(path = "parts/agents.html")]
pub(crate) struct AgentList {
    rows: Vec<AgentRow>,
    columns: Vec<Column>,
    counts: Vec<Count>,
    all: usize,
    matching: usize,
    /// As `101 to 200 of 9 876`.
    shown: String,
    pager: Vec<(&'static str, String)>,
    q: String,
}

impl HtmlSafe for AgentList {}

/// A column's heading, by which rows can be put in order.
#[derive(Debug)]
struct Column {
    label: &'static str,
    unit: &'static str,
    title: &'static str,
    numeric: bool,
    href: String,
    current: bool,
}

/// How many agents stand so, and the address of these.
#[derive(Debug)]
struct Count {
    words: String,
    href: String,
    current: bool,
}

impl AgentList {
    fn new(snapshot: &FleetSnapshot, query: &AgentsQuery) -> Self {
        let (which, sort) = (Which::parse(&query.state), Sort::parse(&query.sort));
        let words: Vec<&str> = query.q.split_whitespace().collect();
        let mut found: Vec<&AgentView> = snapshot
            .agents
            .iter()
            .filter(|agent| which.takes(agent) && select::matches(agent, &words))
            .collect();
        sort.apply(&mut found);
        let matching = found.len();
        let last = matching.div_ceil(PAGE).max(1);
        let n = query.n.clamp(1, last);
        let first = (n - 1) * PAGE;
        let rows: Vec<AgentRow> = found
            .iter()
            .skip(first)
            .take(PAGE)
            .map(|agent| AgentRow::new(agent, snapshot))
            .collect();
        Self {
            shown: if matching > PAGE {
                format!(
                    "{} to {} of {}",
                    grouped(first as u64 + 1),
                    grouped((first + rows.len()) as u64),
                    grouped(matching as u64)
                )
            } else {
                format!(
                    "{} of {}",
                    grouped(matching as u64),
                    grouped(snapshot.agents.len() as u64)
                )
            },
            columns: columns(query, sort),
            counts: counts(snapshot, query, which),
            pager: pager(query, n, last),
            rows,
            all: snapshot.agents.len(),
            matching,
            q: query.q.clone(),
        }
    }
}

/// Headings. Those without an order of their own have no link.
fn columns(query: &AgentsQuery, current: Sort) -> Vec<Column> {
    let column = |label, unit, title, numeric, sort: Option<Sort>| Column {
        label,
        unit,
        title,
        numeric,
        href: sort.map_or_else(String::new, |it| {
            query.address(it.as_str(), &query.state, 1)
        }),
        current: sort == Some(current),
    };
    vec![
        column("Service and instance", "", "", false, Some(Sort::Service)),
        column(
            "State",
            "",
            "those in trouble first",
            false,
            Some(Sort::Trouble),
        ),
        column("Zone", "", "", false, Some(Sort::Zone)),
        column("Version", "", "", false, Some(Sort::Version)),
        column("Connected since", "", "", false, Some(Sort::Connected)),
        column("Last report", "ago", "", true, Some(Sort::Reported)),
        column(
            "Holds",
            "",
            "epoch.revision.mode: held, and wanted where that differs",
            false,
            None,
        ),
        column(
            "In sync",
            "",
            "routes on which it holds what is wanted",
            true,
            Some(Sort::Sync),
        ),
        column(
            "Threshold",
            "ms",
            "in force at the agent, over its routes",
            true,
            None,
        ),
        column(
            "Skew",
            "s",
            "its wall clock less the controller's; shown, never used",
            true,
            Some(Sort::Skew),
        ),
        column(
            "Reports dropped",
            "",
            "refused, or left out while in quarantine",
            true,
            Some(Sort::Dropped),
        ),
        column(
            "Twice",
            "",
            "reports received twice and counted once",
            true,
            None,
        ),
    ]
}

/// How many stand in each way, of those there are any of.
fn counts(snapshot: &FleetSnapshot, query: &AgentsQuery, current: Which) -> Vec<Count> {
    Which::ALL
        .into_iter()
        .filter_map(|which| {
            let n = snapshot.agents.iter().filter(|it| which.takes(it)).count();
            (n > 0 || which == current).then(|| Count {
                words: format!("{} {}", grouped(n as u64), which.label()),
                href: query.address(&query.sort, which.as_str(), 1),
                current: which == current,
            })
        })
        .collect()
}

fn pager(query: &AgentsQuery, n: usize, last: usize) -> Vec<(&'static str, String)> {
    let to = |n| query.address(&query.sort, &query.state, n);
    let mut links = Vec::new();
    if n > 1 {
        links.push(("First", to(1)));
        links.push(("Before", to(n - 1)));
    }
    if n < last {
        links.push(("Next", to(n + 1)));
        links.push(("Last", to(last)));
    }
    links
}

#[derive(Debug, Template)]
#[template(path = "agents.html", blocks = ["page"])]
struct AgentsPage {
    frame: Frame,
    list: AgentList,
    state: String,
    sort: String,
}

/// GET /agents?q=&state=&sort=&n=
pub(crate) async fn page<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    partial: Partial,
    Query(query): Query<AgentsQuery>,
) -> Response {
    let snapshot = app.backend.snapshot();
    let live = format!(
        "page=agents&{}",
        query.with(&query.sort, &query.state, query.n)
    );
    let page = AgentsPage {
        frame: Frame::new("Agents", "agents", &viewer, &snapshot, &live),
        list: AgentList::new(&snapshot, &query),
        state: Which::parse(&query.state).as_str().into(),
        sort: Sort::parse(&query.sort).as_str().into(),
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
