//! Figures kept as lines of JSON in `target/bench/core.jsonl`, one line a row.

use std::path::PathBuf;
use std::{env, fs, io};

use serde_json::{Map, Value};

/// Where the lines are: in the target directory that this bench was built in.
fn file() -> PathBuf {
    let named = env::var_os("CARGO_TARGET_DIR")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    // A bench is <target>/<profile>/deps/<name>.
    let built_in = || Some(env::current_exe().ok()?.ancestors().nth(3)?.to_owned());
    let target = named.or_else(built_in).unwrap_or("target".into());
    target.join("bench").join("core.jsonl")
}

/// Keeps what was found in `row`, in place of what an earlier run found. Lines of other rows stay.
pub(crate) fn put(row: &str, figures: &[(&str, f64)]) -> io::Result<()> {
    let file = file();
    let before = match fs::read_to_string(&file) {
        Ok(lines) => lines,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    let ours =
        |line: &&str| serde_json::from_str::<Value>(line).is_ok_and(|line| line["row"] == row);
    let mut new = Map::new();
    new.insert("row".into(), row.into());
    for (name, value) in figures {
        new.insert((*name).into(), ((value * 1e5).round() / 1e5).into());
    }
    let new = Value::Object(new).to_string();
    let mut lines: Vec<_> = before.lines().filter(|line| !ours(line)).collect();
    lines.push(&new);
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    // Renamed into place: a bench that is stopped leaves the lines of before.
    let half = file.with_extension("jsonl.new");
    fs::write(&half, lines.join("\n") + "\n")?;
    fs::rename(half, file)
}
