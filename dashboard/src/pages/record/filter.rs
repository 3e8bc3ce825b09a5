//! Which lines of the record, as it stands in the address.

use hedgerow_core::moment::Moment;
use hedgerow_protocol::ids::DependencyName;
use serde::Deserialize;

use crate::backend::RecordQuery;
use crate::format::{parse_moment, url_part};

/// As it was asked for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct FilterQuery {
    /// Only lines older than this one's number.
    pub(super) before: Option<i64>,
    pub(super) dependency: String,
    pub(super) action: String,
    pub(super) actor: String,
    pub(super) since: String,
    pub(super) until: String,
    /// Of an export: `csv` or `json`.
    pub(super) format: String,
}

/// As it was asked for, and what is made of it.
#[derive(Debug)]
pub(super) struct Filter {
    pub(super) typed: FilterQuery,
    /// What could not be understood: no lines are left out for it.
    pub(super) problems: Vec<String>,
    query: RecordQuery,
}

impl Filter {
    pub(super) fn new(typed: FilterQuery) -> Self {
        let mut problems = Vec::new();
        let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let dependency = given(&typed.dependency).and_then(|name| {
            DependencyName::new(&name)
                .map_err(|problem| problems.push(format!("dependency {problem}")))
                .ok()
        });
        let mut moment = |field: &str, text: &str| -> Option<Moment> {
            let text = given(text)?;
            let read = parse_moment(&text);
            if read.is_none() {
                problems.push(format!(
                    "{field} is {text:?}: expected a date or time in UTC, as 2026-03-01 or \
                     2026-03-01T14:03, or milliseconds since 1970"
                ));
            }
            read
        };
        let since = moment("since", &typed.since);
        let until = moment("until", &typed.until);
        let query = RecordQuery {
            dependency,
            action: given(&typed.action),
            actor: given(&typed.actor),
            since,
            until,
            ..RecordQuery::default()
        };
        Self {
            typed,
            problems,
            query,
        }
    }

    pub(super) fn query(&self) -> RecordQuery {
        self.query.clone()
    }

    /// Whether any line is left out.
    pub(super) fn any(&self) -> bool {
        self.query != RecordQuery::default()
    }

    /// The same filter at `path`, with `more` before it.
    pub(super) fn address(&self, path: &str, more: &str) -> String {
        let typed = &self.typed;
        let fields = [
            ("dependency", &typed.dependency),
            ("action", &typed.action),
            ("actor", &typed.actor),
            ("since", &typed.since),
            ("until", &typed.until),
        ];
        let mut parts: Vec<String> = Vec::new();
        if !more.is_empty() {
            parts.push(more.to_owned());
        }
        let given = fields.iter().filter(|(_, text)| !text.trim().is_empty());
        parts.extend(given.map(|(name, text)| format!("{name}={}", url_part(text.trim()))));
        if parts.is_empty() {
            path.to_owned()
        } else {
            format!("{path}?{}", parts.join("&"))
        }
    }

    pub(super) fn export(&self, format: &str) -> String {
        self.address("/record/export", &format!("format={format}"))
    }
}
