//! The course of a run as SVG: latencies, hedges, and the mode, over the same seconds.

use anyhow::anyhow;
use hedgerow_sim::{Outcome, Second};
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

const SIZE: (u32, u32) = (1100, 760);
/// Heights of the panels, the last takes the rest.
const PANELS: (u32, u32) = (360, 260);
const FONT: &str = "sans-serif";
const TEXT: u32 = 12;
const THRESHOLD: RGBColor = RGBColor(0x1b, 0x7f, 0x3b);
const CALLERS: RGBColor = RGBColor(0x1f, 0x5f, 0xbf);
const ALONE: RGBColor = RGBColor(0x8a, 0x8a, 0x8a);
const WRONG: RGBColor = RGBColor(0xc0, 0x39, 0x2b);
const BUDGET: RGBColor = RGBColor(0xb9, 0x77, 0x0e);
/// Names of the lines begin here, left of the panels' end.
const LEGEND: SeriesLabelPosition = SeriesLabelPosition::UpperLeft;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// Seconds to the right, something else upwards.
type Panel<'a, 'b, Y> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, Y>>;

/// One line of a panel.
struct Line {
    name: &'static str,
    colour: RGBColor,
    values: Vec<Option<f64>>,
}

/// Draws it.
pub(super) fn svg(outcome: &Outcome) -> anyhow::Result<String> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        fill(&area)?;
        let area = area.titled(&heading(outcome), (FONT, 20)).map_err(failed)?;
        let (above, below) = area.split_vertically(PANELS.0);
        let (middle, last) = below.split_vertically(PANELS.1);
        latencies(&above, outcome)?;
        rates(&middle, outcome)?;
        modes(&last, outcome)?;
        area.present().map_err(failed)?;
    }
    Ok(text)
}

fn heading(outcome: &Outcome) -> String {
    format!(
        "{} ({}, {} agents, {} calls/s, {} replicas, seed {})",
        outcome.title,
        outcome.client.as_str(),
        outcome.agents,
        outcome.calls_per_s,
        outcome.replicas,
        outcome.seed
    )
}

fn fill(area: &Area<'_>) -> anyhow::Result<()> {
    area.fill(&WHITE).map_err(failed)
}

fn latencies(area: &Area<'_>, outcome: &Outcome) -> anyhow::Result<()> {
    let line = |name, colour, figure: fn(&Second) -> Option<f64>| Line {
        name,
        colour,
        values: outcome.seconds.iter().map(figure).collect(),
    };
    let lines = [
        line("p99 without hedges", ALONE, |it| it.true_p99_ms),
        line("callers' p99", CALLERS, |it| it.waited_p99_ms),
        line("threshold", THRESHOLD, |it| it.agents_threshold_ms),
    ];
    let values = lines.iter().flat_map(|line| line.values.iter().flatten());
    let (least, most) = values
        .filter(|value| **value > 0.0)
        .fold((f64::MAX, 0.0_f64), |(least, most), value| {
            (least.min(*value), most.max(*value))
        });
    if most <= 0.0 {
        return Ok(());
    }
    let mut chart = panel(area)
        .build_cartesian_2d(
            0.0..length(outcome),
            ((least * 0.7)..(most * 1.4)).log_scale(),
        )
        .map_err(failed)?;
    frame(
        &mut chart,
        outcome,
        "ms, logarithmic",
        (least * 0.7, most * 1.4),
    )?;
    for line in lines {
        if line.values.iter().all(Option::is_none) {
            continue;
        }
        let colour = line.colour;
        for run in runs(&line.values) {
            chart
                .draw_series(LineSeries::new(run, colour.stroke_width(2)))
                .map_err(failed)?;
        }
        name(&mut chart, line.name, colour)?;
    }
    names(&mut chart)
}

/// Axes, and a shade where things are wrong.
fn frame<Y>(
    chart: &mut Panel<'_, '_, Y>,
    outcome: &Outcome,
    figure: &str,
    (low, high): (f64, f64),
) -> anyhow::Result<()>
where
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .label_style((FONT, TEXT))
        .x_label_formatter(&|value| format!("{value:.0}"))
        .axis_desc_style((FONT, TEXT))
        .y_desc(figure)
        .y_label_formatter(&|value| format!("{value:.0}"))
        .draw()
        .map_err(failed)?;
    if let Some((from, to)) = outcome.trouble_s {
        let shade = Rectangle::new([(from, low), (to, high)], WRONG.mix(0.08).filled());
        chart.draw_series([shade]).map_err(failed)?;
    }
    Ok(())
}

/// Tells what a line of this colour is.
fn name<Y: Ranged<ValueType = f64>>(
    chart: &mut Panel<'_, '_, Y>,
    name: &str,
    colour: RGBColor,
) -> anyhow::Result<()> {
    let empty: [(f64, f64); 0] = [];
    chart
        .draw_series(LineSeries::new(empty, colour))
        .map_err(failed)?
        .label(name)
        .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(3)));
    Ok(())
}

