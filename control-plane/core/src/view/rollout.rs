//! A policy that is put in force in steps, as people see it.

use std::time::Duration;

use hedgerow_protocol::ids::{Revision, RouteKey};
use hedgerow_protocol::policy::Policy;
use serde::Serialize;

use super::millis;
use crate::event::Actor;
use crate::moment::Moment;

/// How far a rollout has got.
#[derive(Debug, Clone, Serialize)]
pub struct RolloutView {
    /// The revision that agents outside the share hold; 0: nobody had set a policy.
    pub base: Revision,
    /// What that is.
    pub base_policy: Policy,
    /// Who began it.
    pub actor: Actor,
    /// The shares of the agents, ascending to 1.
    pub stages: Vec<f64>,
    /// Which of them is the present one, counted from 1.
    pub stage: usize,
    /// The present share.
    pub share: f64,
    /// Since when.
    pub since: Moment,
    /// How long each stage is stayed in at least.
    #[serde(rename = "stay_ms", with = "millis")]
    pub stay: Duration,
    /// The earliest that the next step comes; later where there is too little to judge by.
    pub next_at: Moment,
    /// Attached agents that are to hold the new policy.
    pub agents_in: u64,
    /// Of these, those that hold it on all their routes.
    pub agents_holding: u64,
    /// Attached agents of the dependency, in all.
    pub agents: u64,
    /// Calls of the agents that hold it, ended in this stage, over two minutes at most.
    pub calls: u64,
    /// The share and the rest side by side, for each route with calls.
    pub guard: Vec<GuardFigure>,
    /// What it waits for, or does, in one line.
    pub words: String,
}

/// One figure of a rollout's guard.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GuardFigure {
    /// On which route.
    pub route: RouteKey,
    /// What was measured, as `calls failed`.
    pub what: String,
    /// Of the agents with the new policy; None: too few calls.
    pub new: Option<f64>,
    /// Of the agents with the old one, or of the calls held out; None: too few calls.
    pub old: Option<f64>,
    /// `%` or `ms`.
    pub unit: String,
}
