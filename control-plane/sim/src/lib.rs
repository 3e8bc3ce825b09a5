#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod agent;
mod chance;
mod client;
mod controller;
pub mod outcome;
pub mod scenario;
mod variation;
mod world;

use hedgerow_protocol::ids::RouteKey;

pub use client::Client;
pub use outcome::{Outcome, Second};
pub use scenario::{Scenario, ScenarioError, shipped};
pub use variation::{Guards, Variation};

/// Runs a scenario, varied. `progress` is told of each second when it is over.
pub fn run(
    scenario: &Scenario,
    variation: &Variation,
    progress: impl FnMut(&Second),
) -> Result<Outcome, ScenarioError> {
    let scenario = variation.of(scenario)?;
    let outcome = world::World::new(&scenario, variation).run(progress);
    Ok(outcome)
}

/// The one route there is.
pub(crate) fn route() -> RouteKey {
    RouteKey::new("catalog", "get").expect("letters are a valid name")
}
