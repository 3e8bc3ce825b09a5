//! `hedgerow simulate`, by the real binary.

use std::process::{Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::process::command;

fn simulate(arguments: &[&str]) -> Output {
    command()
        .arg("simulate")
        .args(arguments)
        .stdout(Stdio::piped())
        .output()
        .unwrap()
}

#[track_caller]
fn said(arguments: &[&str]) -> String {
    let output = simulate(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert_eq!(error, "", "progress is for a terminal");
    String::from_utf8(output.stdout).unwrap()
}

/// Few calls: this is about the command, not about what it simulates.
const SHORT: [&str; 5] = ["all-slow", "--calls-per-s", "100", "--seed", "3"];

#[test]
fn without_a_scenario_they_are_listed() {
    let list = said(&[]);
    for name in ["healthy", "all-slow", "fleet-100k", "ten-liars"] {
        assert!(list.contains(&format!("  {name} ")), "{list}");
    }
}

#[test]
fn people_see_phases_the_course_and_what_happened_when() {
    let text = said(&SHORT);
    for expected in [
        "Everything five times slower for half a minute",
        "5 agents, 100 calls a second, 5 replicas, seed 3, hedgerow",
        "during       60    90",
        "went off once",
        "came back once",
        "off: shared slowdown",
        "SharedSlowdown",
        "▒",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
}

#[test]
fn programs_get_every_second_and_the_same_seed_the_same_run() {
    let json = || said(&[&SHORT[..], &["--json"]].concat());
    let first = json();
    assert_eq!(first, json());
    let outcome: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(outcome["seconds"].as_array().unwrap().len(), 150);
    assert_eq!(outcome["summary"]["offs"], 1);
    assert_eq!(outcome["changes"][1]["reason"], "shared_slowdown");
    let other = said(&[&SHORT[..3], &["--seed", "4", "--json"]].concat());
    assert_ne!(first, other);
}

#[test]
fn three_clients_side_by_side_have_the_same_calls() {
    let text = said(&[&SHORT[..], &["--compare"]].concat());
    for client in ["without hedging", "live p95 alone", "Hedgerow"] {
        let lines = text.lines().filter(|line| line.contains(client));
        assert!(lines.count() >= 3, "{client} in {text}");
    }
}

#[test]
fn the_course_is_drawn_and_a_scenario_of_ones_own_is_taken() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("mine.toml"), said(&["all-slow", "--show"])).unwrap();
    let (mine, plot) = (path("mine.toml"), path("course.svg"));
    let plotted = [
        "--calls-per-s",
        "100",
        "--seed",
        "3",
        "--plot",
        &plot,
        "--json",
    ];
    let own = said(&[&[mine.as_str()], &plotted[..]].concat());
    assert_eq!(own, said(&[&SHORT[..], &["--json"]].concat()));
    let svg = std::fs::read_to_string(plot).unwrap();
    assert!(svg.starts_with("<svg"), "{}", &svg[..80]);
    assert!(svg.contains("probing: shared_slowdown"));
}

#[test]
fn b60_what_cannot_be_simulated_is_said_with_what_was_expected() {
    let folder = TempDir::new().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let typo = file("typo.toml", "title = \"a\"\nabout = \"b\"\nsecnds = 3\n");
    let range = file("range.toml", "title = \"a\"\nabout = \"b\"\nseconds = 0\n");
    let policy = file(
        "policy.toml",
        "title = \"a\"\nabout = \"b\"\nseconds = 9\n[policy]\npercentile = 95\n",
    );
    for (arguments, expected) in [
        (vec!["al-slow"], "expected a path or one of healthy"),
        (vec![typo.as_str()], "secnds"),
        (vec![range.as_str()], "seconds"),
        (vec![policy.as_str()], "0.92"),
        (vec!["healthy", "--replicas", "0"], "replicas"),
        (vec!["healthy", "--calls-per-s", "nan"], "calls_per_s"),
        (vec!["healthy", "--agents", "-3"], "agents"),
        (vec!["--json"], "SCENARIO"),
        (
            vec!["healthy", "--seconds", "20", "--plot", "/none/here.svg"],
            "cannot be written",
        ),
    ] {
        let output = simulate(&arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}
