//! The figures of a run, as lines of JSON in `target/bench/agent.jsonl`.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

fn file() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target")),
        PathBuf::from,
    );
    target.join("bench/agent.jsonl")
}

/// Puts a line in the place of the row's former one of the same subject.
pub(crate) fn put(row: &str, subject: &str, fields: &[(&str, f64)]) -> io::Result<()> {
    let file = file();
    let head = format!("{{\"row\":\"{row}\",\"subject\":\"{subject}\"");
    let mut lines: Vec<String> = match std::fs::read_to_string(&file) {
        Ok(text) => text.lines().map(str::to_owned).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    lines.retain(|line| !line.starts_with(&format!("{head},")));
    let mut line = head;
    for (name, value) in fields {
        // Three digits after the point, as many as any figure here is worth.
        let value = (value * 1e3).round() / 1e3;
        write!(line, ",\"{name}\":{value}").map_err(io::Error::other)?;
    }
    lines.push(line + "}");
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(file, lines.join("\n") + "\n")
}
