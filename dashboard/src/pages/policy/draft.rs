//! What was typed, kept as it was typed; what it comes to; and how two policies differ.

use hedgerow_protocol::ids::DependencyName;
use hedgerow_protocol::limits::BUDGET_MAX;
use hedgerow_protocol::policy::{
    ERROR_LIMIT_RANGE, HOLDOUT_MAX, Intent, PERCENTILE_RANGE, Policy, PolicyDraft, PolicyErrors,
};
use serde::Deserialize;

/// The form's fields, word for word.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Typed {
    pub(super) intent: String,
    pub(super) percentile: String,
    pub(super) budget: String,
    pub(super) holdout: String,
    pub(super) error_limit: String,
    pub(super) threshold_min_ms: String,
    pub(super) threshold_max_ms: String,
    /// A checkbox: absent when not ticked.
    pub(super) probation: Option<String>,
    pub(super) reason: String,
    pub(super) expected: String,
    /// `review`: show what would change; anything else saves.
    pub(super) step: String,
}

/// The policy that was typed, or what is wrong with it.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) policy: Option<Policy>,
    errors: Vec<(&'static str, String)>,
}

impl Checked {
    /// What is wrong with a field.
    pub(super) fn error(&self, field: &str) -> Option<&str> {
        self.errors.iter().find(|(name, _)| *name == field).map(|(_, words)| words.as_str())
    }

    pub(super) fn count(&self) -> usize {
        self.errors.len()
    }
}

/// One line of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) field: &'static str,
    pub(super) before: String,
    pub(super) after: String,
}

impl Typed {
    /// As the form shows a policy.
    pub(super) fn from_policy(policy: &Policy) -> Self {
        let draft = PolicyDraft::from(policy.clone());
        let optional = |v: Option<f64>| v.map_or_else(String::new, |v| v.to_string());
        Self {
            intent: draft.intent.as_str().into(),
            percentile: draft.percentile.to_string(),
            budget: draft.budget.to_string(),
            holdout: draft.holdout.to_string(),
            error_limit: draft.error_limit.to_string(),
            threshold_min_ms: optional(draft.threshold_min_ms),
            threshold_max_ms: optional(draft.threshold_max_ms),
            probation: draft.probation.then(|| "on".into()),
            ..Self::default()
        }
    }

    pub(super) fn with_reason(self, reason: String) -> Self {
        Self { reason, ..self }
    }

    /// The revision the form was filled from.
    pub(super) fn expected(&self) -> Option<u64> {
        self.expected.trim().parse().ok()
    }

    /// Reads the numbers, then hands them to the one check every way in goes through.
    pub(super) fn check(&self, dependency: &DependencyName) -> Checked {
        let mut unread = Vec::new();
        let mut number = |field, text: &str, fallback: f64, expected: String| {
            text.trim().replace(',', ".").parse::<f64>().unwrap_or_else(|_| {
                unread.push((field, format!("{text:?} is not a number: expected {expected}")));
                fallback
            })
        };
        let between = |(low, high): (f64, f64)| format!("a number from {low} to {high}");
        let base = PolicyDraft::from(Policy::observing(dependency.clone()));
        let percentile =
            number("percentile", &self.percentile, base.percentile, between(PERCENTILE_RANGE));
        let budget = number(
            "budget",
            &self.budget,
            base.budget,
            format!("a number above 0 and at most {BUDGET_MAX}"),
        );
        let holdout = number("holdout", &self.holdout, base.holdout, between((0.0, HOLDOUT_MAX)));
        let error_limit =
            number("error_limit", &self.error_limit, base.error_limit, between(ERROR_LIMIT_RANGE));
        let mut optional = |field, text: &str| {
            (!text.trim().is_empty()).then(|| {
                number(field, text, 1.0, "a number of milliseconds, or nothing".into())
            })
        };
        let threshold_min_ms = optional("threshold_min_ms", &self.threshold_min_ms);
        let threshold_max_ms = optional("threshold_max_ms", &self.threshold_max_ms);
        let intent = [Intent::Off, Intent::Observe, Intent::Hedge]
            .into_iter()
            .find(|i| i.as_str() == self.intent.trim());
        if intent.is_none() {
            unread.push(("intent", "expected one of off, observe, hedge".into()));
        }
        let draft = PolicyDraft {
            dependency: dependency.to_string(),
            intent: intent.unwrap_or_default(),
            percentile,
            budget,
            holdout,
            error_limit,
            threshold_min_ms,
            threshold_max_ms,
            probation: self.probation.is_some(),
        };
        let (policy, refused) = match Policy::try_from(draft) {
            Ok(policy) => (Some(policy), Vec::new()),
            Err(PolicyErrors(errors)) => (None, errors),
        };
        let mut errors = unread;
        for error in refused {
            if !errors.iter().any(|(field, _)| *field == error.field) {
                errors.push((error.field, error.message));
            }
        }
        Checked { policy: policy.filter(|_| errors.is_empty()), errors }
    }
}

