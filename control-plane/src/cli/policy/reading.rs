//! One policy of a file: every field by itself, then what they are together.

use std::collections::BTreeMap;

use hedgerow_protocol::policy::{Policy, PolicyDraft, PolicyScope};
use serde_json::{Map, Value};

use super::file::{Entry, Fault, Origin, known_fields};
use super::yaml::{Field, Kind, Node, Place};

/// One policy, while it is read.
pub(super) struct Reading<'a> {
    /// Where it stands.
    pub(super) at: Origin,
    /// What is wrong so far, of it and those before.
    pub(super) faults: &'a mut Vec<Fault>,
}

impl Reading<'_> {
    fn wrong(&mut self, place: Place, field: &str, problem: impl Into<String>) {
        self.faults.push(Fault {
            at: Origin {
                place,
                ..self.at.clone()
            },
            field: (!field.is_empty()).then(|| field.to_owned()),
            problem: problem.into(),
        });
    }

    /// The policy, where nothing is wrong with it.
    pub(super) fn entry(mut self, policy: Node) -> Option<Entry> {
        let Kind::Map(fields) = policy.kind else {
            self.wrong(
                policy.place,
                "",
                "is no policy: expected its fields, such as dependency",
            );
            return None;
        };
        let before = self.faults.len();
        let scope = self.scope(&fields);
        let mut body = Map::new();
        let mut places = BTreeMap::new();
        for field in fields {
            let value = field.value.to_json();
            places.insert(field.key.clone(), field.value.place);
            if let Kind::Map(nested) = &field.value.kind {
                let nested = nested.iter();
                places
                    .extend(nested.map(|it| (format!("{}.{}", field.key, it.key), it.value.place)));
            }
            if let Some(problem) = problem_of(&field.key, &value) {
                self.wrong(field.place, &field.key, problem);
            }
            if !matches!(field.key.as_str(), "dependency" | "operation") {
                body.insert(field.key, value);
            }
        }
        let entry = Entry {
            scope: scope?,
            body,
            at: self.at.clone(),
            places,
        };
        if self.faults.len() > before {
            return None;
        }
        // Types are right: what remains is ranges, and what does not go together.
        if let Err(problems) = together(&entry.body) {
            let faults = problems
                .iter()
                .map(|(field, problem)| entry.fault(field, problem));
            self.faults.extend(faults);
            return None;
        }
        Some(entry)
    }

    fn scope(&mut self, fields: &[Field]) -> Option<PolicyScope> {
        let find = |key| fields.iter().find(|field: &&Field| field.key == key);
        let Some(dependency) = find("dependency") else {
            let place = self.at.place;
            let problem =
                "is missing: expected a dependency's name, or a pattern such as catalog-*";
            self.wrong(place, "dependency", problem);
            return None;
        };
        let text = |field: &Field| match &field.value.kind {
            Kind::Scalar(Value::String(text)) => Some(text.clone()),
            _ => None,
        };
        // What is no text is said where each field is looked at.
        let name = text(dependency)?;
        let operation = match find("operation") {
            None => None,
            Some(field) => Some(text(field)?),
        };
        PolicyScope::new(&name, operation.as_deref())
            .map_err(|error| self.wrong(dependency.place, "dependency", error.to_string()))
            .ok()
    }
}

/// Why a field cannot stand by itself.
fn problem_of(field: &str, value: &Value) -> Option<String> {
    if !known_fields().contains(&field) {
        return Some(format!(
            "is no field here: expected one of {}",
            known_fields().join(", ")
        ));
    }
    match (field, value) {
        ("dependency" | "operation", Value::String(_)) | ("rollout", Value::Object(_)) => None,
        ("dependency" | "operation", _) => Some("expected a name, as text".into()),
        ("rollout", _) => Some("expected such as {stages: [0.05, 0.25, 1], stay_s: 120}".into()),
        ("intent", Value::Bool(false)) => {
            Some("expected one of off, observe, hedge as text; false is no text".into())
        }
        (_, Value::Null) => Some("has no value: expected one, or no such field".into()),
        _ => draft(&[(field.to_owned(), value.clone())].into_iter().collect())
            .err()
            .map(|error| error.to_string()),
    }
}

/// Why fields cannot stand together.
fn together(body: &Map<String, Value>) -> Result<(), Vec<(String, String)>> {
    let mut body = body.clone();
    body.remove("rollout");
    let draft = draft(&body).map_err(|error| vec![(String::new(), error.to_string())])?;
    Policy::try_from(draft).map(|_| ()).map_err(|errors| {
        let errors = errors.0.into_iter();
        errors
            .map(|error| (error.field.to_owned(), error.message))
            .collect()
    })
}

/// As a draft; what it is for was looked at before.
fn draft(body: &Map<String, Value>) -> Result<PolicyDraft, serde_json::Error> {
    let mut body = body.clone();
    body.insert("dependency".into(), "any".into());
    serde_json::from_value(Value::Object(body))
}
