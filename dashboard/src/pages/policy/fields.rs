//! The form's fields: what may stand in each, what stands there where nobody says otherwise, and what
//! a wider policy has.

use hedgerow_core::rollout::{STAGES_MAX, STAY_MAX, STAY_MIN};
use hedgerow_protocol::limits::{ATTEMPTS_MAX, BUDGET_MAX};
use hedgerow_protocol::policy::{
    ERROR_LIMIT_RANGE, HOLDOUT_MAX, PERCENTILE_RANGE, Policy, PolicyDraft, PolicyScope,
};

use super::diff::aim_words;
use super::draft::{Checked, Typed};
use crate::format::percent_set;

/// A field that is typed into.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) unit: &'static str,
    pub(super) value: String,
    pub(super) placeholder: &'static str,
    pub(super) mode: &'static str,
    /// What may stand there and what it does.
    pub(super) hint: String,
    pub(super) default: String,
    /// As `inherited from cat*: 8 %`.
    pub(super) inherited: String,
    pub(super) error: String,
}

/// Whose values stand beside the fields.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wide<'a> {
    pub(super) policy: &'a Policy,
    /// Whether they hold, as there is no narrower policy.
    pub(super) holds: bool,
}

impl Wide<'_> {
    /// Where it does not hold, only what differs from the default is worth the words.
    fn words(self, name: &str, default: &str) -> String {
        let value = value(self.policy, name);
        let scope = self.policy.scope();
        if self.holds {
            format!("inherited from {scope}: {value}")
        } else if value == default {
            String::new()
        } else {
            format!("{scope} has {value}")
        }
    }
}

/// A field's value in words, by its name in the form.
fn value(policy: &Policy, name: &str) -> String {
    let d = PolicyDraft::from(policy.clone());
    let ms = |v: Option<f64>| v.map_or_else(|| "none".into(), |v| format!("{v} ms"));
    let yes_no = |v: bool| if v { "yes" } else { "no" }.to_owned();
    match name {
        "intent" => d.intent.as_str().into(),
        "goal" => aim_words(d.goal),
        "percentile" => d.percentile.to_string(),
        "budget" => percent_set(d.budget),
        "pool" => d.pool.unwrap_or_else(|| "none".into()),
        "objective_ms" => ms(d.objective_ms),
        "holdout" => percent_set(d.holdout),
        "error_limit" => percent_set(d.error_limit),
        "threshold_min_ms" => ms(d.threshold_min_ms),
        "threshold_max_ms" => ms(d.threshold_max_ms),
        "probation" => yes_no(d.probation),
        "attempts" => d.attempts.to_string(),
        "hedge_on_error" => yes_no(d.hedge_on_error),
        _ => String::new(),
    }
}

/// What stands beside a choice: the default, and what a wider policy has.
#[derive(Debug)]
pub(super) struct Beside {
    pub(super) default: String,
    pub(super) inherited: String,
    pub(super) error: String,
}

impl Beside {
    pub(super) fn new(
        name: &str,
        scope: &PolicyScope,
        wide: Option<Wide<'_>>,
        checked: &Checked,
    ) -> Self {
        let default = value(&Policy::observing(scope.clone()), name);
        Self {
            inherited: wide.map_or_else(String::new, |wide| wide.words(name, &default)),
            default,
            error: checked.error(name).unwrap_or_default().to_owned(),
        }
    }
}

/// Name, label and unit, in the form's order.
const TYPED: [(&str, &str, &str); 9] = [
    ("percentile", "Percentile", ""),
    ("budget", "Budget", "share of calls"),
    ("pool", "Pool", ""),
    ("objective_ms", "Objective", "ms"),
    ("holdout", "Holdout", "share of calls"),
    ("error_limit", "Error limit", "share of primaries"),
    ("threshold_min_ms", "Threshold at least", "ms"),
    ("threshold_max_ms", "Threshold at most", "ms"),
    ("attempts", "Attempts", ""),
];

/// What may stand in a field, and what it does.
fn hint(name: &str) -> String {
    let (low, high) = PERCENTILE_RANGE;
    let (error_low, error_high) = ERROR_LIMIT_RANGE;
    match name {
        "percentile" => format!(
            "{low} to {high}: calls slower than this share may be hedged; with another aim, what agents follow without their controller"
        ),
        "budget" => format!(
            "above 0, at most {BUDGET_MAX}: hedges as a share of finished calls, never more"
        ),
        "pool" => "policies that name the same pool lend each other their budgets, 10 % each at most: hedges go where they keep the most calls within the objective".into(),
        "objective_ms" => "what a call should take at most; needed in a pool".into(),
        "holdout" => format!("0 to {HOLDOUT_MAX}: never hedged, to know what hedging buys"),
        "error_limit" => format!(
            "{error_low} to {error_high}: hedging goes off above this share of failing primaries"
        ),
        "threshold_min_ms" => "never hedge earlier".into(),
        "threshold_max_ms" => "never wait longer".into(),
        _ => format!("2 or {ATTEMPTS_MAX}: copies of one call at most, the first among them"),
    }
}

/// The fields that are typed into.
pub(super) fn fields(
    typed: &Typed,
    checked: &Checked,
    scope: &PolicyScope,
    wide: Option<Wide<'_>>,
) -> Vec<Field> {
    let field = |(name, label, unit)| {
        let beside = Beside::new(name, scope, wide, checked);
        Field {
            name,
            label,
            unit,
            value: typed.text(name).to_owned(),
            placeholder: match name {
                "pool" | "objective_ms" => "none",
                "threshold_min_ms" | "threshold_max_ms" => "no limit",
                _ => "",
            },
            mode: if name == "pool" { "text" } else { "decimal" },
            hint: hint(name),
            default: beside.default,
            inherited: beside.inherited,
            error: beside.error,
        }
    };
    TYPED.into_iter().map(field).collect()
}

/// What may stand in the fields of a rollout.
pub(super) fn rollout_hints() -> (String, String) {
    (
        format!(
            "1 to {STAGES_MAX} shares of the agents in percent, each larger than the one before, the last 100; default 5, 25, 100"
        ),
        format!(
            "{} to {}, in each stage at least; default 120",
            STAY_MIN.as_secs(),
            STAY_MAX.as_secs()
        ),
    )
}

/// Names of all fields an error may stand beside, in the form's order.
pub(super) const NAMES: [&str; 14] = [
    "intent",
    "goal",
    "percentile",
    "budget",
    "pool",
    "objective_ms",
    "holdout",
    "error_limit",
    "threshold_min_ms",
    "threshold_max_ms",
    "attempts",
    "rollout",
    "stages",
    "stay_s",
];
