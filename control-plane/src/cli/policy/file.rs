//! Policies as files: one or several YAML documents, each a policy or a list under `policies`.
//! Everything that is wrong is found at once, and said with file, line, document and field.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use hedgerow_protocol::policy::{PolicyDraft, PolicyScope};
use serde_json::{Map, Value};

use super::reading::Reading;
use super::yaml::{self, Kind, Node, Place};

/// Largest file taken: thousands of policies.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What may stand in a policy, as in the JSON Schema; all but the first may be left out.
pub(in crate::cli) fn known_fields() -> Vec<&'static str> {
    [&PolicyDraft::FIELDS[..], &["rollout"]].concat()
}

/// A policy in a file.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Entry {
    /// What it is for.
    pub(in crate::cli) scope: PolicyScope,
    /// What the controller is sent: all fields but those that say what it is for.
    pub(in crate::cli) body: Map<String, Value>,
    pub(super) at: Origin,
    /// Where each field stands; one inside another as `rollout.stages`.
    pub(super) places: BTreeMap<String, Place>,
}

/// Where in which file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) file: String,
    /// From 1; None: the file has but one.
    pub(super) document: Option<usize>,
    pub(super) place: Place,
}

/// Something that cannot stand, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct Fault {
    pub(super) at: Origin,
    pub(super) field: Option<String>,
    pub(super) problem: String,
}

/// `policies.yaml:12:3: document 2: budget: 3 is not a budget: ...`, as compilers write it.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Origin {
            file,
            document,
            place,
        } = &self.at;
        write!(f, "{file}:{}:{}: ", place.line, place.column)?;
        if let Some(document) = document {
            write!(f, "document {document}: ")?;
        }
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.problem)
    }
}

impl Entry {
    /// What is wrong with a field of it, by whoever says so.
    pub(in crate::cli) fn fault(&self, field: &str, problem: &str) -> Fault {
        // `rollout.stages[1]`: the nearest that has a place.
        let mut known = field;
        let place = loop {
            if let Some(place) = self.places.get(known) {
                break *place;
            }
            match known.rfind(['.', '[']) {
                Some(at) => known = &known[..at],
                None => break self.at.place,
            }
        };
        Fault {
            at: Origin {
                place,
                ..self.at.clone()
            },
            field: (!field.is_empty()).then(|| field.to_owned()),
            problem: problem.to_owned(),
        }
    }

    /// `policies.yaml:12`.
    pub(in crate::cli) fn origin(&self) -> String {
        format!("{}:{}", self.at.file, self.at.place.line)
    }
}

/// All policies of these files; a folder's are those that end in `.yaml` or `.yml`, by name, and `-`
/// is standard input.
pub(in crate::cli) fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<Entry>> {
    let mut texts = Vec::new();
    for path in paths {
        if path.is_dir() {
            for file in in_folder(path)? {
                texts.push((file.display().to_string(), text_of(&file)?));
            }
        } else if path == Path::new("-") {
            let text = std::io::read_to_string(std::io::stdin());
            texts.push(("-".into(), text.context("standard input cannot be read")?));
        } else {
            texts.push((path.display().to_string(), text_of(path)?));
        }
    }
    let mut faults = Vec::new();
    let mut entries = Vec::new();
    for (file, text) in &texts {
        entries.extend(entries_of(file, text, &mut faults));
    }
    twice(&entries, &mut faults);
    if !faults.is_empty() {
        anyhow::bail!("{}", listed(&faults));
    }
    anyhow::ensure!(
        !entries.is_empty(),
        "there is no policy in {}: expected one at least",
        paths
            .iter()
            .map(|path| path.display().to_string())
            .collect::<Vec<_>>()
            .join(", ")
    );
    Ok(entries)
}

/// All of them, one a line.
pub(in crate::cli) fn listed(faults: &[Fault]) -> String {
    let many = if faults.len() == 1 { "" } else { "s" };
    let lines: Vec<_> = faults.iter().map(|fault| format!("  {fault}")).collect();
    format!(
        "{} problem{many} in the files, nothing was changed:\n{}",
        faults.len(),
        lines.join("\n")
    )
}

