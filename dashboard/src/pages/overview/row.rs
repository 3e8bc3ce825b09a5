//! One route's row.

use askama::Template;
use askama::filters::HtmlSafe;
use hedgerow_core::view::{Acked, AlertPhase, Figures, FleetSnapshot, NoData, RouteView};
use hedgerow_protocol::ids::RouteKey;

use super::Sort;
use super::worth::{rank, rank_of};
use crate::assets::short_id;
use crate::chart::{Band, Spark, alert_line};
use crate::format::{Figure, percent, significant, span};
use crate::pages::state::{Badge, reason_words, route_address};

/// How far the sparkline reaches back, milliseconds.
const SPARK_MS: u64 = 600_000;

#[derive(Debug, Template)]
#[template(path = "parts/row.html")]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) route: RouteKey,
    pub(super) rank: u8,
    address: String,
    badge: Badge,
    words: String,
    /// Rules that fire or are about to.
    alerts: Vec<&'static str>,
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
    spark: Option<Spark>,
    no_data: Option<&'static str>,
    /// For sorting only.
    figures: Option<Figures>,
}

impl HtmlSafe for Row {}

impl Row {
    pub(super) fn new(view: &RouteView, snapshot: &FleetSnapshot) -> Self {
        let figures = view.figures;
        let why = view.no_data.map_or("not enough traffic", NoData::words);
        let get = |f: fn(&Figures) -> Option<f64>| figures.as_ref().and_then(f);
        let time = |f: fn(&Figures) -> Option<std::time::Duration>| figures.as_ref().and_then(f);
        let unhedged = if view.mode.hedges() {
            why
        } else {
            "hedging is off"
        };
        let budget = snapshot
            .policy_for(&view.route)
            .map_or(0.08, |p| p.policy.budget().get());
        Self {
            id: format!("r-{}", short_id(&view.route.to_string())),
            rank: rank_of(view, snapshot),
            address: route_address(&view.route),
            badge: Badge::route(view),
            words: reason_words(view).to_owned(),
            alerts: snapshot
                .alerts
                .iter()
                .filter(|a| a.phase != AlertPhase::Resolved && a.state.route == view.route)
                // Off and probing say why already.
                .filter(|_| view.mode.reason().is_none())
                .map(|a| a.state.rule.as_str())
                .collect(),
            since: span(snapshot.at.since(view.since)),
            calls: Figure::rate(get(|f| Some(f.calls_per_s)), "calls/s", why),
            success: Figure::success(get(|f| f.success), why),
            p50: Figure::millis(time(|f| f.p50), why),
            p95: Figure::millis(time(|f| f.p95), why),
            p99: Figure::millis(time(|f| f.p99), why),
            hedge_rate: Figure::percent(get(|f| f.hedge_rate), unhedged),
            band: figures.as_ref().and_then(|f| {
                f.hedge_rate
                    .map(|rate| Band::new(rate, f.demand, f.target, alert_line(budget)))
            }),
            wins: wins(figures.as_ref(), unhedged),
            extra: extra(figures.as_ref(), unhedged),
            threshold: Figure::millis(time(|f| f.threshold), why),
            acked: view.acked,
            spark: Spark::new(&view.course, SPARK_MS),
            no_data: view
                .no_data
                .map(NoData::words)
                .filter(|words| !view.words.contains(words)),
            route: view.route.clone(),
            figures,
        }
    }

    /// Whether the filter leaves it: every word has to occur in name, state or reason.
    pub(super) fn matches(&self, q: &str) -> bool {
        let text = format!(
            "{} {} {} {}",
            self.route,
            self.badge,
            self.words,
            self.alerts.join(" ")
        )
        .to_ascii_lowercase();
        q.to_ascii_lowercase()
            .split_whitespace()
            .all(|word| text.contains(word))
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
