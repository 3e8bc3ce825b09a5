//! The overview: what needs a person, then a row for each route, worst first.

mod row;
mod worth;

use std::fmt;

use askama::Template;
use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use hedgerow_core::view::FleetSnapshot;
use hedgerow_protocol::ids::RouteKey;
use serde::Deserialize;

use super::frame::Frame;
use super::state::policy_address;
use crate::backend::Backend;
use crate::format::{count, url_part};
use crate::fragment::{Fragment, Partial, html};
use crate::guard::Viewer;
use crate::router::App;
use row::Row;
use worth::{Needs, rank};

/// Filter and sort, as they stand in the address.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct OverviewQuery {
    pub(crate) q: String,
    pub(crate) sort: String,
}

/// What rows can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Worst,
    Name,
    Calls,
    Success,
    P99,
    HedgeRate,
    WinRate,
}

impl Sort {
    const ALL: [Self; 7] = [
        Self::Worst,
        Self::Name,
        Self::Calls,
        Self::Success,
        Self::P99,
        Self::HedgeRate,
        Self::WinRate,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Worst => "worst",
            Self::Name => "name",
            Self::Calls => "calls",
            Self::Success => "success",
            Self::P99 => "p99",
            Self::HedgeRate => "hedge-rate",
            Self::WinRate => "win-rate",
        }
    }

    /// Anything unknown is the default: an old bookmark still opens.
    fn parse(text: &str) -> Self {
        Self::ALL
            .into_iter()
            .find(|s| s.as_str() == text)
            .unwrap_or(Self::Worst)
    }
}

impl fmt::Display for Sort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The part of the overview that is a picture of the fleet.
#[derive(Debug, Template)]
#[template(path = "parts/fleet.html")]
pub(crate) struct Overview {
    needs: Needs,
    rows: Vec<Row>,
    all: usize,
    agents: usize,
    /// Dependencies with a policy that no agent has reported yet.
    waiting: Vec<(String, String)>,
    q: String,
    sort: Sort,
    heads: Vec<Head>,
    /// Why there are no rows, where nothing has reported yet.
    quiet: bool,
}

/// A heading one can sort by.
#[derive(Debug)]
struct Head {
    label: &'static str,
    unit: &'static str,
    address: Option<String>,
    sorted: bool,
    numeric: bool,
    explain: &'static str,
}

impl askama::filters::HtmlSafe for Overview {}

impl Overview {
    /// Filters and sorts.
    pub(crate) fn new(snapshot: &FleetSnapshot, query: &OverviewQuery) -> Self {
        let sort = Sort::parse(&query.sort);
        let mut rows: Vec<Row> = snapshot
            .routes
            .values()
            .map(|view| Row::new(view, snapshot))
            .filter(|row| row.matches(&query.q))
            .collect();
        rows.sort_by(|a, b| {
            a.key(sort)
                .total_cmp(&b.key(sort))
                .then_with(|| a.route.cmp(&b.route))
        });
        let waiting = snapshot
            .policies
            .keys()
            .filter(|name| !snapshot.routes.keys().any(|r| name.covers(r)))
            .map(|name| (name.to_string(), policy_address(name)))
            .collect();
        Self {
            needs: Needs::new(snapshot),
            all: snapshot.routes.len(),
            agents: snapshot.agents.len(),
            quiet: snapshot.routes.is_empty(),
            heads: heads(sort, &query.q),
            q: query.q.clone(),
            sort,
            rows,
            waiting,
        }
    }

    /// The routes shown, in their order.
    pub(crate) fn order(&self) -> Vec<RouteKey> {
        self.rows.iter().map(|row| row.route.clone()).collect()
    }

    /// Whether the same routes are shown, in whatever order, and none moved to a graver place.
    pub(crate) fn same_rows(&self, order: &[RouteKey]) -> bool {
        let mut mine = self.order();
        if self.sort == Sort::Worst {
            return !order.is_empty() && mine == order;
        }
        let mut theirs = order.to_vec();
        mine.sort();
        theirs.sort();
        !theirs.is_empty() && mine == theirs
    }

