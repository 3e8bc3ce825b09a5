//! Completions and manual pages, made from the command line itself.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, CommandFactory as _, ValueEnum};
use clap_complete::Shell;

use super::Cli;
use super::output::print;

/// Shells that are looked after.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Known {
    Bash,
    Zsh,
    Fish,
}

impl From<Known> for Shell {
    fn from(shell: Known) -> Self {
        match shell {
            Known::Bash => Self::Bash,
            Known::Zsh => Self::Zsh,
            Known::Fish => Self::Fish,
        }
    }
}

/// `hedgerow completions`.
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// For which shell.
    #[arg(value_enum)]
    shell: Known,
}

impl Completions {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let mut script = Vec::new();
        let shell = Shell::from(self.shell);
        clap_complete::generate(shell, &mut Cli::command(), "hedgerow", &mut script);
        print(&String::from_utf8(script).context("the script is no text")?)
    }
}

/// `hedgerow man`.
#[derive(Debug, Args)]
pub(super) struct Man {
    /// A folder; pages of that name in it are replaced.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Man {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let cannot = || {
            format!(
                "manual pages cannot be written to {}",
                self.folder.display()
            )
        };
        std::fs::create_dir_all(&self.folder).with_context(cannot)?;
        clap_mangen::generate_to(Cli::command(), &self.folder).with_context(cannot)
    }
}
