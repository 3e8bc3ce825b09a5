//! The record as a file: CSV for a spreadsheet, JSON for a program. Written line by line as it is
//! read from the store, however long it is.
//!
//! CSV is RFC 4180: a head, CRLF, every cell in quotes. A cell that a spreadsheet would take for a
//! formula gets an apostrophe before it, which spreadsheets take for "this is text".

use axum::Extension;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, StreamExt as _};
use hedgerow_core::effect::AuditRow;
use serde::Serialize;

use super::filter::{Filter, FilterQuery};
use crate::backend::{Backend, RecordQuery, StoreError};
use crate::format::precise;
use crate::guard::Viewer;
use crate::pages::error;
use crate::router::App;

/// Lines read at once.
const READ: u32 = 500;

/// How the record is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma separated values.
    Csv,
    /// An array of objects.
    Json,
}

impl Format {
    /// By its name in an address, `csv` or `json`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "csv" => Some(Self::Csv),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    /// What it is, for the answer's head.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8; header=present",
            Self::Json => "application/json",
        }
    }

    /// For whoever saves it.
    pub const fn disposition(self) -> &'static str {
        match self {
            Self::Csv => "attachment; filename=\"hedgerow-record.csv\"",
            Self::Json => "attachment; filename=\"hedgerow-record.json\"",
        }
    }
}

/// The columns, in their order.
const HEAD: [&str; 9] = [
    "number", "at", "actor", "via", "action", "target", "before", "after", "reason",
];

/// A line as JSON has it.
#[derive(Serialize)]
struct Line<'a> {
    number: i64,
    at: String,
    actor: &'a str,
    via: &'static str,
    action: &'a str,
    target: &'a str,
    before: &'a str,
    after: &'a str,
    reason: &'a str,
}

/// What a file in this format begins with.
pub fn begin(format: Format) -> String {
    match format {
        Format::Csv => csv(&HEAD.map(str::to_owned)),
        Format::Json => "[".into(),
    }
}

/// Lines of the record in this format; `first`: none were written before.
pub fn lines(format: Format, rows: &[(i64, AuditRow)], first: bool) -> String {
    let mut out = String::new();
    for (i, (number, row)) in rows.iter().enumerate() {
        match format {
            Format::Csv => out.push_str(&csv(&cells(*number, row))),
            Format::Json => {
                out.push_str(if first && i == 0 { "\n" } else { ",\n" });
                out.push_str(&json(*number, row));
            }
        }
    }
    out
}

/// What it ends with.
pub const fn end(format: Format) -> &'static str {
    match format {
        Format::Csv => "",
        Format::Json => "\n]\n",
    }
}

fn cells(number: i64, row: &AuditRow) -> [String; 9] {
    [
        number.to_string(),
        precise(row.at),
        row.actor.name.clone(),
        row.actor.via.as_str().to_owned(),
        row.action.clone(),
        row.target.clone(),
        row.before.clone(),
        row.after.clone(),
        row.reason.clone(),
    ]
}

fn json(number: i64, row: &AuditRow) -> String {
    let line = Line {
        number,
        at: precise(row.at),
        actor: &row.actor.name,
        via: row.actor.via.as_str(),
        action: &row.action,
        target: &row.target,
        before: &row.before,
        after: &row.after,
        reason: &row.reason,
    };
    serde_json::to_string(&line).expect("a line is text and a number, which JSON has")
}

/// One line of CSV.
fn csv(cells: &[String]) -> String {
    let mut out = String::new();
    for (i, cell) in cells.iter().enumerate() {
        out.push_str(if i == 0 { "\"" } else { ",\"" });
        if cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']) {
            out.push('\'');
        }
        out.push_str(&cell.replace('"', "\"\""));
        out.push('"');
    }
    out.push_str("\r\n");
    out
}

/// What is left to be written.
struct Left<B> {
    backend: B,
    format: Format,
    query: RecordQuery,
    first: bool,
    rows: Option<Vec<(i64, AuditRow)>>,
}

impl<B: Backend> Left<B> {
    /// The next piece; None: it is whole.
    async fn next(mut self) -> Option<(Result<String, StoreError>, Option<Self>)> {
        let rows = match self.rows.take() {
            Some(rows) => rows,
            None => match self.backend.record(self.query.clone()).await {
                Ok(rows) => rows,
                // The answer has begun: it is cut off, which whoever saves it notices.
                Err(problem) => return Some((Err(problem), None)),
            },
        };
        let mut piece = if self.first {
            begin(self.format)
        } else {
            String::new()
        };
        piece.push_str(&lines(self.format, &rows, self.first));
        self.first = false;
        let oldest = rows.last().map(|(number, _)| *number);
        if rows.len() < READ as usize || oldest.is_none() {
            piece.push_str(end(self.format));
            return Some((Ok(piece), None));
        }
        self.query.before = oldest;
        Some((Ok(piece), Some(self)))
    }
}

/// The lines that `query` asks for as an answer's body, newest first, read as it is sent; an error
/// where the store cannot be read at all.
pub async fn body<B: Backend>(
    backend: B,
    format: Format,
    query: RecordQuery,
) -> Result<Body, StoreError> {
    let query = RecordQuery {
        limit: READ,
        ..query
    };
    let rows = backend.record(query.clone()).await?;
    let left = Left {
        backend,
        format,
        query,
        first: true,
        rows: Some(rows),
    };
    let pieces = stream::unfold(Some(left), |left| async { left?.next().await });
    Ok(Body::from_stream(pieces.boxed()))
}

/// GET /record/export?format=csv|json, with the page's filter.
pub(crate) async fn file<B: Backend>(
    State(app): State<App<B>>,
    Extension(_): Extension<Viewer>,
    Query(query): Query<FilterQuery>,
) -> Response {
    let wanted = if query.format.is_empty() {
        "csv"
    } else {
        query.format.as_str()
    };
    let Some(format) = Format::named(wanted) else {
        let words = format!("The format {wanted:?} is not written: expected csv or json.");
        return error::plain(StatusCode::BAD_REQUEST, "No such format", &words);
    };
    let filter = Filter::new(query);
    if !filter.problems.is_empty() {
        // A file that holds other lines than were asked for would be taken for the right one.
        let words = format!("{}.", filter.problems.join("; "));
        return error::plain(StatusCode::BAD_REQUEST, "Not understood", &words);
    }
    match body(app.backend, format, filter.query()).await {
        Err(problem) => error::store(&problem),
        Ok(body) => {
            let head = [
                (
                    header::CONTENT_TYPE,
                    HeaderValue::from_static(format.content_type()),
                ),
                (
                    header::CONTENT_DISPOSITION,
                    HeaderValue::from_static(format.disposition()),
                ),
            ];
            (head, body).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u12_a_cell_is_text_whatever_it_begins_with() {
        for (cell, written) in [
            ("plain", "\"plain\"\r\n"),
            ("=1+1", "\"'=1+1\"\r\n"),
            ("+1", "\"'+1\"\r\n"),
            ("-1", "\"'-1\"\r\n"),
            ("@SUM(A1)", "\"'@SUM(A1)\"\r\n"),
            ("\t=1", "\"'\t=1\"\r\n"),
            ("a \"b\", c", "\"a \"\"b\"\", c\"\r\n"),
            ("two\r\nlines", "\"two\r\nlines\"\r\n"),
            ("", "\"\"\r\n"),
        ] {
            assert_eq!(csv(&[cell.to_owned()]), written, "{cell}");
        }
    }
}