fn names<'a, 'b: 'a, Y: Ranged<ValueType = f64>>(
    chart: &mut Panel<'a, 'b, Y>,
) -> anyhow::Result<()> {
    chart
        .configure_series_labels()
        .position(LEGEND)
        .background_style(WHITE.mix(0.8))
        .draw()
        .map_err(failed)
}

fn rates(area: &Area<'_>, outcome: &Outcome) -> anyhow::Result<()> {
    let percent = |part: u64, of: u64| (of > 0).then(|| 100.0 * part as f64 / of as f64);
    let hedged: Vec<_> = outcome
        .seconds
        .iter()
        .map(|it| percent(it.hedged, it.calls))
        .collect();
    let budget: Vec<_> = outcome
        .seconds
        .iter()
        .map(|it| it.decided.as_ref().map(|it| it.budget * 100.0))
        .collect();
    let most = hedged
        .iter()
        .chain(&budget)
        .flatten()
        .copied()
        .fold(10.0, f64::max);
    let mut chart = panel(area)
        .build_cartesian_2d(0.0..length(outcome), 0.0..most * 1.1)
        .map_err(failed)?;
    frame(&mut chart, outcome, "hedges, % of calls", (0.0, most * 1.1))?;
    for run in runs(&hedged) {
        chart
            .draw_series(
                AreaSeries::new(run, 0.0, CALLERS.mix(0.25)).border_style(CALLERS.stroke_width(2)),
            )
            .map_err(failed)?;
    }
    for (line, colour, values) in [("hedged", CALLERS, None), ("budget", BUDGET, Some(&budget))] {
        for run in values.map(|values| runs(values)).unwrap_or_default() {
            chart
                .draw_series(LineSeries::new(run, colour.stroke_width(2)))
                .map_err(failed)?;
        }
        name(&mut chart, line, colour)?;
    }
    names(&mut chart)
}

/// A band of colour for the mode of each second, with the changes written on it.
fn modes(area: &Area<'_>, outcome: &Outcome) -> anyhow::Result<()> {
    let mut chart = panel(area)
        .build_cartesian_2d(0.0..length(outcome), 0.0..1.0)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .disable_mesh()
        .y_labels(0)
        .label_style((FONT, TEXT))
        .axis_desc_style((FONT, TEXT))
        .x_desc("seconds")
        .y_desc("mode")
        .x_label_formatter(&|value| format!("{value:.0}"))
        .draw()
        .map_err(failed)?;
    let bands = outcome.seconds.iter().filter_map(|second| {
        let mode = second.decided.as_ref()?.mode;
        let end = second.second as f64;
        Some(Rectangle::new(
            [(end - 1.0, 0.3), (end, 0.75)],
            colour(mode).filled(),
        ))
    });
    chart.draw_series(bands).map_err(failed)?;
    for change in &outcome.changes {
        let at = change.at_s;
        let line = PathElement::new([(at, 0.2), (at, 0.85)], BLACK);
        chart.draw_series([line]).map_err(failed)?;
        let words = match change.reason {
            Some(reason) => format!("{}: {reason}", change.to),
            None => change.to.to_owned(),
        };
        let text = Text::new(words, (at, 0.98), (FONT, TEXT));
        chart.draw_series([text]).map_err(failed)?;
    }
    Ok(())
}

fn colour(mode: &str) -> RGBColor {
    match mode {
        "on" => RGBColor(0x6f, 0xbf, 0x73),
        "probing" => RGBColor(0xf0, 0xb4, 0x4c),
        "off" => RGBColor(0xd9, 0x6b, 0x5f),
        _ => RGBColor(0xc8, 0xc8, 0xc8),
    }
}

fn panel<'a, 'b>(area: &'a Area<'b>) -> ChartBuilder<'a, 'b, SVGBackend<'b>> {
    let mut chart = ChartBuilder::on(area);
    chart
        .margin(8)
        .margin_right(24)
        .x_label_area_size(28)
        .y_label_area_size(60);
    chart
}

fn length(outcome: &Outcome) -> f64 {
    outcome.seconds.last().map_or(1.0, |it| it.second as f64)
}

/// The runs of known values: a gap is not drawn across.
fn runs(values: &[Option<f64>]) -> Vec<Vec<(f64, f64)>> {
    let mut runs = vec![Vec::new()];
    for (second, value) in values.iter().enumerate() {
        match (value, runs.last_mut()) {
            (Some(value), Some(run)) => run.push(((second + 1) as f64, *value)),
            (None, Some(run)) if !run.is_empty() => runs.push(Vec::new()),
            _ => {}
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

/// Drawing into a string fails for a reason of the library's only.
fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("the plot cannot be drawn: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_ends_a_line() {
        let known = [Some(1.0), None, None, Some(2.0), Some(3.0)];
        assert_eq!(
            runs(&known),
            [vec![(1.0, 1.0)], vec![(4.0, 2.0), (5.0, 3.0)]]
        );
        assert!(runs(&[None, None]).is_empty());
    }
}
