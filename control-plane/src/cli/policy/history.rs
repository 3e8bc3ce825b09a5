//! Revisions: looking at them, going back to one, taking the policy away.

use std::process::ExitCode;

use clap::Args;
use reqwest::Method;
use serde_json::{Value, json};

use super::ScopeArgs;
use super::plan::policy_path;
use crate::cli::connect::{ConnectArgs, ReasonArg};
use crate::cli::output::figures::{clean, date};
use crate::cli::output::look::Look as _;
use crate::cli::output::table::{Cell, Table};
use crate::cli::output::{OutputArgs, Paint, Shown};
use crate::client::Answer;

/// `hedgerow policy history`.
#[derive(Debug, Args)]
pub(in crate::cli) struct History {
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl History {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.connect.client()?;
        let scope = self.scope.scope()?;
        let revisions = client.list(&policy_path(&scope, &["history"])).await?;
        let text = table(&revisions, Paint::for_stdout());
        self.output
            .show(&Shown::fine(Value::Array(revisions), text))
    }
}

/// Each with what it changed of the one before it.
fn table(revisions: &[Value], paint: Paint) -> String {
    let mut table = Table::new(&[">REVISION", "WHEN", "WHO", "FROM", "WHY", "CHANGED"]);
    for (i, revision) in revisions.iter().enumerate() {
        let when = revision.whole("/at").map(date);
        table.row(vec![
            Cell::new(revision.whole("/revision").unwrap_or(0).to_string()),
            when.map_or_else(|| Cell::none(""), Cell::new),
            Cell::new(revision.text_or_dash("/actor/name")),
            Cell::new(revision.text_or_dash("/actor/via")),
            Cell::new(revision.text_or_dash("/reason")),
            Cell::new(changed(revision, revisions.get(i + 1))),
        ]);
    }
    if table.is_empty() {
        return "nobody has set it: there are no revisions".into();
    }
    table.text(paint)
}

fn changed(revision: &Value, before: Option<&Value>) -> String {
    let is_set = |of: &Value| of.get("policy").is_some_and(Value::is_object);
    if !is_set(revision) {
        return "taken away".into();
    }
    let Some(before) = before else {
        return "everything: the first".into();
    };
    if !is_set(before) {
        return "everything: there was none".into();
    }
    let empty = serde_json::Map::new();
    let fields = |of: &Value| {
        let fields = of.get("policy").and_then(Value::as_object);
        fields.unwrap_or(&empty).clone()
    };
    let (new, old) = (fields(revision), fields(before));
    let names = new
        .keys()
        .chain(old.keys().filter(|it| !new.contains_key(*it)));
    let said = |value: Option<&Value>| match value {
        None | Some(Value::Null) => "–".to_owned(),
        Some(Value::String(text)) => clean(text),
        Some(other) => other.to_string(),
    };
    let changes: Vec<_> = names
        .filter(|name| new.get(*name) != old.get(*name))
        .map(|name| format!("{name} {} -> {}", said(old.get(name)), said(new.get(name))))
        .collect();
    if changes.is_empty() {
        "nothing".into()
    } else {
        changes.join(", ")
    }
}

/// `hedgerow policy revert`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Revert {
    #[command(flatten)]
    scope: ScopeArgs,
    /// The revision to go back to, as `policy history` lists it.
    #[arg(long, value_name = "REVISION")]
    to: u64,
    /// Only over this revision; another in force is refused.
    #[arg(long, value_name = "REVISION")]
    over: Option<u64>,
    #[command(flatten)]
    reason: ReasonArg,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl Revert {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let scope = self.scope.scope()?;
        let path = policy_path(&scope, &["revert"]);
        let body = json!({"revision": self.to, "reason": self.reason.reason});
        let client = self.connect.client()?;
        let answer = client.send(Method::POST, &path, &body, self.over).await?;
        let text = match answer.body.is("/changed") {
            true => format!(
                "{scope}: revision {} is in force, as {} was",
                revision(&answer),
                self.to
            ),
            false => format!(
                "{scope}: nothing to change, revision {} is as {} was",
                revision(&answer),
                self.to
            ),
        };
        self.output.show(&Shown::fine(answer.body, text))
    }
}

/// `hedgerow policy remove`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Remove {
    #[command(flatten)]
    scope: ScopeArgs,
    /// Only this revision; another in force is refused.
    #[arg(long, value_name = "REVISION")]
    over: Option<u64>,
    #[command(flatten)]
    reason: ReasonArg,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl Remove {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let scope = self.scope.scope()?;
        let body = json!({"reason": self.reason.reason});
        let client = self.connect.client()?;
        let path = policy_path(&scope, &[]);
        let answer = client.send(Method::DELETE, &path, &body, self.over).await?;
        let text = format!("{scope}: its policy is gone; the next wider one holds, or none");
        self.output.show(&Shown::fine(answer.body, text))
    }
}

/// The revision an answer speaks of.
pub(super) fn revision(answer: &Answer) -> String {
    let said = answer.body.whole("/revision").or(answer.revision);
    said.map_or_else(|| "?".into(), |revision| revision.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u07_a_revision_says_what_it_changed() {
        let revision = |revision: u64, policy: Value| {
            json!({"revision": revision, "at": 1_772_373_787_000_u64, "policy": policy,
                "actor": {"name": "ada", "via": "api"}, "reason": "a\nb"})
        };
        let text = table(
            &[
                revision(5, json!({"budget": 0.05})),
                revision(4, Value::Null),
                revision(3, json!({"budget": 0.05, "goal": 0.99})),
                revision(2, json!({"budget": 0.08})),
                revision(1, json!({"budget": 0.08})),
            ],
            Paint::none(),
        );
        for said in [
            "budget 0.08 -> 0.05, goal – -> 0.99",
            "nothing",
            "taken away",
            "everything: there was none",
            "everything: the first",
            "a b",
            "2026-03-01 14:03:07 UTC",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
    }
}
