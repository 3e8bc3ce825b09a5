//! The table of metrics, and the text that speaks of it.

use std::collections::BTreeSet;

use super::*;

/// A family as a row of the table in `deploy/METRICS.md`.
fn row(family: &Family) -> String {
    let kind = match family.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
    };
    let labels: Vec<_> = family.labels.iter().map(|it| format!("`{it}`")).collect();
    format!(
        "| `{}` | {kind} | {} | {} | {} |",
        family.name,
        labels.join(", "),
        family.unit,
        family.help
    )
}

#[test]
fn b86_the_text_lists_every_metric_as_it_is_and_no_other() {
    let text = include_str!("../../../../deploy/METRICS.md");
    let written = text
        .lines()
        .filter(|line| line.starts_with("| `hedgerow_controller_"));
    let written: BTreeSet<_> = written.map(str::to_owned).collect();
    let declared: BTreeSet<_> = ALL.iter().map(row).collect();
    let missing: Vec<_> = declared.difference(&written).cloned().collect();
    let unknown: Vec<_> = written.difference(&declared).cloned().collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "deploy/METRICS.md lacks\n{}\nand has, wrongly,\n{}",
        missing.join("\n"),
        unknown.join("\n")
    );
}

#[test]
fn names_say_their_kind_and_are_there_once() {
    let names: BTreeSet<_> = ALL.iter().map(|family| family.name).collect();
    assert_eq!(names.len(), ALL.len());
    for family in ALL {
        let total = family.name.ends_with("_total");
        assert_eq!(total, family.kind == Kind::Counter, "{}", family.name);
        let seconds = family.name.contains("_seconds");
        assert_eq!(seconds, family.unit == "s", "{}", family.name);
    }
}
