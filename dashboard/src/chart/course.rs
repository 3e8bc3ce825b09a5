//! A route's charts: which lines, levels and words.

use std::time::Duration;

use hedgerow_core::moment::Moment;
use hedgerow_core::view::{Figures, Interval, Point, RouteView};
use hedgerow_protocol::report::Refusal;

use super::{Area, Event, Level, NARROW, Plot, Series, WIDE};
use crate::format::{count, latency, percent, percent_set, significant};

/// How far they reach while the course is young: a line of a minute is not to be a corner of a chart.
const SPAN_YOUNG: Duration = Duration::from_mins(3);
/// The share of calls hedged above which a person is called, where the budget does not move it.
pub(crate) const HEDGE_RATE_LINE: f64 = 0.10;
/// Reasons of refusals drawn: the most frequent ones.
const REFUSALS_DRAWN: usize = 5;

/// Where the alert's line lies: 10 %, or a quarter above a budget that exceeds it (ALGORITHMS 7).
pub(crate) fn alert_line(budget: f64) -> f64 {
    if budget > HEDGE_RATE_LINE {
        1.25 * budget
    } else {
        HEDGE_RATE_LINE
    }
}

/// Stretches of the course in which hedging was off.
pub(super) fn off_spans(course: &[Point]) -> Vec<(Moment, Moment)> {
    let mut spans: Vec<(Moment, Moment)> = Vec::new();
    let mut open: Option<Moment> = None;
    for point in course {
        match (point.hedging, open) {
            (false, None) => open = Some(point.at),
            (true, Some(from)) => {
                spans.push((from, point.at));
                open = None;
            }
            _ => {}
        }
    }
    if let (Some(from), Some(last)) = (open, course.last()) {
        spans.push((from, last.at));
    }
    spans
}

/// What all charts of a route share.
#[derive(Debug, Clone)]
pub(crate) struct Course {
    from: Moment,
    to: Moment,
    points: Vec<Point>,
    events: Vec<Event>,
    off: Vec<(Moment, Moment)>,
    /// As `the last 10 minutes`.
    over: &'static str,
}

impl Course {
    /// Of the points from a moment to another.
    pub(crate) fn new(
        from: Moment,
        to: Moment,
        points: &[Point],
        events: Vec<Event>,
        over: &'static str,
    ) -> Self {
        let within = |p: &&Point| p.at >= from && p.at <= to;
        let points: Vec<Point> = points.iter().filter(within).copied().collect();
        Self {
            from,
            to,
            off: off_spans(&points),
            points,
            events,
            over,
        }
    }

    /// Of the present one; while it is young, not from further back than it needs.
    pub(crate) fn live(
        view: &RouteView,
        now: Moment,
        span: Duration,
        events: Vec<Event>,
        over: &'static str,
    ) -> Self {
        let ago = |span: Duration| {
            Moment::from_millis(now.as_millis().saturating_sub(span.as_millis() as u64))
        };
        let begins = view.course.first().map_or(now, |point| point.at);
        let from = begins.clamp(ago(span), ago(SPAN_YOUNG.min(span)));
        Self::new(from, now, &view.course, events, over)
    }

    fn series(
        &self,
        label: &'static str,
        class: &'static str,
        value: impl Fn(&Point) -> Option<f64>,
    ) -> Series {
        Series {
            label,
            class,
            values: self.points.iter().map(value).collect(),
        }
    }

    fn plot(&self, id: &'static str, title: &'static str, unit: &'static str) -> Plot {
        Plot {
            id,
            title,
            unit,
            summary: String::new(),
            from: self.from,
            to: self.to,
            moments: self.points.iter().map(|p| p.at).collect(),
            series: Vec::new(),
            areas: Vec::new(),
            levels: Vec::new(),
            events: self.events.clone(),
            off: self.off.clone(),
            top: 0.0,
            width: NARROW,
            over: self.over,
            stops: false,
        }
    }

    /// `from 55.0 to 74.1 ms over the last 10 minutes`, or that there is nothing.
    fn range_words(&self, series: &Series, unit: &str) -> String {
        let values = || series.values.iter().flatten();
        if values().next().is_none() {
            return format!("no values in {}", self.over);
        }
        let low = values().copied().fold(f64::INFINITY, f64::min);
        let high = values().copied().fold(f64::NEG_INFINITY, f64::max);
        format!(
            "{} from {} to {} {unit} over {}",
            series.label,
            significant(low),
            significant(high),
            self.over
        )
    }
}

/// The charts of a dependency's page.
pub(crate) fn route_plots(
    course: &Course,
    view: &RouteView,
    error_limit: f64,
    policy_budget: f64,
) -> Vec<Plot> {
    vec![
        latency_chart(course, view),
        holdout_chart(course, view),
        hedge_chart(course, view, policy_budget),
        refusal_chart(course),
        win_chart(course, view),
        error_chart(course, view, error_limit),
        calls_chart(course, view),
    ]
}

fn share(value: Option<f64>) -> Option<f64> {
    value.map(|v| v * 100.0)
}

