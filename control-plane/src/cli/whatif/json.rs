//! For programs: the curve with the names of the lab's file, and what is best for a goal.

use std::time::Duration;

use hedgerow_core::whatif::{Advice, Distribution, Goal, Hedged, Percentile};
use serde::Serialize;
use serde_json::Number;

use super::figures::{millis, number, three_digits};
use super::outcome;

/// Null where a figure is not known.
type Figure = Option<Number>;

#[derive(Serialize)]
struct Answer {
    unhedged_ms: Unhedged,
    hedged: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    goal: Option<Best>,
}

#[derive(Serialize)]
struct Unhedged {
    p50: Figure,
    p90: Figure,
    p95: Figure,
    p99: Figure,
    #[serde(rename = "p99.9")]
    p99_9: Figure,
}

#[derive(Serialize)]
struct Row {
    delay_ms: Figure,
    extra_load: Figure,
    p50_ms: Figure,
    p90_ms: Figure,
    p95_ms: Figure,
    p99_ms: Figure,
    #[serde(rename = "p99.9_ms")]
    p99_9_ms: Figure,
}

#[derive(Serialize)]
struct Best {
    /// Null: do not hedge.
    delay_ms: Figure,
    probability: Figure,
    extra_load: Figure,
    goal_ms: Figure,
    /// Why not to hedge.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// The curve, with what is best under "goal" where there is one; or that alone.
pub(super) fn text(
    sample: &Distribution,
    curve: Option<&[Hedged]>,
    goal: Option<(&Goal, &Advice)>,
) -> anyhow::Result<String> {
    let goal = goal.map(|(goal, best)| self::best(sample, goal, best));
    let text = match (curve, goal) {
        (None, Some(best)) => serde_json::to_string(&best)?,
        (curve, goal) => serde_json::to_string(&Answer {
            unhedged_ms: unhedged(sample),
            hedged: curve.unwrap_or_default().iter().map(row).collect(),
            goal,
        })?,
    };
    Ok(text)
}

fn unhedged(sample: &Distribution) -> Unhedged {
    let [p50, p90, p95, p99, p99_9] = Percentile::SHOWN.map(|it| figure(sample.percentile(it)));
    Unhedged {
        p50,
        p90,
        p95,
        p99,
        p99_9,
    }
}

fn row(hedged: &Hedged) -> Row {
    let [p50_ms, p90_ms, p95_ms, p99_ms, p99_9_ms] = hedged.latencies.map(figure);
    Row {
        delay_ms: figure(Some(hedged.delay)),
        extra_load: number(hedged.extra_load),
        p50_ms,
        p90_ms,
        p95_ms,
        p99_ms,
        p99_9_ms,
    }
}

fn best(sample: &Distribution, goal: &Goal, best: &Advice) -> Best {
    let goal_ms = figure(outcome(sample, goal, best));
    match best {
        Advice::Hedge(plan) => Best {
            delay_ms: figure(Some(plan.delay)),
            probability: number(three_digits(plan.probability)),
            extra_load: number(three_digits(plan.extra_load)),
            goal_ms,
            reason: None,
        },
        Advice::Leave(why) => Best {
            delay_ms: None,
            probability: number(0.0),
            extra_load: number(0.0),
            goal_ms,
            reason: Some(why.to_string()),
        },
    }
}

fn figure(latency: Option<Duration>) -> Figure {
    latency.and_then(|latency| number(millis(latency)))
}
