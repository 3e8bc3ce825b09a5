//! What the benches found, kept as JSON lines in `target/bench/agent.jsonl`: one for each row and
//! subject, for the tables and for whoever compares runs.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs, io};

use serde_json::Value;

/// Keeps what was found for `subject` in `row`, in place of what an earlier run found. Lines of
/// other rows and subjects stay: they are another bench's. A value that is no number (nothing was
/// there to measure) is left out.
///
/// # Panics
/// Where the file cannot be written: figures that are not kept are lost unnoticed.
pub(crate) fn put(row: &str, subject: &str, fields: &[(&str, f64)]) {
    let kept = try_put(row, subject, fields);
    assert!(kept.is_ok(), "{}: {kept:?}", file().display());
}

/// Where the lines are: in the target directory that this bench was built in.
pub(crate) fn file() -> PathBuf {
    let named = env::var_os("CARGO_TARGET_DIR")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    // A bench is <target>/<profile>/deps/<name>.
    let built_in = || Some(env::current_exe().ok()?.ancestors().nth(3)?.to_owned());
    let target = named.or_else(built_in).unwrap_or("target".into());
    target.join("bench").join("agent.jsonl")
}

fn try_put(row: &str, subject: &str, fields: &[(&str, f64)]) -> io::Result<()> {
    let file = file();
    let before = match fs::read_to_string(&file) {
        Ok(lines) => lines,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    let ours = |line: &&str| {
        serde_json::from_str::<Value>(line)
            .is_ok_and(|line| line["row"] == row && line["subject"] == subject)
    };
    let mut lines: Vec<_> = before.lines().filter(|line| !ours(line)).collect();
    let new = line(row, subject, fields);
    lines.push(&new);
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    // Renamed into place: a bench that is stopped leaves the lines of before.
    let half = file.with_extension("jsonl.new");
    fs::write(&half, lines.join("\n") + "\n")?;
    fs::rename(half, file)
}

fn line(row: &str, subject: &str, fields: &[(&str, f64)]) -> String {
    let mut line = format!(r#"{{"row":"{row}","subject":"{subject}""#);
    for (name, value) in fields.iter().filter(|(_, value)| value.is_finite()) {
        let rounded = (value * 1e5).round() / 1e5;
        let _ = write!(line, r#","{name}":{rounded}"#);
    }
    line + "}"
}
