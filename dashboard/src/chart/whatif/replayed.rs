//! Hours as they would have been, beside those that were.

use std::time::Duration;

use hedgerow_core::moment::Moment;
use hedgerow_core::whatif::{Replay, Row};
use hedgerow_protocol::units::as_millis;

use super::panels::{Panel, Panels, Series, Sheet};
use crate::chart::Level;
use crate::format::{clock_minutes, percent_set, significant};

/// Points of a line: more cannot be seen.
const POINTS: usize = 150;
/// Rows of the table behind the toggle.
const TABLE_ROWS: usize = 24;
/// Times a stretch's length that may be missing before there is a gap.
const GAP: u64 = 3;
const MINUTE_MS: u64 = 60_000;

/// Some minutes together.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    at: Moment,
    hedged: f64,
    hedged_then: f64,
    p99: Option<Duration>,
    p99_alone: Option<Duration>,
}

/// Hedges by their calls; of p99 the highest, so that a peak does not vanish.
fn stretch(rows: &[Row]) -> Stretch {
    let calls: f64 = rows
        .iter()
        .map(|row| row.calls as f64)
        .sum::<f64>()
        .max(1.0);
    let share = |of: fn(&Row) -> f64| {
        rows.iter()
            .map(|row| of(row) * row.calls as f64)
            .sum::<f64>()
            / calls
    };
    Stretch {
        at: rows.last().map_or_else(Moment::default, |row| row.at),
        hedged: share(|row| row.hedge_rate),
        hedged_then: share(|row| row.hedge_rate_then),
        p99: rows.iter().filter_map(|row| row.hedged_p99).max(),
        p99_alone: rows.iter().filter_map(|row| row.unhedged_p99).max(),
    }
}

fn stretches(replay: &Replay) -> Vec<Stretch> {
    let step = replay.rows.len().div_ceil(POINTS).max(1);
    replay.rows.chunks(step).map(stretch).collect()
}

/// Points over time, with a gap where minutes are missing.
fn line(all: &[Stretch], value: impl Fn(&Stretch) -> Option<f64>) -> Vec<Option<(f64, f64)>> {
    let steps = all.windows(2).map(|two| two[1].at.since(two[0].at));
    let usual = steps.min().map_or(MINUTE_MS, |it| it.as_millis() as u64);
    let mut out = Vec::with_capacity(all.len());
    let mut before: Option<u64> = None;
    for it in all {
        let at = it.at.as_millis();
        if before.is_some_and(|before| at.saturating_sub(before) > usual.max(MINUTE_MS) * GAP) {
            out.push(None);
        }
        before = Some(at);
        out.push(value(it).map(|value| (at as f64, value)));
    }
    out
}

/// Hedge rate and p99 under a policy, under the one in force where that is another, and as it was.
pub(crate) fn replay_chart(
    replay: &Replay,
    in_force: Option<&Replay>,
    budget: f64,
    summary: String,
) -> Option<Panels> {
    let own = stretches(replay);
    let other = in_force.map(stretches).unwrap_or_default();
    let (from, to) = (own.first()?.at.as_millis(), own.last()?.at.as_millis());
    let to = to.max(from + 1);
    let worst = if replay.rows.len() > POINTS {
        "ms, the worst minute of each point"
    } else {
        "ms"
    };
    let sheet = Sheet {
        id: "replay",
        title: "The hours under this policy".into(),
        summary,
        across: (from as f64, to as f64),
        ticks: hour_ticks(from, to),
        axis: "UTC",
        uprights: Vec::new(),
        panels: vec![
            Panel {
                title: "Callers' p99",
                unit: worst,
                top: 0.0,
                series: waits(&own, &other),
                levels: Vec::new(),
                dots: Vec::new(),
            },
            Panel {
                title: "Hedged",
                unit: "% of calls",
                top: budget * 130.0,
                series: rates(&own),
                levels: vec![Level {
                    label: format!("budget {}", percent_set(budget)),
                    class: "budget",
                    value: budget * 100.0,
                }],
                dots: Vec::new(),
            },
        ],
        head: vec![
            "Until",
            "Hedged %",
            "As it was %",
            "p99 ms",
            "p99 unhedged ms",
        ],
        rows: table(&own),
        nothing: "nothing is known of the latencies of these hours",
    };
    Some(sheet.layout())
}

/// The dotted line last: it lets what is beneath it be seen.
fn waits(own: &[Stretch], other: &[Stretch]) -> Vec<Series> {
    let wait = |of: fn(&Stretch) -> Option<Duration>| move |it: &Stretch| of(it).map(as_millis);
    let mut waits = vec![
        Series {
            label: "this policy",
            class: "treated",
            points: line(own, wait(|it| it.p99)),
        },
        Series {
            label: "no hedging",
            class: "holdout",
            points: line(own, wait(|it| it.p99_alone)),
        },
    ];
    if !other.is_empty() {
        let in_force = Series {
            label: "the one in force",
            class: "threshold",
            points: line(other, wait(|it| it.p99)),
        };
        waits.insert(1, in_force);
    }
    waits
}

fn rates(own: &[Stretch]) -> Vec<Series> {
    let rate = |of: fn(&Stretch) -> f64| move |it: &Stretch| Some(of(it) * 100.0);
    vec![
        Series {
            label: "as it was",
            class: "demand",
            points: line(own, rate(|it| it.hedged_then)),
        },
        Series {
            label: "this policy",
            class: "treated",
            points: line(own, rate(|it| it.hedged)),
        },
    ]
}

/// Whole hours, or parts of one, some six of them.
fn hour_ticks(from: u64, to: u64) -> Vec<(f64, String)> {
    let steps = [1, 5, 10, 15, 30, 60, 120, 240, 360].map(|minutes| minutes * MINUTE_MS);
    let step = steps.into_iter().find(|step| (to - from) / step <= 6);
    let step = step.unwrap_or(720 * MINUTE_MS);
    let first = from.div_ceil(step) * step;
    (first..=to)
        .step_by(step as usize)
        .map(|ms| (ms as f64, clock_minutes(Moment::from_millis(ms))))
        .collect()
}

fn table(all: &[Stretch]) -> Vec<Vec<String>> {
    let step = all.len().div_ceil(TABLE_ROWS).max(1);
    let wait = |value: Option<Duration>| {
        value.map_or_else(|| "–".to_owned(), |value| significant(as_millis(value)))
    };
    // Newest first, as in other tables over time.
    all.iter()
        .rev()
        .step_by(step)
        .map(|it| {
            vec![
                clock_minutes(it.at),
                significant(it.hedged * 100.0),
                significant(it.hedged_then * 100.0),
                wait(it.p99),
                wait(it.p99_alone),
            ]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: u64) -> Stretch {
        Stretch {
            at: Moment::from_millis(minute * MINUTE_MS),
            hedged: 0.05,
            hedged_then: 0.02,
            p99: None,
            p99_alone: None,
        }
    }

    #[test]
    fn missing_minutes_leave_a_gap_and_a_late_one_does_not() {
        let all = [at(1), at(2), at(4), at(90), at(91)];
        let points = line(&all, |it| Some(it.hedged));
        let gaps: Vec<_> = points.iter().map(Option::is_none).collect();
        assert_eq!(gaps, [false, false, false, true, false, false]);
    }

    #[test]
    fn a_day_has_few_ticks_and_a_minute_has_some() {
        let day = hour_ticks(0, 24 * 60 * MINUTE_MS);
        assert!((4..=7).contains(&day.len()), "{day:?}");
        assert!(!hour_ticks(0, 2 * MINUTE_MS).is_empty());
    }
}
