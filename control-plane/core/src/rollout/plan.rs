//! In which steps a policy is put in force.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Most stages of a plan.
pub const STAGES_MAX: usize = 10;
/// Shortest time in a stage: agents' reports have to come in, and the windows to fill.
pub const STAY_MIN: Duration = Duration::from_secs(30);
/// Longest time in a stage.
pub const STAY_MAX: Duration = Duration::from_hours(1);
/// Time in a stage where nothing else is said.
pub const STAY_DEFAULT: Duration = Duration::from_mins(2);
/// Shares where nothing else is said.
const STAGES_DEFAULT: [f64; 3] = [0.05, 0.25, 1.0];

/// In which steps a policy is put in force, and how long each lasts at least: checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Draft", into = "Draft")]
pub struct RolloutPlan {
    stages: Vec<f64>,
    stay: Duration,
}

/// Why a plan cannot stand: the field, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanProblem {
    /// The shares.
    #[error(
        "{0}: expected 1 to {STAGES_MAX} shares of the agents above 0, each larger than the one before, the last of them 1, such as [0.05, 0.25, 1]"
    )]
    Stages(String),
    /// The time in each.
    #[error("{0} s: expected 30 to 3600 s, for each stage")]
    Stay(String),
}

impl PlanProblem {
    /// The field it is about, as in the REST API.
    pub const fn field(&self) -> &'static str {
        match self {
            Self::Stages(_) => "rollout.stages",
            Self::Stay(_) => "rollout.stay_s",
        }
    }
}

/// As it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Draft {
    stages: Vec<f64>,
    stay_s: f64,
}

impl RolloutPlan {
    /// Shares of the agents, above 0 and ascending to 1, and the time that each is stayed in at
    /// least, 30 s to 1 h.
    pub fn new(mut stages: Vec<f64>, stay: Duration) -> Result<Self, PlanProblem> {
        let ascend = stages.windows(2).all(|pair| pair[0] < pair[1]);
        let begins = stages.first().is_some_and(|it| *it > 0.0);
        let ends = stages
            .last()
            .is_some_and(|it| (it - 1.0).abs() < f64::EPSILON);
        if !(ascend && begins && ends && stages.len() <= STAGES_MAX) {
            return Err(PlanProblem::Stages(format!("{stages:?}")));
        }
        if !(STAY_MIN..=STAY_MAX).contains(&stay) {
            return Err(PlanProblem::Stay(stay.as_secs_f64().to_string()));
        }
        if let Some(last) = stages.last_mut() {
            *last = 1.0;
        }
        Ok(Self { stages, stay })
    }

    /// Shares of the agents, ascending to 1.
    pub fn stages(&self) -> &[f64] {
        &self.stages
    }

    /// How long each is stayed in at least.
    pub fn stay(&self) -> Duration {
        self.stay
    }

    /// The share of a stage, counted from 0; everybody beyond the last.
    pub(crate) fn share(&self, stage: usize) -> f64 {
        self.stages.get(stage).copied().unwrap_or(1.0)
    }

    /// As `5 %, 25 %, 100 %, 120 s each at least`.
    pub(crate) fn words(&self) -> String {
        let shares: Vec<_> = self
            .stages
            .iter()
            .map(|it| crate::decide::words::percent(*it))
            .collect();
        format!(
            "{}, {} s each at least",
            shares.join(", "),
            self.stay.as_secs()
        )
    }
}

impl Default for RolloutPlan {
    fn default() -> Self {
        Self {
            stages: STAGES_DEFAULT.to_vec(),
            stay: STAY_DEFAULT,
        }
    }
}

impl TryFrom<Draft> for RolloutPlan {
    type Error = PlanProblem;

    fn try_from(draft: Draft) -> Result<Self, PlanProblem> {
        let stay = Duration::try_from_secs_f64(draft.stay_s)
            .map_err(|_| PlanProblem::Stay(draft.stay_s.to_string()))?;
        Self::new(draft.stages, stay)
    }
}

impl From<RolloutPlan> for Draft {
    fn from(plan: RolloutPlan) -> Self {
        Self {
            stages: plan.stages,
            stay_s: plan.stay.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ascending_shares_up_to_everybody_are_a_plan() {
        let stay = STAY_DEFAULT;
        for stages in [vec![1.0], vec![0.5, 1.0], RolloutPlan::default().stages] {
            assert!(RolloutPlan::new(stages.clone(), stay).is_ok(), "{stages:?}");
        }
        for stages in [
            vec![],
            vec![0.5],
            vec![0.0, 1.0],
            vec![-0.1, 1.0],
            vec![0.5, 0.5, 1.0],
            vec![0.5, 0.25, 1.0],
            vec![0.5, 1.5],
            vec![f64::NAN, 1.0],
            (1..=11).map(|it| f64::from(it) / 11.0).collect(),
        ] {
            let problem = RolloutPlan::new(stages, stay).unwrap_err();
            assert_eq!(problem.field(), "rollout.stages");
        }
        for (secs, fits) in [(29, false), (30, true), (3_600, true), (3_601, false)] {
            let plan = RolloutPlan::new(vec![1.0], Duration::from_secs(secs));
            assert_eq!(plan.is_ok(), fits, "{secs}");
        }
    }

    #[test]
    fn a_plan_is_read_as_it_is_written_and_checked() {
        let plan = RolloutPlan::default();
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(json, r#"{"stages":[0.05,0.25,1.0],"stay_s":120.0}"#);
        assert_eq!(serde_json::from_str::<RolloutPlan>(&json).unwrap(), plan);
        for bad in [
            r#"{"stages":[0.05],"stay_s":120}"#,
            r#"{"stages":[1],"stay_s":-1}"#,
            r#"{"stages":[1],"stay_s":1e300}"#,
            r#"{"stages":[1],"stay_s":60,"more":1}"#,
        ] {
            assert!(serde_json::from_str::<RolloutPlan>(bad).is_err(), "{bad}");
        }
    }
}
