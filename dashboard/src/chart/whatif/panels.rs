//! Panels over one axis: what is gained above, what it costs below, at the same place from left to
//! right.

use askama::Template;
use askama::filters::HtmlSafe;

use crate::chart::scale::{Scale, nice_ticks, path, px, spread};
use crate::chart::{Level, tick_text};

const WIDTH: f64 = 620.0;
const LEFT: f64 = 44.0;
/// Room for the lines' names.
const RIGHT: f64 = 126.0;
/// Room for the first panel's name.
const TOP: f64 = 24.0;
/// Room for the uprights' names, above it.
const NAMES: f64 = 20.0;
const PANEL: f64 = 132.0;
/// Between two panels: the lower one's name.
const GAP: f64 = 28.0;
const BOTTOM: f64 = 24.0;
const LABEL_STEP: f64 = 13.0;
/// Least distance of two uprights' names.
const NAME_STEP: f64 = 128.0;

/// What is drawn, in figures.
#[derive(Debug, Clone)]
pub(super) struct Sheet {
    pub(super) id: &'static str,
    pub(super) title: String,
    /// In words.
    pub(super) summary: String,
    /// From and to on the axis that the panels share, and its ticks.
    pub(super) across: (f64, f64),
    pub(super) ticks: Vec<(f64, String)>,
    /// What the axis is of.
    pub(super) axis: &'static str,
    pub(super) uprights: Vec<Upright>,
    pub(super) panels: Vec<Panel>,
    /// The table behind the toggle.
    pub(super) head: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
    /// Said where there is nothing to draw.
    pub(super) nothing: &'static str,
}

/// A place on the axis, drawn through all panels.
#[derive(Debug, Clone)]
pub(super) struct Upright {
    pub(super) at: f64,
    pub(super) label: String,
    pub(super) class: &'static str,
}

/// One of the panels.
#[derive(Debug, Clone)]
pub(super) struct Panel {
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    /// Its axis reaches at least so far.
    pub(super) top: f64,
    pub(super) series: Vec<Series>,
    pub(super) levels: Vec<Level>,
    pub(super) dots: Vec<Dot>,
}

/// A line.
#[derive(Debug, Clone)]
pub(super) struct Series {
    pub(super) label: &'static str,
    pub(super) class: &'static str,
    /// None leaves a gap.
    pub(super) points: Vec<Option<(f64, f64)>>,
}

/// A point of its own, named in its tooltip.
#[derive(Debug, Clone)]
pub(super) struct Dot {
    pub(super) at: (f64, f64),
    pub(super) class: &'static str,
    pub(super) words: String,
}

/// Laid out.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/panels.html")]
pub(crate) struct Panels {
    id: &'static str,
    title: String,
    summary: String,
    width: String,
    height: String,
    right: String,
    names: String,
    middle: String,
    axis_y: String,
    axis: &'static str,
    x_ticks: Vec<Place>,
    uprights: Vec<Line>,
    drawn: Vec<Drawn>,
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    nothing: Option<&'static str>,
}

impl HtmlSafe for Panels {}

/// A text at a place.
#[derive(Debug, Clone)]
struct Place {
    at: String,
    class: &'static str,
    text: String,
}

/// A path with its name.
#[derive(Debug, Clone)]
struct Line {
    path: String,
    name: Place,
}

#[derive(Debug, Clone)]
struct Mark {
    x: String,
    y: String,
    /// A round point, or one on its corner.
    round: bool,
    class: &'static str,
    corner: String,
    words: String,
}

