//! What was typed, kept as it was typed, and what it comes to.

use std::time::Duration;

use hedgerow_core::rollout::{PlanProblem, RolloutPlan, STAGES_MAX, STAY_MAX, STAY_MIN};
use hedgerow_protocol::limits::{ATTEMPTS_MAX, BUDGET_MAX};
use hedgerow_protocol::policy::{
    ERROR_LIMIT_RANGE, GOAL_RANGE, HOLDOUT_MAX, Intent, PERCENTILE_RANGE, Policy, PolicyDraft,
    PolicyErrors, PolicyScope,
};
use serde::Deserialize;

/// The value of the field `rollout` for a share of the agents first.
const STEPS: &str = "steps";
/// The usual shares, in percent.
const STAGES: &str = "5, 25, 100";

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
    /// Shares of the agents in percent, as `5, 25, 100`; nothing: the usual ones.
    pub(super) stages: String,
    /// Seconds in each; nothing: as long as usual.
    pub(super) stay_s: String,
    pub(super) reason: String,
    pub(super) expected: String,
    /// `review`: show what would change; `replay`: and what it would have done; anything else saves.
    pub(super) step: String,
    /// The route that the curve and the replay are of, as `catalog get-item`; nothing: the busiest.
    pub(super) route: String,
    /// Hours that are replayed.
    pub(super) hours: String,
}

/// The policy that was typed, or what is wrong with it.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) policy: Option<Policy>,
    /// In which steps it is to be put in force; None: for all agents at once.
    pub(super) plan: Option<RolloutPlan>,
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

    /// All that is wrong: field and words.
    pub(super) fn errors(&self) -> &[(&'static str, String)] {
        &self.errors
    }
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
            stages: STAGES.into(),
            stay_s: RolloutPlan::default().stay().as_secs().to_string(),
            hours: "24".into(),
            ..Self::default()
        }
    }

    /// What stands in a field, by its name.
    pub(super) fn text(&self, name: &str) -> &str {
        match name {
            "percentile" => &self.percentile,
            "budget" => &self.budget,
            "pool" => &self.pool,
            "objective_ms" => &self.objective_ms,
            "holdout" => &self.holdout,
            "error_limit" => &self.error_limit,
            "threshold_min_ms" => &self.threshold_min_ms,
            "threshold_max_ms" => &self.threshold_max_ms,
            "attempts" => &self.attempts,
            _ => "",
        }
    }

    pub(super) fn with_reason(self, reason: String) -> Self {
        Self { reason, ..self }
    }

    /// In which steps it is to be put in force; None: for all agents at once. Fields that are away
    /// stand for the usual steps.
    fn plan(&self, reader: &mut Reader) -> Option<RolloutPlan> {
        if self.rollout != STEPS {
            return None;
        }
        let usual = RolloutPlan::default();
        let stages = match self.stages.trim() {
            "" => Some(usual.stages().to_vec()),
            typed => shares(typed),
        };
        let stay = match self.stay_s.trim() {
            "" => Some(usual.stay()),
            typed => number(typed).and_then(|it| Duration::try_from_secs_f64(it).ok()),
        };
        let stages_problem = (
            "stages",
            format!(
                "{:?}: expected 1 to {STAGES_MAX} shares in percent above 0, each larger than the one before, the last 100, such as {STAGES}",
                self.stages.trim()
            ),
        );
        let stay_problem = (
            "stay_s",
            format!(
                "{:?}: expected {} to {} seconds",
                self.stay_s.trim(),
                STAY_MIN.as_secs(),
                STAY_MAX.as_secs()
            ),
        );
        // Each by itself, so that both are named at once.
        let alone = |stages: &Option<Vec<f64>>, stay: Option<Duration>| {
            let stages = stages.clone().unwrap_or_else(|| vec![1.0]);
            RolloutPlan::new(stages, stay.unwrap_or(usual.stay()))
        };
        if stages.is_none() || matches!(alone(&stages, None), Err(PlanProblem::Stages(_))) {
            reader.errors.push(stages_problem);
        }
        if stay.is_none() || alone(&None, stay).is_err() {
            reader.errors.push(stay_problem);
        }
        RolloutPlan::new(stages?, stay?).ok()
    }

    /// The revision the form was filled from.
    pub(super) fn expected(&self) -> Option<u64> {
        self.expected.trim().parse().ok()
    }

    /// Reads the numbers, then hands them to the one check every way in goes through.
    pub(super) fn check(&self, scope: &PolicyScope) -> Checked {
        let mut reader = Reader::default();
        let draft = self.read(scope, &mut reader);
        reader.rollout(&self.rollout, scope);
        let plan = self.plan(&mut reader);
        let Reader { mut errors } = reader;
        match Policy::try_from(draft) {
            Ok(policy) => Checked {
                policy: errors.is_empty().then_some(policy),
                plan,
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
                    plan: None,
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
            dependency: scope.dependency_text().to_owned(),
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

/// Some keyboards and some people write 0,95.
fn number(text: &str) -> Option<f64> {
    text.trim().replace(',', ".").parse().ok()
}

/// Shares from percent, as `5, 25, 100` or `5 % 25 % 100 %`.
fn shares(text: &str) -> Option<Vec<f64>> {
    let each = text.split([',', ';', '%', ' ']).map(str::trim);
    each.filter(|it| !it.is_empty())
        // Nine digits: 55 % is 0.55 and not 0.55000000000000004.
        .map(|it| Some((it.parse::<f64>().ok()? * 1e7).round() / 1e9))
        .collect()
}

/// Reads text into values and notes what it could not read.
#[derive(Debug, Default)]
struct Reader {
    errors: Vec<(&'static str, String)>,
}

impl Reader {
    fn number(&mut self, field: &'static str, text: &str, expected: &str) -> Option<f64> {
        let read = number(text);
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
    fn rollout(&mut self, text: &str, scope: &PolicyScope) {
        if !["", "all", STEPS].contains(&text) {
            self.errors
                .push(("rollout", "expected one of all, steps".into()));
        } else if text == STEPS && scope.pattern().is_some() {
            let problem = "a pattern is in force for all agents at once: expected all";
            self.errors.push(("rollout", problem.into()));
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

#[cfg(test)]
mod tests;
