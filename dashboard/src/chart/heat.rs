//! Replicas over time as a heatmap: a row a replica, a column a moment.

use std::collections::BTreeSet;

use askama::Template;
use askama::filters::HtmlSafe;
use hedgerow_core::moment::Moment;
use hedgerow_core::view::{ReplicaCell, ReplicaCourse, Together, Unlike};
use hedgerow_protocol::ids::ReplicaName;

use super::scale::{Scale, px, time_ticks};
use crate::format::{clock, percent, percent_set, significant};

/// Rows drawn; those that stand out come first.
const ROWS: usize = 24;
/// Cells drawn: more columns are put together, so that the page stays light.
const CELLS: usize = 1_200;
/// Columns of the table behind the toggle.
const TABLE_COLUMNS: usize = 15;
const LEFT: f64 = 132.0;
const WIDTH: f64 = 466.0;
const RIGHT: f64 = 62.0;
const TOP: f64 = 16.0;
const ROW: f64 = 17.0;
/// Share of slow traffic that hedging carries beyond its budget, at most.
pub(crate) const CARRIED_BEYOND: f64 = 0.05;

/// A heatmap, laid out.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/heat.html")]
pub(crate) struct Heat {
    id: &'static str,
    title: &'static str,
    unit: &'static str,
    summary: String,
    /// None: nothing is drawn.
    legend: Option<[String; 5]>,
    rows: Vec<HeatRow>,
    ticks: Vec<(String, String)>,
    together: Vec<Bar>,
    height: String,
    width: String,
    right: String,
    ticks_at: String,
    head: Vec<String>,
    beyond: usize,
    joined: usize,
}

impl HtmlSafe for Heat {}

#[derive(Debug, Clone)]
struct HeatRow {
    name: String,
    short: String,
    bad: bool,
    middle: String,
    cells: Vec<Cell>,
    /// Strokes over what is bad: seen without colours.
    strokes: String,
    table: Vec<String>,
}

#[derive(Debug, Clone)]
struct Cell {
    class: &'static str,
    x: String,
    y: String,
    width: String,
    words: String,
}

/// A time in which most were bad.
#[derive(Debug, Clone)]
struct Bar {
    x: String,
    width: String,
    words: String,
}

/// What is drawn of a cell.
#[derive(Clone, Copy, PartialEq)]
enum Measure {
    P95,
    Wins,
}

/// The two heatmaps of a route, p95 and hedge wins. `budget`: of hedges, a share of calls.
pub(crate) fn heats(course: &ReplicaCourse, budget: f64) -> Vec<Heat> {
    if course.columns.is_empty() {
        return Vec::new();
    }
    vec![
        Map::new(course, Measure::P95).layout(slow_words(course.slow.as_ref(), budget)),
        Map::new(course, Measure::Wins).layout(losing_words(course.losing.as_ref())),
    ]
}

impl Measure {
    fn value(self, cell: &ReplicaCell) -> Option<f64> {
        match self {
            Self::P95 => cell.p95_ms.map(f64::from),
            Self::Wins => cell.win_rate(),
        }
    }

    fn text(self, value: f64) -> String {
        match self {
            Self::P95 => significant(value),
            Self::Wins => significant(value * 100.0),
        }
    }

    /// How far from usual, in five steps; the last two are bad.
    fn class(self, value: f64, usual: f64) -> &'static str {
        let times = match self {
            Self::P95 => value / usual.max(1e-9),
            Self::Wins => usual / value.max(1e-9),
        };
        match times {
            ..1.2 => "q0",
            1.2..1.5 => "q1",
            1.5..=2.0 => "q2",
            2.0..=4.0 => "q3",
            _ => "q4",
        }
    }

    fn worse(self, a: f64, b: f64) -> f64 {
        match self {
            Self::P95 => a.max(b),
            Self::Wins => a.min(b),
        }
    }

    fn legend(self, usual: f64) -> [String; 5] {
        let at = |times: f64| match self {
            Self::P95 => self.text(usual * times),
            Self::Wins => self.text(usual / times),
        };
        let (below, beyond) = match self {
            Self::P95 => ("under", "over"),
            Self::Wins => ("over", "under"),
        };
        [
            format!("{below} {}", at(1.2)),
            format!("to {}", at(1.5)),
            format!("to {}", at(2.0)),
            format!("to {}", at(4.0)),
            format!("{beyond} {}", at(4.0)),
        ]
    }
}

