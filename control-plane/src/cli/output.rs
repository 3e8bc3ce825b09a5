//! What commands print: a table for people, JSON or YAML for programs; once, or again and again.

pub(super) mod figures;
pub(super) mod look;
mod paint;
pub(super) mod table;
pub(super) mod yaml;

use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde_json::Value;

use super::exit;
use crate::client::ClientError;

pub(super) use paint::{Colour, Paint};

/// How often `--watch` looks again.
const WATCH_EVERY: Duration = Duration::from_secs(2);

/// How an answer is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people.
    #[default]
    Table,
    /// For programs: everything, numbers as they are.
    Json,
    /// The same as YAML.
    Yaml,
}

/// `-o`.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(super) struct OutputArgs {
    /// How to write the answer.
    #[arg(
        short = 'o',
        long = "output",
        value_enum,
        value_name = "FORMAT",
        default_value_t
    )]
    pub(super) format: Format,
}

/// `-o` and `--watch`.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(super) struct WatchArgs {
    #[command(flatten)]
    pub(super) output: OutputArgs,
    /// Look again each two seconds; not on a terminal: a JSON object a line each time.
    #[arg(long)]
    pub(super) watch: bool,
}

/// An answer, for both kinds of readers.
#[derive(Debug)]
pub(super) struct Shown {
    /// For programs.
    pub(super) data: Value,
    /// For people.
    pub(super) text: String,
    /// What the process ends with.
    pub(super) code: u8,
}

impl Shown {
    /// An answer that is as it should be.
    pub(super) fn fine(data: Value, text: String) -> Self {
        Self {
            data,
            text,
            code: exit::FINE,
        }
    }

    fn write(&self, format: Format) -> anyhow::Result<String> {
        Ok(match format {
            Format::Table => self.text.clone(),
            Format::Json => serde_json::to_string_pretty(&self.data)?,
            Format::Yaml => yaml::text(&self.data),
        })
    }
}

impl OutputArgs {
    /// Prints an answer; what the process ends with.
    pub(super) fn show(self, shown: &Shown) -> anyhow::Result<ExitCode> {
        print(&shown.write(self.format)?)?;
        Ok(ExitCode::from(shown.code))
    }
}

impl WatchArgs {
    /// Prints what `look` sees, once or until it is stopped.
    pub(super) async fn show(
        self,
        look: impl AsyncFn() -> anyhow::Result<Shown>,
    ) -> anyhow::Result<ExitCode> {
        if !self.watch {
            return self.output.show(&look().await?);
        }
        let terminal = std::io::stdout().is_terminal();
        loop {
            match look().await {
                Ok(shown) if terminal => {
                    // Cleared after it was fetched, so that the screen is never empty for long.
                    print(&format!(
                        "\x1b[H\x1b[2J{}",
                        shown.write(self.output.format)?
                    ))?;
                }
                Ok(shown) => print(&serde_json::to_string(&shown.data)?)?,
                // A controller that starts anew is waited for; what is refused once is refused again.
                Err(error) if is_away(&error) => note(&format!("{error:#}; trying again")),
                Err(error) => return Err(error),
            }
            tokio::time::sleep(WATCH_EVERY).await;
        }
    }
}

fn is_away(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ClientError::Unreachable { .. }))
}

/// Prints text and a line's end. A reader that has seen enough, such as `head`, is no error.
pub(super) fn print(text: &str) -> anyhow::Result<()> {
    let text = text.trim_end_matches('\n');
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        written => written.context("standard output cannot be written"),
    }
}

/// Says something beside the answer: progress, warnings.
#[expect(
    clippy::print_stderr,
    reason = "beside the answer, which goes to standard output"
)]
pub(super) fn note(text: &str) {
    eprintln!("{text}");
}