fn in_folder(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let cannot = || format!("the folder {} cannot be read", folder.display());
    let mut files = Vec::new();
    for file in std::fs::read_dir(folder).with_context(cannot)? {
        let path = file.with_context(cannot)?.path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        if matches!(ending, Some("yaml" | "yml")) && path.is_file() {
            files.push(path);
        }
    }
    anyhow::ensure!(
        !files.is_empty(),
        "there is no file in {} that ends in .yaml or .yml",
        folder.display()
    );
    files.sort();
    Ok(files)
}

fn text_of(path: &Path) -> anyhow::Result<String> {
    let cannot = || format!("the policies {} cannot be read", path.display());
    let size = std::fs::metadata(path).with_context(cannot)?.len();
    anyhow::ensure!(
        size <= FILE_BYTES_MAX,
        "{} has {size} bytes: expected at most {FILE_BYTES_MAX}",
        path.display()
    );
    std::fs::read_to_string(path).with_context(cannot)
}

/// A file's policies; pushes what is wrong.
pub(in crate::cli) fn entries_of(file: &str, text: &str, faults: &mut Vec<Fault>) -> Vec<Entry> {
    let documents = match yaml::documents(text) {
        Ok(documents) => documents,
        Err(wrong) => {
            faults.push(Fault {
                at: Origin {
                    file: file.to_owned(),
                    document: None,
                    place: wrong.place,
                },
                field: None,
                problem: wrong.problem,
            });
            return Vec::new();
        }
    };
    let several = documents.len() > 1;
    let mut entries = Vec::new();
    for (i, document) in documents.into_iter().enumerate() {
        let origin = |place| Origin {
            file: file.to_owned(),
            document: several.then_some(i + 1),
            place,
        };
        for policy in policies_of(document, &origin, faults) {
            let at = origin(policy.place);
            entries.extend(Reading { at, faults }.entry(policy));
        }
    }
    entries
}

/// A document's policies: itself, or those of its list.
fn policies_of(
    document: Node,
    origin: &impl Fn(Place) -> Origin,
    faults: &mut Vec<Fault>,
) -> Vec<Node> {
    const EXPECTED: &str = "expected a policy, as `dependency: catalog` and its other fields, or `policies:` and a list of them";
    let mut wrong = |place, problem: String| {
        faults.push(Fault {
            at: origin(place),
            field: None,
            problem,
        });
        Vec::new()
    };
    let Kind::Map(fields) = &document.kind else {
        return wrong(document.place, format!("is no policy: {EXPECTED}"));
    };
    if !fields.iter().any(|field| field.key == "policies") {
        return vec![document];
    }
    if let Some(other) = fields.iter().find(|field| field.key != "policies") {
        let problem = format!("{} cannot stand beside policies: {EXPECTED}", other.key);
        return wrong(other.place, problem);
    }
    match fields[0].value.kind.clone() {
        Kind::List(items) => items,
        _ => wrong(fields[0].value.place, format!("policies: {EXPECTED}")),
    }
}

