//! For people: a row for each delay, with a bar for what it costs and one for what is left of p99.

use std::time::Duration;

use hedgerow_core::whatif::{Advice, Distribution, Goal, Hedged, Percentile};
use hedgerow_protocol::units::Ratio;

use crate::whatif::figures::{column, percent};

/// Characters of a whole bar.
const BAR: f64 = 16.0;
/// Calls beyond a percentile under which it is a matter of luck: with ten, one standard error of
/// their number is a third of it.
const CALLS_BEYOND: f64 = 10.0;
/// An eighth of a character to seven of them.
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// The curve, with what it assumes.
pub(super) fn text(sample: &Distribution, rows: &[Hedged], phi: Ratio) -> String {
    let mut text = format!(
        "{} calls, {} different latencies, in milliseconds. A call that lasts longer than the delay is hedged;\n\
         its hedge is as slow as any call, and {}. What the extra load does is not in it.\n\n",
        sample.calls(),
        sample.values(),
        if phi == Ratio::ZERO {
            "independent of it".to_owned()
        } else {
            format!("shares {phi} of its slowness")
        }
    );
    text.push_str(&doubtful(sample));
    line(
        &mut text,
        "delay",
        "extra load",
        &Percentile::SHOWN.map(|percentile| percentile.to_string()),
        [&padded("extra load"), "p99"],
    );
    let unhedged = sample.percentile(Percentile::P99);
    let alone = Percentile::SHOWN.map(|percentile| column(sample.percentile(percentile)));
    line(&mut text, "none", "", &alone, [&bar(0.0), &bar(1.0)]);
    for row in rows {
        line(
            &mut text,
            &column(Some(row.delay)),
            &percent(row.extra_load),
            &row.latencies.map(column),
            [
                &bar(row.extra_load),
                &bar(left(row.at(Percentile::P99), unhedged)),
            ],
        );
    }
    if rows.is_empty() {
        text.push_str("\nAll calls take the same: there is no delay that some exceed.");
    }
    text.trim_end().to_owned()
}

/// Percentiles that rest on a handful of calls, named.
fn doubtful(sample: &Distribution) -> String {
    let few: Vec<_> = Percentile::SHOWN
        .into_iter()
        .filter(|percentile| sample.calls() as f64 * percentile.beyond() < CALLS_BEYOND)
        .map(|percentile| percentile.to_string())
        .collect();
    if few.is_empty() {
        return String::new();
    }
    format!(
        "Fewer than {CALLS_BEYOND} calls are beyond {}: exact for this sample, a guess for the next.\n\n",
        few.join(", ")
    )
}

/// What is best for a goal, or why nothing is.
pub(super) fn best(goal: &Goal, best: &Advice) -> String {
    let budget = percent(goal.budget.get());
    let told = match best {
        Advice::Hedge(plan) => format!(
            "{} ms instead of {}.\nHedge {} of the calls that last longer than {} ms: {} extra load.",
            column(Some(plan.reached)),
            column(plan.unhedged),
            percent(plan.probability),
            column(Some(plan.delay)),
            percent(plan.extra_load),
        ),
        Advice::Leave(why) => format!("do not hedge.\n{why}."),
    };
    format!(
        "\n\n{} at {budget} extra load at most: {told}",
        goal.percentile
    )
}

pub(super) fn line(
    text: &mut String,
    delay: &str,
    load: &str,
    latencies: &[String; 5],
    bars: [&str; 2],
) {
    let latencies = latencies.each_ref().map(|latency| format!("{latency:>8}"));
    let line = format!(
        "{delay:>10}  {load:>10}  {}   {}  {}",
        latencies.join("  "),
        bars[0],
        bars[1]
    );
    text.push_str(line.trim_end());
    text.push('\n');
}

/// How much of a latency is left.
fn left(hedged: Option<Duration>, unhedged: Option<Duration>) -> f64 {
    match (hedged, unhedged) {
        (Some(hedged), Some(unhedged)) if !unhedged.is_zero() => {
            hedged.as_secs_f64() / unhedged.as_secs_f64()
        }
        // Nothing to compare with.
        _ => 0.0,
    }
}

/// A share as a bar, padded to the whole one's width.
pub(super) fn bar(share: f64) -> String {
    let eighths = (share.clamp(0.0, 1.0) * BAR * 8.0).round() as usize;
    // What is there is seen.
    let eighths = if share > 0.0 { eighths.max(1) } else { eighths };
    let mut bar = "█".repeat(eighths / 8);
    if let Some(part) = (eighths % 8).checked_sub(1) {
        bar.push(EIGHTHS[part]);
    }
    padded(&bar)
}

/// To the width of a whole bar.
pub(super) fn padded(text: &str) -> String {
    format!("{text:<width$}", width = BAR as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_what_they_show() {
        for (share, expected) in [
            (0.0, ""),
            (0.000_001, "▏"),
            (1.0 / 16.0, "█"),
            (0.1, "█▋"),
            (0.5, "████████"),
            (1.0, "████████████████"),
            (1.5, "████████████████"),
        ] {
            let bar = bar(share);
            assert_eq!(bar.trim_end(), expected, "{share}");
            assert_eq!(bar.chars().count(), 16);
        }
    }
}
