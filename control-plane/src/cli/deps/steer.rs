//! What a person can do to a route.

use std::process::ExitCode;

use clap::Args;
use reqwest::Method;
use serde_json::{Value, json};

use crate::cli::connect::{ConnectArgs, ReasonArg, RouteArgs, route_path};
use crate::cli::output::{OutputArgs, Shown};

/// What all of them take.
#[derive(Debug, Args)]
struct Act {
    #[command(flatten)]
    route: RouteArgs,
    #[command(flatten)]
    reason: ReasonArg,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// `hedgerow deps release`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Release {
    #[command(flatten)]
    act: Act,
}

/// `hedgerow deps accept-base`.
#[derive(Debug, Args)]
pub(in crate::cli) struct AcceptBase {
    #[command(flatten)]
    act: Act,
}

/// `hedgerow deps switchback`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Switchback {
    /// So many rounds, a minute each, 3 to 60.
    #[arg(long, default_value_t = 10, conflicts_with = "stop")]
    rounds: u32,
    /// End the one that runs.
    #[arg(long)]
    stop: bool,
    #[command(flatten)]
    act: Act,
}

impl Act {
    async fn post(
        self,
        method: Method,
        below: &str,
        mut body: Value,
        said: &str,
    ) -> anyhow::Result<ExitCode> {
        let key = self.route.key()?;
        body["reason"] = self.reason.reason.into();
        let client = self.connect.client()?;
        let path = route_path(&key, Some(below));
        let answer = client.send(method, &path, &body, None).await?;
        let text = format!("{key}: {said}");
        self.output.show(&Shown::fine(answer.body, text))
    }
}

impl Release {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let said = "it decides again by itself";
        self.act
            .post(Method::POST, "release", json!({}), said)
            .await
    }
}

impl AcceptBase {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let said = "the present speed is its base now";
        self.act
            .post(Method::POST, "accept-base", json!({}), said)
            .await
    }
}

impl Switchback {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        if self.stop {
            let said = "the switchback is over; `hedgerow deps show -o json` has its result";
            return self
                .act
                .post(Method::DELETE, "switchback", json!({}), said)
                .await;
        }
        let body = json!({"rounds": self.rounds});
        let said = format!(
            "a switchback of {} minutes has begun; `hedgerow deps show -o json` has it under switchback",
            self.rounds
        );
        self.act.post(Method::POST, "switchback", body, &said).await
    }
}
