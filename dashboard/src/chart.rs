//! Charts as SVG, drawn on the server. Pure: figures in, positions and words out; the template only
//! writes them down.

mod course;
mod data;
mod heat;
mod scale;
mod spark;
mod whatif;

pub(crate) use course::{Course, alert_line, route_plots, within_words};
pub(crate) use data::CourseData;
pub(crate) use heat::{CARRIED_BEYOND, Heat, heats};
pub(crate) use spark::{Band, Spark};
pub(crate) use whatif::{Curve, CurvePoint, Panels, replay_chart};

use std::time::Duration;

use askama::Template;
use askama::filters::HtmlSafe;
use hedgerow_core::moment::Moment;
use hedgerow_core::view::MarkKind;

use crate::format::{clock, iso, significant};
use scale::{Scale, area, nice_ticks, path, spread, time_ticks};

/// Widths at which text is drawn at its own size in a row of two, and of three.
pub(crate) const WIDE: f64 = 660.0;
pub(crate) const NARROW: f64 = 436.0;
const HEIGHT: f64 = 196.0;
const LEFT: f64 = 44.0;
/// Room for the lines' names at their ends.
const RIGHT: f64 = 108.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 22.0;
/// Least distance of two names at the lines' ends.
const LABEL_STEP: f64 = 13.0;
/// Least distance of two marks' signs.
const SIGN_STEP: f64 = 10.0;
/// The table behind the toggle has so many rows at most.
const TABLE_ROWS: u64 = 20;
/// A line breaks where no point came for so many times the usual step.
const GAP_STEPS: u64 = 3;

/// One line of a chart.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// Its name, written at its end.
    pub(crate) label: &'static str,
    /// Its class in the style sheet: colour and dashes.
    pub(crate) class: &'static str,
    /// A value for each moment; None leaves a gap.
    pub(crate) values: Vec<Option<f64>>,
}

/// A level drawn across: a target, a limit.
#[derive(Debug, Clone)]
pub(crate) struct Level {
    pub(crate) label: String,
    pub(crate) class: &'static str,
    pub(crate) value: f64,
}

/// A range drawn under the lines: from at least to at most; no end: as far as the axis goes.
#[derive(Debug, Clone)]
pub(crate) struct Area {
    pub(crate) label: &'static str,
    pub(crate) class: &'static str,
    pub(crate) values: Vec<Option<(f64, Option<f64>)>>,
}

/// Something that happened, drawn upright.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) at: Moment,
    pub(crate) kind: MarkKind,
    pub(crate) words: String,
    /// Its record, or its alert.
    pub(crate) href: String,
}

/// What a chart shows.
#[derive(Debug, Clone)]
pub(crate) struct Plot {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) unit: &'static str,
    /// In words, for who cannot see it, and for who is in a hurry.
    pub(crate) summary: String,
    pub(crate) from: Moment,
    pub(crate) to: Moment,
    pub(crate) moments: Vec<Moment>,
    pub(crate) series: Vec<Series>,
    pub(crate) areas: Vec<Area>,
    pub(crate) levels: Vec<Level>,
    pub(crate) events: Vec<Event>,
    /// Times in which hedging was off.
    pub(crate) off: Vec<(Moment, Moment)>,
    /// The axis reaches at least so far.
    pub(crate) top: f64,
    /// [`WIDE`] or [`NARROW`].
    pub(crate) width: f64,
    /// As `the last 10 minutes`.
    pub(crate) over: &'static str,
    /// Whether its marks are stops of the Tab key: those of one chart are, the others' are the same.
    pub(crate) stops: bool,
}

/// A chart, laid out.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/chart.html")]
pub(crate) struct Chart {
    id: &'static str,
    title: &'static str,
    unit: &'static str,
    summary: String,
    areas: Vec<Line>,
    lines: Vec<Line>,
    levels: Vec<LevelLine>,
    labels: Vec<Label>,
    y_ticks: Vec<Tick>,
    x_ticks: Vec<Tick>,
    marks: Vec<MarkLine>,
    shades: Vec<Shade>,
    head: Vec<&'static str>,
    rows: Vec<Row>,
    right: String,
    names: String,
    middle: String,
    width: String,
    wide: bool,
    bottom: String,
    empty: bool,
    over: &'static str,
    stops: bool,
}

impl HtmlSafe for Chart {}

#[derive(Debug, Clone)]
struct Line {
    class: &'static str,
    path: String,
}

#[derive(Debug, Clone)]
struct LevelLine {
    class: &'static str,
    y: String,
}

