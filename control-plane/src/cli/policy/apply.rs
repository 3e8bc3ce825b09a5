//! Files into force. Everything is planned before anything is changed; each change is made over the
//! revision that was planned against, so that what somebody else saved meanwhile stays.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use reqwest::Method;
use serde_json::{Value, json};

use super::file;
use super::plan::{self, Planned, plan, policies, policy_path};
use crate::cli::connect::{ConnectArgs, reason};
use crate::cli::exit;
use crate::cli::output::look::Look as _;
use crate::cli::output::{Format, OutputArgs, Paint, Shown, note, print};
use crate::client::{Client, ClientError};

/// `hedgerow policy apply`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Apply {
    #[command(flatten)]
    files: Files,
    /// Why, in a few words: it stands in the record.
    #[arg(long, value_name = "WORDS", value_parser = reason, required_unless_present = "dry_run")]
    reason: Option<String>,
    /// Do not ask; needed where nobody can be asked.
    #[arg(long, short = 'y')]
    yes: bool,
    /// Say what would change, and change nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// `hedgerow policy diff`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Diff {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

#[derive(Debug, Args)]
struct Files {
    /// Policies as YAML; a folder's `.yaml` and `.yml`; `-` is standard input. More than once.
    #[arg(short = 'f', long = "file", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

impl Files {
    async fn plan(&self, client: &Client) -> anyhow::Result<Vec<Planned>> {
        plan(client, file::read(&self.files)?).await
    }
}

impl Diff {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let planned = self.files.plan(&self.connect.client()?).await?;
        let differs = planned.iter().any(Planned::changes);
        self.output.show(&Shown {
            data: planned.iter().map(Planned::data).collect(),
            text: plan::text(&planned, Paint::for_stdout()),
            code: if differs { exit::DIFFERS } else { exit::FINE },
        })
    }
}

impl Apply {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.connect.client()?;
        let planned = self.files.plan(&client).await?;
        let table = self.output.format == Format::Table;
        if table {
            print(&plan::text(&planned, Paint::for_stdout()))?;
        }
        let (to_change, same): (Vec<_>, Vec<_>) = planned.iter().partition(|it| it.changes());
        let mut done = Vec::new();
        if !self.dry_run && !to_change.is_empty() {
            self.consent(to_change.len())?;
            // Demanded by the command line wherever something is changed.
            let reason = self.reason.as_deref().unwrap_or_default();
            for (i, planned) in to_change.iter().enumerate() {
                let saved = save(&client, planned, reason).await;
                done.push(saved.with_context(|| told(planned, i, to_change.len()))?);
            }
        }
        if table {
            return applied(&done).map(|()| ExitCode::SUCCESS);
        }
        let data = json!({
            "planned": planned.iter().map(Planned::data).collect::<Vec<_>>(),
            "unchanged": same.len(),
            "applied": done.iter().map(Saved::data).collect::<Vec<_>>(),
        });
        self.output.show(&Shown::fine(data, String::new()))
    }

    /// Asks, where there is somebody to ask.
    fn consent(&self, changes: usize) -> anyhow::Result<()> {
        if self.yes {
            return Ok(());
        }
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            let problem =
                "nobody can be asked here: expected --yes, or --dry-run to change nothing";
            return Err(exit::Usage(problem.into()).into());
        }
        let mut err = std::io::stderr().lock();
        write!(err, "\nChange {}? [y/N] ", policies(changes))?;
        err.flush()?;
        let mut line = String::new();
        std::io::stdin().read_line(&mut line)?;
        if matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
            return Ok(());
        }
        anyhow::bail!("nothing was changed")
    }
}

/// A policy that was put in force.
struct Saved {
    scope: String,
    revision: u64,
    /// False: somebody had put the same in force meanwhile.
    changed: bool,
    in_steps: bool,
}

impl Saved {
    fn data(&self) -> Value {
        json!({"scope": self.scope, "revision": self.revision, "changed": self.changed})
    }
}

async fn save(client: &Client, planned: &Planned, reason: &str) -> Result<Saved, anyhow::Error> {
    let mut body = planned.entry.body.clone();
    body.insert("reason".into(), reason.into());
    let in_steps = body.contains_key("rollout");
    let path = policy_path(&planned.entry.scope, &[]);
    let sent = client
        .send(
            Method::PUT,
            &path,
            &Value::Object(body),
            Some(planned.revision),
        )
        .await;
    match sent {
        Ok(answer) => Ok(Saved {
            scope: planned.entry.scope.to_string(),
            revision: answer.body.whole("/revision").unwrap_or_default(),
            changed: answer.body.is("/changed"),
            in_steps,
        }),
        // In the plan's words: who runs this has not seen a revision of the controller's.
        Err(ClientError::Refused(problem)) if problem.status == 412 => {
            let now = problem
                .current
                .map_or_else(String::new, |it| format!(", revision {it} is in force now"));
            let said = format!(
                "it was changed meanwhile: planned over revision {}{now}; look at it (`hedgerow policy diff`) and apply again",
                planned.revision
            );
            Err(exit::Refused(said).into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Which of several failed, and what that leaves.
fn told(planned: &Planned, before: usize, all: usize) -> String {
    let after = all - before - 1;
    format!(
        "{} ({}) was not applied; {} before it {} in force, {after} after it not tried",
        planned.entry.scope,
        planned.entry.origin(),
        policies(before),
        if before == 1 { "is" } else { "are" },
    )
}

fn applied(done: &[Saved]) -> anyhow::Result<()> {
    for saved in done {
        let Saved {
            scope, revision, ..
        } = saved;
        let how = match (saved.changed, saved.in_steps) {
            (false, _) => format!("was in force already, as revision {revision}"),
            (true, false) => format!("in force as revision {revision}"),
            (true, true) => format!("in force in steps, as revision {revision}"),
        };
        print(&format!("{scope}: {how}"))?;
    }
    if !done.is_empty() {
        note("agents take it within seconds: `hedgerow deps list` shows how many hold it");
    }
    Ok(())
}
