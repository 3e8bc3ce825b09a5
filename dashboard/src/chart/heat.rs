//! Replicas over time as a heatmap: a row a replica, a column a moment.

mod words;

use std::collections::BTreeSet;

use askama::Template;
use askama::filters::HtmlSafe;
use hedgerow_core::moment::Moment;
use hedgerow_core::view::{ReplicaCell, ReplicaCourse, Unlike};
use hedgerow_protocol::ids::ReplicaName;

use super::scale::{Scale, px, time_ticks};
use crate::format::{clock, significant};
use crate::fragment::Fragment;
pub(crate) use words::CARRIED_BEYOND;
use words::{losing_words, of, slow_words};

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

/// A heatmap, laid out.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/heat.html")]
pub(crate) struct Heat {
    id: &'static str,
    title: &'static str,
    unit: &'static str,
    map: HeatMap,
    words: HeatWords,
}

impl HtmlSafe for Heat {}

impl Heat {
    /// Its two parts, by the ids of the elements they are in. The map is put in place whole: thousands
    /// of boxes, all of them somewhere else than before.
    pub(crate) fn fragments(&self) -> [Fragment; 2] {
        [
            Fragment::whole(format!("{}-map", self.id), &self.map),
            Fragment::inner(format!("{}-words", self.id), &self.words),
        ]
    }
}

/// What is drawn.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/heat-map.html")]
struct HeatMap {
    id: &'static str,
    title: &'static str,
    unit: &'static str,
    summary: String,
    rows: Vec<HeatRow>,
    ticks: Vec<(String, String)>,
    together: Vec<Bar>,
    height: String,
    width: String,
    right: String,
    ticks_at: String,
}

impl HtmlSafe for HeatMap {}

/// What it means, and its table.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/heat-words.html")]
struct HeatWords {
    id: &'static str,
    summary: String,
    /// None: nothing is drawn.
    legend: Option<[String; 5]>,
    rows: Vec<TableRow>,
    head: Vec<String>,
    beyond: usize,
    joined: usize,
}

impl HtmlSafe for HeatWords {}

#[derive(Debug, Clone)]
struct TableRow {
    name: String,
    bad: bool,
    cells: Vec<String>,
}

#[derive(Debug, Clone)]
struct HeatRow {
    name: String,
    short: String,
    bad: bool,
    middle: String,
    cells: Vec<Cell>,
    /// Strokes over what is bad: seen without colours.
    strokes: String,
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

    /// Id, title and unit.
    const fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::P95 => ("heat-p95", "p95 by replica", "ms"),
            Self::Wins => (
                "heat-wins",
                "Hedges won by replica",
                "% of hedges sent to it",
            ),
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
        let drawn = rows.iter().any(|row| !row.cells.is_empty());
        let (id, title, unit) = self.measure.names();
        let words = HeatWords {
            id,
            summary: summary.clone(),
            legend: drawn.then(|| self.measure.legend(self.usual)),
            rows: self.names.iter().map(|name| self.table_row(name)).collect(),
            head: self.table_columns().map(|(at, _)| clock(at)).collect(),
            beyond: self.beyond,
            joined: self.joined,
        };
        let map = HeatMap {
            id,
            title,
            unit,
            summary,
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
        };
        Heat {
            id,
            title,
            unit,
            map,
            words,
        }
    }

    fn is_bad(&self, name: &ReplicaName) -> bool {
        let bad = |it: &Unlike| it.rows.iter().any(|row| &row.replica == name);
        self.unlike.is_some_and(bad)
    }

    fn table_row(&self, name: &ReplicaName) -> TableRow {
        let cells = self.table_columns().map(|(_, columns)| {
            let worst = self.worst(columns, name);
            worst.map_or_else(|| "–".into(), |(_, value)| self.measure.text(value))
        });
        TableRow {
            name: name.to_string(),
            bad: self.is_bad(name),
            cells: cells.collect(),
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
        HeatRow {
            short: shortened(name.as_str()),
            name: name.to_string(),
            bad: self.is_bad(name),
            middle: px(top + ROW / 2.0 - 0.5),
            cells,
            strokes,
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
