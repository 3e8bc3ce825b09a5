#![doc = include_str!("../README.md")]

mod admission;
mod agent;
mod attempt;
mod budget;
mod chance;
pub mod config;
mod eligibility;
mod error;
mod gate;
mod hand;
mod host;
mod lanes;
pub mod layer;
mod link;
mod load;
mod local;
mod mode;
mod naming;
mod permit;
mod places;
mod pool;
mod race;
mod replicas;
mod route;
mod stats;
mod sync;
mod telemetry;
mod thread;
mod threshold;
mod ticket;
mod watch;

pub use agent::{Agent, AgentBuilder};
pub use attempt::{Attempt, AttemptKind, HEDGE_HEADER, HEDGE_MARK, Hold};
pub use eligibility::{Call, Verdict};
pub use error::{CallError, ConfigError};
/// The types that snapshots are made of, and the contract with the controller.
pub use hedgerow_protocol as protocol;
pub use hedgerow_protocol::ids::ReplicaName;
pub use hedgerow_protocol::policy::{Intent, Policy, PolicyDraft};
pub use layer::{HedgeLayer, HedgeService};
pub use link::LinkError;
pub use replicas::{Replicas, ReplicasError};
pub use route::{Route, RouteBuilder, RouteSnapshot};
/// What a token is kept in: it prints nothing.
pub use secrecy::SecretString;
