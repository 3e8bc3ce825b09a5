//! A replay for people: what it comes to in three lines, then its course.

use std::fmt::Write as _;
use std::time::Duration;

use hedgerow_core::whatif::{ASSUMED, Percentile, Replay, Row};
use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::policy::Policy;

use crate::whatif::figures::{column, percent, three_digits};

/// Rows of the course at most.
const ROWS: usize = 24;
/// Characters of a whole bar.
const BAR: f64 = 20.0;

/// What a policy asks for: `hedge at p95 within 8 %`.
pub(super) fn terms(policy: &Policy) -> String {
    format!(
        "{} {} within {}",
        policy.intent().as_str(),
        aim(policy),
        percent(policy.budget().get())
    )
}

/// The whole of it; `terms`: of the policy it was replayed with.
pub(super) fn text(route: &RouteKey, terms: &str, replay: &Replay) -> String {
    let mut text = format!(
        "{route}: {} minutes, {} calls, replayed with {terms}\n\n\
         hedged     {} of calls (then: {})\n",
        replay.rows.len(),
        replay.calls,
        share(replay.hedge_rate, replay.calls),
        share(replay.hedge_rate_then, replay.calls),
    );
    for (place, percentile) in Percentile::SHOWN.into_iter().enumerate() {
        let (with, without) = (replay.hedged[place], replay.unhedged[place]);
        put(
            &mut text,
            format_args!(
                "{:<10} {} ms instead of {}\n",
                percentile.to_string(),
                column(with),
                column(without)
            ),
        );
    }
    put(
        &mut text,
        format_args!(
            "off        {} minutes; over the alert's line {}\n\n",
            replay.minutes_off, replay.minutes_alerting
        ),
    );
    text.push_str("minutes ago    calls   delay ms   hedged   p99 without       with\n");
    let span = replay.rows.len().div_ceil(ROWS).max(1);
    let slowest = replay.rows.iter().filter_map(|row| row.unhedged_p99).max();
    let last = replay.rows.last().map(|row| row.at);
    for rows in replay.rows.chunks(span) {
        let ago = last.map_or(0, |last| last.since(rows[0].at).as_secs() / 60);
        text.push_str(&line(ago, rows, slowest));
    }
    text.push_str("\nbars: p99 with hedging █, without ░. Assumed:\n");
    for assumed in ASSUMED {
        put(&mut text, format_args!("- {assumed}\n"));
    }
    text.trim_end().to_owned()
}

/// What its threshold is for: a pool's objective before a goal, and a goal before the percentile.
fn aim(policy: &Policy) -> String {
    if let Some(objective) = policy.pool().and(policy.objective()) {
        return format!("for an answer in {} ms", column(Some(objective)));
    }
    match policy.goal() {
        Some(goal) => format!("for p{}", three_digits(goal.get() * 100.0)),
        None => format!("at p{}", three_digits(policy.percentile().get() * 100.0)),
    }
}

/// Of calls: of none there is no share.
fn share(hedges: f64, calls: u64) -> String {
    if calls > 0 {
        percent(hedges)
    } else {
        "unknown".into()
    }
}

/// A run of minutes: the worst p99 in it, so that nothing is hidden by a mean.
fn line(ago: u64, rows: &[Row], slowest: Option<Duration>) -> String {
    let calls = rows
        .iter()
        .fold(0_u64, |sum, row| sum.saturating_add(row.calls));
    let hedges: f64 = rows
        .iter()
        .map(|row| row.hedge_rate * row.calls as f64)
        .sum();
    let without = rows.iter().filter_map(|row| row.unhedged_p99).max();
    let with = rows.iter().filter_map(|row| row.hedged_p99).max();
    let delay = rows.iter().rev().find_map(|row| row.threshold);
    let off = rows.iter().find_map(|row| row.off);
    format!(
        "{ago:>11}  {calls:>7}  {:>9}  {:>7}  {:>12}  {:>9}  {}{}\n",
        delay.map_or_else(|| "-".into(), |delay| column(Some(delay))),
        if calls > 0 {
            percent(hedges / calls as f64)
        } else {
            "-".into()
        },
        column(without),
        column(with),
        bars(with, without, slowest),
        off.map_or_else(String::new, |off| format!(" off: {}", off.as_str())),
    )
}

/// A `String` takes whatever is written to it.
fn put(text: &mut String, more: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(more);
}

fn bars(with: Option<Duration>, without: Option<Duration>, whole: Option<Duration>) -> String {
    let length = |latency: Option<Duration>| {
        let whole = whole.map_or(0.0, |whole| whole.as_secs_f64());
        let share = latency.map_or(0.0, |latency| latency.as_secs_f64()) / whole.max(1e-9);
        (share.clamp(0.0, 1.0) * BAR).round() as usize
    };
    let (with, without) = (length(with), length(without));
    format!(
        "{}{}",
        "█".repeat(with),
        "░".repeat(without.saturating_sub(with))
    )
}
