//! The overview: what needs a person, then a row for each route, worst first.

mod query;
mod row;
mod rows;
mod start;
mod turns;
mod worth;

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use hedgerow_core::view::FleetSnapshot;

use super::frame::Frame;
use crate::backend::Backend;
use crate::format::{count, grouped};
use crate::fragment::{Fragment, Partial, When, html};
use crate::guard::Viewer;
use crate::router::App;
pub(crate) use query::OverviewQuery;
use query::{Sort, StateFilter};
use row::Rendered;
pub(crate) use rows::RowCache;
use rows::Rows;
pub(crate) use start::Start;
use turns::{Now, Turns};
use worth::rank;

/// Rows in one message of a stream: a browser works through so many well within a frame or three,
/// and may draw in between.
const ROWS_AT_ONCE: usize = 20;
/// Up to so many rows a page that was away is sent its table whole; beyond, row by row.
const WHOLE_UP_TO: usize = 100;
/// A page rendered so many decisions ago at most shows what is sent in turn anyway.
const FRESH_TICKS: u64 = 5;

/// The part of the overview that is a picture of the fleet.
#[derive(Debug, Template)]
#[template(path = "parts/fleet.html")]
pub(crate) struct Overview {
    all: Arc<Rows>,
    /// What the filter leaves, in order.
    rows: Vec<Arc<Rendered>>,
    query: OverviewQuery,
    sort: Sort,
    heads: Vec<Head>,
    start: Start,
}

/// A heading one can sort by.
#[derive(Debug)]
struct Head {
    label: &'static str,
    unit: &'static str,
    address: Option<String>,
    sorted: Option<&'static str>,
    numeric: bool,
    explain: &'static str,
}

impl askama::filters::HtmlSafe for Overview {}

impl Overview {
    /// Filters and sorts.
    pub(crate) fn new(all: Arc<Rows>, query: &OverviewQuery, start: Start) -> Self {
        let sort = query.order();
        let states = query.states();
        let mut rows: Vec<Arc<Rendered>> = all
            .rows
            .iter()
            .filter(|row| row.matches(&query.q, states))
            .cloned()
            .collect();
        rows.sort_by(|a, b| {
            a.key(sort)
                .total_cmp(&b.key(sort))
                .then_with(|| a.route.cmp(&b.route))
        });
        Self {
            heads: heads(query, sort),
            query: query.clone(),
            all,
            rows,
            sort,
            start,
        }
    }

    /// Nothing has reported yet.
    fn quiet(&self) -> bool {
        self.all.rows.is_empty()
    }

    /// The rows' ids, in order.
    fn order(&self) -> String {
        let ids: Vec<&str> = self.rows.iter().map(|row| row.id.as_str()).collect();
        ids.join(" ")
    }

    fn now(&self) -> Vec<Now<'_>> {
        self.rows
            .iter()
            .map(|row| Now {
                id: &row.id,
                gist: row.gist,
                hash: row.hash,
            })
            .collect()
    }

    /// Words for how many rows the filter leaves.
    fn shown(&self) -> String {
        let plural = |n: usize, one: &str| {
            let s = if n == 1 { "" } else { "s" };
            format!("{} {one}{s}", count(n as u64))
        };
        let all = self.all.rows.len();
        if self.rows.len() == all {
            let agents = plural(self.all.agents, "agent");
            format!("{}, {agents}", plural(all, "route"))
        } else {
            let (some, all) = (grouped(self.rows.len() as u64), grouped(all as u64));
            format!("{some} of {all} routes")
        }
    }

    /// For the heading's rank class in tests and styles: how grave the first row is.
    fn gravest(&self) -> u8 {
        let ranks = self.rows.iter().map(|row| row.rank);
        ranks.min().unwrap_or(rank::CALM)
    }

    fn states(&self) -> Vec<(&'static str, &'static str, bool)> {
        let chosen = self.query.states();
        StateFilter::CHOICES
            .into_iter()
            .map(|(it, words)| (it.as_str(), words, it == chosen))
            .collect()
    }
}

