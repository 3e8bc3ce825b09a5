//! `hedgerow deps`: what is called, how it does, and why it is hedged or not.

mod explain;
mod list;
mod show;
mod steer;

use std::process::ExitCode;

use clap::Subcommand;

/// `hedgerow deps`.
#[derive(Debug, Subcommand)]
pub(super) enum Deps {
    /// All routes, worst first.
    List(list::List),
    /// One route: its figures, replicas, and what happened to it.
    Show(show::Show),
    /// Why hedging is off, or not: value, limit, window, since when, when it tries again.
    Explain(explain::Explain),
    /// Let a route that changed too often by itself decide again.
    Release(steer::Release),
    /// Say that the present speed is normal: it becomes the base of the all-slow test.
    AcceptBase(steer::AcceptBase),
    /// Find out what hedging does by its load: hedge with the whole fleet and do not, in turns.
    Switchback(steer::Switchback),
}

impl Deps {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::List(it) => it.run().await,
            Self::Show(it) => it.run().await,
            Self::Explain(it) => it.run().await,
            Self::Release(it) => it.run().await,
            Self::AcceptBase(it) => it.run().await,
            Self::Switchback(it) => it.run().await,
        }
    }
}
