// Where the README links to files, these pages are meant.
#![doc = "[safe-to-hedge]: guide::safe_to_hedge"]
#![doc = "[what-to-look-at]: guide::what_to_look_at"]
#![doc = ""]
#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod admission;
mod agent;
mod attempt;
mod budget;
mod chance;
mod classes;
pub mod config;
mod eligibility;
mod error;
mod gate;
pub mod guide;
mod hand;
mod host;
pub mod integrations;
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
mod probation;
mod race;
mod replicas;
mod route;
#[cfg(feature = "sim")]
#[doc(hidden)]
pub mod sim;
pub mod snapshot;
mod standalone;
mod stats;
mod sync;
mod telemetry;
mod thread;
mod threshold;
mod ticket;
mod watch;

pub use agent::{Agent, AgentBuilder, AgentSnapshot};
pub use attempt::{Attempt, AttemptKind, HEDGE_HEADER, HEDGE_MARK, Hold};
pub use classes::CostClasses;
pub use eligibility::{Call, Verdict};
pub use error::{CallError, ConfigError};
/// The types that snapshots are made of, and the contract with the controller.
pub use hedgerow_protocol as protocol;
pub use hedgerow_protocol::ids::ReplicaName;
pub use hedgerow_protocol::policy::{Intent, Policy, PolicyDraft};
pub use layer::{HedgeLayer, HedgeService};
pub use link::LinkError;
pub use naming::{NamedFor, NamedReplica};
pub use replicas::{Replicas, ReplicasError};
pub use route::{NoEffect, Route, RouteBuilder, RouteSnapshot};
/// What a token is kept in: it prints nothing.
pub use secrecy::SecretString;
pub use standalone::PolicyFileError;