#[derive(Debug, Clone)]
struct Label {
    class: &'static str,
    y: String,
    text: String,
}

#[derive(Debug, Clone)]
struct Tick {
    at: String,
    text: String,
}

#[derive(Debug, Clone)]
struct MarkLine {
    x: String,
    sign: String,
    class: &'static str,
    glyph: &'static str,
    words: String,
    href: String,
}

#[derive(Debug, Clone)]
struct Shade {
    x: String,
    width: String,
    wide: bool,
    middle: String,
}

#[derive(Debug, Clone)]
struct Row {
    time: String,
    iso: String,
    cells: Vec<String>,
}

impl Plot {
    /// Lays it out.
    pub(crate) fn layout(self) -> Chart {
        let xs = Scale::new(
            self.from.as_millis() as f64,
            self.to.as_millis() as f64,
            LEFT,
            self.width - RIGHT,
        );
        let highest = self
            .series
            .iter()
            .flat_map(|s| s.values.iter().flatten())
            .fold(self.top, |top, value| top.max(*value));
        let ticks = nice_ticks(highest, 4);
        let ys = Scale::new(
            0.0,
            ticks.last().copied().unwrap_or(1.0),
            HEIGHT - BOTTOM,
            TOP,
        );
        let empty = self
            .series
            .iter()
            .all(|s| s.values.iter().all(Option::is_none));
        Chart {
            areas: self.areas(&xs, &ys),
            lines: self.lines(&xs, &ys),
            levels: self
                .levels
                .iter()
                .map(|l| LevelLine {
                    class: l.class,
                    y: scale::px(ys.at(l.value)),
                })
                .collect(),
            labels: self.labels(&ys),
            y_ticks: ticks
                .iter()
                .map(|t| Tick {
                    at: scale::px(ys.at(*t)),
                    text: tick_text(*t),
                })
                .collect(),
            x_ticks: self.x_ticks(&xs),
            marks: self.marks(&xs),
            shades: self.shades(&xs),
            head: self.series.iter().map(|s| s.label).collect(),
            rows: self.rows(),
            right: scale::px(self.width - RIGHT),
            names: scale::px(self.width - RIGHT + 6.0),
            middle: scale::px(f64::midpoint(LEFT, self.width - RIGHT)),
            width: scale::px(self.width),
            wide: self.width >= WIDE,
            bottom: scale::px(HEIGHT - BOTTOM),
            id: self.id,
            title: self.title,
            unit: self.unit,
            summary: self.summary,
            over: self.over,
            stops: self.stops,
            empty,
        }
    }

    /// Whether the line breaks before a point: nothing was known for a while.
    fn breaks(&self) -> Vec<bool> {
        let ms = |i: usize| self.moments[i].as_millis();
        let mut steps: Vec<u64> = (1..self.moments.len())
            .map(|i| ms(i).saturating_sub(ms(i - 1)))
            .collect();
        let gaps = steps.clone();
        steps.sort_unstable();
        let usual = steps.get(steps.len() / 2).copied().unwrap_or(0);
        let wide = |gap: u64| gap > usual.saturating_mul(GAP_STEPS);
        [false]
            .into_iter()
            .chain(gaps.into_iter().map(wide))
            .collect()
    }

    fn lines(&self, xs: &Scale, ys: &Scale) -> Vec<Line> {
        let breaks = self.breaks();
        let points = |series: &Series| {
            let mut out = Vec::with_capacity(series.values.len());
            for ((at, value), broken) in self.moments.iter().zip(&series.values).zip(&breaks) {
                if *broken {
                    out.push(None);
                }
                out.push(value.map(|v| (xs.at(at.as_millis() as f64), ys.at(v))));
            }
            out
        };
        self.series
            .iter()
            .map(|series| Line {
                class: series.class,
                path: path(points(series).into_iter()),
            })
            .filter(|line| !line.path.is_empty())
            .collect()
    }

    fn areas(&self, xs: &Scale, ys: &Scale) -> Vec<Line> {
        let breaks = self.breaks();
        let end = |y: f64| y.clamp(TOP, HEIGHT - BOTTOM);
        let points = |it: &Area| {
            let mut out = Vec::with_capacity(it.values.len());
            for ((at, value), broken) in self.moments.iter().zip(&it.values).zip(&breaks) {
                if *broken {
                    out.push(None);
                }
                out.push(value.map(|(low, high)| {
                    let high = high.map_or(TOP, |high| end(ys.at(high)));
                    (xs.at(at.as_millis() as f64), end(ys.at(low)), high)
                }));
            }
            out
        };
        self.areas
            .iter()
            .map(|it| Line {
                class: it.class,
                path: area(&points(it)),
            })
            .filter(|line| !line.path.is_empty())
            .collect()
    }

