//! Help, completions and manual pages.

use std::process::Stdio;

use tempfile::TempDir;

use super::Ran;
use crate::process::command;

fn run(arguments: &[&str]) -> Ran {
    let output = command().args(arguments).stdout(Stdio::piped()).output();
    Ran::new(output.unwrap())
}

#[test]
fn help_says_what_each_end_means() {
    let help = run(&["--help"]);
    help.said(
        0,
        &[
            "0  fine",
            "3  the controller refused it",
            "6  files and controller differ",
        ],
    );
    for command in [
        "status",
        "deps",
        "policy",
        "kill",
        "agents",
        "alerts",
        "receivers",
        "whatif",
        "replay",
        "audit",
        "check",
        "completions",
        "man",
    ] {
        help.said(0, &[&format!("\n  {command} ")]);
        let below = run(&[command, "--help"]);
        below.said(0, &["Usage: hedgerow"]);
    }
    run(&["--version"]).said(0, &[concat!("hedgerow ", env!("CARGO_PKG_VERSION"))]);
    run(&["polcy"]).complained(2, &["unrecognized subcommand"]);
}

#[test]
fn completions_know_every_command() {
    for (shell, parts) in [
        (
            "bash",
            &["complete -F _hedgerow", "accept-base", "--dry-run"][..],
        ),
        ("zsh", &["#compdef hedgerow", "accept-base", "--dry-run"]),
        ("fish", &["complete -c hedgerow", "accept-base", "dry-run"]),
    ] {
        run(&["completions", shell]).said(0, parts);
    }
    run(&["completions", "tcsh"]).complained(2, &["bash, zsh, fish"]);
}

#[test]
fn a_manual_page_is_written_for_each_command() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("man1");
    run(&["man", path.to_str().unwrap()]).said(0, &[]);
    for page in [
        "hedgerow.1",
        "hedgerow-policy-apply.1",
        "hedgerow-deps-accept-base.1",
    ] {
        let text = std::fs::read_to_string(path.join(page)).unwrap();
        assert!(text.contains(".TH"), "{page}");
    }
    let hidden = path.join("hedgerow-demo-client.1");
    assert!(!hidden.exists());
}
