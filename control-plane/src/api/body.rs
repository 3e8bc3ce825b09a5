//! Bodies: JSON objects whose fields are named one by one where they cannot stand.

use std::fmt;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::BODY_BYTES_MAX;
use super::problem::{FieldProblem, Problem};
use crate::acts::REASON_CHARS_MAX;
use crate::listen::BodyLate;

/// A JSON object.
#[derive(Debug)]
pub(super) struct Object(pub(super) Map<String, Value>);

impl<S: Send + Sync> FromRequest<S> for Object {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let json = request
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.split(';').next())
            .is_some_and(|value| value.trim().eq_ignore_ascii_case("application/json"));
        if !json {
            return Err(Problem::media_type());
        }
        let body = Bytes::from_request(request, state)
            .await
            .map_err(|e| refused(&e))?;
        serde_json::from_slice(&body)
            .map_err(|error| Problem::malformed(format!("expected a JSON object: {error}")))
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EachOnce)
    }
}

/// Reads an object whose fields are each there once: of two budgets, neither is surely meant.
struct EachOnce;

impl<'de> Visitor<'de> for EachOnce {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Object, A::Error> {
        let mut object = Map::new();
        while let Some((field, value)) = fields.next_entry::<String, Value>()? {
            if object.contains_key(&field) {
                return Err(A::Error::custom(format_args!(
                    "the field {field:?} is there twice, expected each once"
                )));
            }
            object.insert(field, value);
        }
        Ok(Object(object))
    }
}

fn refused(error: &BytesRejection) -> Problem {
    if error.status() == StatusCode::PAYLOAD_TOO_LARGE {
        Problem::too_large(BODY_BYTES_MAX)
    } else if let Some(late) = late(error) {
        Problem::timeout(late.to_string())
    } else {
        Problem::malformed("the body did not arrive whole")
    }
}

/// The listener's own error, where it is what the body failed by.
fn late(error: &BytesRejection) -> Option<BodyLate> {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if let Some(late) = error.downcast_ref::<BodyLate>() {
            return Some(*late);
        }
        cause = error.source();
    }
    None
}

impl Object {
    /// Takes the reason out; pushes what is wrong with it.
    pub(super) fn take_reason(&mut self, errors: &mut Vec<FieldProblem>) -> String {
        self.take_words("reason", errors)
    }

    /// Takes out another field that says why; pushes what is wrong with it.
    pub(super) fn take_words(
        &mut self,
        field: &'static str,
        errors: &mut Vec<FieldProblem>,
    ) -> String {
        let wrong = match self.0.remove(field) {
            Some(Value::String(text)) => {
                let chars = text.trim().chars().count();
                if (1..=REASON_CHARS_MAX).contains(&chars) {
                    return text.trim().to_owned();
                }
                format!("has {chars} characters")
            }
            None => "is missing".into(),
            Some(_) => "is not a text".into(),
        };
        let message = format!(
            "{wrong}: expected a few words, at most {REASON_CHARS_MAX} characters, that say why"
        );
        errors.push(FieldProblem::new(field, message));
        String::new()
    }

    /// Takes a field out; pushes what is wrong with it.
    pub(super) fn take<T: DeserializeOwned>(
        &mut self,
        field: &'static str,
        expected: &str,
        errors: &mut Vec<FieldProblem>,
    ) -> Option<T> {
        let Some(value) = self.0.remove(field) else {
            errors.push(FieldProblem::new(
                field,
                format!("is missing: expected {expected}"),
            ));
            return None;
        };
        serde_json::from_value(value)
            .map_err(|e| FieldProblem::new(field, format!("{e}: expected {expected}")))
            .map_err(|problem| errors.push(problem))
            .ok()
    }

    /// The reason of a body that has nothing else.
    pub(super) fn only_reason(mut self) -> Result<String, Problem> {
        let mut errors = Vec::new();
        let reason = self.take_reason(&mut errors);
        self.nothing_else(&["reason"], &mut errors);
        if errors.is_empty() {
            Ok(reason)
        } else {
            Err(Problem::invalid(errors))
        }
    }

    /// Pushes an error for every field that is left.
    pub(super) fn nothing_else(&self, known: &[&str], errors: &mut Vec<FieldProblem>) {
        errors.extend(self.0.keys().map(|field| unknown(field, known)));
    }
}

/// A field that does not exist.
pub(super) fn unknown(field: &str, known: &[&str]) -> FieldProblem {
    FieldProblem::new(
        field.to_owned(),
        format!("is not a field here: expected one of {}", known.join(", ")),
    )
}