    /// Names at the ends of lines and levels, moved apart where they would touch.
    fn labels(&self, ys: &Scale) -> Vec<Label> {
        let mut labels: Vec<(f64, &'static str, String)> = self
            .series
            .iter()
            .filter_map(|series| {
                let last = series.values.last().copied().flatten()?;
                Some((
                    ys.at(last),
                    series.class,
                    format!("{} {}", series.label, significant(last)),
                ))
            })
            .chain(
                self.levels
                    .iter()
                    .map(|l| (ys.at(l.value), l.class, l.label.clone())),
            )
            .collect();
        labels.sort_by(|a, b| a.0.total_cmp(&b.0));
        let wanted: Vec<f64> = labels.iter().map(|l| l.0).collect();
        let places = spread(&wanted, LABEL_STEP, TOP, HEIGHT - BOTTOM + 4.0);
        labels
            .into_iter()
            .zip(places)
            .map(|((_, class, text), y)| Label {
                class,
                y: scale::px(y),
                text,
            })
            .collect()
    }

    fn x_ticks(&self, xs: &Scale) -> Vec<Tick> {
        let room = self.width - LEFT - RIGHT;
        time_ticks(self.from, self.to, room)
            .into_iter()
            .map(|(at, text)| Tick {
                at: scale::px(xs.at(at.as_millis() as f64)),
                text,
            })
            .collect()
    }

    fn marks(&self, xs: &Scale) -> Vec<MarkLine> {
        let mut last = f64::NEG_INFINITY;
        self.events
            .iter()
            .filter(|e| e.at >= self.from && e.at <= self.to)
            .map(|event| {
                let x = xs.at(event.at.as_millis() as f64);
                // Signs of what happened at once stand side by side.
                let sign = x.max(last + SIGN_STEP);
                last = sign;
                let (class, glyph) = sign_of(event.kind);
                MarkLine {
                    x: scale::px(x),
                    sign: scale::px(sign),
                    class,
                    glyph,
                    words: format!("{} {}", self.clock(event.at), event.words),
                    href: event.href.clone(),
                }
            })
            .collect()
    }

    fn shades(&self, xs: &Scale) -> Vec<Shade> {
        self.off
            .iter()
            .filter_map(|(from, to)| {
                let from = xs.at(from.max(&self.from).as_millis() as f64);
                let to = xs.at(to.min(&self.to).as_millis() as f64);
                (to > from).then(|| Shade {
                    x: scale::px(from),
                    width: scale::px(to - from),
                    wide: to - from > 36.0,
                    middle: scale::px(f64::midpoint(from, to)),
                })
            })
            .collect()
    }

    /// The time of day, with the day where the chart is longer than one.
    fn clock(&self, at: Moment) -> String {
        if self.to.since(self.from) > Duration::from_hours(25) {
            crate::format::date(at)
        } else {
            clock(at)
        }
    }

    fn rows(&self) -> Vec<Row> {
        let span = self.to.since(self.from).as_millis() as u64;
        let step = span.div_ceil(TABLE_ROWS).max(1);
        let turn = |i: usize| self.moments[i].as_millis() / step;
        // The last of each step of time: a row stays as it is until a new one comes, and an open page
        // has a row to write, not a table. Newest first, as one looks for what is happening now.
        (0..self.moments.len())
            .rev()
            .filter(|i| {
                self.moments
                    .get(i + 1)
                    .is_some_and(|_| turn(*i) != turn(i + 1))
            })
            .map(|i| Row {
                time: self.clock(self.moments[i]),
                iso: iso(self.moments[i]),
                cells: self
                    .series
                    .iter()
                    .map(|s| {
                        s.values
                            .get(i)
                            .copied()
                            .flatten()
                            .map_or_else(|| "–".into(), significant)
                    })
                    .collect(),
            })
            .collect()
    }
}

/// A mark's class and glyph.
pub(crate) const fn sign_of(kind: MarkKind) -> (&'static str, &'static str) {
    match kind {
        MarkKind::Policy => ("policy", "◆"),
        MarkKind::Mode => ("mode", "■"),
        MarkKind::Alert => ("alert", "▲"),
        MarkKind::Agent => ("agent", "●"),
    }
}

/// A tick's number, as short as it can be.
fn tick_text(value: f64) -> String {
    if value.abs() >= 1000.0 {
        format!("{} k", crate::format::trimmed(value / 1000.0))
    } else {
        crate::format::trimmed(value)
    }
}