#[derive(Debug, Clone)]
struct Drawn {
    title: &'static str,
    unit: &'static str,
    title_y: String,
    y_ticks: Vec<Place>,
    levels: Vec<(&'static str, String)>,
    lines: Vec<(&'static str, String)>,
    labels: Vec<Place>,
    dots: Vec<Mark>,
}

impl Sheet {
    /// Lays it out.
    pub(super) fn layout(self) -> Panels {
        let count = self.panels.len() as f64;
        let top = if self.uprights.is_empty() {
            TOP
        } else {
            TOP + NAMES
        };
        let floor = top + count * PANEL + (count - 1.0).max(0.0) * GAP;
        let (from, to) = self.across;
        let xs = Scale::new(from, to, LEFT, WIDTH - RIGHT);
        let drawn: Vec<_> = self
            .panels
            .iter()
            .enumerate()
            .map(|(i, panel)| panel.layout(&xs, top + i as f64 * (PANEL + GAP)))
            .collect();
        let empty = drawn.iter().all(|panel| panel.lines.is_empty());
        Panels {
            width: px(WIDTH),
            height: px(floor + BOTTOM),
            right: px(WIDTH - RIGHT),
            names: px(WIDTH - RIGHT + 7.0),
            middle: px(f64::midpoint(LEFT, WIDTH - RIGHT)),
            axis_y: px(floor + 16.0),
            axis: self.axis,
            x_ticks: self
                .ticks
                .iter()
                .map(|(at, text)| Place {
                    at: px(xs.at(*at)),
                    class: "tx",
                    text: text.clone(),
                })
                .collect(),
            uprights: uprights(&self.uprights, &xs, floor),
            drawn,
            nothing: empty.then_some(self.nothing),
            id: self.id,
            title: self.title,
            summary: self.summary,
            head: self.head,
            rows: self.rows,
        }
    }
}

fn uprights(all: &[Upright], xs: &Scale, floor: f64) -> Vec<Line> {
    let mut sorted: Vec<&Upright> = all.iter().collect();
    sorted.sort_by(|a, b| a.at.total_cmp(&b.at));
    let wanted: Vec<f64> = sorted.iter().map(|it| xs.at(it.at)).collect();
    let half = NAME_STEP / 2.0;
    let names = spread(&wanted, NAME_STEP, LEFT + half, WIDTH - half);
    sorted
        .into_iter()
        .zip(wanted.iter().zip(names))
        .map(|(it, (x, name))| Line {
            path: format!("M{} 16V{}", px(*x), px(floor)),
            name: Place {
                at: px(name),
                class: it.class,
                text: it.label.clone(),
            },
        })
        .collect()
}

impl Panel {
    fn layout(&self, xs: &Scale, top: f64) -> Drawn {
        let values = self.series.iter().flat_map(|it| it.points.iter().flatten());
        let highest = values
            .map(|point| point.1)
            .chain(self.dots.iter().map(|dot| dot.at.1))
            .fold(self.top, f64::max);
        let ticks = nice_ticks(highest, 3);
        let most = ticks.last().copied().unwrap_or(1.0);
        let ys = Scale::new(0.0, most, top + PANEL, top);
        let place = |(x, y): (f64, f64)| (xs.at(x), ys.at(y));
        Drawn {
            title: self.title,
            unit: self.unit,
            title_y: px(top - 9.0),
            y_ticks: ticks
                .iter()
                .map(|tick| Place {
                    at: px(ys.at(*tick)),
                    class: "ty",
                    text: tick_text(*tick),
                })
                .collect(),
            levels: self
                .levels
                .iter()
                .filter(|it| it.value <= most)
                .map(|it| (it.class, px(ys.at(it.value))))
                .collect(),
            lines: self
                .series
                .iter()
                .map(|it| {
                    let points = it.points.iter().map(|point| point.map(place));
                    (it.class, path(points))
                })
                .filter(|(_, path)| !path.is_empty())
                .collect(),
            labels: self.labels(&ys, top, most),
            dots: self.dots.iter().map(|dot| mark(dot, place)).collect(),
        }
    }

    /// Names beside the ends of lines and levels, moved apart where they would touch.
    fn labels(&self, ys: &Scale, top: f64, most: f64) -> Vec<Place> {
        let series = self.series.iter().filter_map(|it| {
            let (_, y) = it.points.iter().flatten().next_back()?;
            Some((ys.at(*y), it.class, it.label.to_owned()))
        });
        let levels = self.levels.iter().filter(|it| it.value <= most);
        let levels = levels.map(|it| (ys.at(it.value), it.class, it.label.clone()));
        let mut labels: Vec<_> = series.chain(levels).collect();
        labels.sort_by(|a, b| a.0.total_cmp(&b.0));
        let wanted: Vec<f64> = labels.iter().map(|it| it.0).collect();
        let places = spread(&wanted, LABEL_STEP, top, top + PANEL + 4.0);
        labels
            .into_iter()
            .zip(places)
            .map(|((_, class, text), y)| Place {
                at: px(y),
                class,
                text,
            })
            .collect()
    }
}

fn mark(dot: &Dot, place: impl Fn((f64, f64)) -> (f64, f64)) -> Mark {
    let (x, y) = place(dot.at);
    Mark {
        corner: format!("M{} {}l5.5 5.5-5.5 5.5-5.5-5.5z", px(x), px(y - 5.5)),
        x: px(x),
        y: px(y),
        round: dot.class == "now",
        class: dot.class,
        words: dot.words.clone(),
    }
}

/// Ticks of an axis on which equal steps are equal factors: 1, 2 and 5 times powers of ten, or the
/// powers alone where those are many. Places are natural logarithms.
pub(super) fn factor_ticks(from: f64, to: f64) -> Vec<(f64, String)> {
    // A hair, for what logarithms lose.
    let (from, to) = (from.exp() * (1.0 - 1e-9), to.exp() * (1.0 + 1e-9));
    let powers = from.log10().floor() as i32..=to.log10().ceil() as i32;
    let steps: &[f64] = if to / from > 300.0 {
        &[1.0]
    } else {
        &[1.0, 2.0, 5.0]
    };
    let ticks = powers.flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
    ticks
        .filter(|tick| (from..=to).contains(tick))
        .map(|tick| (tick.ln(), tick_text(tick)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_factors_stay_few() {
        let texts = |from: f64, to: f64| -> Vec<String> {
            let ticks = factor_ticks(from.ln(), to.ln());
            ticks.into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(texts(4.0, 60.0), ["5", "10", "20", "50"]);
        assert_eq!(texts(0.5, 2.0), ["0.5", "1", "2"]);
        assert_eq!(texts(1.0, 1000.0), ["1", "10", "100", "1 k"]);
    }
}