/// Values by row and column, before they are drawn.
struct Map<'a> {
    measure: Measure,
    course: &'a ReplicaCourse,
    unlike: Option<&'a Unlike>,
    usual: f64,
    names: Vec<&'a ReplicaName>,
    beyond: usize,
    /// Columns put together.
    joined: usize,
    xs: Scale,
    from: Moment,
    to: Moment,
}

impl<'a> Map<'a> {
    fn new(course: &'a ReplicaCourse, measure: Measure) -> Self {
        let unlike = match measure {
            Measure::P95 => course.slow.as_ref(),
            Measure::Wins => course.losing.as_ref(),
        };
        let (names, beyond) = names(course, unlike);
        let (from, to) = span(course);
        let cells = names.len() * course.columns.len();
        Self {
            measure,
            course,
            unlike,
            usual: unlike.map_or_else(|| usual(course, measure), |it| it.usual),
            names,
            beyond,
            joined: cells.div_ceil(CELLS).max(1),
            xs: Scale::new(
                from.as_millis() as f64,
                to.as_millis() as f64,
                LEFT,
                LEFT + WIDTH,
            ),
            from,
            to,
        }
    }

    fn layout(&self, summary: String) -> Heat {
        let bottom = TOP + ROW * self.names.len() as f64;
        let rows: Vec<HeatRow> = (0..self.names.len()).map(|row| self.row(row)).collect();
        Heat {
            id: match self.measure {
                Measure::P95 => "heat-p95",
                Measure::Wins => "heat-wins",
            },
            title: match self.measure {
                Measure::P95 => "p95 by replica",
                Measure::Wins => "Hedges won by replica",
            },
            unit: match self.measure {
                Measure::P95 => "ms",
                Measure::Wins => "% of hedges sent to it",
            },
            summary,
            legend: rows
                .iter()
                .any(|row| !row.cells.is_empty())
                .then(|| self.measure.legend(self.usual)),
            rows,
            ticks: time_ticks(self.from, self.to, WIDTH)
                .into_iter()
                .map(|(at, text)| (px(self.xs.at(at.as_millis() as f64)), text))
                .collect(),
            together: self.together(),
            height: px(bottom + 20.0),
            width: px(LEFT + WIDTH + RIGHT),
            right: px(LEFT + WIDTH + 8.0),
            ticks_at: px(bottom + 14.0),
            head: self.table_columns().map(|(at, _)| clock(at)).collect(),
            beyond: self.beyond,
            joined: self.joined,
        }
    }

    fn row(&self, row: usize) -> HeatRow {
        let name = self.names[row];
        let top = TOP + ROW * row as f64;
        let mut cells = Vec::new();
        let mut strokes = String::new();
        for columns in self.course.columns.chunks(self.joined) {
            let Some((cell, value)) = self.worst(columns, name) else {
                continue;
            };
            let end = columns.last().map_or(self.to, |it| it.at);
            let begin = end.as_millis() as f64
                - columns
                    .iter()
                    .map(|it| it.span.as_millis() as f64)
                    .sum::<f64>();
            let (x0, x1) = (
                self.xs.at(begin).max(LEFT),
                self.xs.at(end.as_millis() as f64),
            );
            let class = self.measure.class(value, self.usual);
            if matches!(class, "q3" | "q4") {
                use std::fmt::Write as _;
                let (left, right) = (px(x0 + 1.0), px(x1 - 2.0));
                let (high, low) = (px(top + 2.0), px(top + ROW - 3.0));
                let _ = write!(strokes, "M{left} {low}L{right} {high}");
                if class == "q4" {
                    let _ = write!(strokes, "M{left} {high}L{right} {low}");
                }
            }
            cells.push(Cell {
                class,
                x: px(x0),
                y: px(top),
                width: px((x1 - x0 - 1.0).max(0.5)),
                words: self.cell_words(end, name, &cell, value),
            });
        }
        let bad = |it: &Unlike| it.rows.iter().any(|row| &row.replica == name);
        HeatRow {
            short: shortened(name.as_str()),
            name: name.to_string(),
            bad: self.unlike.is_some_and(bad),
            middle: px(top + ROW / 2.0 - 0.5),
            cells,
            strokes,
            table: self
                .table_columns()
                .map(|(_, columns)| {
                    let worst = self.worst(columns, name);
                    worst.map_or_else(|| "–".into(), |(_, value)| self.measure.text(value))
                })
                .collect(),
        }
    }