fn figures(view: &RouteView) -> Option<&Figures> {
    view.figures.as_ref()
}

fn latency_chart(course: &Course, view: &RouteView) -> Plot {
    let p99 = course.series("p99", "p99", |p| p.p99_ms);
    let mut summary = course.range_words(&p99, "ms");
    if let Some(p99) = figures(view).and_then(|f| f.p99) {
        summary = format!("primaries' p99 now {}; {summary}", latency(p99));
    }
    Plot {
        summary,
        series: vec![
            course.series("p50", "p50", |p| p.p50_ms),
            course.series("p95", "p95", |p| p.p95_ms),
            p99,
            course.series("threshold", "threshold", |p| p.threshold_ms),
        ],
        width: WIDE,
        stops: true,
        ..course.plot("latency", "Latency of primaries", "ms")
    }
}

/// `28.1 ms to 35.0 ms`, or at least so much.
pub(crate) fn within_words(within: Interval) -> String {
    match within.high {
        Some(high) => format!("{} to {}", latency(within.low), latency(high)),
        None => format!("{} or more", latency(within.low)),
    }
}

fn holdout_chart(course: &Course, view: &RouteView) -> Plot {
    let holdout = course.series("held-out p99", "holdout", |p| p.holdout_p99_ms);
    let mut summary = course.range_words(&holdout, "ms");
    if let Some(f) = figures(view)
        && let (Some(treated), Some(held_out)) = (f.treated_p99, f.holdout_p99)
    {
        let within = |it: Option<Interval>| {
            it.map_or_else(String::new, |it| {
                format!(", 95 % sure of {}", within_words(it))
            })
        };
        summary = format!(
            "in the last minute callers waited {} at p99 with hedging ({} calls{}), {} held out ({} \
             calls{})",
            latency(treated),
            count(f.treated_calls),
            within(f.treated_p99_within),
            latency(held_out),
            count(f.holdout_calls),
            within(f.holdout_p99_within),
        );
    }
    let long = |it: Option<f32>| it.map(f64::from);
    Plot {
        summary,
        series: vec![
            holdout,
            course.series("hedged p99", "treated", |p| p.treated_p99_ms),
            course.series("held-out p95", "holdout95", |p| long(p.holdout_p95_ms)),
            course.series("hedged p95", "treated95", |p| long(p.treated_p95_ms)),
        ],
        areas: vec![Area {
            label: "held-out p99, 95 %",
            class: "holdout",
            values: course
                .points
                .iter()
                .map(|p| Some((long(p.holdout_p99_low_ms)?, long(p.holdout_p99_high_ms))))
                .collect(),
        }],
        width: WIDE,
        ..course.plot("holdout", "Callers' wait, hedged against held out", "ms")
    }
}

fn hedge_chart(course: &Course, view: &RouteView, policy_budget: f64) -> Plot {
    let rate = course.series("sent", "rate", |p| share(p.hedge_rate));
    let target = figures(view).map(|f| f.target);
    let budget = figures(view).map_or(policy_budget, |f| f.budget);
    let line = alert_line(policy_budget);
    let mut summary = course.range_words(&rate, "%");
    if let Some(f) = figures(view)
        && let Some(now) = f.hedge_rate
    {
        summary = format!(
            "now {} of a budget of {}, aiming at {}; {summary}",
            percent(now),
            percent_set(f.budget),
            percent_set(f.target)
        );
    }
    let level = |label: &str, class, value: f64| Level {
        label: format!("{label} {}", percent_set(value)),
        class,
        value: value * 100.0,
    };
    let levels = [
        Some(level("call a person", "limit", line)),
        Some(level("budget", "budget", budget)),
        target.map(|target| level("target", "target", target)),
    ];
    Plot {
        summary,
        series: vec![course.series("demand", "demand", |p| share(p.demand)), rate],
        levels: levels.into_iter().flatten().collect(),
        top: line * 110.0,
        width: WIDE,
        ..course.plot("hedge-rate", "Hedge rate", "% of eligible calls")
    }
}

/// A reason's short name, beside its line.
const fn short(reason: Refusal) -> &'static str {
    match reason {
        Refusal::Mode => "hedging off",
        Refusal::Holdout => "held out",
        Refusal::Unarmed => "not its turn",
        Refusal::NotDrawn => "not drawn",
        Refusal::Deadline => "deadline",
        Refusal::NoReplica => "no replica",
        Refusal::NoPermit => "no permit",
        Refusal::Budget => "budget",
        Refusal::AlreadyHedge => "is a hedge",
        Refusal::Answered => "answered",
    }
}

