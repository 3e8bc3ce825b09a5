//! The same charts as figures, for zooming.

use hedgerow_core::moment::Moment;
use serde::Serialize;

use super::{Plot, sign_of};

/// Charts of one route over one span.
#[derive(Debug, Serialize)]
pub(crate) struct CourseData {
    from: Moment,
    to: Moment,
    charts: Vec<ChartData>,
    marks: Vec<MarkData>,
    /// Times in which hedging was off.
    off: Vec<(Moment, Moment)>,
}

#[derive(Debug, Serialize)]
struct ChartData {
    id: &'static str,
    title: &'static str,
    unit: &'static str,
    /// Milliseconds since 1970.
    at: Vec<Moment>,
    series: Vec<SeriesData>,
    areas: Vec<AreaData>,
    levels: Vec<LevelData>,
    top: f64,
}

#[derive(Debug, Serialize)]
struct SeriesData {
    label: &'static str,
    class: &'static str,
    values: Vec<Option<f64>>,
}

#[derive(Debug, Serialize)]
struct AreaData {
    label: &'static str,
    class: &'static str,
    low: Vec<Option<f64>>,
    high: Vec<Option<f64>>,
}

#[derive(Debug, Serialize)]
struct LevelData {
    label: String,
    class: &'static str,
    value: f64,
}

#[derive(Debug, Serialize)]
struct MarkData {
    at: Moment,
    class: &'static str,
    glyph: &'static str,
    words: String,
    href: String,
}

impl CourseData {
    /// Of charts that share their span and their marks. None: there are none.
    pub(crate) fn new(plots: Vec<Plot>) -> Option<Self> {
        let first = plots.first()?;
        let marks = first.events.iter().map(|event| {
            let (class, glyph) = sign_of(event.kind);
            MarkData {
                at: event.at,
                class,
                glyph,
                words: event.words.clone(),
                href: event.href.clone(),
            }
        });
        Some(Self {
            from: first.from,
            to: first.to,
            marks: marks.collect(),
            off: first.off.clone(),
            charts: plots.into_iter().map(ChartData::new).collect(),
        })
    }
}

/// With None before each place where the line breaks.
fn broken<T: Clone>(values: &[Option<T>], breaks: &[bool]) -> Vec<Option<T>> {
    let each = values.iter().zip(breaks);
    each.flat_map(|(value, breaks)| {
        let gap = breaks.then_some(None);
        gap.into_iter().chain([value.clone()])
    })
    .collect()
}

/// The moments, with one more in the middle of each gap.
fn moments(plot: &Plot, breaks: &[bool]) -> Vec<Moment> {
    let mut out: Vec<Moment> = Vec::with_capacity(plot.moments.len());
    for (at, breaks) in plot.moments.iter().zip(breaks) {
        if let Some(before) = out.last().filter(|_| *breaks) {
            let middle = u64::midpoint(before.as_millis(), at.as_millis());
            out.push(Moment::from_millis(middle));
        }
        out.push(*at);
    }
    out
}

impl ChartData {
    fn new(plot: Plot) -> Self {
        let breaks = plot.breaks();
        let at = moments(&plot, &breaks);
        let series = plot.series.into_iter().map(|it| SeriesData {
            label: it.label,
            class: it.class,
            values: broken(&it.values, &breaks),
        });
        let areas = plot.areas.into_iter().map(|it| {
            let values = broken(&it.values, &breaks);
            AreaData {
                label: it.label,
                class: it.class,
                low: values.iter().map(|v| v.map(|(low, _)| low)).collect(),
                high: values
                    .iter()
                    .map(|v| v.and_then(|(_, high)| high))
                    .collect(),
            }
        });
        let levels = plot.levels.into_iter().map(|it| LevelData {
            label: it.label,
            class: it.class,
            value: it.value,
        });
        Self {
            id: plot.id,
            title: plot.title,
            unit: plot.unit,
            at,
            series: series.collect(),
            areas: areas.collect(),
            levels: levels.collect(),
            top: plot.top,
        }
    }
}
