//! `hedgerow simulate`: a fleet, a service and what goes wrong with them, with the real controller
//! and the agents' real deciding parts, in virtual time. Asks no controller and no store.

mod course;
mod plot;
mod table;
mod versus;

use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use hedgerow_sim::{Client, Outcome, Scenario, Variation, run, shipped};

/// Seconds of a run between two words of progress.
const TOLD_EACH: u64 = 10;

/// `hedgerow simulate`.
#[derive(Debug, Args)]
pub(super) struct Simulate {
    /// A shipped scenario's name, or a TOML file like theirs; without one they are listed.
    scenario: Option<String>,
    /// Of all chance: the same one gives the same run.
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        allow_hyphen_values = true
    )]
    seed: u64,
    /// Agents in place of the scenario's.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    agents: Option<usize>,
    /// Calls a second of the fleet in place of the scenario's.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    calls_per_s: Option<f64>,
    /// Replicas in place of the scenario's.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    replicas: Option<usize>,
    /// Seconds in place of the scenario's.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    seconds: Option<u64>,
    /// Who makes the calls.
    #[arg(long, value_enum, default_value = "hedgerow")]
    client: ClientArg,
    /// The same calls by all three clients, side by side; without a scenario, all shipped ones as a
    /// Markdown table.
    #[arg(long, conflicts_with_all = ["client", "json", "plot"])]
    compare: bool,
    /// Print JSON: everything, second by second.
    #[arg(long, requires = "scenario")]
    json: bool,
    /// Draw the course over time.
    #[arg(long, value_name = "FILE.svg", requires = "scenario")]
    plot: Option<PathBuf>,
    /// Print the scenario's file, to begin one's own from.
    #[arg(long, requires = "scenario", conflicts_with_all = ["json", "plot", "compare"])]
    show: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ClientArg {
    /// Agents and a controller.
    Hedgerow,
    /// Nothing is ever hedged.
    Bare,
    /// Each process hedges at its own live p95, without a budget: what people build alone.
    PlainP95,
}

impl From<ClientArg> for Client {
    fn from(client: ClientArg) -> Self {
        match client {
            ClientArg::Hedgerow => Self::Hedgerow,
            ClientArg::Bare => Self::Bare,
            ClientArg::PlainP95 => Self::PlainP95,
        }
    }
}

impl Simulate {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match &self.scenario {
            None if self.compare => self.all(),
            None => say(&table::list()),
            Some(name) if self.show => say(&text(name)?),
            Some(name) => self.one(name),
        }
    }

    fn one(&self, name: &str) -> anyhow::Result<()> {
        let scenario = Scenario::find(name)?;
        if self.compare {
            let outcomes = self.each_client(&scenario)?;
            return say(&versus::text(&outcomes));
        }
        let outcome = self.simulate(&scenario, self.client.into())?;
        if let Some(path) = &self.plot {
            draw(path, &outcome)?;
        }
        if self.json {
            return say(&serde_json::to_string(&outcome)?);
        }
        say(&table::text(&outcome))
    }

    /// Every shipped scenario by every client, a row as soon as it is known: some take minutes.
    fn all(&self) -> anyhow::Result<()> {
        say(versus::HEAD)?;
        for each in shipped() {
            let scenario = Scenario::parse(each.text)?;
            let outcomes = self.each_client(&scenario)?;
            say(&versus::row(each.name, &outcomes))?;
        }
        Ok(())
    }

    fn each_client(&self, scenario: &Scenario) -> anyhow::Result<[Outcome; 3]> {
        Ok([
            self.simulate(scenario, Client::Bare)?,
            self.simulate(scenario, Client::PlainP95)?,
            self.simulate(scenario, Client::Hedgerow)?,
        ])
    }

    fn simulate(&self, scenario: &Scenario, client: Client) -> anyhow::Result<Outcome> {
        let variation = Variation {
            seed: self.seed,
            agents: self.agents,
            calls_per_s: self.calls_per_s,
            replicas: self.replicas,
            seconds: self.seconds,
            client,
            ..Variation::default()
        };
        let mut errors = std::io::stderr();
        let shows = errors.is_terminal();
        let last = self.seconds.unwrap_or(scenario.seconds);
        let outcome = run(scenario, &variation, |second| {
            if shows && (second.second % TOLD_EACH == 0 || second.second == last) {
                // Progress that cannot be shown is no reason to stop.
                let _ = write!(
                    errors,
                    "\r{}: {} of {last} s\u{1b}[K",
                    client.as_str(),
                    second.second
                );
            }
        });
        if shows {
            let _ = write!(std::io::stderr(), "\r\u{1b}[K");
        }
        Ok(outcome?)
    }
}

/// A scenario's file.
fn text(name: &str) -> anyhow::Result<String> {
    if let Some(found) = shipped().iter().find(|it| it.name == name) {
        return Ok(found.text.trim_end().to_owned());
    }
    std::fs::read_to_string(name).with_context(|| format!("{name} cannot be read"))
}

fn draw(path: &Path, outcome: &Outcome) -> anyhow::Result<()> {
    let svg = plot::svg(outcome)?;
    std::fs::write(path, svg).with_context(|| format!("{} cannot be written", path.display()))
}

/// A line on standard output; a reader that has seen enough, such as `head`, is no error.
fn say(text: &str) -> anyhow::Result<()> {
    match writeln!(std::io::stdout().lock(), "{text}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("standard output cannot be written"),
    }
}
