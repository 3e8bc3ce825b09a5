//! What can go wrong between a program and a controller.

use std::error::Error as _;
use std::fmt;
use std::path::PathBuf;

use reqwest::Url;
use serde_json::Value;

/// Why a controller did not do, or tell, what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address cannot be one.
    #[error("{}: {problem}; expected an address such as http://127.0.0.1:7410", shown(.given))]
    Address {
        /// As given.
        given: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The file of authorities cannot be used.
    #[error("{} cannot be used: {problem}; expected certificates as PEM", .path.display())]
    Authority {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Nobody answers there.
    #[error("no controller can be reached at {url}: {problem}")]
    Unreachable {
        /// Where.
        url: String,
        /// Why.
        problem: String,
    },
    /// Somebody answers who is no controller, or one that this program does not understand.
    #[error(
        "{url} does not answer as a controller does ({path}: {problem}); expected the address that people reach the dashboard by"
    )]
    Odd {
        /// Where.
        url: String,
        /// What was asked.
        path: String,
        /// What is odd.
        problem: String,
    },
    /// It refused.
    #[error(transparent)]
    Refused(Box<Problem>),
}

/// An address without what may be a secret in it.
fn shown(given: &str) -> &str {
    if given.contains('@') {
        "the address"
    } else {
        given
    }
}

impl ClientError {
    pub(super) fn unreachable(base: &Url, error: &reqwest::Error) -> Self {
        let problem = if error.is_timeout() {
            "it did not answer in time".to_owned()
        } else {
            root(error)
        };
        Self::Unreachable {
            url: base.to_string(),
            problem,
        }
    }

    /// The status of a refusal.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(problem) => Some(problem.status),
            _ => None,
        }
    }
}

/// The innermost cause: the outer ones say "error sending request" and no more.
fn root(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    let mut said = error.to_string();
    while let Some(inner) = cause {
        said = inner.to_string();
        cause = inner.source();
    }
    said
}

/// A refusal, after RFC 9457.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problem {
    /// The status code.
    pub status: u16,
    /// What kind, in a few words.
    pub title: String,
    /// What happened and what was expected.
    pub detail: String,
    /// Each field that cannot stand, with what was expected.
    pub errors: Vec<(String, String)>,
    /// The revision in force, where another was expected.
    pub current: Option<u64>,
}

impl Problem {
    /// Of an answer's body, whatever it has.
    pub fn read(status: u16, body: &Value) -> Self {
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        let errors = body["errors"].as_array().into_iter().flatten();
        Self {
            status,
            title: text("title"),
            detail: text("detail"),
            errors: errors
                .map(|error| {
                    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
                    (text("field"), text("message"))
                })
                .collect(),
            current: body["current"].as_u64(),
        }
    }

    /// What to do about it, where that is the same each time.
    fn cure(&self) -> Option<&'static str> {
        match self.status {
            401 => Some(
                "give an API token by --token-file FILE or HEDGEROW_API_TOKEN; `hedgerow api-token new --name NAME --role ROLE` on the controller's machine makes one",
            ),
            403 => Some("a token of a role that may do this is needed; nothing was changed"),
            _ => None,
        }
    }
}

/// The fields one a line, below what it is about.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the controller refused it ({}", self.status)?;
        if !self.title.is_empty() {
            write!(f, " {}", self.title)?;
        }
        f.write_str(")")?;
        // Where fields are named, the detail is the same once more; of a missing token it speaks to
        // whoever writes a program.
        if self.errors.is_empty() && !self.detail.is_empty() && self.status != 401 {
            write!(f, ": {}", self.detail)?;
        }
        for (field, message) in &self.errors {
            write!(f, "\n  {field}: {message}")?;
        }
        if let Some(cure) = self.cure() {
            write!(f, "\n  {cure}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_problems_fields_are_one_a_line() {
        let problem = Problem::read(
            422,
            &json!({
                "title": "Invalid values",
                "detail": "budget: a; reason: b",
                "errors": [{"field": "budget", "message": "a"}, {"field": "reason", "message": "b"}],
                "more": 1,
            }),
        );
        assert_eq!(
            problem.to_string(),
            "the controller refused it (422 Invalid values)\n  budget: a\n  reason: b"
        );
        let stale = Problem::read(412, &json!({"detail": "changed", "current": 8}));
        assert_eq!(stale.current, Some(8));
        assert_eq!(
            stale.to_string(),
            "the controller refused it (412): changed"
        );
        let nobody = Problem::read(401, &json!([])).to_string();
        assert!(nobody.contains("HEDGEROW_API_TOKEN"), "{nobody}");
    }
}
