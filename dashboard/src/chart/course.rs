//! A route's charts: which lines, levels and words.

use std::time::Duration;

use hedgerow_core::moment::Moment;
use hedgerow_core::view::{Figures, Point, RouteView};

use super::{Chart, Event, Level, NARROW, Plot, Series, WIDE};
use crate::format::{latency, percent, percent_set, significant};

/// How far back charts reach.
pub(crate) const SPAN: Duration = Duration::from_mins(10);
/// How far they reach while the course is young: a line of a minute is not to be a corner of a chart.
const SPAN_YOUNG: Duration = Duration::from_mins(3);
/// The share of calls hedged above which a person is called, where the budget does not move it.
pub(crate) const HEDGE_RATE_LINE: f64 = 0.10;

/// Where the alert's line lies: 10 %, or a quarter above a budget that exceeds it (ALGORITHMS 7).
pub(crate) fn alert_line(budget: f64) -> f64 {
    if budget > HEDGE_RATE_LINE {
        1.25 * budget
    } else {
        HEDGE_RATE_LINE
    }
}

/// The five charts of a dependency's page.
pub(crate) fn route_charts(
    view: &RouteView,
    now: Moment,
    error_limit: f64,
    policy_budget: f64,
) -> Vec<Chart> {
    let base = Base::new(view, now);
    vec![
        latency_chart(&base, view),
        hedge_chart(&base, view, policy_budget),
        win_chart(&base, view),
        error_chart(&base, view, error_limit),
        calls_chart(&base, view),
    ]
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
struct Base {
    from: Moment,
    to: Moment,
    points: Vec<Point>,
    events: Vec<Event>,
    off: Vec<(Moment, Moment)>,
}

impl Base {
    fn new(view: &RouteView, now: Moment) -> Self {
        let ago = |span: Duration| {
            Moment::from_millis(now.as_millis().saturating_sub(span.as_millis() as u64))
        };
        let begins = view.course.first().map_or(now, |point| point.at);
        let from = begins.clamp(ago(SPAN), ago(SPAN_YOUNG));
        Self {
            from,
            to: now,
            points: view
                .course
                .iter()
                .filter(|p| p.at >= from)
                .copied()
                .collect(),
            events: view
                .marks
                .iter()
                .map(|m| Event {
                    at: m.at,
                    kind: m.kind,
                    words: m.words.clone(),
                })
                .collect(),
            off: off_spans(&view.course),
        }
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
            levels: Vec::new(),
            events: self.events.clone(),
            off: self.off.clone(),
            top: 0.0,
            width: NARROW,
        }
    }
}

fn share(value: Option<f64>) -> Option<f64> {
    value.map(|v| v * 100.0)
}

/// `from 55.0 to 74.1 ms over the last 10 minutes`, or that there is nothing.
fn range_words(series: &Series, unit: &str) -> String {
    let values = || series.values.iter().flatten();
    if values().next().is_none() {
        return "no values in the last 10 minutes".into();
    }
    let low = values().copied().fold(f64::INFINITY, f64::min);
    let high = values().copied().fold(f64::NEG_INFINITY, f64::max);
    format!(
        "{} from {} to {} {unit} over the last 10 minutes",
        series.label,
        significant(low),
        significant(high)
    )
}

fn figures(view: &RouteView) -> Option<&Figures> {
    view.figures.as_ref()
}

fn latency_chart(base: &Base, view: &RouteView) -> Chart {
    let p99 = base.series("p99", "p99", |p| p.p99_ms);
    let mut summary = range_words(&p99, "ms");
    if let Some(f) = figures(view)
        && let (Some(treated), Some(holdout)) = (f.treated_p99, f.holdout_p99)
    {
        summary = format!(
            "with hedging callers wait {} at p99, held-out ones {} (on {} held-out calls); {summary}",
            latency(treated),
            latency(holdout),
            f.holdout_calls
        );
    }
    Plot {
        summary,
        series: vec![
            base.series("p50", "p50", |p| p.p50_ms),
            base.series("p95", "p95", |p| p.p95_ms),
            p99,
            base.series("hedged p99", "treated", |p| p.treated_p99_ms),
            base.series("held out", "holdout", |p| p.holdout_p99_ms),
            base.series("threshold", "threshold", |p| p.threshold_ms),
        ],
        width: WIDE,
        ..base.plot("latency", "Latency", "ms")
    }
    .layout()
}

fn hedge_chart(base: &Base, view: &RouteView, policy_budget: f64) -> Chart {
    let rate = base.series("sent", "rate", |p| share(p.hedge_rate));
    let target = figures(view).map(|f| f.target);
    let budget = figures(view).map_or(policy_budget, |f| f.budget);
    let line = alert_line(policy_budget);
    let mut summary = range_words(&rate, "%");
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
    let mut levels = vec![
        Level {
            label: format!("call a person {}", percent_set(line)),
            class: "limit",
            value: line * 100.0,
        },
        Level {
            label: format!("budget {}", percent_set(budget)),
            class: "budget",
            value: budget * 100.0,
        },
    ];
    if let Some(target) = target {
        levels.push(Level {
            label: format!("target {}", percent_set(target)),
            class: "target",
            value: target * 100.0,
        });
    }
    Plot {
        summary,
        series: vec![base.series("demand", "demand", |p| share(p.demand)), rate],
        levels,
        top: line * 110.0,
        width: WIDE,
        ..base.plot("hedge-rate", "Hedge rate", "% of eligible calls")
    }
    .layout()
}

fn win_chart(base: &Base, view: &RouteView) -> Chart {
    let won = base.series("won", "won", |p| share(p.win_rate));
    let expected = figures(view).and_then(|f| f.win_rate_expected);
    let mut summary = range_words(&won, "%");
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
                label: format!("expected {}", percent(e)),
                class: "target",
                value: e * 100.0,
            })
            .into_iter()
            .collect(),
        top: 100.0,
        ..base.plot("win-rate", "Win rate", "% of hedges")
    }
    .layout()
}

fn error_chart(base: &Base, view: &RouteView, error_limit: f64) -> Chart {
    let errors = base.series("errors", "errors", |p| share(p.error_rate));
    let mut summary = range_words(&errors, "%");
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
        ..base.plot("error-rate", "Error rate", "% of primaries")
    }
    .layout()
}

fn calls_chart(base: &Base, view: &RouteView) -> Chart {
    let calls = base.series("calls", "calls", |p| Some(p.calls_per_s));
    let mut summary = range_words(&calls, "a second");
    if let Some(f) = figures(view) {
        summary = format!("now {} a second; {summary}", significant(f.calls_per_s));
    }
    Plot {
        summary,
        series: vec![calls],
        ..base.plot("calls", "Eligible calls", "per second")
    }
    .layout()
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
}
