//! What applying files would change: asked of the controller, policy by policy, before anything is
//! changed.

use hedgerow_protocol::policy::PolicyScope;
use reqwest::Method;
use serde_json::{Value, json};

use super::file::{self, Entry, Fault};
use crate::cli::exit;
use crate::cli::output::figures::{NONE, clean};
use crate::cli::output::look::Look as _;
use crate::cli::output::{Colour, Paint};
use crate::client::{Client, ClientError, Path};

/// A policy of a file beside the one in force.
#[derive(Debug)]
pub(in crate::cli) struct Planned {
    pub(in crate::cli) entry: Entry,
    /// The revision in force that it was compared with; 0: nobody had set one.
    pub(in crate::cli) revision: u64,
    /// Whether nobody had set one.
    new: bool,
    changes: Vec<Change>,
    notes: Vec<String>,
}

#[derive(Debug)]
struct Change {
    field: String,
    /// Null: not set.
    before: Value,
    after: Value,
}

/// `policies/{scope}`, and what is below it.
pub(in crate::cli) fn policy_path(scope: &PolicyScope, below: &[&str]) -> Path {
    let scope = scope.to_string();
    let parts = ["policies", scope.as_str()].into_iter();
    Path::new(parts.chain(below.iter().copied()))
}

/// Plans them all; what the controller refuses of any is said with its place, all at once.
pub(in crate::cli) async fn plan(
    client: &Client,
    entries: Vec<Entry>,
) -> anyhow::Result<Vec<Planned>> {
    let mut planned = Vec::new();
    let mut faults: Vec<Fault> = Vec::new();
    for entry in entries {
        let path = policy_path(&entry.scope, &["plan"]);
        let body = Value::Object(entry.body.clone());
        match client.send(Method::POST, &path, &body, None).await {
            Ok(answer) => planned.push(Planned::read(entry, &answer.body)),
            Err(ClientError::Refused(problem)) if problem.status == 422 => {
                if problem.errors.is_empty() {
                    faults.push(entry.fault("", &problem.detail));
                }
                let errors = problem.errors.iter();
                faults.extend(errors.map(|(field, message)| entry.fault(field, message)));
            }
            Err(error) => return Err(error.into()),
        }
    }
    if faults.is_empty() {
        Ok(planned)
    } else {
        Err(exit::Refused(file::listed(&faults)).into())
    }
}

impl Planned {
    fn read(entry: Entry, plan: &Value) -> Self {
        let changes = plan.list("/changes").iter().map(|change| Change {
            field: change.text_or_dash("/field"),
            before: change.get("before").cloned().unwrap_or_default(),
            after: change.get("after").cloned().unwrap_or_default(),
        });
        let notes = plan.list("/notes").iter();
        Self {
            revision: plan.whole("/revision").unwrap_or(0),
            new: plan.get("before").is_none_or(Value::is_null),
            changes: changes.collect(),
            notes: notes.filter_map(Value::as_str).map(clean).collect(),
            entry,
        }
    }

    /// Whether it changes anything.
    pub(in crate::cli) fn changes(&self) -> bool {
        self.new || !self.changes.is_empty()
    }

    /// For programs.
    pub(in crate::cli) fn data(&self) -> Value {
        let changes = self.changes.iter().map(
            |change| json!({"field": change.field, "before": change.before, "after": change.after}),
        );
        json!({
            "scope": self.entry.scope.to_string(),
            "from": self.entry.origin(),
            "revision": self.revision,
            "new": self.new,
            "changed": self.changes(),
            "changes": changes.collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }

    /// For people: a line for each field.
    fn text(&self, paint: Paint) -> String {
        let what = if self.new {
            "new".to_owned()
        } else {
            format!("revision {} is in force", self.revision)
        };
        let head = format!("{} ({}, {what})", self.entry.scope, self.entry.origin());
        let mut text = paint.paint(Colour::Strong, &head);
        let width = self.changes.iter().map(|it| it.field.chars().count()).max();
        let width = width.unwrap_or(0);
        for Change {
            field,
            before,
            after,
        } in &self.changes
        {
            let after = paint.paint(Colour::Good, &shown(Some(after)));
            let before = paint.paint(Colour::Bad, &shown(Some(before)));
            text.push_str(&format!("\n  {field:<width$}  {before} -> {after}"));
        }
        if let Some(rollout) = self.entry.body.get("rollout") {
            text.push_str(&format!("\n  in steps: {}", shown(Some(rollout))));
        }
        for note in &self.notes {
            text.push_str(&paint.paint(Colour::Warn, &format!("\n  note: {note}")));
        }
        text
    }
}

/// The plans that change something, and how many do not.
pub(in crate::cli) fn text(planned: &[Planned], paint: Paint) -> String {
    let mut parts: Vec<String> = planned
        .iter()
        .filter(|it| it.changes())
        .map(|it| it.text(paint))
        .collect();
    let unchanged = planned.len() - parts.len();
    if parts.is_empty() {
        return format!("nothing to change: {} as in the files", policies(unchanged));
    }
    let changed = parts.len();
    let rest = match unchanged {
        0 => String::new(),
        n => format!(", {n} unchanged"),
    };
    parts.push(format!("{} to change{rest}", policies(changed)));
    parts.join("\n\n")
}

/// `1 policy`, `3 policies`.
pub(in crate::cli) fn policies(n: usize) -> String {
    match n {
        1 => "1 policy".into(),
        n => format!("{n} policies"),
    }
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => NONE.into(),
        Some(Value::String(text)) => clean(text),
        // 250.0 is 250.
        Some(Value::Number(number)) => number
            .as_f64()
            .map_or_else(|| number.to_string(), |it| it.to_string()),
        Some(other) => clean(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(plan: &Value) -> Planned {
        let mut faults = Vec::new();
        let text = "dependency: catalog\nbudget: 0.05\n";
        let entry = file::entries_of("p.yaml", text, &mut faults).remove(0);
        Planned::read(entry, plan)
    }

    #[test]
    fn a_plan_reads_as_a_difference() {
        let changed = planned(&json!({
            "before": {"budget": 0.08}, "after": {"budget": 0.05}, "revision": 7,
            "changes": [
                {"field": "budget", "before": 0.08, "after": 0.05},
                {"field": "goal", "before": null, "after": "p99"},
            ],
            "notes": ["no effect: one replica"],
        }));
        let same = planned(&json!({"before": {}, "after": {}, "changes": [], "revision": 7}));
        let new = planned(&json!({"before": null, "after": {}, "changes": [], "revision": 0}));
        assert_eq!(
            (changed.changes(), same.changes(), new.changes()),
            (true, false, true)
        );
        assert_eq!(
            text(&[changed, same], Paint::none()),
            "catalog (p.yaml:1, revision 7 is in force)\n  \
               budget  0.08 -> 0.05\n  \
               goal    – -> p99\n  \
               note: no effect: one replica\n\n\
             1 policy to change, 1 unchanged"
        );
        assert_eq!(
            text(&[new], Paint::none()),
            "catalog (p.yaml:1, new)\n\n1 policy to change"
        );
    }

    #[test]
    fn c20_a_plan_without_changes_is_nothing_to_change() {
        let same = || planned(&json!({"before": {}, "changes": [], "revision": 7}));
        assert_eq!(
            text(&[same(), same()], Paint::none()),
            "nothing to change: 2 policies as in the files"
        );
    }
}
