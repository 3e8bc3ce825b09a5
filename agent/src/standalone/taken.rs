//! What the log says of policies that were taken: each dependency's, by the fields that changed.

use std::collections::BTreeSet;

use hedgerow_protocol::limits::ROUTES_PER_AGENT_MAX;
use hedgerow_protocol::policy::{Policy, PolicyDraft, PolicyScope};

use super::policies::Policies;

/// Most dependencies told of one by one: more than an agent has routes is for the file's author.
const LINES_MAX: usize = ROUTES_PER_AGENT_MAX;

/// What became of one policy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Taken<'a> {
    pub(super) scope: &'a PolicyScope,
    /// `taken`, `changed` or `no longer in the file`.
    pub(super) what: &'static str,
    /// Fields and values, `budget 0.08 -> 0.05` where they changed.
    pub(super) fields: String,
}

/// What is different. `before`: None at start.
pub(super) fn taken<'a>(before: Option<&'a Policies>, now: &'a Policies) -> Vec<Taken<'a>> {
    let of = |policies: Option<&'a Policies>| policies.into_iter().flat_map(Policies::iter);
    let names: BTreeSet<_> = of(before)
        .chain(of(Some(now)))
        .map(|(name, _)| name)
        .collect();
    let one = |scope| {
        let was = before.and_then(|before| before.own(scope));
        let (what, fields) = match (was, now.own(scope)) {
            (Some(was), Some(is)) if was == is => return None,
            (Some(was), Some(is)) => ("changed", changed(was, is)),
            (None, Some(is)) => ("taken", all(is)),
            (_, None) => ("no longer in the file", String::new()),
        };
        Some(Taken {
            scope,
            what,
            fields,
        })
    };
    names.into_iter().filter_map(one).collect()
}

/// Writes them to the log.
pub(super) fn tell(before: Option<&Policies>, now: &Policies) {
    let all = taken(before, now);
    for taken in all.iter().take(LINES_MAX) {
        let Taken {
            scope,
            what,
            fields,
        } = taken;
        tracing::info!(dependency = %scope, fields, "policy {what}");
    }
    let more = all.len().saturating_sub(LINES_MAX);
    if more > 0 {
        tracing::info!(more, "further policies are not told of one by one");
    }
}

fn fields(policy: &Policy) -> [(&'static str, String); 13] {
    let draft = PolicyDraft::from(policy.clone());
    let none = || "none".to_owned();
    let ms = |limit: Option<f64>| limit.map_or_else(none, |ms| ms.to_string());
    [
        ("intent", draft.intent.as_str().to_owned()),
        ("percentile", draft.percentile.to_string()),
        ("budget", draft.budget.to_string()),
        ("holdout", draft.holdout.to_string()),
        ("error_limit", draft.error_limit.to_string()),
        ("threshold_min_ms", ms(draft.threshold_min_ms)),
        ("threshold_max_ms", ms(draft.threshold_max_ms)),
        ("probation", draft.probation.to_string()),
        ("attempts", draft.attempts.to_string()),
        ("hedge_on_error", draft.hedge_on_error.to_string()),
        ("goal", draft.goal.map_or_else(none, |it| it.to_string())),
        ("pool", draft.pool.unwrap_or_else(none)),
        ("objective_ms", ms(draft.objective_ms)),
    ]
}

fn all(policy: &Policy) -> String {
    let each = fields(policy).map(|(name, value)| format!("{name} {value}"));
    each.join(", ")
}

fn changed(was: &Policy, is: &Policy) -> String {
    let both = fields(was).into_iter().zip(fields(is));
    let changed = both.filter(|(was, is)| was != is);
    let each = changed.map(|((name, was), (_, is))| format!("{name} {was} -> {is}"));
    each.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policies(text: &str) -> Policies {
        Policies::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn what_was_taken_is_told_by_the_fields_that_changed() {
        let before = policies(
            "[[policy]]\ndependency = \"a\"\nintent = \"hedge\"\n\
             [[policy]]\ndependency = \"b\"\n[[policy]]\ndependency = \"c\"\n",
        );
        let now = policies(
            "[[policy]]\ndependency = \"a\"\nintent = \"off\"\nthreshold_min_ms = 5.0\n\
             [[policy]]\ndependency = \"c\"\n[[policy]]\ndependency = \"d\"\n",
        );
        let told = |before, now| {
            taken(before, now)
                .into_iter()
                .map(|it| format!("{} {}: {}", it.scope, it.what, it.fields))
                .collect::<Vec<_>>()
        };
        let default = "intent observe, percentile 0.95, budget 0.08, holdout 0.01, error_limit \
                       0.05, threshold_min_ms none, threshold_max_ms none, probation true, \
                       attempts 2, hedge_on_error false, goal none, pool none, objective_ms none";
        assert_eq!(
            told(Some(&before), &now),
            [
                "a changed: intent hedge -> off, threshold_min_ms none -> 5".to_owned(),
                "b no longer in the file: ".to_owned(),
                format!("d taken: {default}"),
            ]
        );
        assert_eq!(told(None, &before).len(), 3);
        assert!(told(Some(&now), &now).is_empty());
    }
}
