//! A rollout's steps.

use std::process::ExitCode;

use clap::Args;
use reqwest::Method;
use serde_json::json;

use super::ScopeArgs;
use super::history::revision;
use super::plan::policy_path;
use crate::cli::connect::{ConnectArgs, ReasonArg};
use crate::cli::output::{OutputArgs, Shown};

/// What both steps take.
#[derive(Debug, Args)]
struct Step {
    #[command(flatten)]
    scope: ScopeArgs,
    /// Only of this revision; another rollout is refused.
    #[arg(long, value_name = "REVISION")]
    over: Option<u64>,
    #[command(flatten)]
    reason: ReasonArg,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// `hedgerow policy advance`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Advance {
    #[command(flatten)]
    step: Step,
}

/// `hedgerow policy take-back`.
#[derive(Debug, Args)]
pub(in crate::cli) struct TakeBack {
    #[command(flatten)]
    step: Step,
}

impl Advance {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let below = ["rollout", "advance"];
        let said = "one step further; `hedgerow policy list` shows how far it has got";
        self.step.take(Method::POST, &below, said).await
    }
}

impl TakeBack {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let said = "the old policy is in force again for all agents";
        self.step.take(Method::DELETE, &["rollout"], said).await
    }
}

impl Step {
    async fn take(self, method: Method, below: &[&str], said: &str) -> anyhow::Result<ExitCode> {
        let scope = self.scope.scope()?;
        let body = json!({"reason": self.reason.reason});
        let client = self.connect.client()?;
        let path = policy_path(&scope, below);
        let answer = client.send(method, &path, &body, self.over).await?;
        let text = format!("{scope}: {said} (revision {})", revision(&answer));
        self.output.show(&Shown::fine(answer.body, text))
    }
}