    /// The worst of a replica's cells, with its value; None: none has one.
    fn worst(
        &self,
        columns: &[std::sync::Arc<hedgerow_core::view::ReplicaColumn>],
        name: &ReplicaName,
    ) -> Option<(ReplicaCell, f64)> {
        let cells = columns.iter().filter_map(|column| column.cell(name));
        let known = cells.filter_map(|cell| Some((*cell, self.measure.value(cell)?)));
        known.reduce(|a, b| {
            if self.measure.worse(a.1, b.1) == b.1 {
                b
            } else {
                a
            }
        })
    }

    fn cell_words(&self, at: Moment, name: &ReplicaName, cell: &ReplicaCell, value: f64) -> String {
        let value = self.measure.text(value);
        match self.measure {
            Measure::P95 => format!("{} {name}: p95 {value} ms, {} calls", clock(at), cell.calls),
            Measure::Wins => format!(
                "{} {name}: {} of {} hedges won, {value} %",
                clock(at),
                cell.won,
                cell.hedged
            ),
        }
    }

    fn together(&self) -> Vec<Bar> {
        let Some(unlike) = self.unlike else {
            return Vec::new();
        };
        let bars = unlike.columns.iter().map(|it| {
            let x0 = self.xs.at(it.from.as_millis() as f64).max(LEFT);
            let x1 = self.xs.at(it.until.as_millis() as f64);
            Bar {
                x: px(x0),
                width: px((x1 - x0 - 1.0).max(1.0)),
                words: format!("{} to {}: {}", clock(it.from), clock(it.until), of(it)),
            }
        });
        bars.collect()
    }

    /// The table's columns: the newest is last.
    fn table_columns(
        &self,
    ) -> impl Iterator<
        Item = (
            Moment,
            &'a [std::sync::Arc<hedgerow_core::view::ReplicaColumn>],
        ),
    > {
        let all: &'a [_] = &self.course.columns;
        let step = all.len().div_ceil(TABLE_COLUMNS).max(1);
        all.chunks(step)
            .map(|it| (it.last().map_or(Moment::default(), |it| it.at), it))
    }
}

/// Which replicas, those that stand out first, and how many are left out.
fn names<'a>(
    course: &'a ReplicaCourse,
    unlike: Option<&'a Unlike>,
) -> (Vec<&'a ReplicaName>, usize) {
    let all: BTreeSet<&ReplicaName> = course
        .columns
        .iter()
        .flat_map(|column| column.replicas.iter())
        .collect();
    let bad: Vec<&ReplicaName> = unlike
        .into_iter()
        .flat_map(|it| it.rows.iter().map(|row| &row.replica))
        .collect();
    let rest = all.iter().copied().filter(|name| !bad.contains(name));
    let mut names: Vec<&ReplicaName> = bad.iter().copied().chain(rest).collect();
    let beyond = names.len().saturating_sub(ROWS);
    names.truncate(ROWS);
    (names, beyond)
}

/// From the first column's beginning to the last one's end.
fn span(course: &ReplicaCourse) -> (Moment, Moment) {
    let first = course.columns.first();
    let from = first.map_or(0, |it| {
        let span = it.span.as_millis() as u64;
        it.at.as_millis().saturating_sub(span)
    });
    let to = course.columns.last().map_or(Moment::default(), |it| it.at);
    (Moment::from_millis(from), to)
}

