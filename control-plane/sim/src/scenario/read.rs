//! A scenario from a file, checked: what is wrong is said with the field's name and what was
//! expected.

use std::path::Path;

use hedgerow_protocol::policy::{Policy, PolicyDraft};
use serde::{Deserialize, Deserializer};

use super::{FaultKind, Scenario, Which, shipped};

/// Longest run: an hour.
const SECONDS_MAX: u64 = 3600;
/// Longest deadline: a loser is watched no longer.
const DEADLINE_MAX_MS: f64 = 60_000.0;
/// As many as are kept of a route.
const REPLICAS_MAX: usize = 256;
const AGENTS_MAX: usize = 1_000_000;

/// Why there is no scenario.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ScenarioError {
    /// Neither shipped nor a file.
    #[error(
        "{name}: neither a shipped scenario nor a file that can be read ({problem}); expected a path or one of {}",
        names()
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// Why it is no file.
        problem: String,
    },
    /// Not a scenario.
    #[error("{0}")]
    Text(String),
    /// A value that cannot stand.
    #[error("{field}: {value} is out of range: expected {expected}")]
    Range {
        /// Where.
        field: String,
        /// What was there.
        value: String,
        /// What may be there.
        expected: String,
    },
    /// A policy that cannot stand.
    #[error("policy.{0}")]
    Policy(String),
}

fn names() -> String {
    let names: Vec<_> = shipped().iter().map(|it| it.name).collect();
    names.join(", ")
}

impl Scenario {
    /// A shipped scenario by its name, or the one in a file.
    pub fn find(name: &str) -> Result<Self, ScenarioError> {
        if let Some(found) = shipped().iter().find(|it| it.name == name) {
            return Self::parse(found.text);
        }
        let text = std::fs::read_to_string(Path::new(name));
        let text = text.map_err(|problem| ScenarioError::Unknown {
            name: name.to_owned(),
            problem: problem.to_string(),
        })?;
        Self::parse(&text)
    }

