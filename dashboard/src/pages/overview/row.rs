//! One route's row.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use askama::Template;
use askama::filters::HtmlSafe;
use hedgerow_core::view::{Acked, Figures, FleetSnapshot, NoData, RouteView};
use hedgerow_protocol::ids::RouteKey;

use super::query::{Sort, StateFilter};
use super::worth::{Standing, rank};
use crate::assets::short_id;
use crate::chart::{Band, Spark, alert_line};
use crate::format::{Figure, percent, significant, span};
use crate::pages::state::{Badge, reason_words, route_address};

/// How far the sparkline reaches back, milliseconds: 60 points, 15 s each.
const SPARK_MS: u64 = 885_000;

#[derive(Debug, Template)]
#[template(path = "parts/row.html")]
struct Row<'a> {
    id: &'a str,
    route: &'a RouteKey,
    rank: u8,
    address: String,
    badge: Badge,
    words: &'a str,
    /// Rules that fire or are about to.
    alerts: &'a [String],
    since: String,
    calls: Figure,
    success: Figure,
    p50: Figure,
    p95: Figure,
    p99: Figure,
    hedge_rate: Figure,
    band: Option<Band>,
    wins: Figure,
    extra: Figure,
    threshold: Figure,
    acked: Acked,
    spark: &'a Drawn,
    no_data: Option<&'static str>,
}

/// A sparkline as it stands in the row; drawn again only when its points change.
#[derive(Debug, Clone)]
pub(super) struct Drawn {
    points: Arc<Vec<hedgerow_core::view::Point>>,
    svg: Option<Arc<str>>,
}

impl Drawn {
    pub(super) fn new(view: &RouteView, before: Option<&Self>) -> Self {
        if let Some(same) = before.filter(|it| Arc::ptr_eq(&it.points, &view.brief)) {
            return same.clone();
        }
        Self {
            points: Arc::clone(&view.brief),
            svg: Spark::new(&view.brief, SPARK_MS).map(|spark| spark.to_string().into()),
        }
    }

    fn svg(&self) -> Option<Text<'_>> {
        self.svg.as_deref().map(Text)
    }
}

/// What a template of ours has rendered.
#[derive(Debug)]
pub(super) struct Text<'a>(pub(super) &'a str);

impl std::fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl HtmlSafe for Text<'_> {}

/// A row, rendered once for everybody who looks, with what it is filtered and sorted by.
#[derive(Debug)]
pub(super) struct Rendered {
    /// The element's id.
    pub(super) id: String,
    pub(super) route: RouteKey,
    pub(super) rank: u8,
    pub(super) html: String,
    /// Of what it says besides figures: state, reason, alerts, who holds what. When that changes it
    /// is sent at once.
    pub(super) gist: u64,
    pub(super) hash: u64,
    pub(super) spark: Drawn,
    /// Lower-case words the filter looks into.
    text: String,
    state: &'static str,
    alerting: bool,
    /// For sorting only.
    figures: Option<Figures>,
}

impl Rendered {
    pub(super) fn new(
        view: &RouteView,
        snapshot: &FleetSnapshot,
        standing: &Standing<'_>,
        before: Option<&Drawn>,
    ) -> Self {
        let id = format!("r-{}", short_id(&view.route.to_string()));
        let rank = standing.rank_of(view);
        let alerts = standing.rules_of(view);
        let badge = Badge::route(view);
        let words = reason_words(view);
        let spark = Drawn::new(view, before);
        let html = row(view, snapshot, &id, rank, &alerts, &spark)
            .render()
            .unwrap_or_else(|error| {
                tracing::error!(error = %error, "a row could not be rendered");
                String::new()
            });
        let alerting = standing.alerts_on(view);
        let no_data = view.no_data.map(NoData::words);
        let gist = (rank, words, &alerts, view.acked.n, view.acked.m, no_data);
        Self {
            text: format!("{} {badge} {words} {}", view.route, alerts.join(" "))
                .to_ascii_lowercase(),
            gist: hash(&gist),
            hash: hash(&html),
            state: badge.word(),
            route: view.route.clone(),
            figures: view.figures,
            id,
            rank,
            html,
            spark,
            alerting,
        }
    }

    /// Whether the filter leaves it: every word has to occur in name, state or reason.
    pub(super) fn matches(&self, q: &str, state: StateFilter) -> bool {
        let stands = match state {
            StateFilter::Any => true,
            StateFilter::Alerting => self.alerting,
            StateFilter::Needs => self.rank <= rank::WARN,
            StateFilter::Word(word) => self.state == word,
        };
        stands
            && q.to_ascii_lowercase()
                .split_whitespace()
                .all(|word| self.text.contains(word))
    }

