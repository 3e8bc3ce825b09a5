//! `hedgerow policy`: what is wanted of hedging, by hand and from files.

mod apply;
pub(super) mod file;
mod history;
mod list;
mod plan;
mod reading;
mod steps;
pub(super) mod yaml;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use hedgerow_protocol::policy::PolicyScope;

/// `hedgerow policy`.
#[derive(Debug, Subcommand)]
pub(super) enum Policies {
    /// All policies in force.
    List(list::List),
    /// One policy; as YAML it is a file for `policy apply`.
    Get(list::Get),
    /// Put the policies of files in force: says what would change, asks, changes that and nothing
    /// else.
    Apply(apply::Apply),
    /// What `policy apply` would change; ends with 6 where that is anything.
    Diff(apply::Diff),
    /// All revisions of a policy, newest first.
    History(history::History),
    /// Put an earlier revision in force again, as a new one.
    Revert(history::Revert),
    /// Take a policy away: what it was for has the next wider one again, or none.
    Remove(history::Remove),
    /// Take a rollout's next step without waiting for it.
    Advance(steps::Advance),
    /// Take a rollout back: the old policy for all agents.
    TakeBack(steps::TakeBack),
}

impl Policies {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::List(it) => it.run().await,
            Self::Get(it) => it.run().await,
            Self::Apply(it) => it.run().await,
            Self::Diff(it) => it.run().await,
            Self::History(it) => it.run().await,
            Self::Revert(it) => it.run().await,
            Self::Remove(it) => it.run().await,
            Self::Advance(it) => it.run().await,
            Self::TakeBack(it) => it.run().await,
        }
    }
}

/// What a policy is for.
#[derive(Debug, Clone, Args)]
struct ScopeArgs {
    /// A dependency, or a pattern such as `catalog-*`.
    #[arg(value_name = "DEPENDENCY")]
    dependency: String,
    /// One of its operations; without it, the policy of all that have none of their own.
    #[arg(value_name = "OPERATION")]
    operation: Option<String>,
}

impl ScopeArgs {
    fn scope(&self) -> anyhow::Result<PolicyScope> {
        // `catalog get` in one word too, as everything prints it.
        let scope = match &self.operation {
            None => self.dependency.parse(),
            operation => PolicyScope::new(&self.dependency, operation.as_deref()),
        };
        Ok(scope.map_err(|error| super::exit::Usage(error.to_string()))?)
    }
}
