//! A scenario, varied: for tests over seeds and sizes, and for the command line.

use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::scenario::{Scenario, ScenarioError};

/// What of a scenario is to be otherwise; what is None stays as the scenario says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Variation {
    /// Of all chance: the same one gives the same run.
    pub seed: u64,
    /// Agents.
    pub agents: Option<usize>,
    /// Calls a second of the fleet.
    pub calls_per_s: Option<f64>,
    /// Replicas.
    pub replicas: Option<usize>,
    /// How long the run lasts.
    pub seconds: Option<u64>,
    /// Who makes the calls.
    pub client: Client,
    /// What keeps harm off, each of them on unless a test is to show what it is for.
    pub guards: Guards,
}

/// Guards of the agents that can be taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Guards {
    /// Hedges are paid for.
    pub budget: bool,
}

impl Default for Guards {
    fn default() -> Self {
        Self { budget: true }
    }
}

impl Default for Variation {
    fn default() -> Self {
        Self {
            seed: 1,
            agents: None,
            calls_per_s: None,
            replicas: None,
            seconds: None,
            client: Client::default(),
            guards: Guards::default(),
        }
    }
}

impl Variation {
    /// As the scenario says, with this seed.
    pub fn seed(seed: u64) -> Self {
        Self {
            seed,
            ..Self::default()
        }
    }

    /// The same, with another client.
    #[must_use]
    pub fn client(self, client: Client) -> Self {
        Self { client, ..self }
    }

    /// The scenario as it is then; refused where it cannot be.
    pub fn of(&self, scenario: &Scenario) -> Result<Scenario, ScenarioError> {
        let mut varied = scenario.clone();
        let fleet = &mut varied.fleet;
        fleet.agents = self.agents.unwrap_or(fleet.agents);
        fleet.calls_per_s = self.calls_per_s.unwrap_or(fleet.calls_per_s);
        fleet.replicas = self.replicas.unwrap_or(fleet.replicas);
        varied.seconds = self.seconds.unwrap_or(varied.seconds);
        varied.check()?;
        Ok(varied)
    }
}