    /// A scenario from the text of its file.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let scenario: Self =
            toml::from_str(text).map_err(|it| ScenarioError::Text(it.to_string()))?;
        scenario.check()?;
        Ok(scenario)
    }

    /// Refuses values that mean nothing.
    pub(crate) fn check(&self) -> Result<(), ScenarioError> {
        let Self { fleet, service, .. } = self;
        whole("seconds", self.seconds, 1, SECONDS_MAX)?;
        whole("fleet.agents", fleet.agents as u64, 1, AGENTS_MAX as u64)?;
        number("fleet.calls_per_s", fleet.calls_per_s, 0.0, 1e6)?;
        let replicas = fleet.replicas as u64;
        whole("fleet.replicas", replicas, 1, REPLICAS_MAX as u64)?;
        number("fleet.deadline_ms", fleet.deadline_ms, 1.0, DEADLINE_MAX_MS)?;
        whole("fleet.report_every_s", fleet.report_every_s, 1, 10)?;
        number("service.median_ms", service.median_ms, 0.001, 60_000.0)?;
        number("service.sigma", service.sigma, 0.0, 3.0)?;
        number("service.stall_share", service.stall_share, 0.0, 1.0)?;
        number("service.stall_ms", service.stall_ms, 0.0, 3.6e6)?;
        whole("service.workers", service.workers as u64, 0, 100_000)?;
        self.check_policy()?;
        for (i, fault) in self.faults.iter().enumerate() {
            let at = |field: &str| format!("fault[{i}].{field}");
            number(&at("from_s"), fault.from_s, 0.0, SECONDS_MAX as f64)?;
            if let Some(to) = fault.to_s {
                number(&at("to_s"), to, fault.from_s, SECONDS_MAX as f64)?;
            }
            self.check_fault(&fault.kind, &at)?;
        }
        self.check_size()
    }

    fn check_policy(&self) -> Result<(), ScenarioError> {
        let policy = Policy::try_from(self.policy.clone())
            .map_err(|it| ScenarioError::Policy(it.to_string()))?;
        let only = |field: &str, value: String, expected: &str| {
            Err(ScenarioError::Range {
                field: format!("policy.{field}"),
                value,
                expected: expected.into(),
            })
        };
        if policy.attempts().get() != 2 {
            let value = policy.attempts().get().to_string();
            return only(
                "attempts",
                value,
                "2: a simulated call has one hedge at most",
            );
        }
        if policy.hedge_on_error() {
            let expected = "false: a simulated call is hedged for slowness alone";
            return only("hedge_on_error", "true".into(), expected);
        }
        Ok(())
    }

    fn check_fault(
        &self,
        kind: &FaultKind,
        at: &impl Fn(&str) -> String,
    ) -> Result<(), ScenarioError> {
        let share = |field, value| number(&at(field), value, 0.0, 1.0);
        let ms = |field, value| number(&at(field), value, 0.0, 3.6e6);
        let times = |value| number(&at("factor"), value, 0.0, 1e6);
        let over = |value| number(&at("over_s"), value, 0.0, SECONDS_MAX as f64);
        let pauses = |length, of_time| {
            number(&at("ms"), length, 1.0, 60_000.0)?;
            number(&at("share_of_time"), of_time, 0.0, 0.9)
        };
        match kind {
            FaultKind::Slow { factor, replicas } => {
                times(*factor)?;
                self.which(replicas, at)
            }
            FaultKind::Dead { replicas } => self.which(replicas, at),
            FaultKind::Failing {
                share: of,
                replicas,
                ms: after,
            } => {
                share("share", *of)?;
                ms("ms", *after)?;
                self.which(replicas, at)
            }
            FaultKind::SharedStall { share: of, ms: by }
            | FaultKind::Stalls { share: of, ms: by } => {
                share("share", *of)?;
                ms("ms", *by)
            }
            FaultKind::Expensive { share: of, factor } => {
                share("share", *of)?;
                times(*factor)
            }
            FaultKind::SharedPauses { ms, share_of_time } => pauses(*ms, *share_of_time),
            FaultKind::ReplicaPauses {
                ms,
                share_of_time,
                replicas,
            } => {
                pauses(*ms, *share_of_time)?;
                self.which(replicas, at)
            }
            FaultKind::Drift { factor, over_s } => {
                times(*factor)?;
                over(*over_s)
            }
            FaultKind::TailDrift {
                sigma,
                stall_ms,
                over_s,
            } => {
                number(&at("sigma"), sigma.unwrap_or(0.0), 0.0, 3.0)?;
                ms("stall_ms", stall_ms.unwrap_or(0.0))?;
                over(*over_s)
            }
            FaultKind::Surge { factor } => number(&at("factor"), *factor, 0.0, 1000.0),
            FaultKind::AgentsRestart { share: of } => share("share", *of),
            FaultKind::Liars { count, .. } => {
                let most = self.fleet.agents as u64;
                whole(&at("count"), *count as u64, 0, most)
            }
            FaultKind::ControllerAway {} | FaultKind::ControllerRestart {} => Ok(()),
        }
    }

    fn which(&self, which: &Which, at: &impl Fn(&str) -> String) -> Result<(), ScenarioError> {
        let Which::These(replicas) = which else {
            return Ok(());
        };
        let last = self.fleet.replicas as u64 - 1;
        for replica in replicas {
            whole(&at("replicas"), *replica as u64, 0, last)?;
        }
        Ok(())
    }
}

fn number(field: &str, value: f64, low: f64, high: f64) -> Result<(), ScenarioError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(ScenarioError::Range {
        field: field.to_owned(),
        value: value.to_string(),
        expected: format!("a number from {low} to {high}"),
    })
}

fn whole(field: &str, value: u64, low: u64, high: u64) -> Result<(), ScenarioError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(ScenarioError::Range {
        field: field.to_owned(),
        value: value.to_string(),
        expected: format!("a whole number from {low} to {high}"),
    })
}

/// Any field of a policy; what is absent is as in a policy that hedges. The dependency has a name
/// already.
pub(super) fn policy<'de, D: Deserializer<'de>>(from: D) -> Result<PolicyDraft, D::Error> {
    let mut given = toml::Table::deserialize(from)?;
    let name = crate::route().dependency.to_string();
    for (field, value) in [("dependency", name.as_str()), ("intent", "hedge")] {
        given.entry(field).or_insert_with(|| value.into());
    }
    PolicyDraft::deserialize(given).map_err(serde::de::Error::custom)
}