fn refusal_chart(course: &Course) -> Plot {
    const CLASSES: [&str; REFUSALS_DRAWN] = ["r0", "r1", "r2", "r3", "r4"];
    let of = |point: &Point, reason: usize| point.refused.map(|it| f64::from(it[reason]) * 100.0);
    let sum = |reason: usize| {
        let values = course.points.iter().filter_map(|p| of(p, reason));
        values.sum::<f64>()
    };
    let mut reasons: Vec<(f64, usize)> = (0..Refusal::ALL.len())
        .map(|reason| (sum(reason), reason))
        .filter(|(sum, _)| *sum > 0.0)
        .collect();
    reasons.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let known = course.points.iter().any(|p| p.refused.is_some());
    let summary = match reasons.first() {
        Some((_, most)) => {
            let named = course.series(short(Refusal::ALL[*most]), "r0", |p| of(p, *most));
            let beyond = reasons.len().saturating_sub(REFUSALS_DRAWN);
            let more = if beyond > 0 {
                format!("; {beyond} rarer reasons are not drawn")
            } else {
                String::new()
            };
            format!("mostly {}{more}", course.range_words(&named, "%"))
        }
        None if known => format!("every call that crossed was hedged in {}", course.over),
        None => format!("no call is known to have crossed in {}", course.over),
    };
    Plot {
        summary,
        series: reasons
            .iter()
            .zip(CLASSES)
            .map(|((_, reason), class)| {
                course.series(short(Refusal::ALL[*reason]), class, |p| of(p, *reason))
            })
            .collect(),
        top: 10.0,
        width: WIDE,
        ..course.plot("refusals", "Crossed, but not hedged", "% of crossed calls")
    }
}

fn win_chart(course: &Course, view: &RouteView) -> Plot {
    let won = course.series("won", "won", |p| share(p.win_rate));
    let expected = figures(view).and_then(|f| f.win_rate_expected);
    let mut summary = course.range_words(&won, "%");
    if let Some(f) = figures(view)
        && let (Some(now), Some(expected)) = (f.win_rate, expected)
    {
        summary = format!(
            "now {}; independent replicas would give {}; {summary}",
            percent(now),
            percent(expected)
        );
    }
    Plot {
        summary,
        series: vec![won],
        levels: expected
            .map(|e| Level {
                label: format!("independent {}", percent(e)),
                class: "target",
                value: e * 100.0,
            })
            .into_iter()
            .collect(),
        top: 100.0,
        ..course.plot("win-rate", "Win rate", "% of hedges")
    }
}

fn error_chart(course: &Course, view: &RouteView, error_limit: f64) -> Plot {
    let errors = course.series("errors", "errors", |p| share(p.error_rate));
    let mut summary = course.range_words(&errors, "%");
    if let Some(now) = figures(view).and_then(|f| f.error_rate) {
        summary = format!(
            "now {}; hedging goes off above {}; {summary}",
            percent(now),
            percent_set(error_limit)
        );
    }
    Plot {
        summary,
        series: vec![errors],
        levels: vec![Level {
            label: format!("off above {}", percent_set(error_limit)),
            class: "limit",
            value: error_limit * 100.0,
        }],
        top: error_limit * 140.0,
        ..course.plot("error-rate", "Error rate", "% of primaries")
    }
}

fn calls_chart(course: &Course, view: &RouteView) -> Plot {
    let calls = course.series("calls", "calls", |p| Some(p.calls_per_s));
    let mut summary = course.range_words(&calls, "a second");
    if let Some(f) = figures(view) {
        summary = format!("now {} a second; {summary}", significant(f.calls_per_s));
    }
    Plot {
        summary,
        series: vec![calls],
        ..course.plot("calls", "Eligible calls", "per second")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(at: u64, hedging: bool) -> Point {
        Point {
            at: Moment::from_millis(at),
            hedging,
            ..Point::default()
        }
    }

    #[test]
    fn off_times_are_the_stretches_without_hedging() {
        let course = [
            point(0, true),
            point(2, false),
            point(4, false),
            point(6, true),
            point(8, false),
        ];
        let ms = Moment::from_millis;
        assert_eq!(off_spans(&course), [(ms(2), ms(6)), (ms(8), ms(8))]);
    }

    #[test]
    fn a_budget_above_ten_percent_moves_the_alerts_line() {
        assert!((alert_line(0.08) - 0.10).abs() < 1e-12);
        assert!((alert_line(0.20) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn u04_refusals_are_drawn_by_reason_the_most_frequent_first() {
        let mut refused = [0.0; Refusal::ALL.len()];
        refused[Refusal::Budget as usize] = 0.4;
        refused[Refusal::Holdout as usize] = 0.01;
        let points: Vec<Point> = (0..5)
            .map(|n| Point {
                refused: (n > 0).then_some(refused),
                ..point(n * 2_000, true)
            })
            .collect();
        let course = |points: &[Point]| {
            let ms = Moment::from_millis;
            Course::new(ms(0), ms(10_000), points, Vec::new(), "the last 10 minutes")
        };
        let plot = refusal_chart(&course(&points));
        let labels: Vec<_> = plot.series.iter().map(|s| s.label).collect();
        assert_eq!(labels, ["budget", "held out"]);
        assert_eq!(
            plot.series[0].values[0], None,
            "nothing crossed is not zero"
        );
        assert!(
            plot.summary.starts_with("mostly budget from 40.0"),
            "{}",
            plot.summary
        );
        let nothing = refusal_chart(&course(&points[..1]));
        assert!(
            nothing
                .summary
                .starts_with("no call is known to have crossed")
        );
    }
}
