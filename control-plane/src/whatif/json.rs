//! For programs: the curve with the names of the lab's file, and what is best for a goal.

use std::time::Duration;

use hedgerow_core::whatif::{Advice, Distribution, Goal, Hedged, Percentile};
use serde::Serialize;
use serde_json::Number;

use super::figures::{millis, number, three_digits};
use super::outcome;

/// Null where a figure is not known.
pub(crate) type Figure = Option<Number>;

#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    unhedged_ms: Percentiles,
    hedged: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    goal: Option<Best>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Percentiles {
    p50: Figure,
    p90: Figure,
    p95: Figure,
    p99: Figure,
    #[serde(rename = "p99.9")]
    p99_9: Figure,
}

#[derive(Debug, Serialize)]
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

#[derive(Debug, Serialize)]
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

impl Answer {
    /// The curve, and what is best for a goal.
    pub(crate) fn new(
        sample: &Distribution,
        curve: &[Hedged],
        goal: Option<(&Goal, &Advice)>,
    ) -> Self {
        Self {
            unhedged_ms: unhedged(sample),
            hedged: curve.iter().map(row).collect(),
            goal: goal.map(|(goal, best)| self::best(sample, goal, best)),
        }
    }
}

/// The curve, with what is best under "goal" where there is one; or that alone.
pub(crate) fn text(
    sample: &Distribution,
    curve: Option<&[Hedged]>,
    goal: Option<(&Goal, &Advice)>,
) -> anyhow::Result<String> {
    let text = match (curve, goal) {
        (None, Some((goal, advice))) => serde_json::to_string(&best(sample, goal, advice))?,
        (curve, goal) => {
            serde_json::to_string(&Answer::new(sample, curve.unwrap_or_default(), goal))?
        }
    };
    Ok(text)
}

impl Percentiles {
    /// Of those a curve shows, in their order.
    pub(crate) fn new(latencies: [Option<Duration>; Percentile::SHOWN.len()]) -> Self {
        let [p50, p90, p95, p99, p99_9] = latencies.map(figure);
        Self {
            p50,
            p90,
            p95,
            p99,
            p99_9,
        }
    }
}

fn unhedged(sample: &Distribution) -> Percentiles {
    Percentiles::new(Percentile::SHOWN.map(|it| sample.percentile(it)))
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

pub(crate) fn figure(latency: Option<Duration>) -> Figure {
    latency.and_then(|latency| number(millis(latency)))
}
