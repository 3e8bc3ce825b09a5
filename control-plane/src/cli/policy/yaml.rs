//! YAML with places: every value knows the line it stands in, so that what is wrong with it is said
//! where it can be mended.
//!
//! Read from the events of `saphyr-parser` (YAML 1.2): a serde reader would know the first error's
//! place and no other's, and what the controller says about a field would have none at all.
//!
//! Deliberately absent: merge keys (`<<`), which YAML 1.2 does not have, and tags but those of the
//! core schema. Anchors are followed, within [`NODES_MAX`].

use std::collections::BTreeMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput};
use serde_json::{Number, Value};

/// Most values of a file, those that an alias repeats counted each time: far more than any policy
/// file has, and little to keep.
const NODES_MAX: usize = 100_000;
/// How deep values may be nested.
const DEPTH_MAX: usize = 32;

/// Where something stands, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) struct Place {
    pub(in crate::cli) line: usize,
    pub(in crate::cli) column: usize,
}

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::cli) struct Node {
    pub(in crate::cli) place: Place,
    pub(in crate::cli) kind: Kind,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::cli) enum Kind {
    Scalar(Value),
    List(Vec<Node>),
    /// In the file's order; each key once.
    Map(Vec<Field>),
}

/// A key, its place and its value.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::cli) struct Field {
    pub(in crate::cli) key: String,
    pub(in crate::cli) place: Place,
    pub(in crate::cli) value: Node,
}

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct Wrong {
    pub(in crate::cli) place: Place,
    pub(in crate::cli) problem: String,
}

impl Node {
    /// Without its places.
    pub(in crate::cli) fn to_json(&self) -> Value {
        match &self.kind {
            Kind::Scalar(value) => value.clone(),
            Kind::List(items) => items.iter().map(Self::to_json).collect(),
            Kind::Map(fields) => fields
                .iter()
                .map(|field| (field.key.clone(), field.value.to_json()))
                .collect(),
        }
    }
}

/// All documents of a file; those with nothing in them are left out.
pub(in crate::cli) fn documents(text: &str) -> Result<Vec<Node>, Wrong> {
    let mut reader = Reader {
        events: Parser::new_from_str(text),
        anchors: BTreeMap::new(),
        nodes: 0,
    };
    let mut documents = Vec::new();
    loop {
        match reader.next()? {
            (Event::StreamEnd, _) => return Ok(documents),
            (Event::DocumentStart(_), _) => {
                let (event, span) = reader.next()?;
                let document = reader.node(event, span, 0)?;
                if document.kind != Kind::Scalar(Value::Null) {
                    documents.push(document);
                }
            }
            _ => {}
        }
    }
}

struct Reader<'a> {
    events: Parser<'a, StrInput<'a>>,
    anchors: BTreeMap<usize, (Node, usize)>,
    nodes: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), Wrong> {
        match self.events.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(Wrong {
                place: place(*error.marker()),
                problem: format!("is no YAML: {}", error.info()),
            }),
            None => Ok((Event::StreamEnd, Span::empty(Marker::new(0, 1, 0)))),
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, Wrong> {
        let place = place(span.start);
        let wrong = |problem: &str| Wrong {
            place,
            problem: problem.to_owned(),
        };
        if depth > DEPTH_MAX {
            return Err(wrong(
                "is nested deeper than anything that is expected here",
            ));
        }
        let before = self.nodes;
        self.count(1, place)?;
        let (kind, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let text_wanted = match tag {
                    None => style != ScalarStyle::Plain,
                    Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => true,
                    Some(_) => return Err(wrong("has a tag: expected none")),
                };
                let value = if text_wanted {
                    Value::from(&*text)
                } else {
                    plain(&text)
                };
                (Kind::Scalar(value), anchor)
            }
            Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_)) => {
                return Err(wrong("has a tag: expected none"));
            }
            Event::SequenceStart(anchor, None) => (self.items(depth)?, anchor),
            Event::MappingStart(anchor, None) => (self.fields(depth)?, anchor),
            Event::Alias(anchor) => {
                let Some((node, nodes)) = self.anchors.get(&anchor).cloned() else {
                    return Err(wrong("is an alias of itself"));
                };
                self.count(nodes, place)?;
                return Ok(Node { place, ..node });
            }
            _ => return Err(wrong("is no value")),
        };
        let node = Node { place, kind };
        if anchor > 0 {
            self.anchors
                .insert(anchor, (node.clone(), self.nodes - before));
        }
        Ok(node)
    }

    fn count(&mut self, nodes: usize, place: Place) -> Result<(), Wrong> {
        self.nodes += nodes;
        if self.nodes <= NODES_MAX {
            return Ok(());
        }
        Err(Wrong {
            place,
            problem: format!("is too much: expected at most {NODES_MAX} values in a file"),
        })
    }

    fn items(&mut self, depth: usize) -> Result<Kind, Wrong> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Kind::List(items)),
                (event, span) => items.push(self.node(event, span, depth + 1)?),
            }
        }
    }

    fn fields(&mut self, depth: usize) -> Result<Kind, Wrong> {
        let mut fields: Vec<Field> = Vec::new();
        loop {
            let key = match self.next()? {
                (Event::MappingEnd, _) => return Ok(Kind::Map(fields)),
                (event, span) => self.node(event, span, depth + 1)?,
            };
            let wrong = |problem: String| Wrong {
                place: key.place,
                problem,
            };
            let name = match key.kind {
                Kind::Scalar(Value::String(name)) => name,
                _ => return Err(wrong("is no field's name: expected a word".into())),
            };
            if name == "<<" {
                let problem = "merges another mapping, which YAML 1.2 does not have: expected each field in each policy";
                return Err(wrong(problem.into()));
            }
            if let Some(first) = fields.iter().find(|field| field.key == name) {
                let problem = format!("{name} is there twice, first in line {}", first.place.line);
                return Err(wrong(problem));
            }
            let (event, span) = self.next()?;
            let value = self.node(event, span, depth + 1)?;
            fields.push(Field {
                key: name,
                place: key.place,
                value,
            });
        }
    }
}

