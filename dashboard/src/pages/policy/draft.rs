//! What was typed, kept as it was typed; what it comes to; and how two policies differ.

use hedgerow_core::rollout::RolloutPlan;
use hedgerow_protocol::limits::{ATTEMPTS_MAX, BUDGET_MAX};
use hedgerow_protocol::policy::{
    ERROR_LIMIT_RANGE, GOAL_RANGE, HOLDOUT_MAX, Intent, PERCENTILE_RANGE, Policy, PolicyDraft,
    PolicyErrors, PolicyScope,
};
use serde::Deserialize;

/// The value of the field `rollout` for a share of the agents first.
const STEPS: &str = "steps";

/// The form's fields, word for word.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Typed {
    pub(super) intent: String,
    /// Nothing: the percentile is followed.
    pub(super) goal: String,
    pub(super) percentile: String,
    pub(super) budget: String,
    pub(super) pool: String,
    pub(super) objective_ms: String,
    pub(super) holdout: String,
    pub(super) error_limit: String,
    pub(super) threshold_min_ms: String,
    pub(super) threshold_max_ms: String,
    /// A checkbox: absent when not ticked.
    pub(super) probation: Option<String>,
    pub(super) attempts: String,
    /// A checkbox, too.
    pub(super) hedge_on_error: Option<String>,
    /// `steps`: for a share of the agents first; otherwise for all at once.
    pub(super) rollout: String,
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
        self.errors
            .iter()
            .find(|(name, _)| *name == field)
            .map(|(_, words)| words.as_str())
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
            goal: optional(draft.goal),
            percentile: draft.percentile.to_string(),
            budget: draft.budget.to_string(),
            pool: draft.pool.unwrap_or_default(),
            objective_ms: optional(draft.objective_ms),
            holdout: draft.holdout.to_string(),
            error_limit: draft.error_limit.to_string(),
            threshold_min_ms: optional(draft.threshold_min_ms),
            threshold_max_ms: optional(draft.threshold_max_ms),
            probation: draft.probation.then(|| "on".into()),
            attempts: draft.attempts.to_string(),
            hedge_on_error: draft.hedge_on_error.then(|| "on".into()),
            ..Self::default()
        }
    }

    pub(super) fn with_reason(self, reason: String) -> Self {
        Self { reason, ..self }
    }

    /// In which steps it is to be put in force; None: for all agents at once.
    pub(super) fn plan(&self) -> Option<RolloutPlan> {
        (self.rollout == STEPS).then(RolloutPlan::default)
    }

    /// The revision the form was filled from.
    pub(super) fn expected(&self) -> Option<u64> {
        self.expected.trim().parse().ok()
    }

    /// Reads the numbers, then hands them to the one check every way in goes through.
    pub(super) fn check(&self, scope: &PolicyScope) -> Checked {
        let mut reader = Reader::default();
        let draft = self.read(scope, &mut reader);
        reader.rollout(&self.rollout);
        let Reader { mut errors } = reader;
        match Policy::try_from(draft) {
            Ok(policy) => Checked {
                policy: errors.is_empty().then_some(policy),
                errors,
            },
            Err(PolicyErrors(refused)) => {
                for error in refused {
                    if !errors.iter().any(|(field, _)| *field == error.field) {
                        errors.push((error.field, error.message));
                    }
                }
                Checked {
                    policy: None,
                    errors,
                }
            }
        }
    }

    /// The draft that was typed; what cannot be read keeps its default, and is noted.
    fn read(&self, scope: &PolicyScope, reader: &mut Reader) -> PolicyDraft {
        let between = |(low, high): (f64, f64)| format!("a number from {low} to {high}");
        let base = PolicyDraft::from(Policy::observing(scope.clone()));
        let budget = format!("a number above 0 and at most {BUDGET_MAX}");
        let holdout = between((0.0, HOLDOUT_MAX));
        PolicyDraft {
            dependency: match scope {
                PolicyScope::Pattern(pattern) => pattern.to_string(),
                PolicyScope::Dependency(dependency) => dependency.to_string(),
                PolicyScope::Operation(route) => route.dependency.to_string(),
            },
            operation: scope.operation().map(ToString::to_string),
            intent: reader.intent(&self.intent),
            percentile: reader
                .number("percentile", &self.percentile, &between(PERCENTILE_RANGE))
                .unwrap_or(base.percentile),
            budget: reader
                .number("budget", &self.budget, &budget)
                .unwrap_or(base.budget),
            goal: reader.optional(
                "goal",
                &self.goal,
                &format!("{}, or nothing", between(GOAL_RANGE)),
            ),
            pool: Some(self.pool.trim().to_owned()).filter(|pool| !pool.is_empty()),
            objective_ms: reader.millis("objective_ms", &self.objective_ms),
            holdout: reader
                .number("holdout", &self.holdout, &holdout)
                .unwrap_or(base.holdout),
            error_limit: reader
                .number(
                    "error_limit",
                    &self.error_limit,
                    &between(ERROR_LIMIT_RANGE),
                )
                .unwrap_or(base.error_limit),
            threshold_min_ms: reader.millis("threshold_min_ms", &self.threshold_min_ms),
            threshold_max_ms: reader.millis("threshold_max_ms", &self.threshold_max_ms),
            probation: self.probation.is_some(),
            attempts: reader.attempts(&self.attempts).unwrap_or(base.attempts),
            hedge_on_error: self.hedge_on_error.is_some(),
        }
    }
}