/// An open overview: what it asked for, and what it has been sent.
pub(crate) struct OpenOverview {
    query: OverviewQuery,
    start: Start,
    /// The decision after which the page was rendered.
    rendered: Option<u64>,
    /// The rows' order as the page has it, and whether it shows a table at all; None: not known.
    has: Option<(String, bool)>,
    turns: Turns,
}

impl OpenOverview {
    pub(crate) fn new(query: OverviewQuery, start: Start, rendered: Option<u64>) -> Self {
        Self {
            query,
            start,
            rendered,
            has: None,
            turns: Turns::default(),
        }
    }

    /// What is to be sent now, in messages of their own.
    pub(crate) fn fragments(
        &mut self,
        snapshot: &FleetSnapshot,
        rows: Arc<Rows>,
    ) -> Vec<Vec<Fragment>> {
        let overview = Overview::new(rows, &self.query, self.start.clone());
        let (order, now) = (overview.order(), overview.now());
        let table = !overview.quiet() && !overview.rows.is_empty();
        let fresh = self
            .rendered
            .is_some_and(|tick| snapshot.tick.abs_diff(tick) <= FRESH_TICKS);
        let mut first = vec![
            // Before the rows: the page makes places for those it does not have.
            Fragment::inner_html("order", order.as_str()),
            Fragment::inner_html("shown", overview.shown()),
            Fragment::inner("needs", &overview.all.needs),
        ];
        let few = overview.rows.len() <= WHOLE_UP_TO;
        let whole = match &self.has {
            None if fresh => {
                self.turns.shown(&now);
                false
            }
            None => few,
            Some((before, had)) => *had != table || (few && *before != order),
        };
        self.has = Some((order, table));
        if whole {
            self.turns.all(&now);
            first.push(Fragment::inner("fleet", &overview).when(When::Always));
            return vec![first];
        }
        let picked = self.turns.pick(&now);
        let messages = picked.chunks(ROWS_AT_ONCE).map(|places| {
            let rows = places.iter().map(|place| &overview.rows[*place]);
            rows.map(|row| {
                Fragment::outer_html(row.id.as_str(), row.html.as_str()).when(When::Always)
            })
            .collect()
        });
        std::iter::once(first).chain(messages).collect()
    }
}

/// Label, unit, what it sorts by, whether it is a number, what it means.
type Column = (&'static str, &'static str, Option<Sort>, bool, &'static str);

const LATENCY: &str = "primaries' own latency";
const HEDGE_RATE: &str = "hedges sent / eligible calls started; thin line: target, thick line: where \
                          a person is called";
const ACKED: &str = "agents that hold what is wanted, of those that report the route";
const SPARK: &str = "line: p99; area: hedge rate; shaded: hedging off";

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
    ("Last 15 min", "", None, false, SPARK),
];

fn heads(query: &OverviewQuery, sort: Sort) -> Vec<Head> {
    COLUMNS
        .into_iter()
        .map(|(label, unit, by, numeric, explain)| Head {
            label,
            unit,
            sorted: by.filter(|by| *by == sort).map(Sort::way),
            address: by.map(|by| format!("/?{}", query.address(by))),
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
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let snapshot = app.backend.snapshot();
    let start = Start::new(&app.settings, &headers, &uri);
    let overview = Overview::new(app.rows.of(&snapshot), &query, start);
    let live = format!("page=overview&{}", query.address(overview.sort));
    let mut frame = Frame::new("Overview", "overview", &viewer, &snapshot, &live);
    // Not in the element's id: the same filter is the same stream.
    frame.live = format!("{}&tick={}", frame.live, snapshot.tick);
    let page = OverviewPage { frame, overview };
    if partial.0 {
        html(StatusCode::OK, &page.as_page())
    } else {
        html(StatusCode::OK, &page)
    }
}