/// Pushes a fault for each scope that is there a second time: neither would surely be meant.
fn twice(entries: &[Entry], faults: &mut Vec<Fault>) {
    let mut first: BTreeMap<&PolicyScope, &Entry> = BTreeMap::new();
    for entry in entries {
        match first.get(&entry.scope) {
            None => {
                first.insert(&entry.scope, entry);
            }
            Some(first) => {
                let problem = format!(
                    "{} is there twice, first in {}: expected one policy each",
                    entry.scope,
                    first.origin()
                );
                faults.push(entry.fault("dependency", &problem));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hedgerow_protocol::policy::{Policy, PolicyDraft};

    use super::*;

    fn read(text: &str) -> Result<Vec<Entry>, Vec<String>> {
        let mut faults = Vec::new();
        let entries = entries_of("p.yaml", text, &mut faults);
        twice(&entries, &mut faults);
        if faults.is_empty() {
            Ok(entries)
        } else {
            Err(faults.iter().map(ToString::to_string).collect())
        }
    }

    #[test]
    fn one_several_and_a_list_are_read_alike() {
        let texts = [
            "dependency: catalog\nintent: off\n---\ndependency: cart\noperation: add\nbudget: 0.05\n",
            "policies:\n  - dependency: catalog\n    intent: off\n  - {dependency: cart, operation: add, budget: 0.05}\n",
        ];
        for text in texts {
            let entries = read(text).unwrap();
            let scopes: Vec<_> = entries.iter().map(|it| it.scope.to_string()).collect();
            assert_eq!(scopes, ["catalog", "cart add"]);
            assert_eq!(
                Value::from(entries[0].body.clone()),
                serde_json::json!({"intent": "off"})
            );
            assert_eq!(
                Value::from(entries[1].body.clone()),
                serde_json::json!({"budget": 0.05})
            );
        }
        assert_eq!(
            read("dependency: 'cat*'\n").unwrap()[0].scope.to_string(),
            "cat*"
        );
    }

    #[test]
    fn b60_everything_that_is_wrong_is_said_where_it_stands() {
        let text = "\
dependency: catalog
percentile: 95
budget: 0.5
---
dependency: cart
percentil: 0.95
budget: lots
rollout: 5
---
policies:
  - dependency: ca<rt
  - dependency: cart
    pool: checkout
  - budget: 0.05
  - dependency: cat*
    operation: get
  - catalog
";
        let faults = read(text).unwrap_err();
        let expected = [
            (
                "p.yaml:2:13: document 1: percentile: ",
                "from 0.92 to 0.999",
            ),
            ("p.yaml:3:9: document 1: budget: ", "at most 0.25"),
            (
                "p.yaml:6:1: document 2: percentil: ",
                "expected one of dependency",
            ),
            ("p.yaml:7:1: document 2: budget: ", "invalid type: string"),
            ("p.yaml:8:1: document 2: rollout: ", "expected such as"),
            ("p.yaml:11:5: document 3: dependency: ", "'<'"),
            (
                "p.yaml:12:5: document 3: objective_ms: ",
                "is needed in a pool",
            ),
            ("p.yaml:14:5: document 3: dependency: ", "is missing"),
            (
                "p.yaml:15:5: document 3: dependency: ",
                "expected no operation",
            ),
            ("p.yaml:17:5: document 3: ", "is no policy"),
        ];
        assert_eq!(faults.len(), expected.len(), "{faults:#?}");
        for (fault, (place, said)) in faults.iter().zip(expected) {
            assert!(fault.starts_with(place) && fault.contains(said), "{fault}");
        }
    }

    #[test]
    fn a_scope_that_is_there_twice_is_refused_with_both_places() {
        let faults = read("dependency: a\n---\ndependency: a\n").unwrap_err();
        assert_eq!(
            faults,
            [
                "p.yaml:3:13: document 2: dependency: a is there twice, first in p.yaml:1: expected one policy each"
            ]
        );
    }

    #[test]
    fn what_the_controller_says_of_a_field_is_said_at_its_line() {
        let entry = read("dependency: a\nrollout:\n  stages: [2]\n")
            .unwrap()
            .remove(0);
        let fault = entry.fault("rollout.stages[0]", "no").to_string();
        assert_eq!(fault, "p.yaml:3:11: rollout.stages[0]: no");
        assert_eq!(
            entry.fault("rollout.stay_s", "no").to_string(),
            "p.yaml:3:3: rollout.stay_s: no"
        );
        assert_eq!(
            entry.fault("elsewhere", "no").to_string(),
            "p.yaml:1:1: elsewhere: no"
        );
    }

    #[test]
    fn every_field_of_a_policy_is_a_field_of_a_file() {
        let scope: PolicyScope = "catalog".parse().unwrap();
        let draft = PolicyDraft {
            threshold_min_ms: Some(1.0),
            threshold_max_ms: Some(2.0),
            goal: Some(0.99),
            pool: Some("checkout".into()),
            objective_ms: Some(100.0),
            ..Policy::observing(scope).into()
        };
        let Value::Object(fields) = serde_json::to_value(draft).unwrap() else {
            unreachable!()
        };
        for field in fields.keys() {
            assert!(known_fields().contains(&field.as_str()), "{field}");
        }
    }
}
