//! Reading JSON field by field, with the path of each.

use std::time::Duration;

use serde_json::{Map, Value};

use super::note::{FieldProblem, Note, Taken};

/// What was found on the way.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) problems: Vec<FieldProblem>,
    pub(super) notes: Vec<Note>,
}

impl Findings {
    pub(super) fn problem(&mut self, path: &str, found: impl Into<String>, expected: &'static str) {
        self.problems.push(FieldProblem {
            path: path.to_owned(),
            found: found.into(),
            expected,
        });
    }

    pub(super) fn note(&mut self, path: &str, taken: Taken, message: impl Into<String>) {
        self.notes.push(Note {
            path: path.to_owned(),
            taken,
            message: message.into(),
        });
    }

    pub(super) fn object<'a>(
        &mut self,
        path: &str,
        value: &'a Value,
    ) -> Option<&'a Map<String, Value>> {
        self.expect(path, value, "an object", Value::as_object)
    }

    pub(super) fn array<'a>(&mut self, path: &str, value: &'a Value) -> Option<&'a Vec<Value>> {
        self.expect(path, value, "a list", Value::as_array)
    }

    /// What `read` makes of the value, or a problem.
    pub(super) fn expect<'a, T>(
        &mut self,
        path: &str,
        value: &'a Value,
        expected: &'static str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let read = read(value);
        if read.is_none() {
            self.problem(path, shown(value), expected);
        }
        read
    }

    /// The same for a field that must be there.
    pub(super) fn required<'a, T>(
        &mut self,
        path: &str,
        value: Option<&'a Value>,
        expected: &'static str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let Some(value) = value else {
            self.problem(path, "missing", expected);
            return None;
        };
        self.expect(path, value, expected, read)
    }

    /// Names the fields that nobody here reads.
    pub(super) fn leave_out(
        &mut self,
        path: &str,
        fields: &Map<String, Value>,
        read: &[&str],
        known: &[(&str, &str)],
    ) {
        for name in fields.keys().filter(|name| !read.contains(&name.as_str())) {
            let reason = known
                .iter()
                .find(|(known, _)| known == name)
                .map_or("not a field that is known here", |(_, reason)| reason);
            self.note(&join(path, name), Taken::NotAtAll, reason);
        }
    }
}

/// The path of a field of an object.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// Longest value shown in a problem.
const SHOWN_MAX: usize = 60;

fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= SHOWN_MAX {
        return text;
    }
    let start: String = text.chars().take(SHOWN_MAX).collect();
    format!("{start}...")
}

/// What a duration looks like.
pub(super) const DURATION: &str =
    "a duration of 0 s or more in seconds, with at most nine decimals, such as \"0.015s\"";

/// A duration in protobuf's JSON form.
pub(super) fn duration(value: &Value) -> Option<Duration> {
    let digits = value.as_str()?.strip_suffix('s')?;
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(decimals) || decimals.is_empty() || decimals.len() > 9 {
        return None;
    }
    // `.5s` is how gRFC A6 itself writes it.
    let seconds: u64 = match whole {
        "" if digits.starts_with('.') => 0,
        whole => whole.parse().ok()?,
    };
    let nanos: u32 = format!("{decimals:0<9}").parse().ok()?;
    // Protobuf's own limit: ten thousand years.
    (seconds <= 315_576_000_000).then(|| Duration::new(seconds, nanos))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn durations_are_read_as_protobuf_writes_them() {
        for (text, expected) in [
            ("0.015s", Some(Duration::from_millis(15))),
            (".5s", Some(Duration::from_millis(500))),
            ("3s", Some(Duration::from_secs(3))),
            ("0s", Some(Duration::ZERO)),
            ("0.000000001s", Some(Duration::from_nanos(1))),
            ("1.", None),
            ("1.s", None),
            ("s", None),
            ("15ms", None),
            ("-1s", None),
            ("+1s", None),
            ("0.0000000001s", None),
            ("1e3s", None),
            ("999999999999s", None),
        ] {
            assert_eq!(duration(&json!(text)), expected, "{text}");
        }
        assert_eq!(duration(&json!(0.015)), None);
    }
}
