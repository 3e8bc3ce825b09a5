//! The command line. What is asked of a running controller goes through its REST API and nothing
//! else: what a command may do, its token says.

mod accounts;
mod agents;
mod alerts;
mod audit;
mod check;
mod connect;
mod deps;
mod exit;
mod kill;
mod login_link;
mod output;
mod policy;
mod receivers;
mod replay;
mod serve;
mod shells;
mod simulate;
mod status;
mod whatif;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::{STORE_DEFAULT, ServeArgs};

pub use exit::code_of;

/// Steers hedged requests for a whole fleet.
#[derive(Debug, Parser)]
#[command(name = "hedgerow", version, about, max_term_width = 100, after_help = exit::HELP)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// What needs a person first; what is off, and why.
    Status(status::Status),
    /// What is called: how it does, and why it is hedged or not.
    #[command(subcommand)]
    Deps(deps::Deps),
    /// What is wanted of hedging, by hand and from files.
    #[command(subcommand)]
    Policy(policy::Policies),
    /// Switch hedging off, for one dependency or everything, and on again.
    #[command(subcommand)]
    Kill(kill::Kill),
    /// Who is attached, and what they hold.
    #[command(subcommand)]
    Agents(agents::Agents),
    /// What fires; silences and acknowledgements.
    #[command(subcommand)]
    Alerts(alerts::Alerts),
    /// Where notices go, and whether they arrive.
    #[command(subcommand)]
    Receivers(receivers::Receivers),
    /// The record: who did what, when, from where, why.
    #[command(subcommand)]
    Audit(audit::Audit),
    /// Examine an installation and say what to do.
    Check(check::Check),
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
    /// What hedging at each delay would cost and buy: on a route now, or of a file of latencies.
    Whatif(whatif::WhatIf),
    /// What a policy would have done with the traffic of the last hours.
    Replay(replay::ReplayHours),
    /// A fleet, a service and what goes wrong with them, in virtual time.
    Simulate(simulate::Simulate),
    /// A script that completes commands in a shell.
    Completions(shells::Completions),
    /// Write the manual pages to a folder.
    Man(shells::Man),
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
            Command::Status(it) => return it.run().await,
            Command::Deps(it) => return it.run().await,
            Command::Policy(it) => return it.run().await,
            Command::Kill(it) => return it.run().await,
            Command::Agents(it) => return it.run().await,
            Command::Alerts(it) => return it.run().await,
            Command::Receivers(it) => return it.run().await,
            Command::Audit(it) => return it.run().await,
            Command::Check(it) => return it.run().await,
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
            Command::Whatif(it) => it.run().await?,
            Command::Replay(it) => it.run().await?,
            Command::Simulate(it) => it.run()?,
            Command::Completions(it) => it.run()?,
            Command::Man(it) => it.run()?,
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