/// Where two policies differ, in the form's order.
pub(super) fn changes(before: &Policy, after: &Policy) -> Vec<Change> {
    let rows = |p: &Policy| {
        let d = PolicyDraft::from(p.clone());
        let ms = |v: Option<f64>| v.map_or_else(|| "no limit".into(), |v| format!("{v} ms"));
        [
            ("Hedging", d.intent.as_str().to_owned()),
            ("Percentile", d.percentile.to_string()),
            ("Budget", d.budget.to_string()),
            ("Holdout", d.holdout.to_string()),
            ("Error limit", d.error_limit.to_string()),
            ("Threshold at least", ms(d.threshold_min_ms)),
            ("Threshold at most", ms(d.threshold_max_ms)),
            ("Probation", if d.probation { "yes".into() } else { "no".into() }),
        ]
    };
    rows(before)
        .into_iter()
        .zip(rows(after))
        .filter(|((_, before), (_, after))| before != after)
        .map(|((field, before), (_, after))| Change { field, before, after })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed() -> Typed {
        Typed::from_policy(&Policy::observing(DependencyName::new("catalog").unwrap()))
    }

    fn check(typed: &Typed) -> Checked {
        typed.check(&DependencyName::new("catalog").unwrap())
    }

    #[test]
    fn a_policy_survives_the_form() {
        let policy = Policy::observing(DependencyName::new("catalog").unwrap());
        assert_eq!(check(&typed()).policy, Some(policy));
    }

    #[test]
    fn c06_a_percentile_of_95_is_refused_beside_its_field_with_the_range() {
        let checked = check(&Typed { percentile: "95".into(), ..typed() });
        assert_eq!(checked.policy, None);
        assert!(checked.error("percentile").unwrap().contains("from 0.92 to 0.999"));
        assert_eq!(checked.count(), 1);
    }

    #[test]
    fn b60_what_is_no_number_is_named_with_what_was_expected() {
        let checked = check(&Typed {
            percentile: "p95".into(),
            budget: String::new(),
            threshold_max_ms: "fast".into(),
            intent: "yes".into(),
            ..typed()
        });
        for (field, expected) in [
            ("percentile", "from 0.92 to 0.999"),
            ("budget", "at most 0.25"),
            ("threshold_max_ms", "milliseconds"),
            ("intent", "off, observe, hedge"),
        ] {
            assert!(checked.error(field).unwrap().contains(expected), "{field}");
        }
    }

    #[test]
    fn a_diff_names_only_what_differs() {
        let before = check(&typed()).policy.unwrap();
        let after = check(&Typed { intent: "hedge".into(), budget: "0.1".into(), ..typed() });
        let fields: Vec<_> =
            changes(&before, &after.policy.unwrap()).into_iter().map(|c| c.field).collect();
        assert_eq!(fields, ["Hedging", "Budget"]);
    }
}