/// Reads text into values and notes what it could not read.
#[derive(Debug, Default)]
struct Reader {
    errors: Vec<(&'static str, String)>,
}

impl Reader {
    fn number(&mut self, field: &'static str, text: &str, expected: &str) -> Option<f64> {
        // Some keyboards and some people write 0,95.
        let read = text.trim().replace(',', ".").parse().ok();
        if read.is_none() {
            self.errors.push((
                field,
                format!("{text:?} is not a number: expected {expected}"),
            ));
        }
        read
    }

    /// Nothing: as many as usual.
    fn attempts(&mut self, text: &str) -> Option<u64> {
        if text.trim().is_empty() {
            return None;
        }
        let read = text.trim().parse().ok();
        if read.is_none() {
            self.errors.push((
                "attempts",
                format!("{text:?} is not a number of attempts: expected 2 or {ATTEMPTS_MAX}"),
            ));
        }
        read
    }

    fn millis(&mut self, field: &'static str, text: &str) -> Option<f64> {
        self.optional(field, text, "a number of milliseconds, or nothing")
    }

    fn optional(&mut self, field: &'static str, text: &str, expected: &str) -> Option<f64> {
        if text.trim().is_empty() {
            return None;
        }
        self.number(field, text, expected)
    }

    /// Nothing: for all at once.
    fn rollout(&mut self, text: &str) {
        if !["", "all", STEPS].contains(&text) {
            self.errors
                .push(("rollout", "expected one of all, steps".into()));
        }
    }

    fn intent(&mut self, text: &str) -> Intent {
        let all = [Intent::Off, Intent::Observe, Intent::Hedge];
        all.into_iter()
            .find(|i| i.as_str() == text.trim())
            .unwrap_or_else(|| {
                self.errors
                    .push(("intent", "expected one of off, observe, hedge".into()));
                Intent::default()
            })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn typed() -> Typed {
        Typed::from_policy(&Policy::observing("catalog".parse().unwrap()))
    }

    fn check(typed: &Typed) -> Checked {
        typed.check(&"catalog".parse().unwrap())
    }

    #[test]
    fn a_policy_survives_the_form() {
        let policy = Policy::observing("catalog".parse().unwrap());
        assert_eq!(check(&typed()).policy, Some(policy));
    }

    #[test]
    fn a_goal_and_a_pool_survive_the_form_and_are_named_in_the_diff() {
        let before = check(&typed()).policy.unwrap();
        let with = Typed {
            goal: "0.999".into(),
            pool: " checkout ".into(),
            objective_ms: "120".into(),
            ..typed()
        };
        let after = check(&with).policy.unwrap();
        assert_eq!(
            check(&Typed::from_policy(&after)).policy,
            Some(after.clone())
        );
        let words: Vec<_> = changes(&before, &after)
            .into_iter()
            .map(|c| format!("{}: {} -> {}", c.field, c.before, c.after))
            .collect();
        assert_eq!(
            words,
            [
                "Aim: percentile -> p99.9 under the budget",
                "Pool: none -> checkout",
                "Objective: none -> 120 ms"
            ]
        );
    }

    #[test]
    fn b60_a_pool_without_an_objective_and_a_goal_out_of_range_are_named() {
        let checked = check(&Typed {
            goal: "99".into(),
            pool: "checkout".into(),
            ..typed()
        });
        let goal = checked.error("goal").unwrap();
        assert!(goal.contains("from 0.9 to 0.9995"), "{goal}");
        let objective = checked.error("objective_ms").unwrap();
        assert!(objective.contains("is needed in a pool"), "{objective}");
    }

    #[test]
    fn c06_a_percentile_of_95_is_refused_beside_its_field_with_the_range() {
        let checked = check(&Typed {
            percentile: "95".into(),
            ..typed()
        });
        assert_eq!(checked.policy, None);
        assert!(
            checked
                .error("percentile")
                .unwrap()
                .contains("from 0.92 to 0.999")
        );
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
        let after = check(&Typed {
            intent: "hedge".into(),
            budget: "0.1".into(),
            ..typed()
        });
        let fields: Vec<_> = changes(&before, &after.policy.unwrap())
            .into_iter()
            .map(|c| c.field)
            .collect();
        assert_eq!(fields, ["Hedging", "Budget"]);
    }
}
