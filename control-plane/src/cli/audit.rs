//! `hedgerow audit tail`: the record, newest last.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::Value;

use super::connect::ConnectArgs;
use super::output::figures::{NONE, clean, date};
use super::output::look::Look as _;
use super::output::{Colour, Format, OutputArgs, Paint, note, print, yaml};
use crate::client::{Client, ClientError, Path};

/// How often `--follow` looks.
const FOLLOW_EVERY: Duration = Duration::from_secs(2);
/// Lines asked for at once while following.
const PAGE_LINES: u32 = 100;
/// Pages that are gone back through to find the last line seen.
const PAGES_BACK: usize = 50;

/// `hedgerow audit`.
#[derive(Debug, Subcommand)]
pub(super) enum Audit {
    /// The last lines of the record: who did what, when, from where, why.
    Tail(Tail),
}

impl Audit {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let Self::Tail(it) = self;
        it.run().await
    }
}

/// `hedgerow audit tail`.
#[derive(Debug, Args)]
pub(super) struct Tail {
    /// So many lines.
    #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    lines: u32,
    /// Go on with new lines as they come.
    #[arg(short = 'f', long)]
    follow: bool,
    /// Only this action, or those below it: `policy`, `kill.on`.
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,
    /// Only by this person, by `token:NAME`, or by `controller`.
    #[arg(long, value_name = "NAME")]
    actor: Option<String>,
    /// Only about this dependency.
    #[arg(long, value_name = "NAME")]
    dependency: Option<String>,
    /// Only from then on, such as 2026-03-01T14:00:00Z.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only before then.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl Tail {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.connect.client()?;
        let path = Path::new(["audit"])
            .with_some("action", self.action.as_deref())
            .with_some("actor", self.actor.as_deref())
            .with_some("dependency", self.dependency.as_deref())
            .with_some("since", self.since.as_deref())
            .with_some("until", self.until.as_deref());
        let first = path.clone().with("limit", &self.lines.to_string());
        let mut rows = client.page(&first).await?.items;
        rows.reverse();
        // A line of JSON each: a program reads them as they come.
        for row in &rows {
            self.show(row)?;
        }
        let mut last = rows.iter().filter_map(|row| row.whole("/id")).max();
        while self.follow {
            tokio::time::sleep(FOLLOW_EVERY).await;
            match newer(&client, &path, last).await {
                Ok(rows) => {
                    for row in rows {
                        self.show(&row)?;
                        last = last.max(row.whole("/id"));
                    }
                }
                Err(error @ ClientError::Unreachable { .. }) => {
                    note(&format!("{error}; trying again"));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn show(&self, row: &Value) -> anyhow::Result<()> {
        match self.output.format {
            Format::Table => print(&line(row, Paint::for_stdout())),
            Format::Json => print(&serde_json::to_string(row)?),
            Format::Yaml => print(&format!("---\n{}", yaml::text(row))),
        }
    }
}

/// Rows after the one with this number, oldest first: page by page, until it is met.
async fn newer(client: &Client, path: &Path, last: Option<u64>) -> Result<Vec<Value>, ClientError> {
    let is_new = |row: &Value| row.whole("/id") > last;
    let mut found = Vec::new();
    let mut asked = path.clone().with("limit", &PAGE_LINES.to_string());
    for _ in 0..PAGES_BACK {
        let page = client.page(&asked).await?;
        let met = page.items.iter().any(|row| !is_new(row));
        found.extend(page.items.into_iter().filter(is_new));
        match page.next {
            Some((name, cursor)) if !met => asked = asked.with(name, &cursor),
            _ => break,
        }
    }
    found.reverse();
    Ok(found)
}

/// `when who (from where) what on what: before -> after, because`.
fn line(row: &Value, paint: Paint) -> String {
    let when = row.whole("/at").map_or_else(|| NONE.into(), date);
    let change = match (row.text("/before"), row.text("/after")) {
        (Some(before), Some(after)) if !before.is_empty() || !after.is_empty() => {
            let or_dash = |text: &str| {
                if text.is_empty() {
                    NONE.into()
                } else {
                    clean(text)
                }
            };
            format!(": {} -> {}", or_dash(before), or_dash(after))
        }
        _ => String::new(),
    };
    let why = match row.text("/reason") {
        Some(reason) if !reason.is_empty() => format!(" ({})", clean(reason)),
        _ => String::new(),
    };
    format!(
        "{}  {} {}  {} {}{change}{why}",
        paint.paint(Colour::Faint, &when),
        row.text_or_dash("/actor/name"),
        paint.paint(
            Colour::Faint,
            &format!("by {}", row.text_or_dash("/actor/via"))
        ),
        paint.paint(Colour::Strong, &row.text_or_dash("/action")),
        row.text_or_dash("/target"),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn u12_a_line_says_who_when_what_from_where_and_why() {
        let row = json!({
            "id": 7, "at": 1_772_373_787_000_u64, "actor": {"name": "ada", "via": "api"},
            "action": "policy.set", "target": "catalog", "before": "", "after": "budget 5 %", "reason": "4711\n",
        });
        assert_eq!(
            line(&row, Paint::none()),
            "2026-03-01 14:03:07 UTC  ada by api  policy.set catalog: – -> budget 5 % (4711 )"
        );
    }
}
