//! Small graphics for a table's cells.

use askama::Template;
use askama::filters::HtmlSafe;
use hedgerow_core::moment::Moment;
use hedgerow_core::view::Point;

use super::scale::{Scale, path, px};
use crate::format::{percent, percent_set, significant};

/// The right end of the band: half again the line at 10 %.
const BAND_END: f64 = 0.15;
const BAND_WIDTH: f64 = 84.0;
const SPARK_WIDTH: f64 = 132.0;
const SPARK_HEIGHT: f64 = 30.0;
const POINTS: usize = 66;

/// The hedge rate as a bar against its target and the line at 10 %.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/band.html")]
pub(crate) struct Band {
    words: String,
    class: &'static str,
    width: String,
    target: String,
    line: String,
    demand: Option<String>,
}

impl HtmlSafe for Band {}

impl Band {
    /// `line`: the share above which a person is called.
    pub(crate) fn new(rate: f64, demand: Option<f64>, target: f64, line: f64) -> Self {
        let end = BAND_END.max(line * 1.2);
        let xs = Scale::new(0.0, end, 0.0, BAND_WIDTH);
        let at = |share: f64| px(xs.at(share.clamp(0.0, end)));
        let above = rate > line || demand.is_some_and(|d| d > line);
        let class = if above {
            "b-over"
        } else if rate > target * 1.5 && rate > 0.01 {
            "b-warm"
        } else {
            "b-calm"
        };
        let mut words = format!(
            "hedge rate {}; target {}, a person is called above {}",
            percent(rate),
            percent_set(target),
            percent_set(line)
        );
        if let Some(demand) = demand {
            words = format!("{words}; demand {}", percent(demand));
        }
        Self {
            words,
            class,
            width: at(rate),
            target: at(target),
            line: at(line),
            demand: demand.filter(|d| *d > rate * 1.05).map(at),
        }
    }
}

/// The last quarter of an hour: p99 as a line, the hedge rate as an area under it, off times shaded.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/spark.html")]
pub(crate) struct Spark {
    words: String,
    p99: String,
    area: String,
    off: Vec<(String, String)>,
}

impl HtmlSafe for Spark {}

impl Spark {
    /// `span_ms`: how long the whole width is.
    pub(crate) fn new(course: &[Point], span_ms: u64) -> Option<Self> {
        let last = course.last()?.at.as_millis();
        let first = last.saturating_sub(span_ms);
        let all: Vec<&Point> = course
            .iter()
            .filter(|p| p.at.as_millis() >= first)
            .collect();
        // A point for each two pixels: more cannot be seen, and an overview has a thousand of these.
        let step = all.len().div_ceil(POINTS).max(1);
        let thinned: Vec<Point> = all.chunks(step).map(highest_of).collect();
        let seen: Vec<&Point> = thinned.iter().collect();
        let xs = Scale::new(first as f64, last as f64, 1.0, SPARK_WIDTH - 1.0);
        let x = |p: &Point| xs.at(p.at.as_millis() as f64);
        let p99s: Vec<f64> = seen.iter().filter_map(|p| p.p99_ms).collect();
        let rates: Vec<f64> = seen.iter().filter_map(|p| p.hedge_rate).collect();
        if p99s.is_empty() && rates.is_empty() {
            return None;
        }
        let highest = p99s.iter().copied().fold(0.0, f64::max);
        let ys = Scale::new(0.0, highest.max(1e-9), SPARK_HEIGHT - 2.0, 2.0);
        let rs = Scale::new(0.0, BAND_END, SPARK_HEIGHT, SPARK_HEIGHT * 0.4);
        Some(Self {
            words: words(&p99s, &rates),
            p99: path(seen.iter().map(|p| p.p99_ms.map(|v| (x(p), ys.at(v))))),
            area: area(&seen, x, |rate| rs.at(rate.min(BAND_END))),
            off: super::course::off_spans(course)
                .into_iter()
                .filter(|(_, to)| to.as_millis() > first)
                .map(|(from, to)| {
                    let from = xs.at(from.as_millis().max(first) as f64);
                    let to = xs.at(to.as_millis() as f64);
                    (px(from), px((to - from).max(0.5)))
                })
                .collect(),
        })
    }
}

/// The highest of each figure, at the last moment: a peak must not vanish by thinning.
fn highest_of(points: &[&Point]) -> Point {
    let highest =
        |get: fn(&Point) -> Option<f64>| points.iter().filter_map(|p| get(p)).reduce(f64::max);
    Point {
        at: points.last().map_or_else(Moment::default, |p| p.at),
        p99_ms: highest(|p| p.p99_ms),
        hedge_rate: highest(|p| p.hedge_rate),
        ..Point::default()
    }
}

fn words(p99s: &[f64], rates: &[f64]) -> String {
    let range = |values: &[f64]| {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        (significant(low), significant(high))
    };
    let mut parts = Vec::new();
    if !p99s.is_empty() {
        let (low, high) = range(p99s);
        parts.push(format!("p99 {low} to {high} ms"));
    }
    if !rates.is_empty() {
        let rates: Vec<f64> = rates.iter().map(|r| r * 100.0).collect();
        let (low, high) = range(&rates);
        parts.push(format!("hedge rate {low} to {high} %"));
    }
    format!("last 15 minutes: {}", parts.join(", "))
}

/// Closed shapes under the hedge rate, one for each stretch without a gap.
fn area(seen: &[&Point], x: impl Fn(&Point) -> f64, y: impl Fn(f64) -> f64) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for stretch in seen
        .split(|p| p.hedge_rate.is_none())
        .filter(|s| s.len() > 1)
    {
        let floor = px(SPARK_HEIGHT);
        let _ = write!(out, "M{} {floor}", px(x(stretch[0])));
        for point in stretch {
            let _ = write!(
                out,
                "L{} {}",
                px(x(point)),
                px(y(point.hedge_rate.unwrap_or(0.0)))
            );
        }
        let _ = write!(out, "V{floor}Z");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spark_stays_small_and_keeps_its_peak() {
        let course: Vec<Point> = (0..300u64)
            .map(|i| Point {
                at: Moment::from_millis(i * 2000),
                p99_ms: Some(if i == 151 {
                    900.0
                } else {
                    60.0 + (i % 7) as f64
                }),
                hedge_rate: Some(0.05),
                hedging: i > 40,
                ..Point::default()
            })
            .collect();
        let html = Spark::new(&course, 600_000).unwrap().to_string();
        assert!(html.len() < 2000, "{}", html.len());
        assert!(html.contains("to 900 ms"), "{html}");
        // The peak is drawn at the top.
        assert!(html.contains(" 2L") || html.contains(" 2\""), "{html}");
        assert_eq!(html.matches("class=\"off\"").count(), 1);
    }

    #[test]
    fn no_figures_draw_nothing() {
        assert!(Spark::new(&[], 600_000).is_none());
        assert!(Spark::new(&[Point::default()], 600_000).is_none());
    }
}
