//! `hedgerow whatif`: what hedging would cost and buy. From a file of latencies, without asking
//! anybody; or on a route, as a controller sees it now.

mod file;
mod live;
mod table;

use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{ArgGroup, Args};
use hedgerow_core::whatif::{Distribution, Goal, Hedged, Percentile};
use hedgerow_protocol::units::{Budget, RangeError, Ratio};

use super::connect::ConnectArgs;
use super::output::Format;
use crate::whatif::{JSON_ROWS, json};

/// Rows a person is shown: more do not fit a screen.
const TABLE_ROWS: usize = 24;

/// `hedgerow whatif`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("of").required(true).args(["dependency", "sample"])))]
pub(super) struct WhatIf {
    /// What is called: a route, over the last minutes.
    #[arg(value_name = "DEPENDENCY", requires = "operation")]
    dependency: Option<String>,
    /// Which of its operations.
    #[arg(value_name = "OPERATION", requires = "dependency")]
    operation: Option<String>,
    /// Latencies: {"sample_ms": {"10": 40, ...}}, counts by milliseconds, or milliseconds, one a
    /// line.
    #[arg(long, value_name = "FILE", conflicts_with = "operation")]
    sample: Option<PathBuf>,
    /// The percentile to bring down, such as p99: also says the best delay for it.
    #[arg(long, value_name = "PERCENTILE", requires = "budget")]
    goal: Option<Percentile>,
    // Negative numbers reach the parser, which says what the range is.
    /// Hedges for each call that the goal may cost, such as 0.03.
    #[arg(long, value_name = "SHARE", requires = "goal", value_parser = share::<Budget>, allow_hyphen_values = true)]
    budget: Option<Budget>,
    /// The share of slowness that a call and its hedge have in common, 0 to 1; of a route it is
    /// measured.
    #[arg(long, value_name = "SHARE", default_value = "0", conflicts_with = "operation", value_parser = share::<Ratio>, allow_hyphen_values = true)]
    phi: Ratio,
    /// Print JSON: the curve, or with --goal the best delay.
    #[arg(long)]
    json: bool,
    /// With --json and --goal: print the curve too, and what is best under "goal".
    #[arg(long, requires_all = ["json", "goal"])]
    curve: bool,
    /// How to write a route's answer.
    #[arg(short = 'o', long = "output", value_enum, value_name = "FORMAT", conflicts_with_all = ["json", "sample"])]
    format: Option<Format>,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl WhatIf {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let text = match (&self.sample, &self.dependency, &self.operation) {
            (Some(sample), _, _) => self.answer(&file::read(sample)?)?,
            (None, Some(dependency), Some(operation)) => self.live(dependency, operation).await?,
            // The command line does not let it come to that.
            (None, _, _) => {
                anyhow::bail!("expected --sample FILE, or a dependency and an operation")
            }
        };
        match writeln!(std::io::stdout().lock(), "{text}") {
            // A reader that has seen enough, such as `head`.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            written => written.context("standard output cannot be written"),
        }
    }

    fn answer(&self, sample: &Distribution) -> anyhow::Result<String> {
        let goal = self
            .goal
            .zip(self.budget)
            .map(|(percentile, budget)| Goal::new(percentile, budget).with_shared(self.phi));
        let best = goal.as_ref().map(|goal| sample.best(goal));
        if self.json {
            let curve = (best.is_none() || self.curve).then(|| self.rows(sample, JSON_ROWS));
            return json::text(sample, curve.as_deref(), goal.as_ref().zip(best.as_ref()));
        }
        let mut text = table::text(sample, &self.rows(sample, TABLE_ROWS), self.phi);
        if let Some((goal, best)) = goal.as_ref().zip(best.as_ref()) {
            text.push_str(&table::best(goal, best));
        }
        Ok(text)
    }

    async fn live(&self, dependency: &str, operation: &str) -> anyhow::Result<String> {
        let format = match (self.json, self.format) {
            (true, _) => Format::Json,
            (false, format) => format.unwrap_or_default(),
        };
        let asked = live::Asked {
            dependency,
            operation,
            goal: self.goal.zip(self.budget),
        };
        live::text(&self.connect.client()?, &asked, format).await
    }

    fn rows(&self, sample: &Distribution, rows_max: usize) -> Vec<Hedged> {
        sample.curve(self.phi, rows_max)
    }
}

/// A number from the command line, within its range.
fn share<T: TryFrom<f64, Error = RangeError>>(text: &str) -> Result<T, String> {
    let number: f64 = text
        .parse()
        .map_err(|_| "expected a number, such as 0.05".to_owned())?;
    T::try_from(number).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_outside_their_range_are_refused_with_the_range() {
        for (text, expected) in [
            ("3", "expected a number above 0 and at most 0.25"),
            ("0", "expected a number above 0 and at most 0.25"),
            ("nan", "expected a number above 0 and at most 0.25"),
            ("3 %", "expected a number, such as 0.05"),
        ] {
            let refused = share::<Budget>(text).unwrap_err();
            assert!(refused.contains(expected), "{text}: {refused}");
        }
        assert_eq!(share::<Ratio>("0.2"), Ok(Ratio::new(0.2).unwrap()));
    }
}
