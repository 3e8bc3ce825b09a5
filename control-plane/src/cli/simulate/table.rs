//! A run for people: what came of it, its course in a few lines, and what happened when.

use std::fmt::{Arguments, Write as _};

use hedgerow_sim::outcome::Phase;
use hedgerow_sim::{Client, Outcome, Scenario, shipped};

use super::course;
use crate::whatif::figures::three_digits;

/// Lines told of one kind of event: what goes on like this is said by its number.
const TOLD: usize = 12;

/// The shipped scenarios by name.
pub(super) fn list() -> String {
    let mut text = String::from("hedgerow simulate SCENARIO, one of:\n\n");
    for each in shipped() {
        let title = Scenario::parse(each.text).map_or_else(|it| it.to_string(), |it| it.title);
        put(&mut text, format_args!("  {:<24} {title}\n", each.name));
    }
    text.push_str("\nor a file like theirs: --show prints one.");
    text
}

/// Everything but the seconds.
pub(super) fn text(outcome: &Outcome) -> String {
    let mut text = format!(
        "{}\n{}\n\n{} agents, {} calls a second, {} replicas, seed {}, {}\n\n",
        outcome.title,
        outcome.about,
        outcome.agents,
        outcome.calls_per_s,
        outcome.replicas,
        outcome.seed,
        outcome.client.as_str(),
    );
    text.push_str(
        "phase      from    to     calls  failed  hedged    p50 ms   p95 ms   p99 ms  p99.9 ms\n",
    );
    for phase in &outcome.phases {
        text.push_str(&row(phase));
    }
    text.push('\n');
    text.push_str(&course::text(outcome));
    if outcome.client == Client::Hedgerow {
        text.push_str(&summary(outcome));
    }
    happened(&mut text, outcome);
    text.trim_end().to_owned()
}

fn row(phase: &Phase) -> String {
    let waited = &phase.waited;
    format!(
        "{:<9} {:>5} {:>5} {:>9} {:>7} {:>7} {:>9} {:>8} {:>8} {:>9}\n",
        phase.name.as_str(),
        three_digits(phase.from_s),
        three_digits(phase.to_s),
        phase.calls,
        phase.failed,
        share(phase.hedge_rate),
        ms(waited.p50_ms),
        ms(waited.p95_ms),
        ms(waited.p99_ms),
        ms(waited.p999_ms),
    )
}

fn summary(outcome: &Outcome) -> String {
    let it = &outcome.summary;
    let after = |seconds: Option<f64>, what: &str| {
        seconds.map_or_else(String::new, |seconds| {
            format!(", {} s after {what}", three_digits(seconds))
        })
    };
    let mut text = format!(
        "went off {}{}; came back {}{}\nhedged {} of calls, {} in the worst second; {} seconds over the budget\n",
        times(it.offs),
        after(it.off_after_s, "it began"),
        times(it.ons),
        after(it.on_after_s, "it ended"),
        share(it.hedge_rate),
        share(it.hedge_rate_worst),
        it.seconds_over_budget,
    );
    if it.reports_refused > 0 {
        put(
            &mut text,
            format_args!(
                "{} reports refused: {}\n",
                it.reports_refused,
                it.report_refusal.as_deref().unwrap_or_default()
            ),
        );
    }
    text.push('\n');
    text
}

fn times(number: usize) -> String {
    match number {
        0 => "never".into(),
        1 => "once".into(),
        more => format!("{more} times"),
    }
}

/// Changes, named replicas, agents left out, alerts: in that order, each by time.
fn happened(text: &mut String, outcome: &Outcome) {
    let changes = outcome
        .changes
        .iter()
        .map(|it| format!("{:>7.1} s  {} to {}: {}", it.at_s, it.from, it.to, it.words));
    part(text, "changes", changes);
    let named = outcome.named.iter().map(|it| {
        format!(
            "{:>5}.0 s  {} named {:?} until {} s",
            it.from_s, it.replica, it.why, it.to_s
        )
        .to_lowercase()
    });
    part(text, "named", named);
    let left_out = outcome
        .quarantine
        .iter()
        .map(|(at, why)| format!("{at:>7.1} s  {why}"));
    part(text, "agents", left_out);
    let alerts = outcome.alerts.iter().map(|it| {
        let until = it
            .to_s
            .map_or_else(|| "to the end".into(), |to| format!("until {to:.1} s"));
        format!("{:>7.1} s  {} {until}: {}", it.from_s, it.rule, it.summary)
    });
    part(text, "alerts", alerts);
}

fn part(text: &mut String, head: &str, lines: impl ExactSizeIterator<Item = String>) {
    let all = lines.len();
    if all == 0 {
        return;
    }
    put(text, format_args!("{head}\n"));
    for line in lines.take(TOLD) {
        put(text, format_args!("{line}\n"));
    }
    if all > TOLD {
        put(text, format_args!("          and {} more\n", all - TOLD));
    }
    text.push('\n');
}

/// Milliseconds to three digits; a dash where not known.
pub(super) fn ms(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| three_digits(value).to_string())
}

/// In percent.
pub(super) fn share(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{:.1} %", value * 100.0))
}

/// A `String` takes whatever is written to it.
fn put(text: &mut String, more: Arguments<'_>) {
    let _ = text.write_fmt(more);
}
