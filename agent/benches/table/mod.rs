//! Tables out of the kept lines: for the terminal, and for the README.

use std::fmt::Write as _;
use std::{fs, io};

use serde_json::Value;

use crate::rows;
use crate::scenes::{ROWS, Row};
use crate::subjects::Subject;

/// Where the tables stand in the README.
const BEGIN: &str = "<!-- results: begin -->";
const END: &str = "<!-- results: end -->";

/// All rows that are kept.
pub(crate) fn all() -> io::Result<String> {
    let lines = lines()?;
    let mut text = String::new();
    for row in ROWS {
        text += &of(row, &lines);
    }
    Ok(text)
}

/// One row's table, from what is kept.
pub(crate) fn one(row: &Row) -> io::Result<String> {
    Ok(of(row, &lines()?))
}

/// Puts the tables of all rows into the README.
pub(crate) fn into_readme() -> io::Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
    let readme = fs::read_to_string(path)?;
    let parts = readme.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some((before, after))
    });
    let Some((before, after)) = parts else {
        let missing = format!("{path}: expected {BEGIN} and {END}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, missing));
    };
    fs::write(path, format!("{before}{BEGIN}\n{}{END}{after}", all()?))
}

fn lines() -> io::Result<Vec<Value>> {
    let text = fs::read_to_string(rows::file())?;
    let parsed = text.lines().map(serde_json::from_str);
    Ok(parsed.collect::<Result<_, _>>()?)
}

fn of(row: &Row, lines: &[Value]) -> String {
    let found = |subject: Subject| {
        let is = |line: &&Value| line["row"] == row.name && line["subject"] == subject.as_str();
        lines.iter().find(is)
    };
    let (bare, tower) = (found(Subject::Bare), found(Subject::Tower));
    let mut text = format!("\n**{}**: {}.\n\n", row.name, row.about);
    text += "| | hedge rate | worst second | p50, ms | p99 | p99.9 | p99.9 ÷ bare | ÷ tower |";
    for (_, column) in row.extra {
        let _ = write!(text, " {column} |");
    }
    let columns = 8 + row.extra.len();
    let _ = writeln!(text, "\n|{}", "---|".repeat(columns));
    for subject in Subject::ALL {
        let Some(line) = found(subject) else {
            continue;
        };
        let ratio = |to: Option<&Value>| {
            let p999 = |line: &Value| line["p999_ms"].as_f64();
            let ratio = p999(line).zip(to.and_then(p999)).map(|(x, y)| x / y);
            ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"))
        };
        let _ = write!(text, "| {} |", subject.as_str());
        for field in [
            "hedge_rate",
            "worst_second_hedge_rate",
            "p50_ms",
            "p99_ms",
            "p999_ms",
        ] {
            let _ = write!(text, " {} |", cell(field, &line[field]));
        }
        let _ = write!(text, " {} | {} |", ratio(bare), ratio(tower));
        for (field, _) in row.extra {
            let _ = write!(text, " {} |", cell(field, &line[*field]));
        }
        text.push('\n');
    }
    text
}

fn cell(field: &str, value: &Value) -> String {
    let Some(value) = value.as_f64() else {
        let absent = if field == "under_10_after_s" {
            "never"
        } else {
            "-"
        };
        return absent.to_owned();
    };
    match field {
        "hedge_rate" | "worst_second_hedge_rate" | "extra_load" => {
            format!("{:.1} %", value * 100.0)
        }
        "success" | "throughput_ratio" | "share_over_1s" => format!("{:.2} %", value * 100.0),
        "busy_ratio" => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    }
}