/// The middle of what is known, where too little is known to say what stands out.
fn usual(course: &ReplicaCourse, measure: Measure) -> f64 {
    let cells = course.columns.iter().flat_map(|column| &column.cells);
    let mut values: Vec<f64> = cells.filter_map(|cell| measure.value(cell)).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(1.0)
}

/// A name's end: replicas of one service mostly begin alike.
fn shortened(name: &str) -> String {
    const ROOM: usize = 20;
    let letters = name.chars().count();
    if letters <= ROOM {
        return name.to_owned();
    }
    let end: String = name.chars().skip(letters - ROOM + 1).collect();
    format!("…{end}")
}

/// `9 of 10 replicas`, or all of them.
fn of(it: &Together) -> String {
    if it.bad == it.known {
        format!("all {} replicas", it.known)
    } else {
        format!("{} of {} replicas", it.bad, it.known)
    }
}

/// The bad replicas' names; how many of whose cells are bad.
fn rows_words(unlike: &Unlike) -> Option<(String, String)> {
    let first = unlike.rows.first()?;
    let shown = unlike.rows.iter().take(3);
    let names: Vec<&str> = shown.map(|it| it.replica.as_str()).collect();
    let more = unlike.rows.len() - names.len();
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let names = format!("{}{more}", names.join(", "));
    Some((names, format!("{} of {} times", first.bad, first.known)))
}

fn slow_words(unlike: Option<&Unlike>, budget: f64) -> String {
    let Some(unlike) = unlike else {
        return "Too little is known to say what is usual.".into();
    };
    let mut out = Vec::new();
    if let Some(now) = unlike.lasting() {
        out.push(format!(
            "A bad column: {} have been slow together since {}. That is a cause they share, and \
             ejecting one of them is no cure.",
            of(now),
            clock(now.from)
        ));
    }
    if let Some((names, times)) = rows_words(unlike) {
        let (is, itself, it) = match unlike.rows.len() {
            1 => ("is", "itself", "it"),
            _ => ("are", "themselves", "them"),
        };
        out.push(format!(
            "A bad row: {names} {is} slow by {itself}, {times}. Eject {it}: hedging can carry at most \
             {} of slow traffic.",
            percent_set(budget + CARRIED_BEYOND)
        ));
    }
    if let Some(over) = unlike.columns.last().filter(|it| !it.lasts) {
        out.push(format!(
            "{} were slow together from {} to {}, by a cause they shared; that is over.",
            capital(&of(over)),
            clock(over.from),
            clock(over.until)
        ));
    }
    if out.is_empty() {
        out.push("No replica stands out, and at no time were most of them slow together.".into());
    }
    out.push(format!(
        "Usual is {} ms; beyond {} ms it is marked.",
        significant(unlike.usual),
        significant(unlike.limit)
    ));
    out.join(" ")
}

fn losing_words(unlike: Option<&Unlike>) -> String {
    let Some(unlike) = unlike else {
        return "Too few hedges to say what is usual.".into();
    };
    let mut out = Vec::new();
    if let Some(now) = unlike.lasting() {
        out.push(format!(
            "A bad column: since {} hedges have lost on {}. A second replica is as slow as the first: \
             a cause they share.",
            clock(now.from),
            of(now)
        ));
    }
    if let Some((names, times)) = rows_words(unlike) {
        out.push(format!(
            "A bad row: hedges sent to {names} lose, {times}, where those sent to others win."
        ));
    }
    if let Some(over) = unlike.columns.last().filter(|it| !it.lasts) {
        out.push(format!(
            "Hedges lost on {} from {} to {}; that is over.",
            of(over),
            clock(over.from),
            clock(over.until)
        ));
    }
    if out.is_empty() {
        out.push("Hedges win alike on every replica.".into());
    }
    out.push(format!(
        "Usual is {}; under {} it is marked.",
        percent(unlike.usual),
        percent(unlike.limit)
    ));
    out.join(" ")
}

fn capital(words: &str) -> String {
    let mut chars = words.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}
