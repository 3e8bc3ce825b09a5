//! The command line.

mod accounts;
mod login_link;
mod replay;
mod serve;
mod simulate;
mod whatif;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::{STORE_DEFAULT, ServeArgs};

/// Steers hedged requests for a whole fleet.
#[derive(Debug, Parser)]
#[command(name = "hedgerow", version, about, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the controller.
    Serve(Box<ServeArgs>),
    /// Show the whole product on this machine: a controller, replicas, clients, and what goes wrong.
    Demo(crate::demo::DemoArgs),
    /// The demo's controller: `serve`, for as long as the demo lives.
    #[command(hide = true)]
    DemoController(Box<ServeArgs>),
    /// One of the demo's client processes.
    #[command(hide = true)]
    DemoClient(crate::demo::ClientArgs),
    /// Make a one-time link that signs an operator in to the dashboard.
    LoginLink(login_link::LoginLink),
    /// Credentials of agents.
    #[command(subcommand)]
    AgentToken(accounts::AgentTokens),
    /// Credentials for the REST API.
    #[command(subcommand)]
    ApiToken(accounts::ApiTokens),
    /// People who sign in to the dashboard.
    #[command(subcommand)]
    Operator(accounts::Operators),
    /// What hedging a file of latencies at each delay would cost and buy.
    Whatif(whatif::WhatIf),
    /// What a policy would have done with the traffic of the last hours.
    Replay(replay::ReplayHours),
    /// A fleet, a service and what goes wrong with them, in virtual time.
    Simulate(simulate::Simulate),
}

/// Which store a command works on. A controller may be running on it.
#[derive(Debug, Clone, clap::Args)]
struct StoreArg {
    /// The controller's store.
    #[arg(long, env = "HEDGEROW_STORE", value_name = "FILE", default_value = STORE_DEFAULT)]
    store: PathBuf,
}

impl Cli {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Serve(args) => serve::run(*args).await?,
            Command::Demo(args) => return crate::demo::run(args).await.map(verdict),
            Command::DemoController(args) => tokio::select! {
                served = serve::run(*args) => served?,
                () = crate::demo::until_stdin_ends() => {}
            },
            Command::DemoClient(args) => crate::demo::run_client(args).await?,
            Command::LoginLink(it) => it.run().await?,
            Command::AgentToken(it) => it.run().await?,
            Command::ApiToken(it) => it.run().await?,
            Command::Operator(it) => it.run().await?,
            Command::Whatif(it) => it.run()?,
            Command::Replay(it) => it.run().await?,
            Command::Simulate(it) => it.run()?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Success where every promise held.
fn verdict(held: bool) -> ExitCode {
    if held {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
