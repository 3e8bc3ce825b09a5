//! A file of latencies, read.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use hedgerow_core::whatif::{Distribution, latency};
use serde::Deserialize;
use serde::de::{Error as _, MapAccess, Visitor};

/// Most that is read: some ten million lines.
const FILE_MAX: u64 = 64 << 20;

/// Both ways to write a sample, for who has written neither.
const EXPECTED: &str = r#"expected {"sample_ms": {"10": 40, ...}}, counts by latency in milliseconds, or latencies in milliseconds, one a line"#;

/// The latencies in a file. A pipe will do.
pub(super) fn read(path: &Path) -> anyhow::Result<Distribution> {
    let at = || format!("{}", path.display());
    let file = File::open(path).with_context(|| format!("{} cannot be opened", path.display()))?;
    let mut bytes = Vec::new();
    file.take(FILE_MAX + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("{} cannot be read", path.display()))?;
    if bytes.len() as u64 > FILE_MAX {
        bail!(
            "{} is too long: expected at most {} MiB; take a part of it, or counts by latency",
            path.display(),
            FILE_MAX >> 20
        );
    }
    let text = String::from_utf8(bytes)
        .ok()
        .with_context(|| format!("{} is not text: {EXPECTED}", path.display()))?;
    parse(&text).with_context(at)
}

fn parse(text: &str) -> anyhow::Result<Distribution> {
    let counts = if text.trim_start().starts_with('{') {
        let file: SampleFile = serde_json::from_str(text).context(EXPECTED)?;
        file.sample_ms.0
    } else {
        lines(text)?
    };
    Distribution::of_counts(counts).context(EXPECTED)
}

/// One latency a line; empty lines are nothing.
fn lines(text: &str) -> anyhow::Result<Vec<(Duration, u64)>> {
    text.lines()
        .enumerate()
        .map(|(number, line)| (number + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty())
        .map(|(number, line)| {
            let at = millis(line).with_context(|| format!("line {number}"))?;
            Ok((at, 1))
        })
        .collect()
}

fn millis(text: &str) -> anyhow::Result<Duration> {
    let number: f64 = text.trim().parse().ok().with_context(|| {
        format!("{text:?} is not a latency: expected milliseconds, a number such as 12.5")
    })?;
    Ok(latency(number)?)
}

/// The file as JSON; what else is in it is its writer's.
#[derive(Deserialize)]
struct SampleFile {
    sample_ms: CountsByLatency,
}

/// Not a map: "10" and "10.0" are the same latency, and neither may hide the other.
struct CountsByLatency(Vec<(Duration, u64)>);

impl<'de> Deserialize<'de> for CountsByLatency {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Counts;
        impl<'de> Visitor<'de> for Counts {
            type Value = CountsByLatency;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of counts by latency in milliseconds")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut counts = Vec::new();
                while let Some((at, count)) = map.next_entry::<String, Count>()? {
                    let at = millis(&at).map_err(A::Error::custom)?;
                    counts.push((at, count.0));
                }
                Ok(CountsByLatency(counts))
            }
        }
        deserializer.deserialize_map(Counts)
    }
}

/// A count that says what it should have been.
struct Count(u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Whole;
        impl Visitor<'_> for Whole {
            type Value = Count;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a count, a whole number of 0 or more")
            }

            fn visit_u64<E>(self, count: u64) -> Result<Count, E> {
                Ok(Count(count))
            }
        }
        deserializer.deserialize_u64(Whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_write_a_sample_give_the_same() {
        let list = parse("10\n 12.5 \n\n10.0\r\n1e1").unwrap();
        for object in [
            r#"{"sample_ms": {"10": 3, "12.5": 1}}"#,
            r#" {"about": "x", "sample_ms": {"10": 1, "12.5": 1, "10.0": 1, "10 ": 1, "7": 0}} "#,
            r#"{"sample_ms": {"10": 1, "12.5": 1, "10": 2}}"#,
        ] {
            assert_eq!(parse(object).unwrap(), list, "{object}");
        }
        assert_eq!(list.calls(), 4);
    }

    #[test]
    fn what_is_no_sample_is_refused_with_the_place_and_what_was_expected() {
        for (text, expected) in [
            ("", "there are no latencies"),
            ("\n\n", "expected {\"sample_ms\""),
            (
                "10\n12ms\n",
                "line 2: \"12ms\" is not a latency: expected milliseconds",
            ),
            (
                "10\n\n-3\n",
                "line 3: -3 is not a latency: expected milliseconds, a number from 0",
            ),
            ("nan", "line 1: NaN is not a latency"),
            ("inf", "line 1: inf is not a latency"),
            ("[10, 12]", "line 1: \"[10, 12]\" is not a latency"),
            ("{}", "missing field `sample_ms`"),
            (
                "{\"sample_ms\": {}}",
                "expected at least one value with a count above 0",
            ),
            (
                "{\"sample_ms\": {\"10\": 0}}",
                "expected at least one value with a count above 0",
            ),
            (
                "{\"sample_ms\": [10]}",
                "expected an object of counts by latency in milliseconds",
            ),
            (
                "{\"sample_ms\": {\"10\": -1}}",
                "expected a count, a whole number of 0 or more",
            ),
            (
                "{\"sample_ms\": {\"10\": 1.5}}",
                "expected a count, a whole number of 0 or more",
            ),
            ("{\"sample_ms\": {\"10\": 1e400}}", "number out of range"),
            (
                "{\"sample_ms\": {\"ten\": 1}}",
                "\"ten\" is not a latency: expected milliseconds",
            ),
            ("{\"sample_ms\": {\"-1\": 1}}", "-1 is not a latency"),
            (
                "{\"sample_ms\": {\"1\": 18446744073709551615}}",
                "too many latencies",
            ),
            ("{\"sample_ms\": {\"1\": 1", "expected {\"sample_ms\""),
        ] {
            let refused = format!("{:#}", parse(text).unwrap_err());
            assert!(refused.contains(expected), "{text:?}: {refused}");
        }
    }
}