    /// Sorted ascending: what should come first is smallest. Without a value comes last.
    pub(super) fn key(&self, sort: Sort) -> f64 {
        let f = self.figures.as_ref();
        let down = |v: Option<f64>| v.map_or(f64::INFINITY, |v| -v);
        match sort {
            Sort::Worst => f64::from(self.rank),
            Sort::Name => 0.0,
            Sort::Calls => down(f.map(|f| f.calls_per_s)),
            Sort::Success => f.and_then(|f| f.success).unwrap_or(f64::INFINITY),
            Sort::P99 => down(f.and_then(|f| f.p99).map(|d| d.as_secs_f64())),
            Sort::HedgeRate => down(f.and_then(|f| f.hedge_rate)),
            Sort::WinRate => f.and_then(|f| f.win_rate).unwrap_or(f64::INFINITY),
        }
    }

    pub(super) fn text(&self) -> Text<'_> {
        Text(&self.html)
    }
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

fn row<'a>(
    view: &'a RouteView,
    snapshot: &FleetSnapshot,
    id: &'a str,
    rank: u8,
    alerts: &'a [String],
    spark: &'a Drawn,
) -> Row<'a> {
    let figures = view.figures.as_ref();
    let why = view.no_data.map_or("not enough traffic", NoData::words);
    let get = |f: fn(&Figures) -> Option<f64>| figures.and_then(f);
    let time = |f: fn(&Figures) -> Option<std::time::Duration>| figures.and_then(f);
    let unhedged = if view.mode.hedges() {
        why
    } else {
        "hedging is off"
    };
    let budget = snapshot
        .policy_for(&view.route)
        .map_or(0.08, |p| p.policy.budget().get());
    Row {
        id,
        rank,
        route: &view.route,
        address: route_address(&view.route),
        badge: Badge::route(view),
        words: reason_words(view),
        alerts,
        since: span(snapshot.at.since(view.since)),
        calls: Figure::rate(get(|f| Some(f.calls_per_s)), "calls/s", why),
        success: Figure::success(get(|f| f.success), why),
        p50: Figure::millis(time(|f| f.p50), why),
        p95: Figure::millis(time(|f| f.p95), why),
        p99: Figure::millis(time(|f| f.p99), why),
        hedge_rate: Figure::percent(get(|f| f.hedge_rate), unhedged),
        band: figures.and_then(|f| {
            f.hedge_rate
                .map(|rate| Band::new(rate, f.demand, f.target, alert_line(budget)))
        }),
        wins: wins(figures, unhedged),
        extra: extra(figures, unhedged),
        threshold: Figure::millis(time(|f| f.threshold), why),
        acked: view.acked,
        spark,
        no_data: view
            .no_data
            .map(NoData::words)
            .filter(|words| !view.words.contains(words)),
    }
}

impl Row<'_> {
    fn tone(&self) -> &'static str {
        match self.rank {
            rank::FAULT | rank::KILLED => "bad",
            rank::PROBING | rank::WARN => "warn",
            _ => "ok",
        }
    }

    fn all_acked(&self) -> bool {
        self.acked.n >= self.acked.m
    }
}

/// The win rate, with what independence predicts in its tooltip.
fn wins(figures: Option<&Figures>, why: &str) -> Figure {
    match figures.and_then(|f| f.win_rate.map(|won| (won, f.win_rate_expected))) {
        None => Figure::none(why),
        Some((won, Some(expected))) => Figure::new(
            significant(won * 100.0),
            format!(
                "{}; independent replicas would give {}",
                percent(won),
                percent(expected)
            ),
        ),
        Some((won, None)) => Figure::percent(Some(won), why),
    }
}

/// Hedges a second.
fn extra(figures: Option<&Figures>, why: &str) -> Figure {
    match figures.and_then(|f| f.hedge_rate.map(|rate| (rate, f.calls_per_s))) {
        None => Figure::none(why),
        Some((0.0, _)) => Figure::new("0", "no hedges are sent"),
        Some((rate, calls)) => Figure::new(
            format!("+{}", significant(rate * calls)),
            format!(
                "{} hedges/s: {} more requests",
                significant(rate * calls),
                percent(rate)
            ),
        ),
    }
}
