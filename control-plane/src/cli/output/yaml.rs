//! YAML of an answer: block style, texts in double quotes wherever they could be read as anything
//! else. JSON's strings are YAML's too.

use serde_json::{Map, Value};

/// As a document, ending in a line's end.
pub(in crate::cli) fn text(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => object(&mut out, map, 0),
        Value::Array(items) if !items.is_empty() => list(&mut out, items, 0),
        other => {
            out.push_str(&scalar(other));
            out.push('\n');
        }
    }
    out
}

fn object(out: &mut String, map: &Map<String, Value>, depth: usize) {
    for (i, (key, value)) in map.iter().enumerate() {
        // The first stands behind its list's dash.
        if i > 0 || !out.ends_with("- ") {
            out.push_str(&"  ".repeat(depth));
        }
        out.push_str(&string(key));
        out.push(':');
        nested(out, value, depth + 1);
    }
}

fn nested(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            object(out, map, depth);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            list(out, items, depth);
        }
        other => {
            out.push(' ');
            out.push_str(&scalar(other));
            out.push('\n');
        }
    }
}

fn list(out: &mut String, items: &[Value], depth: usize) {
    for item in items {
        out.push_str(&"  ".repeat(depth));
        out.push_str("- ");
        match item {
            Value::Object(map) if !map.is_empty() => object(out, map, depth + 1),
            Value::Array(items) if !items.is_empty() => {
                // A list in a list, on its own lines.
                out.truncate(out.len() - 1);
                out.push('\n');
                list(out, items, depth + 1);
            }
            other => {
                out.push_str(&scalar(other));
                out.push('\n');
            }
        }
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => string(text),
        other => other.to_string(),
    }
}

/// Plain where nobody can take it for anything else, by YAML 1.1 or 1.2.
fn string(text: &str) -> String {
    let first = text.chars().next();
    let plain = first.is_some_and(char::is_alphabetic)
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    if plain {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}

/// Read as something else by one YAML or the other. `off` is the one that matters: by YAML 1.1 it is
/// false, and a policy's intent.
const WORDS: [&str; 10] = [
    "null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan",
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::policy::yaml::documents;
    use super::*;

    #[test]
    fn what_is_written_reads_the_same() {
        for value in [
            json!({"a": 1, "b": {"c": [1, "x", {"d": null, "e": [true]}], "f": {}}, "g": []}),
            json!([[1, [2]], {"off": "off", "yes": "y"}, "1.5", "- a", "a: b", "# c", ""]),
            json!({"text": "a\n\u{1}\"\\b ü", "null": "~", "numbers": [0.5, -3, 1e30]}),
            json!("plain"),
            json!([]),
        ] {
            let text = text(&value);
            let read = documents(&text).unwrap_or_else(|e| panic!("{e:?}: {text}"));
            assert_eq!(read.len(), 1, "{text}");
            assert_eq!(read[0].to_json(), value, "{text}");
        }
    }

    #[test]
    fn it_reads_as_people_write_it() {
        let value = json!({"policies": [{"dependency": "catalog", "intent": "off"}]});
        assert_eq!(
            text(&value),
            "policies:\n  - dependency: catalog\n    intent: \"off\"\n"
        );
    }
}