    /// One for each row, and the line above them.
    pub(crate) fn row_fragments(&self) -> Vec<Fragment> {
        std::iter::once(Fragment::inner("needs", &self.needs))
            .chain(
                self.rows
                    .iter()
                    .map(|row| Fragment::outer(row.id.clone(), row)),
            )
            .collect()
    }

    /// All of it.
    pub(crate) fn fleet_fragment(&self) -> Fragment {
        Fragment::inner("fleet", self)
    }
}

/// Label, unit, what it sorts by, whether it is a number, what it means.
type Column = (&'static str, &'static str, Option<Sort>, bool, &'static str);

const LATENCY: &str = "primaries' own latency";
const HEDGE_RATE: &str = "hedges sent / eligible calls started; thin line: target, thick line: where \
                          a person is called";
const ACKED: &str = "agents that hold what is wanted, of those that report the route";

#[rustfmt::skip]
const COLUMNS: [Column; 13] = [
    ("Dependency", "", Some(Sort::Name), false, "what is called, and which of its methods"),
    ("State and why", "", Some(Sort::Worst), false, "worst first"),
    ("Calls", "/s", Some(Sort::Calls), true, "eligible calls a second"),
    ("Success", "%", Some(Sort::Success), true, "share of ended calls that did not fail"),
    ("p50", "ms", None, true, LATENCY),
    ("p95", "ms", None, true, LATENCY),
    ("p99", "ms", Some(Sort::P99), true, LATENCY),
    ("Hedge rate", "%", Some(Sort::HedgeRate), true, HEDGE_RATE),
    ("Wins", "%", Some(Sort::WinRate), true, "hedges that answered first / hedges sent"),
    ("Extra", "/s", None, true, "hedges sent a second: the load hedging adds"),
    ("Threshold", "ms", None, true, "how long a call stays unanswered before it may be hedged"),
    ("Acked", "n/m", None, true, ACKED),
    ("Last 10 min", "", None, false, "line: p99; area: hedge rate; shaded: hedging off"),
];

fn heads(sort: Sort, q: &str) -> Vec<Head> {
    let address = |by: Sort| {
        if q.is_empty() {
            format!("/?sort={by}")
        } else {
            format!("/?q={}&sort={by}", url_part(q))
        }
    };
    COLUMNS
        .into_iter()
        .map(|(label, unit, by, numeric, explain)| Head {
            label,
            unit,
            sorted: by == Some(sort),
            address: by.map(address),
            numeric,
            explain,
        })
        .collect()
}

#[derive(Debug, Template)]
#[template(path = "overview.html", blocks = ["page"])]
struct OverviewPage {
    frame: Frame,
    overview: Overview,
}

/// GET /
pub(crate) async fn page<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    partial: Partial,
    Query(query): Query<OverviewQuery>,
) -> Response {
    let snapshot = app.backend.snapshot();
    let overview = Overview::new(&snapshot, &query);
    let live = format!(
        "page=overview&q={}&sort={}",
        url_part(&query.q),
        overview.sort
    );
    let frame = Frame::new("Overview", "overview", &viewer, &snapshot, &live);
    let page = OverviewPage { frame, overview };
    if partial.0 {
        html(StatusCode::OK, &page.as_page())
    } else {
        html(StatusCode::OK, &page)
    }
}

/// Words for how many rows the filter leaves.
impl Overview {
    fn shown(&self) -> String {
        if self.q.is_empty() {
            let plural = |n: usize, one: &str| {
                let s = if n == 1 { "" } else { "s" };
                format!("{} {one}{s}", count(n as u64))
            };
            format!(
                "{}, {}",
                plural(self.all, "route"),
                plural(self.agents, "agent")
            )
        } else {
            format!("{} of {} routes", self.rows.len(), self.all)
        }
    }

    /// For the heading's rank class in tests and styles: how grave the first row is.
    fn gravest(&self) -> u8 {
        self.rows
            .iter()
            .map(|row| row.rank)
            .min()
            .unwrap_or(rank::CALM)
    }
}
