//! How two policies differ, in words.

use hedgerow_protocol::policy::{Policy, PolicyDraft};

/// One line of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) field: &'static str,
    pub(super) before: String,
    pub(super) after: String,
}

/// What the controller aims at, as the form says it.
pub(super) fn aim_words(goal: Option<f64>) -> String {
    // Nine digits: a share written as 0.999 is p99.9 and not p99.90000000000001.
    let percent = |goal: f64| (goal * 1e9).round() / 1e7;
    goal.map_or_else(
        || "percentile".into(),
        |goal| format!("p{} under the budget", percent(goal)),
    )
}

/// Where two policies differ, in the form's order.
pub(super) fn changes(before: &Policy, after: &Policy) -> Vec<Change> {
    let rows = |p: &Policy| {
        let d = PolicyDraft::from(p.clone());
        let yes_no = |v: bool| if v { "yes".into() } else { "no".to_owned() };
        let ms = |v: Option<f64>| v.map_or_else(|| "no limit".into(), |v| format!("{v} ms"));
        [
            ("Hedging", d.intent.as_str().to_owned()),
            ("Aim", aim_words(d.goal)),
            ("Percentile", d.percentile.to_string()),
            ("Budget", d.budget.to_string()),
            ("Pool", d.pool.unwrap_or_else(|| "none".into())),
            (
                "Objective",
                d.objective_ms
                    .map_or_else(|| "none".into(), |v| format!("{v} ms")),
            ),
            ("Holdout", d.holdout.to_string()),
            ("Error limit", d.error_limit.to_string()),
            ("Threshold at least", ms(d.threshold_min_ms)),
            ("Threshold at most", ms(d.threshold_max_ms)),
            ("Probation", yes_no(d.probation)),
            ("Attempts", d.attempts.to_string()),
            ("Hedge on error", yes_no(d.hedge_on_error)),
        ]
    };
    rows(before)
        .into_iter()
        .zip(rows(after))
        .filter(|((_, before), (_, after))| before != after)
        .map(|((field, before), (_, after))| Change {
            field,
            before,
            after,
        })
        .collect()
}