fn place(marker: Marker) -> Place {
    Place {
        line: marker.line(),
        column: marker.col() + 1,
    }
}

/// A plain scalar by YAML 1.2's core schema: `off`, `yes` and `no` are words.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let digits = text.trim_start_matches(['-', '+']);
    let number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && text.len() - digits.len() <= 1
        && digits
            .chars()
            .all(|c| c.is_ascii_digit() || "+-.eE".contains(c));
    if number {
        let unsigned = text.trim_start_matches('+');
        if let Ok(whole) = unsigned.parse::<u64>() {
            return whole.into();
        }
        if let Ok(whole) = unsigned.parse::<i64>() {
            return whole.into();
        }
        if let Some(number) = unsigned.parse().ok().and_then(Number::from_f64) {
            return Value::Number(number);
        }
    }
    Value::from(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Vec<Value> {
        documents(text).unwrap().iter().map(Node::to_json).collect()
    }

    #[test]
    fn words_are_words_and_numbers_are_numbers() {
        let text = "{a: off, b: no, c: 0.05, d: 12, e: -3, f: '7', g: true, h: ~, i: 1.2.3, j: .5, k: 1e3, l: !!str 5}";
        let expected = json!({
            "a": "off", "b": "no", "c": 0.05, "d": 12, "e": -3, "f": "7", "g": true, "h": null,
            "i": "1.2.3", "j": 0.5, "k": 1000.0, "l": "5",
        });
        assert_eq!(read(text), [expected]);
    }

    #[test]
    fn documents_without_anything_are_left_out() {
        let text = "# only words\n---\na: 1\n---\n# nothing\n---\n- 2\n";
        assert_eq!(read(text), [json!({"a": 1}), json!([2])]);
        assert_eq!(read(""), Vec::<Value>::new());
    }

    #[test]
    fn every_field_knows_its_line() {
        let document = documents("a: 1\n\nb:\n  - c: x\n").unwrap().remove(0);
        let Kind::Map(fields) = document.kind else {
            unreachable!()
        };
        assert_eq!((fields[1].place.line, fields[1].place.column), (3, 1));
        let Kind::List(items) = &fields[1].value.kind else {
            unreachable!()
        };
        assert_eq!((items[0].place.line, items[0].place.column), (4, 5));
    }

    #[test]
    fn anchors_are_followed_and_cannot_grow_without_end() {
        assert_eq!(
            read("a: &x {n: 1}\nb: *x\n"),
            [json!({"a": {"n": 1}, "b": {"n": 1}})]
        );
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for i in 1..12 {
            let before = format!("*a{}, ", i - 1).repeat(10);
            bomb.push_str(&format!("a{i}: &a{i} [{before}]\n"));
        }
        let wrong = documents(&bomb).unwrap_err();
        assert!(
            wrong.problem.contains("at most 100000"),
            "{}",
            wrong.problem
        );
        let deep = "[".repeat(1_000);
        assert!(documents(&deep).is_err());
    }

    #[test]
    fn b60_what_cannot_be_meant_is_refused_where_it_stands() {
        for (text, line, said) in [
            ("a: 1\nb: 2\na: 3\n", 3, "a is there twice, first in line 1"),
            ("a: [1\nb: 2\n", 2, "is no YAML"),
            ("x: &x {a: 1}\ny:\n  <<: *x\n", 3, "YAML 1.2 does not have"),
            ("a: !secret x\n", 1, "expected none"),
            ("[1, 2]: 3\n", 1, "expected a word"),
            ("1: 3\n", 1, "expected a word"),
        ] {
            let wrong = documents(text).unwrap_err();
            assert!(wrong.problem.contains(said), "{text}: {wrong:?}");
            assert_eq!(wrong.place.line, line, "{text}: {wrong:?}");
        }
    }
}
