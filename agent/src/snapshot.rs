//! What snapshots are made of: everything that is a field of a [`RouteSnapshot`], under one roof.
//!
//! ```
//! use hedgerow_agent::Agent;
//! use hedgerow_agent::snapshot::{Mode, PolicySource, Refusal, RouteSnapshot};
//!
//! fn out_of_budget(route: &RouteSnapshot) -> u64 {
//!     route.totals.refused_for(Refusal::Budget)
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), hedgerow_agent::ConfigError> {
//! let agent = Agent::builder().service("checkout").connect().await?;
//! let now = agent.route("catalog", "get").build()?.snapshot();
//! assert_eq!(now.effective.mode, Mode::Observing);
//! assert_eq!(now.policy.source, PolicySource::None); // why it only observes
//! assert_eq!(out_of_budget(&now), 0);
//! # Ok(())
//! # }
//! ```

pub use hedgerow_protocol::directive::{Mode, OffReason, Stamp};
pub use hedgerow_protocol::ids::{
    DependencyName, Epoch, InstanceId, ModeSequence, OperationName, ReplicaName, Revision, RouteKey,
};
pub use hedgerow_protocol::latency::Histogram;
pub use hedgerow_protocol::policy::Intent;
pub use hedgerow_protocol::report::{Effective, LinkState, Refusal, Totals};
pub use hedgerow_protocol::units::{AttemptLimit, Budget, Quantile, Ratio, Threshold};

pub use crate::agent::AgentSnapshot;
pub use crate::classes::CostClasses;
pub use crate::mode::{PolicyInForce, PolicySource};
pub use crate::naming::{NamedFor, NamedReplica};
pub use crate::route::{FurtherRefused, NoEffect, RouteSnapshot};
