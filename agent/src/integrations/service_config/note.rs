//! What is refused, and what is taken differently or not at all.

use std::fmt;

/// Why a service config was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceConfigError {
    /// It is no JSON.
    #[error("the service config is no JSON")]
    Json(#[source] serde_json::Error),
    /// Fields that cannot stand: all of them at once.
    #[error("{}", list(.0))]
    Fields(Vec<FieldProblem>),
}

fn list(problems: &[FieldProblem]) -> String {
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    lines.join("; ")
}

/// A field that cannot stand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {found}; expected {expected}")]
pub struct FieldProblem {
    /// Where it is, as in `methodConfig[0].hedgingPolicy.maxAttempts`.
    pub path: String,
    /// What is there.
    pub found: String,
    /// What was expected.
    pub expected: &'static str,
}

/// How far a field was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// Its meaning here is another than in gRPC.
    Differently,
    /// It has no effect here.
    NotAtAll,
}

/// A field that was not taken as it is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Where it is, as in `methodConfig[0].hedgingPolicy.hedgingDelay`.
    pub path: String,
    /// How far it was taken.
    pub taken: Taken,
    /// What is done instead.
    pub message: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = match self.taken {
            Taken::Differently => "taken differently",
            Taken::NotAtAll => "not taken",
        };
        write!(f, "{}: {taken}: {}", self.path, self.message)
    }
}
