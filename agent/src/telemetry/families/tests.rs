//! The table of metrics, and the texts that speak of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hedgerow_protocol::directive::Mode;

use super::*;
use crate::route::NoEffect;

/// Names in backquotes in the rows of the table under `heading`, with the row's second cell.
fn table<'a>(text: &'a str, heading: &str) -> BTreeMap<&'a str, &'a str> {
    let begins = text.find(heading).expect("the heading is there");
    let lines = text[begins + heading.len()..].lines();
    let mut named = BTreeMap::new();
    for row in lines.take_while(|line| !line.starts_with("## ")) {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        let (Some(names), Some(kind)) = (cells.next(), cells.next()) else {
            continue;
        };
        let names = names.split('`').filter(|name| name.starts_with("hedgerow"));
        named.extend(names.map(|name| (name, kind)));
    }
    named
}

#[test]
fn the_readme_lists_the_families_as_they_are() {
    let readme = table(include_str!("../../../README.md"), "## Metrics");
    let declared: BTreeMap<_, _> = FAMILIES
        .iter()
        .map(|family| {
            let kind = match family.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram => "histogram",
            };
            (family.name, kind)
        })
        .collect();
    assert_eq!(readme, declared);
}

#[test]
fn the_readme_lists_the_attributes_as_they_are() {
    let readme = table(include_str!("../../../README.md"), "## Spans");
    let declared = BTreeSet::from([
        attribute::DEPENDENCY,
        attribute::OPERATION,
        attribute::CROSSED,
        attribute::ATTEMPTS,
        attribute::WINNER,
        attribute::REFUSED,
        attribute::THRESHOLD_MS,
        attribute::REPLICAS,
    ]);
    assert_eq!(readme.into_keys().collect::<BTreeSet<_>>(), declared);
}

/// What a text takes for names of metrics, their parts by the family's name.
fn named(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let names = words.filter(|word| word.starts_with("hedgerow_") && *word != "hedgerow_agent");
    let parts = ["_bucket", "_count", "_sum", "_bucket_total", "_sum_total"];
    names
        .map(|name| {
            let family = parts.iter().find_map(|part| name.strip_suffix(part));
            family.unwrap_or(name)
        })
        .collect()
}

#[test]
fn the_guides_name_no_metric_that_is_not_there() {
    let declared: BTreeSet<_> = FAMILIES.iter().map(|family| family.name).collect();
    for text in [
        include_str!("../../../README.md"),
        include_str!("../../../guides/safe-to-hedge.md"),
        include_str!("../../../guides/what-to-look-at.md"),
    ] {
        let unknown: Vec<_> = named(text).difference(&declared).copied().collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}

#[test]
fn the_guide_explains_every_value_of_a_label() {
    let guide = include_str!("../../../guides/what-to-look-at.md");
    let reasons = Refusal::ALL.map(Refusal::as_str);
    let offs = [
        OffReason::Errors,
        OffReason::SharedSlowdown,
        OffReason::PushBack,
        OffReason::WinsNothing,
        OffReason::KillSwitch,
        OffReason::Policy,
        OffReason::TooManyChanges,
        OffReason::Unknown,
    ];
    let modes = [
        Mode::Observing,
        Mode::On,
        Mode::Off(offs[0]),
        Mode::Probing(offs[0]),
    ];
    let deadline = NoEffect::Deadline {
        threshold: Duration::ZERO,
        typical: Duration::ZERO,
        deadline: Duration::ZERO,
    };
    let because = [
        NoEffect::NoReplicas,
        NoEffect::OneReplica { on_probation: 0 },
        deadline,
        NoEffect::OnePermit,
        NoEffect::Budget,
    ];
    let values = reasons
        .into_iter()
        .chain(offs.map(OffReason::as_str))
        .chain(modes.map(Mode::as_str))
        .chain(because.map(NoEffect::as_str));
    for value in values {
        assert!(guide.contains(&format!("\n| `{value}` | ")), "{value}");
    }
}

#[test]
fn names_say_their_kind_and_are_there_once() {
    let names: BTreeSet<_> = FAMILIES.iter().map(|family| family.name).collect();
    assert_eq!(names.len(), FAMILIES.len());
    for family in &FAMILIES {
        let total = family.name.ends_with("_total");
        assert_eq!(total, family.kind == Kind::Counter, "{}", family.name);
    }
}

#[test]
fn the_operators_table_lists_the_families_as_they_are() {
    let text = include_str!("../../../../deploy/METRICS.md");
    let rows = text.lines().filter(|line| line.starts_with("| `hedgerow_"));
    let written: BTreeSet<_> = rows
        .filter(|row| !row.starts_with("| `hedgerow_controller_"))
        .map(str::to_owned)
        .collect();
    let declared: BTreeSet<_> = FAMILIES
        .iter()
        .map(|family| {
            let kind = match family.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram => "histogram",
            };
            let labels: Vec<_> = family.labels().map(|it| format!("`{it}`")).collect();
            let (labels, unit) = (labels.join(", "), family.unit.trim_matches(['{', '}']));
            let (name, help) = (family.name, family.help);
            format!("| `{name}` | {kind} | {labels} | {unit} | {help} |")
        })
        .collect();
    let lacks: Vec<_> = declared.difference(&written).collect();
    let wrongly: Vec<_> = written.difference(&declared).collect();
    assert!(
        lacks.is_empty() && wrongly.is_empty(),
        "{lacks:#?} {wrongly:#?}"
    );
}
