//! Delay against what callers wait and against extra load.

use std::time::Duration;

use hedgerow_core::whatif::{Hedged, Percentile};
use hedgerow_protocol::units::as_millis;

use super::panels::{Dot, Panel, Panels, Series, Sheet, Upright, factor_ticks};
use crate::chart::Level;
use crate::format::{latency, percent, percent_set, significant};

/// Where more calls than this are hedged nobody looks: a budget is a quarter at most.
const LOAD_SHOWN: f64 = 0.3;
/// Rows of the table behind the toggle.
const TABLE_ROWS: usize = 24;

/// A point on the curve, with what it stands for.
#[derive(Debug, Clone)]
pub(crate) struct CurvePoint {
    /// `now` or `typed`: its shape and colour.
    pub(crate) class: &'static str,
    /// As `hedged now`.
    pub(crate) label: String,
    pub(crate) hedged: Hedged,
}

/// What is drawn.
#[derive(Debug, Clone)]
pub(crate) struct Curve {
    /// By delay, ascending.
    pub(crate) rows: Vec<Hedged>,
    /// p99 and p99.9 without hedging.
    pub(crate) unhedged: [Option<Duration>; 2],
    pub(crate) points: Vec<CurvePoint>,
    /// The share aimed at; None: the policy aims at a percentile of what callers wait.
    pub(crate) target: Option<f64>,
    pub(crate) budget: f64,
}

fn millis(value: Option<Duration>) -> Option<f64> {
    value.map(as_millis)
}

/// A logarithm that a delay of nothing has, too.
fn across(delay: Duration) -> f64 {
    as_millis(delay).max(1e-3).ln()
}

impl Curve {
    /// Lays it out.
    pub(crate) fn layout(self) -> Panels {
        let points: Vec<_> = self.points.iter().map(|it| &it.hedged).collect();
        let first = points
            .iter()
            .map(|it| it.delay)
            .chain(
                self.rows
                    .iter()
                    .find(|row| row.extra_load <= LOAD_SHOWN)
                    .map(|row| row.delay),
            )
            .min()
            .unwrap_or_default();
        let last = self.rows.last().map(|row| row.delay);
        let last = points.iter().map(|it| it.delay).chain(last).max();
        let (from, to) = (across(first), across(last.unwrap_or_default()));
        // Where there is one delay it stands in the middle.
        let (from, to) = if to - from < 0.01 {
            (from - 0.5, to + 0.5)
        } else {
            (from, to)
        };
        Sheet {
            id: "whatif",
            title: "What a hedge after a delay gains and costs".into(),
            summary: self.summary(),
            across: (from, to),
            ticks: factor_ticks(from, to),
            axis: "ms until the hedge",
            uprights: self
                .points
                .iter()
                .map(|it| Upright {
                    at: across(it.hedged.delay),
                    label: format!("{} {}", it.label, latency(it.hedged.delay)),
                    class: it.class,
                })
                .collect(),
            panels: vec![self.waits(first), self.load(first)],
            head: vec![
                "Delay ms",
                "Extra load %",
                "p50 ms",
                "p95 ms",
                "p99 ms",
                "p99.9 ms",
            ],
            rows: self.table(),
            nothing: "no delay is exceeded: nothing would be hedged",
        }
        .layout()
    }

    fn line(
        &self,
        first: Duration,
        value: impl Fn(&Hedged) -> Option<f64>,
    ) -> Vec<Option<(f64, f64)>> {
        let shown = self.rows.iter().filter(|row| row.delay >= first);
        shown
            .map(|row| Some((across(row.delay), value(row)?)))
            .collect()
    }

    fn waits(&self, first: Duration) -> Panel {
        let of = |percentile| move |row: &Hedged| millis(row.at(percentile));
        let levels = ["p99 unhedged", "p99.9 unhedged"];
        let dots = self.points.iter().flat_map(|it| {
            let at = |percentile: Percentile| {
                let value = it.hedged.at(percentile)?;
                Some(Dot {
                    at: (across(it.hedged.delay), as_millis(value)),
                    class: it.class,
                    words: format!("{}: {percentile} {}", it.label, latency(value)),
                })
            };
            [at(Percentile::P99), at(Percentile::P99_9)]
        });
        Panel {
            title: "Callers wait",
            unit: "ms",
            top: self
                .unhedged
                .iter()
                .filter_map(|it| millis(*it))
                .fold(0.0, f64::max),
            series: vec![
                Series {
                    label: "p99 hedged",
                    class: "treated",
                    points: self.line(first, of(Percentile::P99)),
                },
                Series {
                    label: "p99.9 hedged",
                    class: "treated9",
                    points: self.line(first, of(Percentile::P99_9)),
                },
            ],
            levels: levels
                .iter()
                .zip(self.unhedged)
                .filter_map(|(label, value)| {
                    Some(Level {
                        label: format!("{label} {}", significant(millis(value)?)),
                        class: "unhedged",
                        value: millis(value)?,
                    })
                })
                .collect(),
            dots: dots.flatten().collect(),
        }
    }

    fn load(&self, first: Duration) -> Panel {
        let mut levels = vec![Level {
            label: format!("budget {}", percent_set(self.budget)),
            class: "budget",
            value: self.budget * 100.0,
        }];
        levels.extend(self.target.map(|target| Level {
            label: format!("target {}", percent_set(target)),
            class: "target",
            value: target * 100.0,
        }));
        Panel {
            title: "Extra load, every crossed call hedged",
            unit: "% of calls",
            top: self.budget * 130.0,
            series: vec![Series {
                label: "extra load",
                class: "rate",
                points: self.line(first, |row| Some(row.extra_load * 100.0)),
            }],
            levels,
            dots: self
                .points
                .iter()
                .map(|it| Dot {
                    at: (across(it.hedged.delay), it.hedged.extra_load * 100.0),
                    class: it.class,
                    words: format!("{}: {} extra load", it.label, percent(it.hedged.extra_load)),
                })
                .collect(),
        }
    }

    fn summary(&self) -> String {
        let (Some(first), Some(last)) = (
            self.rows.iter().find(|row| row.extra_load <= LOAD_SHOWN),
            self.rows.last(),
        ) else {
            return "no delay is exceeded: nothing would be hedged".into();
        };
        let p99 = |row: &Hedged| {
            row.at(Percentile::P99)
                .map_or_else(|| "not known".into(), latency)
        };
        format!(
            "hedged after {} ({} extra load) p99 is {}, hedged after {} ({}) it is {}; a later hedge costs less and gains less",
            latency(first.delay),
            percent(first.extra_load),
            p99(first),
            latency(last.delay),
            percent(last.extra_load),
            p99(last),
        )
    }

    fn table(&self) -> Vec<Vec<String>> {
        let shown = self
            .rows
            .iter()
            .filter(|row| row.extra_load <= LOAD_SHOWN * 2.0);
        let shown: Vec<_> = shown.collect();
        let step = shown.len().div_ceil(TABLE_ROWS).max(1);
        let figure =
            |value: Option<Duration>| millis(value).map_or_else(|| "–".to_owned(), significant);
        shown
            .iter()
            .step_by(step)
            .map(|row| {
                let mut cells = vec![
                    significant(as_millis(row.delay)),
                    significant(row.extra_load * 100.0),
                ];
                cells.extend(
                    [
                        Percentile::P50,
                        Percentile::P95,
                        Percentile::P99,
                        Percentile::P99_9,
                    ]
                    .map(|percentile| figure(row.at(percentile))),
                );
                cells
            })
            .collect()
    }
}
