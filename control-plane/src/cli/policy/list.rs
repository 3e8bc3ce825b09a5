//! Policies in force.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, Value};

use super::ScopeArgs;
use super::file::known_fields;
use super::plan::policy_path;
use crate::cli::connect::ConnectArgs;
use crate::cli::output::figures::{clean, date, number, percent};
use crate::cli::output::look::{Look as _, policy_scope};
use crate::cli::output::table::{Cell, Table, lines};
use crate::cli::output::{Format, OutputArgs, Paint, Shown, WatchArgs, print, yaml};
use crate::client::Path;

/// `hedgerow policy list`.
#[derive(Debug, Args)]
pub(in crate::cli) struct List {
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl List {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.connect.client()?;
        let look = async || {
            let policies = client.list(&Path::new(["policies"])).await?;
            let text = table(&policies, Paint::for_stdout());
            Ok(Shown::fine(Value::Array(policies), text))
        };
        self.watch.show(look).await
    }
}

fn table(policies: &[Value], paint: Paint) -> String {
    let mut table = Table::new(&[
        "POLICY",
        ">REVISION",
        "INTENT",
        "FOR",
        ">BUDGET %",
        ">HELD OUT %",
        "SINCE",
        "ROLLOUT",
    ]);
    for view in policies {
        let share = |pointer| Cell::figure(view.number(pointer), percent, "");
        let since = view.whole("/since").map(date);
        table.row(vec![
            Cell::new(policy_scope(view)),
            Cell::new(view.whole("/revision").unwrap_or(0).to_string()),
            Cell::new(view.text_or_dash("/policy/intent")),
            Cell::new(aim(view)),
            share("/policy/budget"),
            share("/policy/holdout"),
            since.map_or_else(|| Cell::none(""), Cell::new),
            rollout(view).map_or_else(|| Cell::none(""), Cell::new),
        ]);
    }
    if table.is_empty() {
        return "no policy is set: every dependency is observed, and nothing is hedged".into();
    }
    table.text(paint)
}

/// What its threshold is for: a pool's objective before a goal, and a goal before the percentile.
fn aim(view: &Value) -> String {
    let percentile = |share: f64| format!("p{}", number(share * 100.0));
    let field = |pointer| view.number(pointer);
    if let (Some(pool), Some(ms)) = (view.text("/policy/pool"), field("/policy/objective_ms")) {
        return format!("{} ms, pool {}", number(ms), clean(pool));
    }
    match (field("/policy/goal"), field("/policy/percentile")) {
        (Some(goal), _) => format!("least {}", percentile(goal)),
        (None, Some(share)) => format!("calls beyond {}", percentile(share)),
        (None, None) => String::new(),
    }
}

fn rollout(view: &Value) -> Option<String> {
    let rollout = view.get("rollout").filter(|it| it.is_object())?;
    let share = rollout.number("/share").map(percent)?;
    let held = rollout.whole("/agents_holding").unwrap_or(0);
    let of = rollout.whole("/agents_in").unwrap_or(0);
    Some(format!(
        "{share} % of agents, {held} of {of} hold it; {}",
        rollout.text_or_dash("/words")
    ))
}

/// `hedgerow policy get`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Get {
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl Get {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.connect.client()?;
        let view = client.get(&policy_path(&self.scope.scope()?, &[])).await?;
        if self.output.format == Format::Yaml {
            print(&as_file(&view.body))?;
            return Ok(ExitCode::SUCCESS);
        }
        let text = shown(&view.body);
        self.output.show(&Shown::fine(view.body, text))
    }
}

/// A file for `policy apply`.
fn as_file(view: &Value) -> String {
    let fields = view.get("policy").and_then(Value::as_object);
    let fields: Map<String, Value> = fields
        .into_iter()
        .flatten()
        .filter(|(name, value)| known_fields().contains(&name.as_str()) && !value.is_null())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    format!("# {}\n{}", head(view), yaml::text(&Value::Object(fields)))
}

fn head(view: &Value) -> String {
    match view.whole("/revision").unwrap_or(0) {
        0 => "none of its own; this is what holds there".to_owned(),
        revision => {
            let since = view.whole("/since").map(date).unwrap_or_default();
            format!("revision {revision}, in force since {since}")
        }
    }
}

fn shown(view: &Value) -> String {
    let fields = view.get("policy").and_then(Value::as_object);
    let fields = fields.into_iter().flatten();
    let said = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let known = fields
        .filter(|(name, _)| !matches!(name.as_str(), "dependency" | "operation"))
        .map(|(name, value)| (name.as_str(), said(value)));
    let rollout = rollout(view).map(|it| format!("\n  rollout: {it}"));
    format!(
        "{}: {}\n{}{}",
        policy_scope(view),
        head(view),
        lines(known),
        rollout.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::file::entries_of;
    use super::*;

    #[test]
    fn a_policy_that_is_got_as_yaml_is_a_file_to_apply() {
        let view = json!({
            "revision": 7, "since": 1_772_373_787_000_u64, "rollout": null,
            "policy": {"dependency": "catalog", "intent": "off", "goal": null, "budget": 0.08, "later": 1},
        });
        let text = as_file(&view);
        assert!(
            text.starts_with("# revision 7, in force since 2026-03-01"),
            "{text}"
        );
        let mut faults = Vec::new();
        let entries = entries_of("p.yaml", &text, &mut faults);
        assert_eq!(faults, []);
        assert_eq!(entries[0].scope.to_string(), "catalog");
        assert_eq!(
            Value::Object(entries[0].body.clone()),
            json!({"intent": "off", "budget": 0.08})
        );
    }

    #[test]
    fn a_list_says_what_each_is_for() {
        let view = json!({
            "revision": 7, "since": 1_772_373_787_000_u64,
            "policy": {"dependency": "catalog", "operation": "get", "intent": "hedge",
                "percentile": 0.95, "budget": 0.08, "holdout": 0.01},
            "rollout": {"share": 0.05, "agents_in": 10, "agents_holding": 9, "words": "waits"},
        });
        let text = table(&[view], Paint::none());
        for said in [
            "catalog get",
            "calls beyond p95",
            "  8  ",
            "5 % of agents, 9 of 10 hold it; waits",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
        assert!(table(&[], Paint::none()).contains("no policy is set"));
    }
}
