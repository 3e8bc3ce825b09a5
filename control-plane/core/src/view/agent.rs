//! An agent as people see it.

use std::time::Duration;

use hedgerow_protocol::directive::{Mode, Stamp};
use hedgerow_protocol::ids::{InstanceId, RouteKey, ServiceName, ZoneName};
use hedgerow_protocol::report::LinkState;
use serde::Serialize;

use super::{QuarantineView, millis};
use crate::event::ConnectionId;
use crate::moment::Moment;

/// An agent.
#[derive(Debug, Clone, Serialize)]
pub struct AgentView {
    /// Its stream.
    pub connection: ConnectionId,
    /// Whose.
    pub service: ServiceName,
    /// Which.
    pub instance: InstanceId,
    /// Where.
    pub zone: Option<ZoneName>,
    /// Its version.
    pub version: String,
    /// Where it connects from.
    pub peer: String,
    /// How it stands.
    pub state: AgentState,
    /// Since when it is connected.
    pub connected: Moment,
    /// Its last word.
    pub heard: Moment,
    /// Its last report.
    pub reported: Option<Moment>,
    /// Its wall clock less the controller's, milliseconds; shown, never used.
    pub skew_ms: Option<i64>,
    /// Reports refused, with the last reason.
    pub refused_reports: u64,
    /// See `refused_reports`.
    pub last_refusal: Option<String>,
    /// Reports received twice and counted once.
    pub duplicate_reports: u64,
    /// For each route: what it does.
    pub routes: Vec<AgentRouteView>,
}

/// How an agent stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// Attached and speaking.
    Live,
    /// Attached, silent for two heartbeats.
    Stale,
    /// Ended without a goodbye.
    Lost,
    /// Said goodbye.
    Left,
}

/// What an agent does on a route, and what it should do.
#[derive(Debug, Clone, Serialize)]
pub struct AgentRouteView {
    /// The route.
    pub route: RouteKey,
    /// What it holds.
    pub held: Stamp,
    /// What it should hold.
    pub wanted: Stamp,
    /// Applied, pending or refused.
    pub sync: Sync,
    /// What it does.
    pub mode: Mode,
    /// Whether it switched off by its own rule.
    pub own_off: bool,
    /// The threshold it uses.
    #[serde(rename = "threshold_ms", serialize_with = "millis::option")]
    pub threshold: Option<Duration>,
    /// The budget it uses.
    pub budget: f64,
    /// Tokens left, in hedges.
    pub tokens: f64,
    /// How it last said it stood towards the controller.
    pub link: LinkState,
    /// Replicas it can pick from.
    pub replicas: u32,
    /// Where what it says of the route is counted apart, and why. It is told what to do all the
    /// same.
    pub quarantine: Option<QuarantineView>,
}

/// Whether an agent holds what is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "sync", content = "reason")]
pub enum Sync {
    /// It does.
    Applied,
    /// Sent, not yet confirmed.
    Pending,
    /// It refused, with this reason; not sent again until it changes.
    Refused(String),
}
