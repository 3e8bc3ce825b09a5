//! `hedgerow whatif`, by the real binary: the lab's file against itself.

use std::io::Write as _;
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::process::command;

const LAB: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/core/tests/data/lab_sample.json"
);

fn whatif(sample: &str, arguments: &[&str]) -> Output {
    command()
        .args(["whatif", "--sample", sample])
        .args(arguments)
        .stdout(Stdio::piped())
        .output()
        .unwrap()
}

#[track_caller]
fn answer(sample: &str, arguments: &[&str]) -> String {
    let output = whatif(sample, arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert_eq!(error, "");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn json_of(sample: &str, arguments: &[&str]) -> Value {
    serde_json::from_str(&answer(sample, arguments)).unwrap()
}

#[track_caller]
fn refusal(sample: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let output = whatif(sample, arguments);
    assert!(output.stdout.is_empty());
    let error = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), error)
}

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn path(file: &NamedTempFile) -> &str {
    file.path().to_str().unwrap()
}

#[test]
fn the_labs_figures_come_out_as_they_are_in_its_file() {
    let lab: Value = serde_json::from_str(&std::fs::read_to_string(LAB).unwrap()).unwrap();
    let expected = json!({"unhedged_ms": lab["unhedged_ms"], "hedged": lab["hedged"]});
    assert_eq!(json_of(LAB, &["--json"]), expected);

    // As a list of latencies it is the same sample.
    let counts = lab["sample_ms"].as_object().unwrap();
    let lines = counts.iter().map(|(at, count)| {
        let count = usize::try_from(count.as_u64().unwrap()).unwrap();
        format!("{at}\n").repeat(count)
    });
    let list = file(&lines.collect::<String>());
    assert_eq!(json_of(path(&list), &["--json"]), expected);
}

#[test]
fn the_goals_of_the_algorithms_come_out_to_three_digits() {
    for (budget, expected) in [
        (
            "0.02",
            r#"{"delay_ms":50,"probability":0.769,"extra_load":0.0154,"goal_ms":62}"#,
        ),
        (
            "0.03",
            r#"{"delay_ms":30,"probability":0.556,"extra_load":0.0278,"goal_ms":50}"#,
        ),
        (
            "0.04",
            r#"{"delay_ms":30,"probability":0.556,"extra_load":0.0278,"goal_ms":50}"#,
        ),
        (
            "0.05",
            r#"{"delay_ms":30,"probability":1,"extra_load":0.05,"goal_ms":45}"#,
        ),
        (
            "0.10",
            r#"{"delay_ms":20,"probability":1,"extra_load":0.1,"goal_ms":35}"#,
        ),
    ] {
        let goal = ["--goal", "p99", "--budget", budget, "--json"];
        assert_eq!(answer(LAB, &goal).trim_end(), expected);

        let whole = json_of(LAB, &[&goal[..], &["--curve"]].concat());
        assert_eq!(
            whole["goal"],
            serde_json::from_str::<Value>(expected).unwrap()
        );
        assert_eq!(whole["hedged"].as_array().map(Vec::len), Some(7));
    }
}

#[test]
fn where_nothing_is_gained_it_says_not_to_hedge_and_why() {
    let shared = ["--goal", "p99", "--budget", "0.05", "--phi", "1"];
    let expected = json!({
        "delay_ms": null, "probability": 0, "extra_load": 0, "goal_ms": 120,
        "reason": "p99 would stay at 120ms: nothing is gained",
    });
    assert_eq!(json_of(LAB, &[&shared[..], &["--json"]].concat()), expected);
    let text = answer(LAB, &shared);
    assert!(
        text.contains("do not hedge.\np99 would stay at 120ms"),
        "{text}"
    );
}

#[test]
fn people_see_a_row_for_each_delay_with_its_bars_and_what_is_best() {
    let text = answer(LAB, &["--goal", "p99", "--budget", "0.03"]);
    let row = |delay: &str| {
        let row = text
            .lines()
            .find(|line| line.trim_start().starts_with(delay));
        row.unwrap_or_else(|| panic!("{text}"))
            .split_whitespace()
            .collect::<Vec<_>>()
    };
    assert_eq!(
        row("30 "),
        ["30", "5", "%", "12", "20", "30", "45", "60", "▊", "██████"]
    );
    assert_eq!(row("none ")[1..6], ["12", "20", "30", "120", "300"]);
    assert!(text.contains("100 calls"), "{text}");
    assert!(
        text.contains("Fewer than 10 calls are beyond p95, p99, p99.9"),
        "{text}"
    );
    assert!(
        text.ends_with(
            "p99 at 3 % extra load at most: 50 ms instead of 120.\n\
             Hedge 55.6 % of the calls that last longer than 30 ms: 2.78 % extra load.\n"
        ),
        "{text}"
    );
    let shared = answer(LAB, &["--phi", "0.2"]);
    assert!(shared.contains("shares 0.2 of its slowness"), "{shared}");
}

#[test]
fn what_cannot_be_answered_is_refused_with_what_was_expected() {
    let words = file("10\nfast\n");
    let empty = file("");
    let negative = file(r#"{"sample_ms": {"10": -4}}"#);
    for (sample, expected) in [
        (
            "/nowhere/latencies.txt",
            "/nowhere/latencies.txt cannot be opened",
        ),
        (
            path(&words),
            "line 2: \"fast\" is not a latency: expected milliseconds",
        ),
        (path(&empty), "expected at least one value"),
        (
            path(&negative),
            "expected a count, a whole number of 0 or more",
        ),
    ] {
        let (code, error) = refusal(sample, &["--json"]);
        assert_eq!(code, Some(1), "{error}");
        assert!(
            error.starts_with("hedgerow: ") && error.contains(expected),
            "{error}"
        );
    }
    for (arguments, expected) in [
        (&["--goal", "p99"][..], "--budget"),
        (&["--budget", "0.03"], "--goal"),
        (
            &["--goal", "99", "--budget", "0.03"],
            "expected p and a number",
        ),
        (
            &["--goal", "p99", "--budget", "3"],
            "at most 0.25, such as 0.08",
        ),
        (&["--phi", "-0.1"], "expected a number from 0 to 1"),
        (&["--curve"], "--json"),
    ] {
        let (code, error) = refusal(LAB, arguments);
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}
